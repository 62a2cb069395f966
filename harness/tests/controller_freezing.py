"""Canaries in virtual time that are frozen, for tests of what becomes of them."""

from __future__ import annotations

from typing import Any

from harness.controller.core import frozen
from harness.tests.controller_sim import Sim
from harness.tests.controller_sim_make import canary, deployment, image
from harness.tests.controller_sim_outside import number

JSON = dict[str, Any]
MATCH: list[JSON] = [{"headers": {"x-tenant": {"exact": "a"}}}]
METRIC: JSON = {"name": "request-success-rate", "interval": "8s", "thresholdRange": {"min": 99}}
AB: JSON = {"iterations": 3, "match": MATCH, "metrics": [METRIC]}
WEIGHTS: JSON = {"stepWeight": 20, "maxWeight": 60, "metrics": [METRIC]}


def spec(*, routed: bool = True, more: JSON | None = None, **analysis: Any) -> JSON:
    found: JSON = {
        "analysis": {"interval": "2s", "threshold": 1, "freezeOnFailure": True, **analysis}
    }
    if routed:
        found["provider"] = "gatewayapi:v1"
        found["service"] = {"port": 80, "gatewayRefs": [{"name": "gateway"}]}
    return found | (more or {})


def begun(sim: Sim | None = None, **fields: Any) -> Sim:
    """Return a Canary whose second revision is under analysis."""
    sim = sim or Sim()
    sim.add("deployments", deployment())
    sim.add("canaries", canary(**spec(**fields)))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    return sim


def freeze(sim: Sim, after: float = 2.0) -> Sim:
    """Let the metric fail."""
    sim.run(after)
    sim.script["request-success-rate"] = number(50)
    sim.run(until="Frozen")
    sim.run(1)
    return sim


def said(sim: Sim, beginning: str) -> int:
    return sum(text.startswith(beginning) for text in sim.messages())


def order(sim: Sim, text: str) -> None:
    sim.edit("canaries", "web", {"metadata": {"annotations": {frozen.ORDER: text}}})


def matched(sim: Sim) -> str:
    """Who serves the requests with the header."""
    first = sim.objects["httproutes", "web"]["spec"]["rules"][0]
    (most,) = [ref["name"] for ref in first["backendRefs"] if ref.get("weight") != 0]
    return str(most) if len(sim.objects["httproutes", "web"]["spec"]["rules"]) > 1 else "nobody"
