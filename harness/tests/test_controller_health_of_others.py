"""How others read a Canary that is frozen or was restored: Argo CD's own rule, a better one for it, and `kubectl wait`.

That phase Frozen was chosen, and not Failed with a reason, rests on what is shown here: nobody takes it for healthy, and nobody stumbles.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness import controller
from harness.controller.core.status import entered
from harness.tests.controller_restore import REVERT, fail, starting
from harness.tests.controller_sim import Sim, image, never_ready, running

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = dict[str, Any]
FREEZING: JSON = {"interval": "2s", "threshold": 2, "iterations": 2, "freezeOnFailure": True}
SNIPPET = "argocd-health.lua"
PHASES = {
    "Initializing": "Progressing",
    "Initialized": "Healthy",
    "Waiting": "Progressing",
    "Progressing": "Progressing",
    "WaitingPromotion": "Progressing",
    "Promoting": "Progressing",
    "Finalising": "Progressing",
    "Succeeded": "Healthy",
    "Failed": "Degraded",
    "Frozen": "Degraded",
    "Terminating": "Progressing",
    "Terminated": "Progressing",
    "SomethingNew": "Unknown",
}
"""What the better rule makes of each phase."""


def argo_health(canary: JSON) -> tuple[str, str]:
    """What Argo CD's built-in rule for Canaries makes of one: health and message.

    The facts: it reads canaryWeight as a number and the message of each condition, and fails without them; it names some phases.
    """
    status = canary["status"]
    float(status["canaryWeight"])
    message = " ".join(condition["message"] for condition in status["conditions"])
    named = {
        "Failed": "Degraded",
        "Progressing": "Progressing",
        "Finalising": "Progressing",
        "Promoting": "Progressing",
        "Succeeded": "Healthy",
        "Initialized": "Healthy",
    }
    return named.get(status["phase"], "Unknown"), message


def kubectl_waits_no_longer(canary: JSON, wanted: str) -> bool:
    """Whether `kubectl wait --for=…` ends: `condition=TYPE[=STATUS]`, or `jsonpath={.a.b}=VALUE`."""
    how, _, rest = wanted.partition("=")
    if how == "condition":
        kind, _, value = rest.partition("=")
        held = canary["status"].get("conditions") or []
        found: JSON = next((c for c in held if c["type"].lower() == kind.lower()), {})
        return str(found.get("status", "")).lower() == (value or "true").lower()
    path, _, value = rest.partition("=")
    here: Any = canary
    for key in path.strip("{}").strip(".").split("."):
        here = here.get(key, {})
    return bool(here == value)


def frozen() -> Sim:
    sim = running(analysis=FREEZING)
    sim.delay = never_ready("web")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Frozen")
    sim.run(10)
    return sim


# -- Argo CD's own rule ----------------------------------------------------------------------------------------------------------


def test_a_frozen_canary_reads_unknown_and_its_message_says_what_happened() -> None:
    sim = frozen()
    health, message = argo_health(sim.canary)
    assert health == "Unknown"
    assert sim.condition("Promoted")["message"] in message
    assert "is frozen: not ready within 20 s" in message


def test_at_no_moment_before_or_after_is_it_an_error_or_healthy() -> None:
    sim = running(analysis=FREEZING)
    sim.delay = never_ready("web")
    seen: list[tuple[str, str]] = []

    inner = sim.patch_status

    def patch_status(canary: JSON, patch: JSON) -> None:
        inner(canary, patch)
        seen.append((sim.phase, argo_health(sim.canary)[0]))

    sim.patch_status = patch_status  # type: ignore[method-assign]
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Frozen")
    sim.run(10)
    sim.edit("deployments", "web", image("app:3"))
    sim.delay = never_ready()
    sim.run(until="Succeeded")
    assert {health for phase, health in seen if phase == "Frozen"} == {"Unknown"}
    assert {health for phase, health in seen if phase == "Succeeded"} == {"Healthy"}
    assert {phase for phase, health in seen if health == "Healthy"} <= {"Initialized", "Succeeded"}


def test_a_restored_target_leaves_a_degraded_canary() -> None:
    sim = starting()
    fail(sim)
    health, message = argo_health(sim.canary)
    assert health == "Degraded"
    assert "holds the promoted template again" in message
    assert sim.canary["spec"]["analysis"] == REVERT


# -- kubectl wait ----------------------------------------------------------------------------------------------------------------


def test_kubectl_wait_ends_at_a_freeze_and_does_not_take_it_for_success() -> None:
    canary = frozen().canary
    assert kubectl_waits_no_longer(canary, "condition=Promoted=False")
    assert kubectl_waits_no_longer(canary, "jsonpath={.status.phase}=Frozen")
    assert not kubectl_waits_no_longer(canary, "condition=Promoted")
    assert not kubectl_waits_no_longer(canary, "jsonpath={.status.phase}=Failed")


def test_kubectl_wait_ends_when_a_target_is_restored() -> None:
    sim = starting()
    fail(sim)
    assert kubectl_waits_no_longer(sim.canary, "condition=Restored")
    assert kubectl_waits_no_longer(sim.canary, "condition=Promoted=False")


# -- a better rule for Argo CD ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def better() -> Callable[[JSON], tuple[str, str]]:
    """The snippet, run as Argo CD runs it: with the object in `obj`, returning a table."""
    import lupa

    source = (Path(controller.__file__).parent / SNIPPET).read_text(encoding="utf-8")
    lua = lupa.LuaRuntime(unpack_returned_tuples=True)

    def run(canary: JSON) -> tuple[str, str]:
        lua.globals()["obj"] = lua.table_from(canary, recursive=True)
        found = lua.execute(source)
        return found["status"], found["message"]

    return run


@pytest.mark.parametrize(("phase", "health"), list(PHASES.items()))
def test_the_snippet_knows_every_phase(
    better: Callable[[JSON], tuple[str, str]], phase: str, health: str
) -> None:
    status = entered({}, phase, 0.0, "what happened")
    assert better({"spec": {}, "status": status}) == (health, "what happened")


def test_the_snippet_calls_a_frozen_canary_degraded(
    better: Callable[[JSON], tuple[str, str]],
) -> None:
    sim = frozen()
    assert better(sim.canary) == ("Degraded", sim.condition("Promoted")["message"])


def test_the_snippet_tells_refused_suspended_and_new_canaries_apart(
    better: Callable[[JSON], tuple[str, str]],
) -> None:
    assert better({"spec": {}})[0] == "Progressing"
    assert better({"spec": {"suspend": True}, "status": {"phase": "Progressing"}})[0] == "Suspended"
    refused = {"type": "Accepted", "status": "False", "reason": "Invalid", "message": "why"}
    status = {"phase": "Succeeded", "conditions": [refused]}
    assert better({"spec": {}, "status": status}) == ("Degraded", "why")
