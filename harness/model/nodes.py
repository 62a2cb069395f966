"""The nodes that a drill needs: how many, and what sets single ones apart.

Nodes of a cluster of ours are called `node-1` and so on. Taints are written as kubectl does, `key=value:Effect`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
KEEPS_OUT: Final = frozenset({"NoSchedule", "NoExecute"})
"""Effects that keep pods without a toleration away."""
KEY: Final = r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?"
VALUE: Final = r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
TAINT: Final = re.compile(rf"{KEY}(={VALUE})?:({'|'.join(EFFECTS)})")
TAINT_FORMS: Final = tuple(f"KEY=VALUE:{effect}" for effect in EFFECTS)
OF_KUBERNETES: Final = "node.kubernetes.io/"
"""Keys of taints below this are Kubernetes' own, e.g. of a node that is not ready yet."""
NODE: Final = r"^node-[1-9][0-9]*$"


@dataclass(frozen=True, slots=True)
class Nodes:
    """How many schedulable nodes the drill needs: exactly `count`, or at least `min`. Neither: any number from one.

    Nodes that the scenario itself taints count among them.
    """

    count: int | None = None
    min: int | None = None
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Name of a node -> labels that it has besides those of every node."""
    taints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a node -> its taints, as `key=value:Effect`."""
    replicas_per_eligible: int | None = None
    """How many replicas the workload has for each node that takes pods, where that number is not the scenario's choice."""

    @property
    def number(self) -> int:
        """How many nodes a cluster that is made for the drill has."""
        return self.count or self.min or 1

    @property
    def kept_free(self) -> tuple[str, ...]:
        """The nodes that pods without a toleration stay away from, by the scenario's own wish."""
        return tuple(
            name
            for name, taints in sorted(self.taints.items())
            if any(taint.rpartition(":")[2] in KEEPS_OUT for taint in taints)
        )

    @property
    def apart(self) -> str:
        """What sets single nodes apart, the same text for the same wish; empty when they are all alike."""
        given = {
            "labels": {name: dict(one) for name, one in self.labels.items() if one},
            "taints": {name: sorted(one) for name, one in self.taints.items() if one},
        }
        return json.dumps(given, sort_keys=True) if any(given.values()) else ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; what only few scenarios have is left out where there is none."""
        body: dict[str, Any] = {"count": self.count, "min": self.min}
        if self.labels:
            body["labels"] = {name: dict(one) for name, one in self.labels.items()}
        if self.taints:
            body["taints"] = {name: list(one) for name, one in self.taints.items()}
        if self.replicas_per_eligible is not None:
            body["replicasPerEligible"] = self.replicas_per_eligible
        return body


def read_nodes(value: object) -> Nodes:
    """Read the JSON form back, the redacted one too; whatever is missing or strange gets its default."""
    row = value if isinstance(value, Mapping) else {}
    labels, taints = row.get("labels"), row.get("taints")
    return Nodes(
        _whole(row.get("count")),
        _whole(row.get("min")),
        {
            str(name): {str(key): str(text) for key, text in one.items()}
            for name, one in (labels.items() if isinstance(labels, Mapping) else ())
            if isinstance(one, Mapping)
        },
        {
            str(name): tuple(str(text) for text in one)
            for name, one in (taints.items() if isinstance(taints, Mapping) else ())
            if isinstance(one, list | tuple)
        },
        _whole(row.get("replicasPerEligible")),
    )


def taint(text: str) -> dict[str, str]:
    """Return a taint that is written as `key=value:Effect` or `key:Effect` as an object of Kubernetes."""
    what, _, effect = text.rpartition(":")
    key, _, value = what.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def taint_text(one: Mapping[str, Any]) -> str:
    """Return a taint of Kubernetes as it is written in a scenario."""
    value = f"={one['value']}" if one.get("value") else ""
    return f"{one.get('key', '')}{value}:{one.get('effect', '')}"


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
