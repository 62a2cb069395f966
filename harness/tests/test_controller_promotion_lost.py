"""A promotion whose status names a revision that nobody has: hashes drifted, or a second writer was there. It must end all the same."""

from __future__ import annotations

import pytest

from harness.tests.controller_sim import Sim, image, image_of, running

DRIFTED = "v2:0123456789abcdef"


def promoting(phase: str) -> Sim:
    """A promotion under way, its status rewritten."""
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until=phase)
    sim.edit_status({"lastAppliedSpec": DRIFTED})
    return sim


def starts(sim: Sim) -> int:
    return sim.phases().count("Progressing")


@pytest.mark.parametrize("fence", [{}, {"lastTrackedRevision": None}], ids=["fenced", "unfenced"])
@pytest.mark.parametrize("phase", ["Promoting", "Finalising"])
def test_it_ends_as_if_the_status_had_been_left_alone(phase: str, fence: dict[str, None]) -> None:
    sim = promoting(phase)
    sim.edit_status(fence)
    sim.run(60)
    assert (sim.phase, starts(sim)) == ("Succeeded", 1)
    assert image_of(sim.primary) == "app:2"
    assert sim.status["lastAppliedSpec"] == sim.status["lastPromotedSpec"] != DRIFTED


@pytest.mark.parametrize("phase", ["Promoting", "Finalising"])
def test_a_change_meanwhile_is_analysed_after_it(phase: str) -> None:
    sim = promoting(phase)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(200)
    assert (sim.phase, starts(sim)) == ("Succeeded", 2)
    assert image_of(sim.primary) == "app:3"
