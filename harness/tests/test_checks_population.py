"""Many rollouts: what is counted for each, what counts begin with, and that no order of observations changes what is seen."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from harness.checks.expression import Expression, Unknown
from harness.checks.population import begins
from harness.checks.state import State
from harness.model.timeline import ObjectSeen, Requests, StepState, SubjectState, parse
from harness.tests.populations import Behaviour, PopulationStory, app_of, names, upgrade

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.timeline import Observation
    from harness.tests.timelines import Recording


def state_of(story: Recording, observations: Iterable[Observation] | None = None) -> State:
    state = State(story.header())
    for observation in story.timeline().observations if observations is None else observations:
        state.apply(observation)
    return state


def entry(story: Recording, name: str = "web-000") -> dict[str, Any]:
    rows = state_of(story).world()["rollouts"]
    return next(dict(row) for row in rows if row["name"] == name)


def story() -> PopulationStory:
    made = PopulationStory().at(0.1).synced()
    return made.canary("web-000", "Initialized").canary("web-001", "Initialized")


def started(made: PopulationStory) -> PopulationStory:
    made.add(SubjectState, state="started", detail="flagger@1.38.0 1.38.0")
    return made


@pytest.mark.parametrize(
    ("before", "after", "begun"),
    [
        (("Initialized", 0, 0), ("Progressing", 0, 0), True),
        (("Succeeded", 0, 0), ("Waiting", 0, 0), True),
        (("Failed", 0, 0), ("Progressing", 0, 0), True),
        (("Waiting", 0, 0), ("Progressing", 0, 0), False),
        (("Progressing", 1, 0), ("Progressing", 2, 0), False),
        (("Progressing", 2, 0), ("Progressing", 0, 0), True),
        (("Progressing", 0, 30), ("Progressing", 0, 0), True),
        (("Progressing", 2, 50), ("WaitingPromotion", 1, 0), False),
        (("Progressing", 1, 0), ("WaitingPromotion", 0, 0), False),
        (("WaitingPromotion", 1, 0), ("WaitingPromotion", 1, 0), False),
        (("WaitingPromotion", 0, 0), ("Progressing", 0, 0), True),
        (("WaitingPromotion", 1, 0), ("Promoting", 0, 0), False),
        (("Promoting", 2, 0), ("Finalising", 0, 0), False),
        (("Progressing", 2, 0), ("Failed", 0, 0), False),
        (("", 0, 0), ("Initializing", 0, 0), False),
    ],
)
def test_an_analysis_begins_from_outside_or_when_its_counters_fall_to_zero(
    before: tuple[str, int, int], after: tuple[str, int, int], *, begun: bool
) -> None:
    keys = ("phase", "iterations", "weight")
    assert (
        begins(dict(zip(keys, before, strict=True)), dict(zip(keys, after, strict=True))) is begun
    )


@pytest.mark.parametrize(
    ("old", "new", "iterations", "begun"),
    [
        # Another revision was taken up: by a subject without a fence, and by one with.
        (("5d7f8", ""), ("6c8d9", ""), 0, True),
        (("v2:1", "u/2/1"), ("v2:2", "u/3/2"), 0, True),
        # A status of another form cannot be compared, so the analysis starts over.
        (("5d7f8", ""), ("v2:1", "u/2/1"), 0, True),
        # The same revision in another form, whether the target was scaled meanwhile or not.
        (("v2:1", "u/2/1"), ("v2:2", "u/2/1"), 0, False),
        (("v2:1", "u/2/1"), ("v2:2", "u/3/1"), 0, False),
        (("v2:1", "u/2/1"), ("v2:1", "u/3/1"), 0, False),
        # It goes on where it was, so nothing started over.
        (("v2:1", "u/2/1"), ("v2:2", "u/3/2"), 1, False),
        (("", ""), ("v2:2", "u/3/2"), 0, False),
    ],
)
def test_an_analysis_that_starts_over_before_it_counted_anything_shows_in_what_it_took_up(
    old: tuple[str, str], new: tuple[str, str], iterations: int, *, begun: bool
) -> None:
    def status(pair: tuple[str, str]) -> dict[str, Any]:
        return {
            "lastAppliedSpec": pair[0],
            "lastTrackedRevision": pair[1],
            "iterations": iterations,
        }

    made = story().canary("web-000", "Progressing", **status(old))
    started(made)
    made.canary("web-000", "Progressing", **status(new))
    assert entry(made)["starts"] == int(begun)


def test_starts_are_counted_for_each_rollout_and_from_the_last_start_of_the_subject() -> None:
    made = story().canary("web-000", "Progressing").canary("web-000", "Succeeded")
    assert (entry(made)["starts"], entry(made, "web-001")["starts"]) == (1, 0)
    started(made)
    assert entry(made)["starts"] == 0
    made.canary("web-000", "Progressing", iterations=1).canary("web-000", "Progressing")
    assert entry(made)["starts"] == 2


def test_starts_after_the_change_survive_a_restart_of_the_subject() -> None:
    made = story().canary("web-000", "Progressing").canary("web-000", "Succeeded")
    assert entry(made)["starts_after_change"] == 0
    made.add(StepState, step="new revision", state="started").canary("web-000", "Progressing")
    made.add(StepState, step="new revision", state="acted")
    started(made)
    assert (entry(made)["starts"], entry(made)["starts_after_change"]) == (0, 1)


def test_when_an_analysis_began_and_since_when_it_waited_is_kept() -> None:
    made = story()
    assert (entry(made)["began"], entry(made)["queued_since"]) == (-1.0, "")
    waits = {"type": "Queued", "status": "True", "lastTransitionTime": "2026-10-29T11:22:40Z"}
    made.at(2.0).canary("web-000", "Succeeded", conditions=[waits])
    assert (entry(made)["began"], entry(made)["queued_since"]) == (-1.0, "2026-10-29T11:22:40Z")
    made.at(3.0).canary("web-000", "Progressing")
    made.at(4.0).canary("web-000", "Progressing", iterations=1)
    made.at(5.0).canary("web-000", "Promoting")
    started(made)
    assert (entry(made)["began"], entry(made)["queued_since"]) == (3.0, "2026-10-29T11:22:40Z")
    assert entry(made, "web-001")["began"] == -1.0


def test_how_many_are_analysed_is_counted_now_and_at_most() -> None:
    made = story()

    def counted() -> Any:
        return state_of(made).world()["analyses"]

    assert counted() == {"running": 0, "most": 0}
    for name, phase in (
        ("web-000", "Progressing"),
        ("web-001", "WaitingPromotion"),
        ("web-000", "Progressing"),
        ("web-000", "Promoting"),
        ("web-001", "Waiting"),
        ("web-002", "Progressing"),
    ):
        made.canary(name, phase)
    assert counted() == {"running": 1, "most": 2}
    assert state_of(made).evaluate(Expression.compile("analyses.most <= 2")) is True
    made.gone("web-002", "Canary")
    assert counted()["running"] == 0


def test_rolls_are_changes_of_the_current_replica_set_not_of_anything_else() -> None:
    made = started(story()).revise("web-000", 1).revise(app_of("web-000"), 1)
    made.revise("web-000", 1, replicas=0).revise("web-000", 1, replicas=3)
    assert (entry(made)["target_rolls"], entry(made)["primary_rolls"]) == (0, 0)
    made.revise(app_of("web-000"), 2)
    made.revise("web-000", 2).revise("web-000", 3)
    seen = entry(made)
    assert (seen["target_rolls"], seen["primary_rolls"]) == (2, 1)
    assert (seen["target_hash"], seen["target_revision"]) == ("r3", "3")
    assert (seen["primary_hash"], seen["primary_revision"]) == ("r2", "2")
    assert entry(made, "web-001")["primary_rolls"] == 0


def test_a_target_that_comes_back_with_the_same_template_is_no_roll_and_with_another_is_one() -> (
    None
):
    made = started(story()).revise("web-000", 1)
    made.gone("web-000", "Deployment").gone("web-000-r1", "ReplicaSet").revise("web-000", 1)
    assert entry(made)["target_rolls"] == 0
    made.gone("web-000", "Deployment").gone("web-000-r1", "ReplicaSet").revise("web-000", 2)
    assert entry(made)["target_rolls"] == 1


def test_workloads_seen_before_their_rollout_are_its_witnesses_too() -> None:
    made = PopulationStory().synced()
    made.revise("web-000", 1).revise(app_of("web-000"), 4).canary("web-000", "Initialized")
    assert (entry(made)["target_hash"], entry(made)["primary_hash"]) == ("r1", "r4")


@pytest.mark.parametrize("field", ["lastAppliedSpec", "lastPromotedSpec", "lastTrackedRevision"])
def test_each_new_record_of_the_revision_is_a_tracking_write_and_nothing_else_is(
    field: str,
) -> None:
    made = started(story())
    made.canary("web-000", "Initialized", lastTransitionTime="2026-10-29T11:30:00Z")
    assert entry(made)["tracking_writes"] == 0
    made.canary("web-000", "Initialized", **{field: "v2:1"})
    made.canary("web-000", "Initialized", **{field: "v2:1"})
    assert entry(made)["tracking_writes"] == 1


def test_looks_are_requests_or_the_subjects_own_word_whichever_is_more() -> None:
    made = started(story())
    assert entry(made)["looks"] == 0
    for _ in range(2):
        made.add(SubjectState, state="looked", detail="web-000 fence-equal")
    assert (entry(made)["looks"], entry(made, "web-001")["looks"]) == (2, 0)
    made.add(Requests, rollouts={"web-000": (3, 1)}, total=9, watches=2)
    assert (entry(made)["looks"], entry(made)["writes"]) == (4, 1)
    started(made)
    assert (entry(made)["looks"], entry(made)["writes"]) == (0, 0)


def test_without_an_audit_log_writes_are_not_known() -> None:
    state = state_of(started(story()))
    assert isinstance(state.evaluate(Expression.compile("rollouts.all(r, r.writes == 0)")), Unknown)


def test_a_deleted_rollout_stays_in_the_list_so_that_nothing_is_said_of_an_empty_one() -> None:
    made = story().gone("web-000", "Canary").gone("web-001", "Canary")
    state = state_of(made)
    assert [row["exists"] for row in state.world()["rollouts"]] == [False, False]
    assert state.evaluate(Expression.compile('rollouts.all(r, r.phase == "Initialized")')) is False


def test_labels_suspension_and_what_the_status_records_are_in_an_entry() -> None:
    made = story().canary("web-000", "Failed", "Failed-scaled", lastTrackedRevision="u/2/1")
    seen = entry(made)
    assert (seen["labels"], seen["suspended"]) == ({"drill/cell": "Failed-scaled"}, False)
    assert (seen["applied"], seen["tracked"]) == ("5d7f8", "u/2/1")


def test_the_subject_is_known_by_name_and_whether_it_runs() -> None:
    made = story()
    assert "running" not in state_of(made).world()["subject"]
    started(made)
    assert state_of(made).world()["subject"] == {
        "name": "flagger@1.38.0",
        "running": True,
        "starts": 1,
    }
    made.add(SubjectState, state="killed")
    assert state_of(made).world()["subject"]["running"] is False


def test_pods_and_services_of_every_rollout_have_roles() -> None:
    made = story()
    for name in ("web-000", "web-001"):
        made.service(name, app_of(name)).service(f"{name}-canary", name)
        made.deployment(name, "r1").deployment(app_of(name), "r1")
        made.run_pod(name, 1).run_pod(app_of(name), 1)
    world = state_of(made).world()
    assert sorted(pod["role"] for pod in world["pods"]) == ["primary"] * 2 + ["target"] * 2
    assert [row["role"] for row in world["services"]] == ["apex", "target"] * 2
    assert [row["selects"] for row in world["services"]] == ["primary", "target"] * 2


def _facts(state: State) -> dict[str, Any]:
    """Return the facts without what is counted on the way, with lists by name."""
    counters = {
        "starts",
        "starts_after_change",
        "began",
        "queued_since",
        "target_rolls",
        "primary_rolls",
        "tracking_writes",
        "looks",
        "writes",
    }
    facts = {}
    for name, value in state.facts().items():
        if name in {"at", "analyses"}:
            continue  # what was so at some moment, or at most, depends on what had been seen by then
        if isinstance(value, list):
            rows = [{k: v for k, v in row.items() if k not in counters} for row in value]
            facts[name] = sorted(rows, key=lambda row: (row.get("kind", ""), row["name"]))
        else:
            facts[name] = value
    return facts


@pytest.mark.parametrize("seed", range(12))
def test_what_is_seen_does_not_depend_on_the_order_across_kinds(seed: int) -> None:
    """The views are kept up to date one by one; they must be what a look at the final objects gives, whatever came when."""
    made = upgrade(4, Behaviour(started=2, writes=1))
    observations = list(made.timeline().observations)
    chance = random.Random(seed)  # noqa: S311 - a test's order, no secret
    observations = observations[: chance.randrange(40, len(observations))]
    final: dict[tuple[str, str], ObjectSeen] = {}
    by_kind: dict[str, list[ObjectSeen]] = {}
    for seen in observations:
        if isinstance(seen, ObjectSeen):
            key = str(seen.object["kind"]), str(seen.object["metadata"]["name"])
            if seen.change == "DELETED":
                final.pop(key, None)
            else:
                final[key] = seen
            by_kind.setdefault(key[0], []).append(seen)
    mixed: list[Observation] = [o for o in observations if not isinstance(o, ObjectSeen)]
    queues = list(by_kind.values())
    while queues:
        queue = chance.choice(queues)
        mixed.append(queue.pop(0))
        queues = [queue for queue in queues if queue]
    plain: list[Observation] = [o for o in observations if not isinstance(o, ObjectSeen)]
    plain += final.values()
    reference = _facts(state_of(made, plain))
    assert _facts(state_of(made, observations)) == reference
    assert _facts(state_of(made, mixed)) == reference


def test_an_expression_is_evaluated_again_only_when_something_that_it_uses_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = upgrade(30)
    evaluated = 0
    original = Expression.evaluate

    def count(self: Expression, world: Any) -> Any:
        nonlocal evaluated
        evaluated += 1
        return original(self, world)

    monkeypatch.setattr(Expression, "evaluate", count)
    expression = Expression.compile("rollouts.all(r, r.starts == 0)")
    state = State(made.header())
    observations = parse(made.text().splitlines()).observations
    for observation in observations:
        state.apply(observation)
        state.evaluate(expression)
    # Each rollout is new once and starts once, both subjects are started, and the kinds and steps become known.
    assert len(names(30)) <= evaluated <= 2 * len(names(30)) + 40 < len(observations)


def test_equal_rollouts_are_evaluated_once_and_counted_ones_are_not_merged() -> None:
    rows = [{"starts": 0, "name": f"web-{i}"} for i in range(60)]
    world = {"rollouts": [*rows, {"starts": 1, "name": "odd"}]}
    assert Expression.compile("rollouts.all(r, r.starts == 0)").evaluate(world) is False
    assert Expression.compile("rollouts.exists(r, r.starts == 1)").evaluate(world) is True
    assert Expression.compile("size(rollouts) == 61").evaluate(world) is True
    both = "size(rollouts) == 61 && rollouts.exists(r, r.starts == 1)"
    assert Expression.compile(both).evaluate(world) is True
    assert Expression.compile("rollouts.exists_one(r, r.starts == 0)").evaluate(world) is False
    assert (
        Expression.compile("rollouts.filter(r, r.starts == 0).size() == 60").evaluate(world) is True
    )
