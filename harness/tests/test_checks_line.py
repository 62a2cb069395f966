"""Checks of many rollouts that take their turns: how many run at once is looked at after every event, and in what order they began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.checks.expression import Expression
from harness.checks.judge import judge
from harness.model.outcome import Outcome
from harness.tests.timelines import Recording, check, scenario

if TYPE_CHECKING:
    import pytest

    from harness.model.report import Finding

LIMIT = 5
AT_MOST = f'size(rollouts.filter(r, r.phase == "Progressing")) <= {LIMIT}'
IN_TURN = (
    "rollouts.all(r, rollouts.all(s, r.queued_since == '' || s.queued_since == '' || "
    "r.queued_since >= s.queued_since || r.began <= s.began))"
)
QUEUED_TOLD = (
    "rollouts.exists(r, 'Queued' in r.conditions && r.conditions['Queued'].status == 'True')"
)


def canary(
    story: Recording, name: str, phase: str, since: str, *, waits: bool = False
) -> Recording:
    queued = {"type": "Queued", "status": str(waits), "lastTransitionTime": since, "reason": "Line"}
    return story.see(
        {
            "apiVersion": "flagger.app/v1beta1",
            "kind": "Canary",
            "metadata": {"name": name, "uid": f"canary-{name}"},
            "spec": {"targetRef": {"kind": "Deployment", "name": name}},
            "status": {"phase": phase, "conditions": [queued]},
        }
    )


def line(count: int, at_once: int, order: list[int] | None = None) -> Recording:
    """So many rollouts, each changed a second after the one before; `at_once` of them run, in `order`."""
    checks = [
        check("at-most", "always", AT_MOST, **{"from": "initialise"}),
        check("in-turn", "eventually", IN_TURN, **{"from": "end"}),
        check("waits", "eventually", QUEUED_TOLD),
    ]
    story = (
        Recording(scenario(checks=checks)).at(1.0).synced().step("initialise").step("new revision")
    )
    since = [f"2026-10-29T11:{n // 60:02}:{n % 60:02}Z" for n in range(count)]
    for n in range(count):
        canary(story.at(2.0 + n / 1000), f"web-{n:03}", "Succeeded", since[n], waits=True)
    running: list[int] = []
    t = 3.0
    for n in order or range(count):
        t += 0.01
        if len(running) == at_once:
            done = running.pop(0)
            canary(story.at(t), f"web-{done:03}", "Succeeded", since[done])
        canary(story.at(t + 0.001), f"web-{n:03}", "Progressing", since[n])
        running.append(n)
    for done in running:
        canary(story.at(t + 0.1), f"web-{done:03}", "Succeeded", since[done])
    return story.at(t + 0.2).step("promote").settle(t + 0.3, t + 1.3)


def found(story: Recording) -> dict[str, Finding]:
    return {finding.id: finding for finding in judge(story.timeline()).findings}


def test_so_many_at_once_are_fine_and_one_more_for_a_moment_is_not() -> None:
    good, bad = found(line(30, LIMIT)), found(line(30, LIMIT + 1))
    assert good["at-most"].outcome is Outcome.PASS
    assert bad["at-most"].outcome is Outcome.FAIL
    assert good["waits"].outcome is Outcome.PASS


def test_the_order_is_that_of_waiting() -> None:
    assert found(line(12, LIMIT))["in-turn"].outcome is Outcome.PASS
    jumped = [0, 1, 2, 11, *range(3, 11)]
    assert found(line(12, LIMIT, jumped))["in-turn"].outcome is Outcome.FAIL


def test_of_a_hundred_each_event_is_looked_at_and_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    evaluate = Expression.evaluate

    def counted(self: Expression, world: Any) -> Any:
        asked.append(self.text)
        return evaluate(self, world)

    monkeypatch.setattr(Expression, "evaluate", counted)
    story = line(100, LIMIT)
    assert found(story)["at-most"].outcome is Outcome.PASS
    events = 3 * 100
    assert 2 * 100 <= asked.count(AT_MOST) <= events + len(story.scenario["steps"]) + 5
