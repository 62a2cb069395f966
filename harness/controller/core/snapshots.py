"""What an object of each target kind looks like at one read: its hash and its fence (spec change-detection B1 and B2).

Both always come from the same object. The hash says what the object holds, the fence where its server-side counter
stood; the decision table (`change.py`) weighs one against the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.controller.core.canonical import service_hash, string_hash, template_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.controller.core.decision import JSON

REVISION: Final = "deployment.kubernetes.io/revision"


@dataclass(frozen=True, slots=True)
class Fence:
    """Where an object stood when it was read: `<uid>/<counter>` or `<uid>/<counter>/<revision>` (B2)."""

    uid: str = ""
    counter: str = ""
    revision: str = ""

    @classmethod
    def parse(cls, token: str) -> Fence:
        """Read a token; parts that are missing are empty."""
        uid, _, rest = token.partition("/")
        counter, _, revision = rest.partition("/")
        return cls(uid, counter, revision)

    def __str__(self) -> str:
        token = f"{self.uid}/{self.counter}"
        return f"{token}/{self.revision}" if self.revision else token

    @property
    def trusted(self) -> bool:
        """Whether the object's counter can prove that nothing happened."""
        return bool(self.uid) and self.counter not in ("", "0")

    def open(self) -> Fence:
        """Return a fence of the same object that proves nothing: the counter is one that no object has."""
        return Fence(self.uid, "0")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hash and fence, always of one and the same read."""

    hash: str
    fence: Fence
    volatile: bool = False
    """The counter moves on every write, whoever makes it (core Services)."""


def deployment_snapshot(target: JSON) -> Snapshot:
    """Return hash and fence of a Deployment.

    The revision annotation moves only with the template, so it proves more than the generation, which scaling moves too. But it is
    written after the fact: it counts only once the Deployment's controller has seen this generation, and never while paused.
    """
    meta, spec = target["metadata"], target["spec"]
    revision = ""
    if not spec.get("paused") and observed(target):
        revision = str((meta.get("annotations") or {}).get(REVISION) or "")
    return Snapshot(template_hash(spec["template"]), replace(_generation(meta), revision=revision))


def daemonset_snapshot(target: JSON) -> Snapshot:
    """Return hash and fence of a DaemonSet.

    The nodeSelector key that puts it to zero is no part of the template; a DaemonSet has no revision annotation.
    """
    template = target["spec"]["template"]
    return Snapshot(template_hash(template, daemonset=True), _generation(target["metadata"]))


def service_snapshot(target: JSON) -> Snapshot:
    """Return hash and fence of a core Service: the whole spec, and its resourceVersion, as Services count no generations."""
    meta = target["metadata"]
    fence = Fence(_text(meta, "uid"), _text(meta, "resourceVersion"))
    return Snapshot(service_hash(target["spec"]), fence, volatile=True)


def knative_snapshot(target: JSON) -> Snapshot:
    """Return hash and fence of a Knative Service.

    What counts is the newest revision, and that stands in the status, where the generation proves nothing.
    """
    name = _text(target.get("status") or {}, "latestCreatedRevisionName")
    return Snapshot(string_hash(name), Fence(_text(target["metadata"], "uid"), name))


SNAPSHOTS: Final[Mapping[tuple[str, str], Callable[[JSON], Snapshot]]] = {
    ("apps", "Deployment"): deployment_snapshot,
    ("apps", "DaemonSet"): daemonset_snapshot,
    ("", "Service"): service_snapshot,
    ("serving.knative.dev", "Service"): knative_snapshot,
}
"""By API group and kind: two kinds are called Service."""


def snapshot(target: JSON) -> Snapshot:
    """Return hash and fence of a target of any kind. Raises LookupError for a kind that can be no target."""
    group = str(target["apiVersion"]).rpartition("/")[0]
    try:
        take = SNAPSHOTS[group, target["kind"]]
    except KeyError:
        msg = f"{target['apiVersion']} {target['kind']} cannot be a target"
        raise LookupError(msg) from None
    return take(target)


def observed(workload: JSON) -> bool:
    """Whether the workload's own controller has taken up its last change."""
    generation = int(workload["metadata"].get("generation") or 0)
    return int((workload.get("status") or {}).get("observedGeneration") or 0) == generation


def _generation(meta: JSON) -> Fence:
    return Fence(_text(meta, "uid"), str(int(meta.get("generation") or 0)))


def _text(obj: JSON, key: str) -> str:
    return str(obj.get(key) or "")
