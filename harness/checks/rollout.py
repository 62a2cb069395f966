"""What checks see of the rollout object: the subject's own status, in the common vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import condition, conditions, dig, name_of, whole

if TYPE_CHECKING:
    from harness.model.timeline import JSON, RolloutKind

ENDED: Final = frozenset({"Succeeded", "Failed", "Frozen"})
"""Phases in which a promotion is over. Frozen is one: its analysis has failed, and nothing goes on by itself (spec freeze-and-adopt 3.2)."""
ENDED_BADLY: Final = ENDED - {"Succeeded"}
KEPT_SET: Final = "status.parked.name"
"""Where a status names the ReplicaSet that is the primary itself, whoever owns it (spec freeze-and-adopt 5, A1 to A4)."""

ABSENT: Final[dict[str, Any]] = {
    "exists": False,
    "name": "",
    "phase": "",
    "ended": False,
    "weight": 0,
    "iterations": 0,
    "failed_checks": 0,
    "promoted": "",
    "reason": "",
    "message": "",
    "conditions": {},
}
"""A rollout object of which it is known that it does not exist."""


def rollout_view(rollout: JSON, kind: RolloutKind) -> dict[str, Any]:
    """Return the fields of the rollout object that checks see."""
    own = str(dig(rollout, kind.phase_path, ""))
    phase = kind.phases.get(own, own)
    promoted = condition(rollout, "Promoted")
    return {
        "exists": True,
        "name": name_of(rollout),
        "phase": phase,
        "ended": phase in ENDED,
        "weight": whole(dig(rollout, kind.weight_path)),
        "iterations": whole(dig(rollout, kind.iterations_path)),
        "failed_checks": whole(dig(rollout, kind.failed_checks_path)),
        "promoted": str(promoted.get("status", "")),
        "reason": str(promoted.get("reason", "")),
        "message": str(promoted.get("message", "")),
        "conditions": {
            str(entry.get("type", "")): {
                key: str(entry.get(key, "")) for key in ("status", "reason", "message")
            }
            for entry in conditions(rollout)
        },
    }


def target_name(rollout: JSON, kind: RolloutKind) -> str:
    """Return the name of the workload that the rollout object promotes; one without a reference is its own workload."""
    return str(dig(rollout, kind.target_path, "") or name_of(rollout))


def primary_name(rollout: JSON, kind: RolloutKind) -> str:
    """Return the name of the workload that serves: a ReplicaSet that the rollout object keeps, or else a copy of the target."""
    kept = str(dig(rollout, KEPT_SET, ""))
    return kept or f"{target_name(rollout, kind)}{kind.primary_suffix}"


def apex_name(rollout: JSON, kind: RolloutKind) -> str:
    """Return the name of the Service that clients use."""
    return str(dig(rollout, "spec.service.name", "") or target_name(rollout, kind))
