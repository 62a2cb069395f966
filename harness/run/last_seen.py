"""What was seen last, in one line: the part of a time-out's message that tells a person where to look."""

from __future__ import annotations

from typing import Any


def describe(world: dict[str, Any]) -> str:
    """Return the rollout's phase, both workloads' readiness and the first pod that is stuck."""
    parts = [
        _rollout(world.get("rollout", {})),
        _workload("primary", world),
        _workload("target", world),
    ]
    stuck = next((pod for pod in world.get("pods", []) if pod.get("unschedulable")), None)
    if stuck is not None:
        parts.append(f"pod {stuck['name']} unschedulable: {stuck.get('message', '')}")
    failed = next((w for w in world.get("workloads", []) if w.get("createFailed")), None)
    if failed is not None:
        parts.append(
            f"{failed['kind']} {failed['name']} cannot create pods: {failed.get('message', '')}"
        )
    return ", ".join(part for part in parts if part)


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
