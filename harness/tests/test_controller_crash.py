"""The controller killed between any two writes: whatever it was doing, it ends in the same place, and serves no less meanwhile."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from harness.tests.controller_stories import STORIES, Story
from harness.tests.controller_stories_routed import STORIES as ROUTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.tests.controller_sim import Sim

JSON = dict[str, Any]
FEWEST = 8
"""Least writes of a story; with fewer, killing would prove little."""
_FLEETING = frozenset(
    {
        "creationTimestamp",
        "generation",
        "lastTrackedRevision",
        "lastTransitionTime",
        "lastUpdateTime",
        "managedFields",
        "observedGeneration",
        "resourceVersion",
    }
)
"""What counts writes or tells the time."""


def essence(sim: Sim) -> Any:
    """The objects without what counts writes or tells the time, and the events."""
    stories = [m for m in sim.messages() if not m.startswith("Waiting")]
    return {"/".join(key): _lasting(obj) for key, obj in sim.objects.items()}, sorted(set(stories))


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(item) for key, item in value.items() if key not in _FLEETING}
    if isinstance(value, list):
        return [_lasting(item) for item in value]
    return copy.copy(value)


def compare(sim: Sim, undisturbed: Sim, what: str) -> None:
    """Both ended in the same place, and neither primary nor traffic ever had fewer ready pods."""
    assert essence(sim) == essence(undisturbed), what
    assert [a for a in sim.actions if a[0] == "replace"] == [
        a for a in undisturbed.actions if a[0] == "replace"
    ], f"{what}: an object was replaced twice"
    for found, allowed in zip(sim.lowest(), undisturbed.lowest(), strict=True):
        assert found >= allowed, what
        assert found[1] >= allowed[1], what


@pytest.mark.parametrize("story", [*STORIES, *ROUTED], ids=lambda story: story.name)
def test_killed_after_any_write_it_ends_in_the_same_place(
    story: Story, record_property: Callable[[str, object], None]
) -> None:
    undisturbed = story.tell(story.begin())
    assert story.end(undisturbed), "the undisturbed story does not end as it says"
    writes = len(undisturbed.actions) + len(undisturbed.notes)
    assert writes > FEWEST
    for number in range(1, writes + 1):
        sim = story.begin()
        sim.kill_after = number
        story.tell(sim)
        assert sim.kill_after is None, "this write never came"
        compare(sim, undisturbed, f"killed after write {number}")
    record_property("crash points", f"{story.name} {writes}")


@pytest.mark.parametrize("story", [*STORIES, *ROUTED], ids=lambda story: story.name)
def test_killed_after_every_write_it_ends_in_the_same_place(story: Story) -> None:
    undisturbed = story.tell(story.begin())
    sim = story.begin()
    sim.kill_always = True
    story.tell(sim)
    assert sim.restarts > FEWEST
    compare(sim, undisturbed, "killed after every write")
