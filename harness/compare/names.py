"""What a cluster generated in a recording, and what is said in its place, so that two recordings can be compared at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import dig, name_of
from harness.checks.pods import HASH_LABELS
from harness.model.timeline import ObjectSeen, RolloutKind

if TYPE_CHECKING:
    from harness.model.timeline import Header, Observation

NAMESPACE: Final = "(namespace)"
HASH: Final = "(hash)"
POD: Final = "(pod)"
NODE: Final = "(node)"
TIME: Final = "(time)"
UUID: Final = "(uuid)"

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Names:
    """Learns while a recording is gone through, and translates at the end."""

    def __init__(self, header: Header) -> None:
        self._kind: RolloutKind = header.subject.rollout
        self._said: dict[str, str] = {header.namespace: NAMESPACE}
        self._said.update(dict.fromkeys(header.cluster.nodes, NODE))
        # Beside another controller a drill's rollout objects are of an API group of their own.
        group, usual = (kind.api_version.partition("/")[0] for kind in (self._kind, RolloutKind()))
        if group != usual:
            self._said[group] = usual
        self._tokens: dict[str, dict[str, int]] = {}
        """Rollout -> what its status called a revision -> how many it had called so before, and this one."""
        self._pattern: re.Pattern[str] | None = None

    def apply(self, seen: Observation) -> None:
        """Learn what an observation shows."""
        if not isinstance(seen, ObjectSeen):
            return
        obj = seen.object
        kind, name = str(obj.get("kind", "")), name_of(obj)
        if uid := str(dig(obj, "metadata.uid", "")):
            self._learn(uid, f"(uid of {kind})" if kind == "Pod" else f"(uid of {kind} {name})")
        if kind == "Pod":
            self._learn(name, POD)
        for key in HASH_LABELS:
            if value := dig(obj, "metadata.labels", {}).get(key):
                self._learn(str(value), HASH)
        if kind == self._kind.kind:
            tokens = self._tokens.setdefault(name, {})
            for path in (self._kind.applied_path, self._kind.promoted_path):
                if value := dig(obj, path):
                    tokens.setdefault(str(value), len(tokens) + 1)

    def _learn(self, value: str, said: str) -> None:
        if value not in self._said:
            self._said[value] = said
            self._pattern = None

    def translate(self, value: Any) -> Any:
        """Return a JSON value with everything generated replaced, also within texts."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.translate(item) for item in value]
        if isinstance(value, dict):
            return {key: self.translate(item) for key, item in value.items()}
        return value

    def text(self, value: str) -> str:
        """Return a text with everything generated replaced."""
        # What the status calls a revision is the subject's own affair; which one it is, is not.
        for tokens in self._tokens.values():
            if value in tokens:
                return f"(revision {tokens[value]})"
        if self._pattern is None:
            # The longest first: a pod's name holds its hash.
            known = sorted((re.escape(word) for word in self._said if word), key=len, reverse=True)
            self._pattern = re.compile(rf"(?<![0-9A-Za-z])(?:{'|'.join(known)})(?![0-9A-Za-z])")
        told = self._pattern.sub(lambda found: self._said[found.group()], value)
        return _UUID.sub(UUID, _TIME.sub(TIME, told))
