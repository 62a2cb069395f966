"""What the API server refuses is said on the Canary, whoever refused it; only what the authoriser refused is a missing permission."""

from __future__ import annotations

import asyncio

import pytest

from harness.kube.testing import run_virtual
from harness.tests.controller_sim import Sim, canary, deployment
from harness.tests.test_controller_shell import Stage

QUOTA = 'services "web-primary" is forbidden: exceeded quota: objects, requested: services=1, used: services=4, limited: services=4'
WEBHOOK = 'Internal error occurred: failed calling webhook "policy.example": connection refused'
RIGHTS = 'services is forbidden: User "me" cannot create resource "services" in API group ""'
POLICY = 'ValidatingAdmissionPolicy "names" with binding "all" denied request: no such name here'


class Refusing(Stage):
    """A stage, and what condition Warned said while writes were refused."""

    warned = ""


def warned(stage: Stage) -> str:
    """Return what condition Warned says; empty without one."""
    entries = stage.status.get("conditions") or []
    return next((str(e["message"]) for e in entries if e["type"] == "Warned"), "")


def refused(status: int, reason: str, message: str) -> Refusing:
    """Return what became of a Canary whose Services were refused for a while."""

    async def story() -> Refusing:
        stage = Refusing()
        stage.cluster.fail_next(
            status,
            reason,
            message,
            times=10_000,
            match=lambda asked: asked.verb == "create" and asked.path.endswith("/services"),
        )
        async with stage.controller():
            stage.apply()
            await asyncio.sleep(12)  # less than the deadline
            stage.warned = warned(stage)
            stage.cluster._failures.clear()
            await stage.reaches("Initialized", 60)
        return stage

    return run_virtual(story())


def said(stage: Stage) -> list[str]:
    """Return the warnings of the Canary."""
    events = stage.cluster.objects("Event", "n")
    return [event["message"] for event in events if event["type"] == "Warning"]


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (403, "Forbidden", QUOTA),
        (403, "Forbidden", RIGHTS),
        (422, "Invalid", POLICY),
        (500, "InternalError", WEBHOOK),
    ],
)
def test_a_refused_object_is_said_once_and_tried_until_it_is_taken(
    status: int, reason: str, message: str
) -> None:
    stage = refused(status, reason, message)
    text = f"The API server refuses a write: {message}"
    assert said(stage) == [text]
    assert stage.warned == text
    assert not warned(stage)
    assert stage.phase == "Initialized"


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [(403, "Forbidden", QUOTA), (422, "Invalid", POLICY), (500, "InternalError", WEBHOOK)],
)
def test_what_a_quota_or_a_policy_refuses_is_no_missing_permission(
    status: int, reason: str, message: str
) -> None:
    stage = refused(status, reason, message)
    assert not stage.events("forbidden")
    assert stage.events("refused")


def test_a_missing_permission_is_logged_as_one() -> None:
    assert refused(403, "Forbidden", RIGHTS).events("forbidden")


def test_a_server_in_trouble_is_no_refusal() -> None:
    assert said(refused(500, "InternalError", "etcdserver: request timed out")) == []


def test_the_deadline_of_a_primary_counts_from_when_it_could_be_made() -> None:
    """Case: a quota keeps it away for longer than the deadline; once it is raised the pods have all of that time."""
    sim = Sim()
    sim.add("deployments", deployment())
    sim.add("canaries", canary(progressDeadlineSeconds=20))
    sim.admission = lambda verb, plural, obj: (
        "quota"
        if (verb, plural, obj["metadata"]["name"]) == ("create", "deployments", "web-primary")
        else ""
    )
    sim.run(100)
    assert sim.phase == "Initializing"
    sim.admission = None
    sim.run(until="Initialized")
    assert not [text for text in sim.messages() if "failed" in text]
    assert "Failed" not in [phase for _, phase, _ in sim.history]
