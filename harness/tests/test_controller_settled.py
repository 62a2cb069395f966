"""A settled Canary costs nothing: no write, no event, no call for ten minutes, whatever kind it is and however it got there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.tests.controller_stories import STORIES, Story
from harness.tests.controller_stories_routed import STORIES as ROUTED

if TYPE_CHECKING:
    from harness.tests.controller_sim import Sim

MINUTES = 600.0
FEW_PASSES = 3
"""Passes are free of requests, but a Canary that has nothing to wait for does not wake up all the time either."""
ALL = (*STORIES, *ROUTED)


def _costs_nothing(sim: Sim) -> None:
    before = len(sim.actions), len(sim.notes), len(sim.outside.calls)
    objects, passes = dict(sim.objects), len(sim.rows)
    sim.run(MINUTES)
    assert (len(sim.actions), len(sim.notes), len(sim.outside.calls)) == before, sim.rows[-5:]
    assert sim.objects == objects
    assert len(sim.rows) - passes <= FEW_PASSES, sim.rows[-5:]


@pytest.mark.parametrize("story", ALL, ids=lambda story: story.name)
def test_a_canary_that_waits_for_its_first_release_costs_nothing(story: Story) -> None:
    sim = story.begin()
    sim.run(until="Initialized")
    sim.run(30)
    _costs_nothing(sim)


@pytest.mark.parametrize("story", ALL, ids=lambda story: story.name)
def test_a_canary_whose_story_is_over_costs_nothing(story: Story) -> None:
    _costs_nothing(story.tell(story.begin()))


def test_a_suspended_canary_costs_nothing() -> None:
    sim = ALL[0].begin()
    sim.run(until="Initialized")
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.edit("deployments", "web", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}})
    sim.run(30)
    _costs_nothing(sim)
