"""The controller killed between any two writes: whatever it was doing, it ends in the same place, and serves no less meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from harness.tests.controller_stories import STORIES, Story
from harness.tests.controller_stories_frozen import STORIES as FROZEN
from harness.tests.controller_stories_parked import STORIES as PARKED
from harness.tests.controller_stories_routed import STORIES as ROUTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.tests.controller_sim import Sim

JSON = dict[str, Any]
ALL = (*STORIES, *ROUTED, *FROZEN, *PARKED)
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


def essence(sim: Sim) -> dict[str, Any]:
    """The objects without what counts writes or tells the time, and the events, as paths and values."""
    found: dict[str, Any] = {
        f"event {message}": True for message in sim.messages() if not message.startswith("Waiting")
    }
    for key, obj in sim.objects.items():
        found.update(_lasting(obj, "/".join(key)))
    return found


def _lasting(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            if key not in _FLEETING:
                yield from _lasting(item, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _lasting(item, f"{path}[{index}]")
    else:
        yield path, value


def compare(sim: Sim, undisturbed: Sim) -> list[str]:
    """Return where both did not end in the same place, and where primary or traffic had fewer ready pods."""
    found, expected = essence(sim), essence(undisturbed)
    problems = [
        f"{path}: {found.get(path)!r} instead of {expected.get(path)!r}"
        for path in sorted(found.keys() | expected.keys())
        if found.get(path) != expected.get(path) or (path in found) != (path in expected)
    ]
    replaced, once = ([a for a in s.actions if a[0] == "replace"] for s in (sim, undisturbed))
    if replaced != once:
        problems.append(f"replaced {replaced} instead of {once}")
    for part, (had, allowed) in enumerate(zip(sim.lowest(), undisturbed.lowest(), strict=True)):
        problems += [
            f"part {part}: {what} had only {number} ready pods instead of {least}"
            for what, number, least in zip(("primary", "traffic"), had, allowed, strict=True)
            if number < least
        ]
    return problems + sim.problems


def repeated(sim: Sim, undisturbed: Sim) -> list[str]:
    """Return what was said more often, or less, than without a crash."""
    return [
        f"{what} came {found[text]} times instead of {expected[text]}: {text}"
        for what, found, expected in (
            ("an event", said(sim), said(undisturbed)),
            ("an alert", told(sim), told(undisturbed)),
        )
        for text in found.keys() | expected.keys()
        if found[text] != expected[text]
    ]


def said(sim: Sim) -> Counter[str]:
    """How often each event came."""
    return Counter(text for text in sim.messages() if not text.startswith("Waiting"))


def told(sim: Sim) -> Counter[str]:
    """How often people were told what."""
    return Counter(alert.message for _, alert in sim.alerts)


@pytest.mark.thorough
@pytest.mark.parametrize("story", ALL, ids=lambda story: story.name)
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
        problems = compare(sim, undisturbed)
        if not story.repeats:
            problems += repeated(sim, undisturbed)
        assert not problems, f"killed after write {number}: {sim.actions[-6:]}"
    record_property("crash points", f"{story.name} {writes}")


@pytest.mark.parametrize("story", ALL, ids=lambda story: story.name)
def test_killed_once_after_each_write_in_a_row_it_ends_in_the_same_place(story: Story) -> None:
    undisturbed = story.tell(story.begin())
    assert story.end(undisturbed), (undisturbed.phases(), undisturbed.problems)
    assert not undisturbed.problems
    sim = story.begin()
    sim.kill_each = True
    story.tell(sim)
    assert sim.restarts > FEWEST
    problems = compare(sim, undisturbed)
    if not story.repeats:
        problems += repeated(sim, undisturbed)
    assert not problems
