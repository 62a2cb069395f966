"""What was seen last, in one line: the part of a time-out's message that tells a person where to look."""

from __future__ import annotations

from typing import Any, Final

_FEW: Final = 3
"""Rollouts that are named."""


def describe(world: dict[str, Any]) -> str:
    """Return the rollout's phase, both workloads' readiness and the first pod that is stuck; of several rollouts how many are where."""
    parts = [
        _rollout(world.get("rollout", {})),
        _workload("primary", world),
        _workload("target", world),
    ]
    rollouts = world.get("rollouts", [])
    if len(rollouts) > 1:
        parts = [_phases(rollouts)]
    stuck = next((pod for pod in world.get("pods", []) if pod.get("unschedulable")), None)
    if stuck is not None:
        parts.append(f"pod {stuck['name']} unschedulable: {stuck.get('message', '')}")
    failed = next((w for w in world.get("workloads", []) if w.get("createFailed")), None)
    if failed is not None:
        parts.append(
            f"{failed['kind']} {failed['name']} cannot create pods: {failed.get('message', '')}"
        )
    return ", ".join(part for part in parts if part)


def _phases(rollouts: list[dict[str, Any]]) -> str:
    """Return each phase with the number of rollouts in it, and the names of few: those are what a person looks for."""
    by_phase: dict[str, list[str]] = {}
    for rollout in rollouts:
        by_phase.setdefault(rollout["phase"] or "no phase", []).append(rollout["name"])
    told = []
    for phase, names in sorted(by_phase.items(), key=lambda item: -len(item[1])):
        few = f" ({', '.join(names)})" if len(names) <= _FEW else ""
        told.append(f"{len(names)} in {phase}{few}")
    return f"of {len(rollouts)} rollouts {', '.join(told)}"


def _rollout(rollout: dict[str, Any]) -> str:
    if not rollout.get("exists"):
        return "no rollout object"
    phase = rollout.get("phase") or "none yet"
    message = rollout.get("message")
    return f"phase {phase}" + (f" ({message})" if message else "")


def _workload(role: str, world: dict[str, Any]) -> str:
    workload = world.get(role, {})
    if not workload.get("exists"):
        return f"no {role}"
    return f"{role} {workload.get('ready', 0)} of {workload.get('desired', '?')} ready"
