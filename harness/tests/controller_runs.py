"""How tests of whole runs begin: a Canary with hooks and metrics, initialised, and its target changed to `app:2`."""

from __future__ import annotations

from typing import Any

from harness.tests.controller_sim import START, Sim, canary, deployment, image
from harness.tests.controller_stories_routed import GATEWAY, hook

JSON = dict[str, Any]
INTERVAL = 2.0
PLAIN: JSON = {"interval": "2s", "threshold": 2}
METRIC: JSON = {"name": "m", "query": "q", "thresholdRange": {"min": 1, "max": 200}}

__all__ = [
    "INTERVAL",
    "METRIC",
    "asked",
    "hook",
    "metric",
    "phases_told",
    "prepared",
    "severities",
    "started",
    "weighted",
]


def metric(name: str, **more: Any) -> JSON:
    """One entry of spec.analysis.metrics that passes between 1 and 200; it answers 100 unless scripted."""
    return METRIC | {"name": name} | more


def prepared(*hooks: JSON, spec: JSON | None = None, **analysis: Any) -> Sim:
    """A Canary that has just been initialised: blue-green with 2 iterations, an interval of 2 s and a threshold of 2."""
    sim = Sim()
    sim.add("deployments", deployment())
    whole = {**PLAIN, "iterations": 2, "webhooks": list(hooks)} | analysis
    sim.add("canaries", canary(**({"analysis": whole} | (spec or {}))))
    sim.run(until="Initialized")
    sim.settle()
    return sim


def started(*hooks: JSON, spec: JSON | None = None, **analysis: Any) -> Sim:
    """The same with a new image just applied; nobody has acted on it yet."""
    sim = prepared(*hooks, spec=spec, **analysis)
    sim.cuts.append(sim.t)
    sim.edit("deployments", "web", image("app:2"))
    return sim


def weighted(*hooks: JSON, spec: JSON | None = None, **analysis: Any) -> Sim:
    """The same with weights of 20, 40 and 60 behind an HTTPRoute."""
    steps = {**PLAIN, "stepWeight": 20, "maxWeight": 60, "webhooks": list(hooks)} | analysis
    return started(spec=GATEWAY | {"analysis": steps} | (spec or {}))


def asked(sim: Sim, *names: str) -> list[tuple[float, str]]:
    """Calls since the change, in seconds from it; of these names only, when any are given."""
    begin = sim.cuts[0]
    found = [(round(t - begin, 3), name) for t, name in sim.calls if t >= begin]
    return [(t, name) for t, name in found if not names or name in names]


def phases_told(sim: Sim, name: str) -> list[str]:
    """The phase in the payload of every call of a hook."""
    return [
        call.payload["phase"] for at, call in sim.outside.calls if call.name == name and at >= START
    ]


def severities(sim: Sim) -> list[tuple[str, str]]:
    """Alerts since the change: severity, and how the message begins."""
    begin = sim.cuts[0] if sim.cuts else 0.0
    return [
        (alert.severity, " ".join(alert.message.split()[:2]))
        for at, alert in sim.alerts
        if at >= begin and not alert.message.startswith("Initialised")
    ]
