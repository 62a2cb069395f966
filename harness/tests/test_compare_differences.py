"""Comparisons of synthetic recordings: what differs is found, what is noise is not, and the table is applied."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.compare.comparison import CompareError, compare
from harness.compare.model import Comparison, Difference, Pair
from harness.compare.table import Entry, Placed
from harness.model import timeline as tl
from harness.model.outcome import ExitCode, Outcome
from harness.tests.compare_stories import BODY, Noise, Play, Shape, told

if TYPE_CHECKING:
    from collections.abc import Sequence

FLAGGER = tl.SubjectFacts("flagger@1.44.0", "1.44.0")
BUNDLED = tl.SubjectFacts("bundled", "0.1.0")
BLOCKED = Shape(phases=("Progressing", "Promoting"), blocked=True)


def entry(**fields: object) -> Placed:
    body: dict[str, object] = {
        "id": "K1",
        "subjects": ["flagger@*", "bundled"],
        "scenarios": ["spread"],
        "paths": ["phases.*.Progressing.iterations"],
        "why": "It counts otherwise.",
    }
    return Placed(Entry.model_validate({**body, **fields}), "table.yaml:7")


def compared(left: Play, right: Play, *table: Placed) -> Comparison:
    return compare([[left.timeline()], [right.timeline()]], table, reproduce="drill compare x")


def pair(left: Play, right: Play, *table: Placed) -> Pair:
    (found,) = compared(left, right, *table).pairs
    return found


def flagger(shape: Shape | None = None, noise: Noise | None = None) -> Play:
    return told(shape, noise, subject=FLAGGER)


def bundled(shape: Shape | None = None, noise: Noise | None = None) -> Play:
    return told(shape, noise, subject=BUNDLED)


def paths(found: Sequence[Difference]) -> list[str]:
    return [difference.path for difference in found]


def test_equal_stories_have_no_difference_and_say_what_was_compared() -> None:
    found = pair(flagger(), bundled())
    assert found.outcome is Outcome.PASS
    assert found.sentence == "No difference."
    assert found.differences == ()
    assert found.compared["phases"] == 6
    assert found.compared["placements"] == 12
    assert found.compared["objects"] == 5
    assert compared(flagger(), bundled()).exit_code is ExitCode.OK


PROGRESSING = "phases.web.Progressing"
TEMPLATE = "objects.Deployment/web-primary.spec.template.metadata.labels.extra"


@pytest.mark.parametrize(
    ("shape", "path", "reference", "other"),
    [
        (Shape(iterations=(0, 1, 2)), f"{PROGRESSING}.iterations", "0, 1", "0, 1, 2"),
        (Shape(weight=5), f"{PROGRESSING}.weights", "0", "0, 5"),
        (
            Shape(promoted=1),
            "placements.web.Succeeded.primary",
            "2 ready on 2 nodes",
            "2 ready on 1 node",
        ),
        (Shape(fence=False), "objects.Canary/web.status.lastTrackedRevision", "(present)", None),
        (Shape(service=(("type", "X"),)), "objects.Service/web.spec.type", None, "X"),
        (Shape(label="q"), TEMPLATE, None, "q"),
        (Shape(config=True), "objects.ConfigMap/extra", None, "there"),
        (Shape(phases=("Waiting", *Shape().phases)), "phases.web.Waiting", None, "passed through"),
        (BLOCKED, "checks.never-blocked", "pass", "fail"),
        (BLOCKED, "phases.web.Failed", None, "passed through"),
        (BLOCKED, "objects.Canary/web.status.lastPromotedSpec", "(revision 2)", "(revision 1)"),
        (
            BLOCKED,
            "placements.web.Promoting.primary",
            "2 ready on 2 nodes",
            "2 ready on 2 nodes, 1 without a node",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_kind_of_difference_is_found(
    shape: Shape, path: str, reference: str | None, other: str | None
) -> None:
    found = pair(flagger(), bundled(shape))
    assert found.outcome is Outcome.FAIL
    assert Difference(path, reference, other) in found.differences
    assert found.unexplained == found.differences
    assert compared(flagger(), bundled(shape)).exit_code is ExitCode.FAILED


def test_a_second_visit_of_a_phase_is_told_apart() -> None:
    twice = Shape(phases=("Progressing", "Waiting", "Progressing", *Shape().phases[1:]))
    once = Shape(phases=("Progressing", "Waiting", *Shape().phases[1:]))
    assert "phases.web.Progressing#2" in paths(pair(flagger(once), bundled(twice)).differences)


def test_one_more_entry_of_a_list_is_one_difference() -> None:
    ports = ({"name": "http", "port": 80}, {"name": "more", "port": 81})
    more = Shape(service=(("ports", [*ports[::-1]]),))
    found = pair(flagger(), bundled(more))
    assert paths(found.differences) == ["objects.Service/web.spec.ports[more]"]


def test_another_cluster_is_a_difference() -> None:
    cluster = tl.ClusterFacts("embedded", "run-2", "v1.36.3", ("a", "b", "c"), "kwok", 1)
    found = pair(flagger(), told(subject=BUNDLED, cluster=cluster))
    assert {"cluster.kubernetes", "cluster.nodes"} <= set(paths(found.differences))


def test_a_documented_difference_passes_and_is_told_with_its_reason() -> None:
    found = pair(flagger(Shape(iterations=(0, 1, 2))), bundled(), entry())
    assert found.outcome is Outcome.PASS
    assert found.differences == (
        Difference(f"{PROGRESSING}.iterations", "0, 1, 2", "0, 1", ids=("K1",)),
    )
    assert [(u.id, u.why, u.count) for u in found.used] == [("K1", "It counts otherwise.", 1)]
    assert found.stale == ()


def test_unexplained_differences_come_first() -> None:
    shape = Shape(iterations=(0, 1, 2), label="q")
    found = pair(flagger(shape), bundled(), entry())
    assert [d.documented for d in found.differences] == [False] * (len(found.differences) - 1) + [
        True
    ]
    assert found.outcome is Outcome.FAIL


def test_an_entry_that_explains_nothing_fails() -> None:
    found = pair(flagger(), bundled(), entry())
    assert found.outcome is Outcome.FAIL
    assert [(s.id, s.path, s.where) for s in found.stale] == [
        ("K1", "phases.*.Progressing.iterations", "table.yaml:7")
    ]
    assert compared(flagger(), bundled(), entry()).exit_code is ExitCode.FAILED


def test_each_path_of_an_entry_must_explain_something() -> None:
    two = entry(paths=["phases.*.Progressing.iterations", "phases.*.Progressing.weights"])
    found = pair(flagger(Shape(iterations=(0, 1, 2))), bundled(), two)
    assert [s.path for s in found.stale] == ["phases.*.Progressing.weights"]


@pytest.mark.parametrize(
    "other",
    [
        {"scenarios": ["spread[other]"]},
        {"scenarios": ["another"]},
        {"subjects": ["flagger@1.37.0", "bundled"]},
        {"subjects": ["bundled", "bundled"]},
    ],
    ids=["variant", "scenario", "version", "pair"],
)
def test_an_entry_about_something_else_neither_explains_nor_is_stale(
    other: dict[str, object],
) -> None:
    found = pair(flagger(Shape(iterations=(0, 1, 2))), bundled(), entry(**other))
    assert len(found.unexplained) == 1
    assert found.stale == ()


def test_elsewhere_an_entry_explains_what_fits_and_need_not() -> None:
    loose = entry(scenarios=["another"], elsewhere=True)
    assert pair(flagger(Shape(iterations=(0, 1, 2))), bundled(), loose).outcome is Outcome.PASS
    assert pair(flagger(), bundled(), loose).outcome is Outcome.PASS


def test_an_entry_with_values_is_about_those_only() -> None:
    shape = Shape(iterations=(0, 1, 2))
    right = entry(values={"flagger@*": "0, 1, 2", "bundled": "0, *"})
    wrong = entry(values={"flagger@*": "0, *", "bundled": "0, 1, 2"})
    assert pair(flagger(shape), bundled(), right).outcome is Outcome.PASS
    assert pair(bundled(), flagger(shape), right).outcome is Outcome.PASS
    assert pair(flagger(shape), bundled(), wrong).unexplained
    fence = entry(
        paths=["objects.Canary/*.status.lastTrackedRevision"],
        values={"flagger@*": "nothing", "bundled": "(present)"},
    )
    assert pair(flagger(Shape(fence=False)), bundled(), fence).outcome is Outcome.PASS
    assert pair(flagger(), bundled(Shape(fence=False)), fence).unexplained


def test_a_subject_given_as_a_program_has_its_version_for_the_table() -> None:
    own = tl.SubjectFacts("flagger@path:/x/flagger", "v1.44.0")
    play = told(Shape(iterations=(0, 1, 2)), subject=own)
    assert pair(play, bundled(), entry(subjects=["flagger@1.44.0", "bundled"])).used


def test_two_versions_of_one_subject_fit_a_pattern_both_ways_round() -> None:
    old = told(Shape(iterations=(0, 1, 2)), subject=tl.SubjectFacts("flagger@1.37.0", "1.37.0"))
    both = entry(
        subjects=["flagger@*", "flagger@1.44.0"],
        values={"flagger@*": "0, 1, 2", "flagger@1.44.0": "0, 1"},
    )
    assert pair(old, flagger(), both).outcome is Outcome.PASS
    assert pair(flagger(), old, both).outcome is Outcome.PASS


SHAPES = [
    Shape(),
    Shape(iterations=(0, 1, 2, 3), message="x"),
    Shape(fence=False, weight=7),
    Shape(phases=("Waiting", *Shape().phases), label="q"),
    Shape(phases=("Progressing", "Waiting", "Progressing", *Shape().phases[1:])),
    Shape(promoted=1, service=(("type", "X"),)),
    BLOCKED,
]


def _swapped(found: Pair) -> set[Difference]:
    return {dataclasses.replace(d, reference=d.other, other=d.reference) for d in found.differences}


@pytest.mark.parametrize(
    ("first", "second"),
    [pytest.param(*both, id=f"{n}") for n, both in enumerate(itertools.combinations(SHAPES, 2))],
)
def test_the_order_of_the_subjects_does_not_matter(first: Shape, second: Shape) -> None:
    table = entry(), entry(id="P14", paths=["phases.*"], scenarios=["spread[plain]"])
    one = pair(flagger(first), bundled(second), *table)
    other = pair(bundled(second), flagger(first), *table)
    assert set(one.differences) == _swapped(other)
    assert set(one.stale) == set(other.stale)
    assert one.outcome is other.outcome


def test_with_three_subjects_the_first_is_the_reference_of_both_pairs() -> None:
    plays = flagger(), bundled(), told(Shape(weight=5), subject=tl.SubjectFacts("argo", "1"))
    found = compare([[play.timeline()] for play in plays], (), reproduce="x")
    assert [(p.reference, p.other) for p in found.pairs] == [
        ("flagger@1.44.0", "bundled"),
        ("flagger@1.44.0", "argo"),
    ]
    assert [p.outcome for p in found.pairs] == [Outcome.PASS, Outcome.FAIL]
    assert found.exit_code is ExitCode.FAILED


def test_a_hole_in_a_recording_is_unknown_and_no_stale_entry() -> None:
    play = bundled()
    play.at(9.0).gap("Pod", since=8.0)
    found = pair(flagger(), play, entry())
    assert found.outcome is Outcome.UNKNOWN
    assert found.stale == ()
    assert found.sentence.startswith("Not comparable: bundled: the watch of Pod has a gap")
    assert compared(flagger(), play).exit_code is ExitCode.UNDECIDED


def test_a_subject_that_lacks_what_is_required_has_no_differences() -> None:
    play = flagger()
    play.lines = [line for line in play.lines if line.t < 0.3]
    play.at(0.3).add(tl.Missing, features=("freeze",), lacking="subject flagger@1.44.0")
    found = pair(play, bundled(), entry())
    assert found.outcome is Outcome.UNSUPPORTED
    assert found.sentence == "Not comparable: flagger@1.44.0: subject flagger@1.44.0 lacks freeze."
    assert (found.differences, found.stale, found.compared) == ((), (), {})
    assert compared(play, bundled()).exit_code is ExitCode.UNDECIDED


def test_a_drill_that_could_not_be_done_is_an_error() -> None:
    play = bundled()
    play.at(9.0).add(tl.HarnessError, message="etcd died")
    assert compared(flagger(), play).exit_code is ExitCode.ERROR


def test_what_is_left_behind_counts() -> None:
    left = bundled()
    items = ({"kind": "Namespace", "name": "x"},)
    left.at(50.0).add(tl.Leftovers, items=items, kinds_listed=9)
    assert compared(flagger(), left).exit_code is ExitCode.LEFT_BEHIND


def test_two_that_fail_alike_do_not_differ() -> None:
    found = compared(flagger(BLOCKED), bundled(BLOCKED))
    assert {side.outcome for side in found.drills[0].sides} == {Outcome.FAIL}
    assert found.exit_code is ExitCode.OK


def test_a_scenario_that_one_of_them_lacks_is_a_problem() -> None:
    body = {**BODY, "id": "spread[other]", "variant": "other"}
    more = told(subject=FLAGGER, body=body)
    found = compare(
        [[flagger().timeline(), more.timeline()], [bundled().timeline()]], (), reproduce="x"
    )
    assert found.problems == ("spread[other]: there is no recording with bundled",)
    assert len(found.drills) == 1
    assert found.exit_code is ExitCode.ERROR


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"values": {"replicas": 3}}, "bundled was drilled with other values than flagger@1.44.0"),
        ({"digest": "ffff"}, "another scenario file"),
    ],
)
def test_another_scenario_is_refused(body: dict[str, object], message: str) -> None:
    with pytest.raises(CompareError, match=message):
        compared(flagger(), told(subject=BUNDLED, body=body))


def test_one_scenario_twice_is_refused() -> None:
    twice = [flagger().timeline(), flagger().timeline()]
    with pytest.raises(CompareError, match=r"two recordings of spread\[plain\] with flagger"):
        compare([twice, [bundled().timeline()]], (), reproduce="x")


WORD = st.text("bcdfghjklmnpqrstvwxz2456789", min_size=5, max_size=10)


@st.composite
def noises(draw: st.DrawFn) -> Noise:
    hashes = draw(st.lists(WORD.map(lambda w: f"{w}h"), min_size=4, max_size=4, unique=True))
    suffixes = draw(st.lists(WORD, min_size=7, max_size=7, unique=True))
    nodes = draw(st.permutations(("node-1", "node-2")))
    kinds = st.sampled_from(("Pod", "Deployment", "Canary", "ReplicaSet", "Service"))
    lags = draw(st.dictionaries(kinds, st.floats(0, 0.04)))
    return Noise(
        nodes=(nodes[0], nodes[1]),
        hashes=tuple(hashes),
        suffixes=tuple(suffixes),
        namespace=f"drill-{draw(WORD)}",
        uids=f"uid-{draw(WORD)}",
        tokens=draw(st.sampled_from([("v2:aa", "v2:bb"), ("7d9f", "66c4")])),
        pace=draw(st.floats(0.7, 20)),
        lags=tuple(lags.items()),
        first_version=draw(st.integers(1, 10**9)),
        early=draw(st.booleans()),
        late=draw(st.booleans()),
    )


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(shape=st.sampled_from(SHAPES), one=noises(), other=noises())
def test_two_runs_of_one_subject_have_no_difference(shape: Shape, one: Noise, other: Noise) -> None:
    found = pair(bundled(shape, one), bundled(shape, other))
    assert found.differences == ()
    assert found.compared["placements"] >= 8


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(
    shapes=st.lists(st.sampled_from(SHAPES), min_size=2, max_size=2, unique=True),
    one=noises(),
    other=noises(),
)
def test_noise_hides_no_difference(shapes: list[Shape], one: Noise, other: Noise) -> None:
    plain = pair(flagger(shapes[0]), bundled(shapes[1]))
    noisy = pair(flagger(shapes[0], one), bundled(shapes[1], other))
    assert plain.differences
    assert {d.path for d in noisy.differences} == {d.path for d in plain.differences}
