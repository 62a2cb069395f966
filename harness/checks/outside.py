"""What checks see of what is around a rollout and no workload: calls that came in, gates, autoscalers, ConfigMaps and Secrets."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import dig, name_of, whole
from harness.checks.section import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.model.resolved import Resolved
    from harness.model.timeline import JSON
    from harness.model.timeline_outside import Call, GateChanged

AUTOSCALERS: Final = ("HorizontalPodAutoscaler", "ScaledObject")
CONFIGS: Final = ("ConfigMap", "Secret")
_OF_EVERYBODY: Final = frozenset({"kube-root-ca.crt"})
"""ConfigMaps that Kubernetes puts into every namespace."""
_PAUSED: Final = ("autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas")
_DIGITS: Final = 12


class Calls:
    """The sections `calls` and `gates`."""

    def __init__(self, scenario: Resolved) -> None:
        receiver = scenario.receiver
        self.known = receiver is not None
        """Whether there is anything that could be called; otherwise nothing can be said."""
        self.calls, self.gates = Section(), Section()
        self._count: dict[str, int] = {}
        groups = () if receiver is None else (("gate", receiver.gates), ("alert", receiver.alerts))
        for sort, gates in groups:
            for name, given in gates.items():
                row = {"name": name, "sort": sort, "answer": given.answer, "calls": 0, "status": 0}
                self.gates.put(name, row)

    def called(self, seen: Call) -> None:
        """A call was answered, or given up."""
        number = self._count[seen.gate] = self._count.get(seen.gate, 0) + 1
        view = {
            "name": f"{seen.gate or seen.sort} {number}",
            "gate": seen.gate,
            "sort": seen.sort,
            "status": seen.status,
            "phase": seen.phase,
            "rollout": seen.rollout,
            "event_type": seen.event_type,
            "kind": seen.kind,
            "message": seen.message,
            "at": seen.t,
            "seconds": seen.seconds,
        }
        self.calls.put(view["name"], view)
        gate = self.gates.get(seen.gate)
        if gate is not None:
            self.gates.put(seen.gate, {**gate, "calls": number, "status": seen.status})

    def changed(self, seen: GateChanged) -> None:
        """A gate answers something else from now on."""
        gate = self.gates.get(seen.gate)
        if gate is not None:
            self.gates.put(seen.gate, {**gate, "answer": seen.answer})


class Around:
    """The sections `autoscalers` and `configs`."""

    def __init__(self, roles: Mapping[str, str]) -> None:
        """`roles`: name of a workload -> `primary` or `target`, kept by somebody else."""
        self.autoscalers, self.configs = Section(), Section()
        self._roles = roles
        self._raw: dict[tuple[str, str], JSON] = {}

    def see(self, kind: str, obj: JSON, *, deleted: bool) -> None:
        """One of them is in a new state, or gone; objects of other kinds are left alone."""
        key = kind, name_of(obj)
        if kind in AUTOSCALERS:
            if deleted:
                self._raw.pop(key, None)
                self.autoscalers.drop(key)
            else:
                self._raw[key] = obj
                self._put(key, obj)
        elif kind in CONFIGS and key[1] not in _OF_EVERYBODY:
            if deleted:
                self.configs.drop(key)
            else:
                self.configs.put(key, config_view(kind, obj))

    def named(self) -> None:
        """The roles of workloads have changed."""
        for key, obj in self._raw.items():
            self._put(key, obj)

    def _put(self, key: tuple[str, str], obj: JSON) -> None:
        view = autoscaler_view(key[0], obj)
        role = self._roles.get(view["target"], "other")
        self.autoscalers.put(key, {**view, "role": role})


def autoscaler_view(kind: str, obj: JSON) -> dict[str, Any]:
    """Return an autoscaler as checks see it, all but its role."""
    keda = kind == "ScaledObject"
    least, most = ("minReplicaCount", "maxReplicaCount") if keda else ("minReplicas", "maxReplicas")
    marks = dig(obj, "metadata.annotations", {})
    paused = [str(marks[key]) for key in _PAUSED if key in marks]
    return {
        "kind": kind,
        "name": name_of(obj),
        "target": str(dig(obj, "spec.scaleTargetRef.name", "")),
        "min": whole(dig(obj, f"spec.{least}", 0 if keda else 1)),
        "max": whole(dig(obj, f"spec.{most}")),
        "paused": keda and any(text != "false" for text in paused),
    }


def config_view(kind: str, obj: JSON) -> dict[str, Any]:
    """Return a ConfigMap or Secret as checks see it: no values, only a digest over all of them (their digests, as recorded)."""
    entries = {
        str(key): str(value)
        for part in ("data", "binaryData")
        for key, value in dig(obj, part, {}).items()
    }
    text = "\n".join(f"{key}={value}" for key, value in sorted(entries.items()))
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return {"kind": kind, "name": name_of(obj), "digest": digest, "keys": sorted(entries)}
