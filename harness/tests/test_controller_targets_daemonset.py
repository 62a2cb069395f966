"""DaemonSets as targets: the marker that means zero, and readiness by their own counters (case C21, deviations O2, O4, O7)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.canonical import SCALE_TO_ZERO
from harness.controller.core.targets.daemonset import left_behind, marked
from harness.tests.controller_sim_make import daemonset, image, merge
from harness.tests.controller_targets import applied, kind_of, made, pair_of, stored

if TYPE_CHECKING:
    from harness.controller.core.targets.base import Pair

JSON = dict[str, Any]
WHAT = kind_of("DaemonSet")
MARKED = {SCALE_TO_ZERO: "true"}


def selecting(selector: JSON | None, *, absent: bool = False) -> JSON:
    obj = stored(daemonset())
    if not absent:
        obj["spec"]["template"]["spec"]["nodeSelector"] = selector
    return obj


def counted(
    obj: JSON, desired: int, updated: int | None = None, available: int | None = None
) -> JSON:
    """With the status of a DaemonSet whose controller has looked at it."""
    updated = desired if updated is None else updated
    status = {
        "observedGeneration": 1,
        "desiredNumberScheduled": desired,
        "updatedNumberScheduled": updated,
        "numberAvailable": updated if available is None else available,
    }
    result: JSON = merge(obj, {"status": status})
    return result


def judged(target: JSON, primary: JSON) -> Pair:
    return pair_of("DaemonSet", target, primary)


@pytest.mark.parametrize(
    "target",
    [
        selecting({}),
        selecting(None),
        selecting(None, absent=True),
        selecting({SCALE_TO_ZERO: None}),
    ],
    ids=["empty", "null", "absent", "null-marker"],
)
def test_no_selector_and_an_empty_one_are_the_same(target: JSON) -> None:
    """Case C21."""
    plain = made("DaemonSet", selecting(None, absent=True))
    assert WHAT.snapshot(target).hash == WHAT.snapshot(plain.target).hash
    for one, other in ((target, plain.primary), (plain.target, made("DaemonSet", target).primary)):
        pair = pair_of("DaemonSet", one, other)
        assert not WHAT.idle(pair)
        assert WHAT.holds(pair)
        assert WHAT.promote(pair) == ()
        assert WHAT.differences(pair) == ()
    pair = made("DaemonSet", target)
    for act in (WHAT.to_zero, WHAT.to_run, WHAT.to_zero):
        pair = applied(pair, act(pair))
    assert pair.target["spec"]["template"]["spec"]["nodeSelector"] == MARKED


def test_the_users_selector_survives_and_the_primary_never_has_the_marker() -> None:
    """Case C21, and deviation O7 for a target that another controller left at zero."""
    target = selecting({"disk": "ssd"} | MARKED)
    pair = made("DaemonSet", target)
    assert pair.primary is not None
    assert pair.primary["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert WHAT.holds(pair)
    assert WHAT.promote(pair) == ()
    pair = replace(pair, target=merge(pair.target, image("app:2")), revision="v2:01")
    pair = applied(pair, WHAT.promote(pair))
    assert pair.primary is not None
    assert pair.primary["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
    pair = applied(pair, WHAT.to_run(pair))
    assert pair.target["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
    pair = applied(pair, WHAT.to_zero(pair))
    assert pair.target["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"} | MARKED
    pair = applied(pair, WHAT.revert(pair))
    assert pair.target["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert WHAT.revert(pair) == ()


def test_a_selector_that_was_removed_goes_from_the_primary_too() -> None:
    pair = made("DaemonSet", selecting({"disk": "ssd"}))
    pair = replace(pair, target=selecting(None, absent=True), revision="v2:01")
    assert not WHAT.holds(pair)
    assert [str(found) for found in WHAT.differences(pair)] == ["spec.nodeSelector"]
    pair = applied(pair, WHAT.promote(pair))
    assert pair.primary is not None
    assert "nodeSelector" not in pair.primary["spec"]["template"]["spec"]


def test_a_primary_that_got_the_marker_from_another_controller_is_freed_of_it() -> None:
    """Deviation O7: with it, it has no pods, and its zero must not count as ready."""
    pair = made("DaemonSet", selecting({"disk": "ssd"}))
    assert pair.primary is not None
    assert WHAT.keep(pair) == ()
    spoiled = merge(
        counted(pair.primary, 0), {"spec": {"template": {"spec": {"nodeSelector": MARKED}}}}
    )
    pair = replace(pair, primary=spoiled)
    assert "scaled to zero" in WHAT.primary_ready(pair, 100).message
    assert not WHAT.empty(pair)
    assert WHAT.differences(pair) == (), "it is no change that somebody made to the target"
    assert WHAT.promote(pair) != ()
    (write,) = WHAT.keep(pair)
    assert (write.verb, write.name) == ("patch", "web-primary")
    pair = applied(pair, (write,))
    assert pair.primary is not None
    assert pair.primary["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert WHAT.keep(pair) == ()


@pytest.mark.parametrize(
    ("status", "percent", "words"),
    [
        ({}, 100, "not been taken up"),
        ({"observedGeneration": 1}, 100, "not been taken up"),
        ({"updatedNumberScheduled": 1}, 100, "1 of 4 pods are updated"),
        ({"updatedNumberScheduled": 4, "numberAvailable": 3}, 100, "3 of 4 pods are available"),
        ({"updatedNumberScheduled": 4, "numberAvailable": 2}, 75, "75 % needed"),
        ({"updatedNumberScheduled": 4, "numberAvailable": 3}, 75, ""),
        ({"updatedNumberScheduled": 4, "numberAvailable": 3}, 99, ""),
        ({"updatedNumberScheduled": 4, "numberAvailable": 4}, 100, ""),
        ({"desiredNumberScheduled": 0}, 100, ""),
    ],
)
def test_readiness_has_counters_of_its_own(status: JSON, percent: int, words: str) -> None:
    obj = stored(daemonset())
    obj["metadata"]["generation"] = 2
    if status:
        obj["status"] = {"observedGeneration": 2, "desiredNumberScheduled": 4} | status
    seen = WHAT.rolled_out(obj, percent)
    assert words in seen.message
    assert seen.ready is not bool(words)


ABSENT = selecting(None, absent=True)
PRIMARY = made("DaemonSet", ABSENT).primary or {}
ELSEWHERE = selecting({"disk": "ssd"})


def idle(obj: JSON) -> JSON:
    result: JSON = merge(obj, {"spec": {"template": {"spec": {"nodeSelector": MARKED}}}})
    return result


@pytest.mark.parametrize(
    ("target", "primary", "empty", "canary", "ready"),
    [
        # Nobody has looked yet: nothing is known, and nothing is ready.
        (stored(ABSENT), stored(PRIMARY), False, False, False),
        # Nodes there are: the target has them, the primary has none.
        (counted(ABSENT, 2), counted(PRIMARY, 0), False, True, False),
        (counted(ABSENT, 2), counted(PRIMARY, 2), False, True, True),
        # No node for either: nothing to judge, and nothing wrong with what serves nobody.
        (counted(ABSENT, 0), counted(PRIMARY, 0), True, False, True),
        (counted(idle(ABSENT), 0), counted(PRIMARY, 0), True, False, True),
        # At zero, and it asks for other nodes than the primary: that may be the way out.
        (counted(idle(ELSEWHERE), 0), counted(PRIMARY, 0), False, False, True),
        # The new revision alone has no node: it cannot be analysed.
        (counted(ELSEWHERE, 0), counted(PRIMARY, 2), False, False, True),
        # The usual rest.
        (counted(idle(ABSENT), 0), counted(PRIMARY, 2), False, False, True),
        # Its status speaks of the time when it was at zero.
        (merge(counted(ABSENT, 0), {"metadata": {"generation": 2}}), counted(PRIMARY, 0), False, False, True),
    ],
)  # fmt: skip
def test_no_pods_are_judged_by_what_else_is_known(
    target: JSON, primary: JSON, *, empty: bool, canary: bool, ready: bool
) -> None:
    pair = judged(target, primary)
    assert WHAT.empty(pair) is empty
    assert WHAT.canary_ready(pair, 100).ready is canary
    assert WHAT.primary_ready(pair, 100).ready is ready


@pytest.mark.parametrize(
    "spec",
    [
        {"tolerations": [{"operator": "Exists"}]},
        {"affinity": {"nodeAffinity": {"x": 1}}},
        {"nodeName": "n1"},
        {"hostNetwork": True},
    ],
)
def test_whatever_decides_on_nodes_may_be_the_way_out(spec: JSON) -> None:
    other = merge(ABSENT, {"spec": {"template": {"spec": spec}}})
    assert not WHAT.empty(judged(counted(idle(other), 0), counted(PRIMARY, 0)))
    image_only = merge(ABSENT, image("app:2"))
    assert WHAT.empty(judged(counted(idle(image_only), 0), counted(PRIMARY, 0)))


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ({"type": "OnDelete"}, "'OnDelete'; allowed: RollingUpdate"),
        ({"type": "Sideways"}, "'Sideways'"),
        ({"type": "RollingUpdate"}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_only_what_rolls_by_itself_can_be_handled(strategy: JSON | None, words: str) -> None:
    problem = WHAT.problem(stored(daemonset(updateStrategy=strategy)))
    assert words in problem
    assert bool(problem) is bool(words)
    assert not problem or "'web': spec.updateStrategy.type" in problem


def test_fields_of_a_daemonset_are_copied() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    target = stored(daemonset(minReadySeconds=3, revisionHistoryLimit=4, updateStrategy=strategy))
    note = "deprecated.daemonset.template.generation"
    target["metadata"]["annotations"] = {note: "7", "other": "x"}
    pair = made("DaemonSet", target)
    assert pair.primary is not None
    assert {**pair.primary["spec"], "selector": 0, "template": 0} == {
        **target["spec"],
        "selector": 0,
        "template": 0,
    }
    assert pair.primary["metadata"]["annotations"] == {"other": "x"}
    held = merge(pair.primary, {"metadata": {"annotations": {note: "2"}}})
    (write,) = WHAT.promote(replace(pair, primary=held, revision="v2:01"))
    assert write.body["metadata"]["annotations"] == {note: "2"}


def test_pods_that_stay_although_they_should_go_are_counted() -> None:
    """Case C21: known of some Kubernetes versions with maxSurge."""
    running = counted(ABSENT, 2)
    zero = counted(idle(ABSENT), 0)
    stuck = merge(zero, {"status": {"numberMisscheduled": 1}})
    unseen = merge(stuck, {"metadata": {"generation": 2}})
    assert [left_behind(obj) for obj in (running, zero, stuck, unseen)] == [0, 0, 1, 0]
    assert [marked(obj) for obj in (running, zero)] == [False, True]
