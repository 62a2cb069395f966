"""Statements about a recording, asked at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.expression import Expression, Unknown
from harness.checks.state import State

if TYPE_CHECKING:
    from harness.tests.timelines import Recording


def state_of(story: Recording) -> State:
    timeline = story.timeline()
    state = State(timeline.header)
    for observation in timeline.observations:
        state.apply(observation)
    return state


def holds(story: Recording, text: str) -> bool | Unknown:
    expression = Expression.compile(text)
    assert expression.findings() == []
    return state_of(story).evaluate(expression)
