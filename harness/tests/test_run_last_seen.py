"""What a step that timed out says of the state it left."""

from __future__ import annotations

from harness.checks.state import State
from harness.run.last_seen import describe
from harness.tests.populations import PopulationStory, names
from harness.tests.timelines import Recording


def seen(story: Recording) -> str:
    state = State(story.header())
    for observation in story.timeline().observations:
        state.apply(observation)
    return describe(state.world())


def test_one_rollout_is_told_with_its_workloads() -> None:
    story = Recording().synced().rollout("Progressing").deployment("web", "aaa")
    assert seen(story) == "phase Progressing, no primary, target 0 of 2 ready"


def test_of_many_rollouts_is_told_how_many_are_where_and_which_few_are_not() -> None:
    story = PopulationStory().synced()
    for name in names(9):
        story.canary(name, "Initialized")
    story.canary("web-003", "Progressing").canary("web-008", "")
    assert seen(story) == (
        "of 9 rollouts 7 in Initialized, 1 in Progressing (web-003), 1 in no phase (web-008)"
    )
