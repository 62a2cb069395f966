"""Knative Services as targets: the primary is a revision's name, and only another one than it is analysed (case C22)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.targets.knative import PRIMARY_REVISION, primary_revision
from harness.tests.controller_sim_make import merge
from harness.tests.controller_targets import applied, kind_of, knative, pair_of

if TYPE_CHECKING:
    from harness.controller.core.targets.base import Pair

JSON = dict[str, Any]
WHAT = kind_of("Knative")


def revision(name: str, status: str, **more: Any) -> JSON:
    ready = {"type": "Ready", "status": status, **more}
    conditions = [{"type": "Active", "status": "False"}, ready]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


def pair(target: JSON, **ready: str) -> Pair:
    """With revisions `web_1="True"` and so on; without any, revisions could not be read."""
    names = {name.replace("_", "-"): status for name, status in ready.items()}
    found = {name: revision(name, status) for name, status in names.items()}
    return pair_of("Knative", target, objects={"krevisions": found} if found else {})


def behind(target: JSON, **spec: Any) -> JSON:
    """The Service was changed, and Knative has not come to it."""
    result: JSON = merge(target, {"metadata": {"generation": 2}, "spec": spec})
    return result


def test_the_newest_revision_becomes_the_primary_once() -> None:
    found = pair(knative("web-1", primary=None))
    assert not WHAT.exists(found)
    (write,) = WHAT.create(found)
    assert (write.verb, write.resource, write.name) == ("patch", "kservices", "web")
    assert write.body == {"metadata": {"annotations": {PRIMARY_REVISION: "web-1"}}}
    found = applied(found, (write,))
    assert WHAT.exists(found)
    assert WHAT.create(found) == ()


def test_there_is_no_primary_before_knative_made_a_revision_of_the_present_template() -> None:
    unmade = merge(knative(primary=None), {"status": None})
    for target in (unmade, behind(knative("web-1", primary=None))):
        assert WHAT.create(pair(target)) == ()
        assert "no revision serves" in WHAT.primary_ready(pair(target), 100).message
    assert "not been taken up" in WHAT.canary_ready(pair(unmade), 100).message
    seen = merge(unmade, {"status": {"observedGeneration": 1}})
    assert "no revision has been made" in WHAT.canary_ready(pair(seen), 100).message


@pytest.mark.parametrize(
    ("traffic", "primary"),
    [
        ([("web-2", 100)], "web-2"),
        ([("web-1", 100)], "web-1"),
        ([("web-2", 0), ("web-1", 60), ("web-1", 40)], "web-1"),
        ([("web-2", 50), ("web-1", 50)], "web-2"),
        ([], "web-2"),
    ],
)
def test_whatever_serves_alone_when_it_is_taken_over_is_the_primary(
    traffic: list[tuple[str, int]], primary: str
) -> None:
    """Somebody led the traffic to an older revision, or the newest never became ready: it is analysed before it serves."""
    served = [{"revisionName": name, "percent": share} for name, share in traffic]
    target = knative("web-2", primary=None, latestReadyRevisionName="web-1", traffic=served)
    found = pair(target, web_1="True", web_2="Unknown")
    found = applied(found, WHAT.create(found))
    assert primary_revision(found.target) == primary


def test_while_knative_lags_the_newest_revision_is_not_judged_and_nothing_has_changed() -> None:
    """Case C22: it is the primary's, or an older template's."""
    settled = knative("web-1", "web-1")
    template = {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}
    lagging = behind(settled, template=template)
    assert WHAT.snapshot(lagging) == WHAT.snapshot(settled)
    assert "not been taken up" in WHAT.canary_ready(pair(lagging, web_1="True"), 100).message
    late = behind(knative("web-2", "web-1"), template=template)
    assert "not been taken up" in WHAT.canary_ready(pair(late, web_2="True"), 100).message
    assert "not been taken up" in WHAT.rolled_out(lagging, 100).message


def test_the_primarys_own_revision_is_never_analysed() -> None:
    seen = WHAT.canary_ready(pair(knative("web-1", "web-1"), web_1="True"), 100)
    assert "is the primary's" in seen.message


def test_moving_traffic_is_no_reason_to_wait() -> None:
    def traffic(percent: int) -> list[JSON]:
        return [
            {"latestRevision": True, "percent": percent},
            {"revisionName": "web-1", "percent": 100 - percent},
        ]

    held = knative("web-2", "web-1", traffic=traffic(10))
    assert WHAT.canary_ready(pair(behind(held, traffic=traffic(20)), web_2="True"), 100).ready
    still = behind(held, traffic=traffic(10))
    assert not WHAT.canary_ready(pair(still, web_2="True"), 100).ready
    # Without shares of its own, everything goes to the newest; zero is no share.
    for given in ([], traffic(100)):
        whole = knative("web-2", "web-1", traffic=traffic(100))
        assert not WHAT.canary_ready(pair(behind(whole, traffic=given), web_2="True"), 100).ready


@pytest.mark.parametrize(
    ("revisions", "newest_ready", "words"),
    [
        ({"web_2": "True"}, "web-1", ""),
        ({"web_2": "Unknown"}, "web-2", "web-2: not ready"),
        ({"web_2": "False"}, "web-2", "web-2: not ready"),
        ({"web_1": "True"}, "web-2", "web-2: there is no such revision"),
        ({}, "web-2", ""),
        ({}, "web-1", "web-2: not ready"),
    ],
)
def test_a_revision_is_judged_by_itself_or_else_by_the_services_status(
    revisions: JSON, newest_ready: str, words: str
) -> None:
    target = knative("web-2", "web-1", latestReadyRevisionName=newest_ready)
    seen = WHAT.canary_ready(pair(target, **revisions), 100)
    assert words in seen.message
    assert seen.ready is not bool(words)


def test_a_reason_is_told() -> None:
    failed = revision("web-2", "False", reason="ContainerMissing", message="no such image")
    found = pair_of("Knative", knative("web-2", "web-1"), objects={"krevisions": {"web-2": failed}})
    assert (
        WHAT.canary_ready(found, 100).message
        == "web-2: not ready (ContainerMissing: no such image)"
    )


EMPTY = "no pod of it has been ready yet"


@pytest.mark.parametrize(
    ("active", "since", "replicas", "words"),
    [
        ("True", 0, 0, ""),
        ("Unknown", 0, 1, ""),
        ("Unknown", 0, 0, EMPTY),
        ("False", 0, 0, EMPTY),
        ("False", 1, 0, EMPTY),
        ("False", -1, 0, EMPTY),
        ("False", 0, 1, ""),
        ("False", 6, 0, ""),
        ("False", None, 0, ""),
        (None, None, 0, ""),
    ],
)
def test_a_revision_that_never_had_a_ready_pod_is_not_ready_and_one_at_zero_is(
    active: str | None, since: int | None, replicas: int, words: str
) -> None:
    ready = revision("web-2", "True", lastTransitionTime="2026-12-01T10:00:10Z")
    entry = ready["status"]["conditions"][0]
    ready["status"]["actualReplicas"] = replicas
    entry["status"] = active
    if active is None:
        del ready["status"]["conditions"][0]
    elif since is not None:
        entry["lastTransitionTime"] = f"2026-12-01T10:00:{10 + since:02d}Z"
    found = pair_of("Knative", knative("web-2", "web-1"), objects={"krevisions": {"web-2": ready}})
    assert words in WHAT.canary_ready(found, 100).message
    assert WHAT.canary_ready(found, 100).ready is not bool(words)
    # Once it was ready in a run, it may have no pods.
    found.canary["status"] = {"conditions": [{"type": "CanaryReady", "status": "False"}]}
    assert WHAT.canary_ready(found, 100).ready


@pytest.mark.parametrize(
    ("target", "revisions", "words"),
    [
        (knative("web-2", "web-1"), {"web_1": "True", "web_2": "False"}, ""),
        (knative("web-2", "web-1"), {"web_1": "Unknown", "web_2": "True"}, "web-1: not ready"),
        (knative("web-2", "web-1"), {"web_2": "True"}, "web-1: there is no such revision"),
        (knative("web-2", "web-1"), {}, ""),
        (knative("web-2", "web-2"), {}, ""),
        (knative("web-2", "web-2", latestReadyRevisionName="web-1"), {}, "web-2: not ready"),
        # Its traffic is on the move; that says nothing about the primary.
        (behind(knative("web-2", "web-1")), {"web_1": "True"}, ""),
    ],
)
def test_the_primary_is_the_revision_that_the_annotation_names(
    target: JSON, revisions: JSON, words: str
) -> None:
    seen = WHAT.primary_ready(pair(target, **revisions), 100)
    assert words in seen.message
    assert seen.ready is not bool(words)


def test_a_promotion_moves_the_annotation_and_nothing_else() -> None:
    found = pair(knative("web-2", "web-1"))
    assert not WHAT.holds(found)
    assert len(WHAT.differences(found)) == 1
    assert WHAT.revision_of(found) == WHAT.snapshot(knative("web-1")).hash
    found = applied(found, WHAT.promote(found))
    assert primary_revision(found.target) == "web-2"
    assert WHAT.revision_of(found) == WHAT.snapshot(found.target).hash
    assert WHAT.holds(found)
    assert WHAT.promote(found) == ()
    assert WHAT.differences(found) == ()


def test_a_promotion_without_any_revision_writes_nothing() -> None:
    assert WHAT.promote(pair(knative("", "web-1"))) == ()
    assert not WHAT.holds(pair(knative("", None)))
    assert WHAT.revision_of(pair(knative("web-1", None))) == ""


def test_giving_the_target_back_removes_the_annotation() -> None:
    found = pair(knative("web-2", "web-1"))
    found.target["metadata"]["annotations"]["mine"] = "kept"
    found = applied(found, WHAT.revert(found))
    assert found.target["metadata"]["annotations"] == {"mine": "kept"}
    assert WHAT.revert(found) == ()


def test_a_service_alone_is_rolled_out_when_its_newest_revision_is_ready() -> None:
    assert WHAT.rolled_out(knative("web-1"), 100).ready
    assert not WHAT.rolled_out(knative("web-2", latestReadyRevisionName="web-1"), 100).ready
    assert WHAT.problem(knative()) == ""
    assert WHAT.keep(pair(knative())) == ()
