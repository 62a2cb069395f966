"""Statements over time: windows, holds, gaps, and what is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checks.judge import judge
from harness.model import timeline as tl
from harness.model.outcome import Outcome
from harness.tests import stories
from harness.tests.timelines import UNSCHEDULABLE, Recording, check, scenario, step

if TYPE_CHECKING:
    from harness.model.report import Finding


def found(story: Recording, check_id: str = "c") -> Finding:
    finding = judge(story.timeline()).finding(check_id)
    assert finding is not None
    return finding


def one(kind: str, expression: str, **more: Any) -> Recording:
    """Return a recording up to +1 s of a scenario with a single step and a single check."""
    body = scenario(steps=[step("go")], settle=0.0, checks=[check("c", kind, expression, **more)])
    return Recording(body).at(0.5).synced().at(1.0).step("go", "started", "acted")


def ready_pods(story: Recording) -> Recording:
    story.rollout("Succeeded").deployment("web-primary", "aaa")
    return story.pod("web-primary", "aaa", "x", node="n", ready=True)


def unready(story: Recording, t: float) -> Recording:
    return story.at(t).pod("web-primary", "aaa", "x", node="n", ready=False)


def held(story: Recording, t: float) -> Recording:
    return story.at(t).step("go", "held")


def test_never_passes_with_count_and_time_of_what_was_seen() -> None:
    finding = found(held(ready_pods(one("never", "pods.exists(p, !p.ready)")), 8.0))
    assert finding.outcome is Outcome.PASS
    assert finding.evidence == "7 observations from +1.0 s to +8.0 s"


def test_never_fails_for_a_single_moment_and_says_until_when() -> None:
    story = ready_pods(one("never", "pods.exists(p, !p.ready)"))
    unready(story, 3.0).at(3.2).pod("web-primary", "aaa", "x", node="n", ready=True)
    finding = found(held(story, 8.0))
    assert finding.outcome is Outcome.FAIL
    assert finding.evidence == "pod web-primary-aaa-x not ready since +3.0 s, until +3.2 s"


@pytest.mark.parametrize(
    ("lasts", "outcome"), [(4.0, Outcome.PASS), (5.0, Outcome.PASS), (5.5, Outcome.FAIL)]
)
def test_for_counts_only_what_holds_longer_without_a_break(lasts: float, outcome: Outcome) -> None:
    story = ready_pods(one("never", "pods.exists(p, !p.ready)", **{"for": 5.0}))
    unready(story, 3.0).at(3.0 + lasts).pod("web-primary", "aaa", "x", node="n", ready=True)
    finding = found(held(story, 20.0))
    assert finding.outcome is outcome
    if outcome is Outcome.PASS:
        assert finding.evidence.endswith(f"longest {lasts:.1f} s of 5.0 s allowed")


def test_a_hold_lasts_until_the_end_of_the_window_where_nothing_follows() -> None:
    story = ready_pods(one("never", "pods.exists(p, !p.ready)", **{"for": 5.0}))
    assert found(held(unready(story, 3.0), 8.5)).outcome is Outcome.FAIL


def test_always_shows_the_values_and_the_pods_at_the_moment_of_the_violation() -> None:
    story = ready_pods(one("always", "primary.ready >= 1"))
    story.lines = [line for line in story.lines if not isinstance(line, tl.StepState)]
    story.at(2.0).step("go", "started")
    finding = found(held(unready(story, 3.0), 8.0))
    assert finding.outcome is Outcome.FAIL
    assert finding.evidence == (
        "primary.ready = 0 since +3.0 s, still so at the end; its pods: web-primary-aaa-x (not ready)"
    )


def test_eventually_passes_when_it_was_true_once() -> None:
    finding = found(held(ready_pods(one("eventually", "primary.ready >= 1")), 8.0))
    assert finding.outcome is Outcome.PASS
    assert finding.evidence == "true at +1.0 s"


def test_eventually_fails_with_the_values_at_the_end() -> None:
    finding = found(held(ready_pods(one("eventually", "primary.ready >= 3")), 8.0))
    assert finding.outcome is Outcome.FAIL
    assert (
        finding.evidence
        == "never true in 7 observations from +1.0 s to +8.0 s; at the end primary.ready = 1"
    )


@pytest.mark.parametrize(("until", "outcome"), [(6.0, Outcome.PASS), (3.0, Outcome.FAIL)])
def test_eventually_with_a_hold_must_hold_that_long(until: float, outcome: Outcome) -> None:
    story = ready_pods(one("eventually", "primary.ready >= 1", **{"for": 4.0}))
    finding = found(held(unready(story, until), 20.0))
    assert finding.outcome is outcome


@pytest.mark.parametrize("kind", ["always", "never"])
def test_a_gap_makes_a_claim_over_every_moment_unknown(kind: str) -> None:
    expression = "pods.exists(p, p.gated)" if kind == "never" else "primary.ready >= 0"
    story = ready_pods(one(kind, expression)).at(5.0).gap("Pod", since=3.0)
    finding = found(held(story, 8.0))
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.evidence == "the watch of Pod has a gap from 3.0 s to 5.0 s (410 Gone)"


def test_a_gap_in_a_watch_that_does_not_matter_changes_nothing() -> None:
    story = ready_pods(one("never", "pods.exists(p, p.gated)")).at(5.0).gap("Service", since=3.0)
    assert found(held(story, 8.0)).outcome is Outcome.PASS


def test_a_watch_that_is_behind_when_observation_ends_makes_it_unknown() -> None:
    story = stories.promotion().at(525.0).gap("Pod", since=522.3)
    assert found(story, "never-blocked").outcome is Outcome.UNKNOWN


def test_a_gap_before_the_window_changes_nothing() -> None:
    body = stories.body(
        checks=[check("c", "never", "pods.exists(p, p.gated)", **{"from": "promote"})]
    )
    story = stories.promotion(body)
    gap = tl.WatchState(t=3.6, kind="Pod", state="gap", since=3.4)
    story.lines.insert(20, gap)
    assert found(story).outcome is Outcome.PASS


def test_a_violation_that_was_seen_is_a_fail_in_spite_of_a_gap() -> None:
    story = (
        unready(ready_pods(one("never", "pods.exists(p, !p.ready)")), 3.0)
        .at(5.0)
        .gap("Pod", since=4.0)
    )
    assert found(held(story, 8.0)).outcome is Outcome.FAIL


def test_a_hold_is_not_claimed_across_a_gap() -> None:
    story = ready_pods(one("never", "pods.exists(p, !p.ready)", **{"for": 5.0}))
    unready(story, 3.0).at(7.0).gap("Pod", since=6.0)
    assert found(held(story, 11.0)).outcome is Outcome.UNKNOWN


def test_no_pod_at_all_is_unknown() -> None:
    story = (
        one("never", "pods.exists(p, p.gated)")
        .rollout("Succeeded")
        .deployment("web", "aaa", replicas=0)
    )
    finding = found(held(story, 8.0))
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.evidence == "no pod was ever observed"


def test_a_statement_that_is_not_about_pods_needs_none() -> None:
    assert (
        found(held(one("never", 'rollout.phase == "Failed"').rollout("Succeeded"), 8.0)).outcome
        is Outcome.PASS
    )


def test_a_field_that_is_not_known_makes_it_unknown_and_is_named() -> None:
    story = one("never", "services.exists(s, s.selects == 'both')")
    story.lines = [line for line in story.lines if getattr(line, "kind", "") != "Service"]
    finding = found(held(ready_pods(story), 8.0))
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.evidence == "services is not known at +1.0 s"


def test_an_expression_that_this_version_cannot_read_is_unknown() -> None:
    finding = found(held(ready_pods(one("never", "pods.exists(")), 8.0))
    assert finding.outcome is Outcome.UNKNOWN
    assert "is not CEL" in finding.evidence


def test_a_window_that_never_opened_is_unknown() -> None:
    body = scenario(checks=[check("c", "always", "primary.ready >= 1", **{"from": "promote"})])
    story = (
        ready_pods(Recording(body).synced().step("initialise"))
        .at(9.0)
        .step("promote", "started", "timed-out")
    )
    finding = found(story)
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.evidence == "step promote never held, so there is nothing to judge"


def windowed(**window: str) -> Recording:
    body = scenario(checks=[check("c", "never", "pods.exists(p, !p.ready)", **window)])
    story = ready_pods(Recording(body).synced().at(1.0).step("initialise"))
    story.at(2.0).step("new revision").at(3.0).step("promote")
    return story.at(4.0).add(tl.Settled, state="begin")


@pytest.mark.parametrize(
    ("window", "outcome"),
    [
        ({}, Outcome.FAIL),
        ({"until": "settled"}, Outcome.FAIL),
        ({"until": "end"}, Outcome.PASS),
        ({"until": "promote"}, Outcome.PASS),
        ({"from": "end"}, Outcome.FAIL),
        ({"from": "promote", "until": "settled"}, Outcome.FAIL),
    ],
)
def test_from_and_until_bound_the_window(window: dict[str, str], outcome: Outcome) -> None:
    story = unready(windowed(**window), 4.5).at(5.0).add(tl.Settled, state="end")
    assert found(story).outcome is outcome


def test_teardown_is_not_judged() -> None:
    story = windowed().at(5.0).add(tl.Settled, state="end")
    assert found(unready(story, 6.0).clean(9.0)).outcome is Outcome.PASS


def test_an_interrupted_drill_leaves_its_open_claims_unknown() -> None:
    story = (
        ready_pods(one("never", "pods.exists(p, p.gated)"))
        .at(3.1)
        .add(tl.Interrupted, signal="SIGTERM")
    )
    finding = found(story)
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.evidence == "the drill was interrupted by SIGTERM at +3.1 s"


def test_the_clock_alone_can_violate_a_statement_about_ages() -> None:
    story = ready_pods(one("never", "pods.exists(p, p.age > 5.0)"))
    assert found(held(story, 8.0)).outcome is Outcome.FAIL


def test_every_witness_is_named_with_its_own_times_the_lasting_ones_first() -> None:
    story = one("never", "pods.exists(p, p.unschedulable)").rollout("Promoting")
    story.at(2.0).pod("web", "aaa", "x", refused=UNSCHEDULABLE).at(3.0).pod(
        "web", "aaa", "y", refused="no room"
    )
    finding = found(held(story.at(4.0).gone("web-aaa-x"), 8.0))
    assert [(w.object, w.since, w.until) for w in finding.witnesses] == [
        ("pod web-aaa-y", 3.0, None),
        ("pod web-aaa-x", 2.0, 4.0),
    ]
    assert finding.witnesses[0].message == "no room"


def test_what_is_said_of_a_pod_that_has_a_node_is_not_the_schedulers_word() -> None:
    story = one("never", 'pods.exists(p, p.app == "web")').rollout("Promoting")
    story.at(2.0).pod("web", "aaa", "x").at(3.0).pod("web", "aaa", "x", node="n")
    placed = story.lines[-1]
    assert isinstance(placed, tl.ObjectSeen)
    placed.object["status"]["conditions"][0]["message"] = "containers with unready status: [web]"
    (witness,) = found(held(story, 8.0)).witnesses
    assert witness.text.endswith("; reason: containers with unready status: [web]")


def test_a_count_is_thinned_out_to_the_elements_that_make_it_up() -> None:
    story = one("never", "pods.filter(p, p.ready).size() >= 2").rollout("Promoting")
    story.pod("web", "aaa", "x", node="n", ready=True).pod("web", "aaa", "y", node="n")
    story.at(2.0).pod("web", "aaa", "z", node="n", ready=True)
    finding = found(held(story, 8.0))
    assert [w.object for w in finding.witnesses] == ["pod web-aaa-x", "pod web-aaa-z"]


def test_long_lists_of_witnesses_are_cut_off_with_a_count() -> None:
    story = one("never", "pods.exists(p, p.unschedulable)").rollout("Promoting").at(2.0)
    for number in range(30):
        story.pod("web", "aaa", f"{number:02d}", refused="no room")
    finding = found(held(story, 8.0))
    assert finding.evidence.endswith("; and 27 more")


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=12),
    st.sampled_from([0, 2, 5]),
    st.sampled_from(["never", "always", "eventually"]),
)
def test_statements_agree_with_a_plain_count_of_seconds(
    told: list[tuple[int, bool]], hold: int, kind: str
) -> None:
    expression = "pods.exists(p, p.ready)"
    story = one(kind, expression, **{"for": float(hold)}).rollout("Progressing")
    # The step starts with the first pod, so that the window does.
    story.lines = [line for line in story.lines if not isinstance(line, tl.StepState)]
    t = 2
    seconds: list[bool] = []
    for lasts, ready in told:
        story.at(float(t)).pod("web", "aaa", "x", node="n", ready=ready)
        if t == 2:
            story.step("go", "started")
        seconds += [ready] * lasts
        t += lasts
    held(story, float(t))
    wanted = kind != "always"
    longest = run = 0
    for value in seconds:
        run = run + 1 if value is wanted else 0
        longest = max(longest, run)
    if kind == "eventually":
        expected = Outcome.PASS if longest >= max(hold, 1) else Outcome.FAIL
    else:
        expected = Outcome.FAIL if longest > hold else Outcome.PASS
    assert found(story).outcome is expected
