"""A Canary with `analysis.restore: revert` on the simulated cluster, a version that fails, and what is asked of it afterwards."""

from __future__ import annotations

from typing import Any

from harness.tests.controller_sim import Sim, canary, deployment, image, never_ready

JSON = dict[str, Any]
REVERT: JSON = {"interval": "2s", "threshold": 2, "iterations": 2, "restore": "revert"}
BROKEN = never_ready("web", images=("app:2", "app:3"))


def starting(target: JSON | None = None, *others: tuple[str, JSON], **spec: Any) -> Sim:
    """An initialised Canary that asks for it; pods of the target with app:2 or app:3 never become ready."""
    sim = Sim(BROKEN)
    for plural, obj in others:
        sim.add(plural, obj)
    obj = target or deployment()
    sim.add("daemonsets" if obj["kind"] == "DaemonSet" else "deployments", obj)
    sim.add("canaries", canary(**{"analysis": REVERT, **spec}))
    sim.run(until="Initialized")
    sim.run(5)
    return sim


def fail(sim: Sim, name: str = "app:2") -> None:
    """Release a version that fails, and wait until nothing happens any more."""
    sim.edit(sim.plural, "web", image(name))
    sim.run(until="Progressing")
    sim.run(until="Failed")
    sim.run(20)


def told(sim: Sim) -> tuple[str, str]:
    found = sim.condition("Restored")
    return found.get("status", ""), found.get("reason", "")


def runs(sim: Sim) -> int:
    return sim.phases().count("Progressing")


def events(sim: Sim, beginning: str) -> list[str]:
    return [message for message in sim.messages() if message.startswith(beginning)]


def settled(sim: Sim) -> None:
    """Nothing is written any more, whatever time passes and however often it is looked."""
    before = len(sim.actions)
    sim.restart()
    sim.run(300)
    assert len(sim.actions) == before


def forget_sets(sim: Sim) -> None:
    """The ReplicaSets that have no pods are gone, as with revisionHistoryLimit 0."""
    for name, held in sim.of("replicasets").items():
        if not held["spec"]["replicas"] and "primary" not in name:
            sim.remove("replicasets", name)


def kill_after_replace(sim: Sim) -> None:
    """The controller dies once, right after its write to the target."""
    inner = sim.carry_out
    done: list[Any] = []

    def carry_out(write: Any) -> JSON:
        answer = inner(write)
        if write.verb == "replace" and write.name == "web" and not done:
            done.append(write)
            sim.kill_after = 1
        return answer

    sim.carry_out = carry_out  # type: ignore[method-assign]
