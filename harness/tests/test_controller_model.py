"""The model test of the controller, and the proof that it can fail: with a broken rule it finds out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from harness.controller.core import Note, guards, phases
from harness.tests import controller_sim
from harness.tests.controller_model import KINDS, Kind, Releases

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core import Decision, World

JSON = dict[str, Any]
SLOW = settings.get_current_profile_name() == "slow"
"""pytest --hypothesis-profile=slow: more examples, other ones each time, and a failing story is made as short as possible."""
BOUNDS = settings(
    max_examples=2000 if SLOW else 30,
    stateful_step_count=50 if SLOW else 30,
    derandomize=not SLOW,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
    # Shortening a story takes minutes.
    phases=[Phase.generate, Phase.shrink] if SLOW else [Phase.generate],
    report_multiple_bugs=False,
)

Releases.TestCase.settings = BOUNDS
TestReleases = Releases.TestCase


# -- it can fail -------------------------------------------------------------------------------------------------------------


def _without(*names: str) -> tuple[phases.Rule, ...]:
    return tuple(rule for rule in phases.TABLE if rule.name not in names)


def _always(name: str) -> tuple[phases.Rule, ...]:
    """The table with one rule whose condition always holds in its phases."""
    return tuple(
        replace(rule, when=guards.always) if rule.name == name else rule for rule in phases.TABLE
    )


BROKEN: dict[str, Callable[[], tuple[phases.Rule, ...]]] = {
    "promotes what was not analysed": lambda: _always("skip-analysis"),
    "never starts": lambda: _without("start"),
    "never succeeds": lambda: _without("succeed"),
    "leaves traffic where somebody else put it": lambda: _without("upkeep-traffic", "upkeep"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_rule_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "TABLE", BROKEN[what]())
    with pytest.raises((AssertionError, LookupError)):
        run_state_machine_as_test(Releases, settings=settings(BOUNDS, max_examples=60))


def _release(story: Releases) -> None:
    story.new_image("app:2", then=30.0)


def _close_the_gate(story: Releases) -> None:
    story.answer("finish", "no", then=1.0)
    story.new_image("app:2", then=30.0)


def _fail_the_metric(story: Releases) -> None:
    story.measure(50.0, then=1.0)
    story.new_image("app:2", then=30.0)


@pytest.mark.parametrize(
    ("tell", "ignored"),
    [
        (_release, "between-iterations"),
        (_close_the_gate, "held"),
        (_fail_the_metric, "check-failed"),
    ],
)
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_a_controller_that_promotes_where_it_must_not_is_found(
    tell: Callable[[Releases], None], ignored: str, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these rows promotes instead; with the whole table the same story holds."""
    sound = Releases()
    sound.start(kind)
    tell(sound)
    promote = next(rule.do for rule in phases.TABLE if rule.name == "analysed")
    table = [replace(r, do=promote) if r.name == ignored else r for r in phases.TABLE]
    assert table != list(phases.TABLE)
    monkeypatch.setattr(phases, "TABLE", tuple(table))
    broken = Releases()
    broken.start(kind)
    with pytest.raises(AssertionError, match="promoted"):
        tell(broken)


@pytest.mark.parametrize("what", ["a write in every pass", "an event at every interval"])
def test_a_controller_that_does_not_come_to_rest_is_found(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(world: World, canary: JSON, now: float) -> Decision:
        decision = phases.decide(world, canary, now)
        if decision.row != "idle":
            return decision
        if what.startswith("a write"):
            touched: JSON = {"lastTransitionTime": f"{now}"}
            return replace(decision, status=touched, requeue_after=60.0)
        note = Note("Normal", "still here", f"still here {now // 60}")
        return replace(decision, notes=(note,), requeue_after=60.0)

    monkeypatch.setattr(controller_sim, "decide", busy)
    with pytest.raises(AssertionError, match=r"settle"):
        run_state_machine_as_test(Releases, settings=settings(BOUNDS, max_examples=5))
