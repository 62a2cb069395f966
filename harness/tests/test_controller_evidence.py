"""When did a template change? Times in whole seconds, from ReplicaSets and managedFields (decision D11)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harness.controller.core import managed
from harness.controller.core.change import Migration
from harness.controller.core.evidence import (
    HISTORY,
    current_revision,
    last_status_write,
    not_before,
    revision_proven,
    template_changed,
    template_written,
)
from harness.controller.core.migration import adopted, review
from harness.controller.core.names import Names
from harness.controller.core.snapshots import REVISION

JSON = dict[str, Any]
NAMES = Names("n", "web", "web", "web", "app", "web")
NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC).timestamp()
USER: JSON = {"f:template": {"f:spec": {"f:containers": {}}}}


def at(second: float) -> str:
    """A time of that day as an API server writes it: noon and so many seconds, cut to whole ones."""
    moment = datetime.fromtimestamp(int(NOON + second), tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def entry(manager: str, second: float, fields: JSON, **more: str) -> JSON:
    return {"manager": manager, "time": at(second), "fieldsV1": fields, **more}


def target(*entries: JSON, kind: str = "Deployment", observed: int = 5, **spec: Any) -> JSON:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"hostname": "a"}}
    return {
        "kind": kind,
        "metadata": {
            "name": "web",
            "uid": "u",
            "generation": 5,
            "creationTimestamp": at(-1000),
            "annotations": {REVISION: "3"},
            "managedFields": list(entries),
        },
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
        "status": {"observedGeneration": observed},
    }


def replica_set(second: float, number: str = "3", uid: str = "u", **annotations: str) -> JSON:
    return {
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"web-{number}-{uid}",
            "creationTimestamp": at(second),
            "annotations": {REVISION: number, **annotations},
            "ownerReferences": [{"kind": "Deployment", "uid": uid, "controller": True}],
        },
    }


OLD = entry("user", -500, {"f:spec": USER})
NEW = entry("user", 60, {"f:spec": USER})


@pytest.mark.parametrize(
    ("time", "since", "result"),
    [
        (NOON + 1, NOON, True),
        (NOON - 1, NOON, False),
        # A time that was cut to its second may lie after one with fractions in the same second.
        (NOON, NOON + 0.9, True),
        (NOON - 0.1, NOON + 0.9, False),
        (None, NOON, False),
        (NOON, None, False),
    ],
)
def test_the_same_second_counts_as_after(time: float | None, since: float, *, result: bool) -> None:
    assert not_before(time, since) is result


@pytest.mark.parametrize(
    ("workload", "revisions", "changed"),
    [
        (target(OLD), [replica_set(-400)], False),
        (target(OLD), [replica_set(0)], True),
        (target(OLD), [replica_set(60)], True),
        # The ReplicaSet has been current ever since: the manager wrote something else, replicas perhaps.
        (target(NEW), [replica_set(-400)], False),
        # It became current again, nobody knows when: managedFields decide.
        (target(NEW), [replica_set(-400, **{HISTORY: "1"})], True),
        (target(OLD), [replica_set(-400, **{HISTORY: "1"})], False),
        # Not the current one, or not certainly so.
        (target(NEW), [replica_set(60, "2")], True),
        (target(OLD), [replica_set(60, "2")], False),
        (target(OLD), [replica_set(60, uid="other")], False),
        (target(OLD, observed=4), [replica_set(60)], False),
        (target(NEW, observed=4), [replica_set(-400)], True),
        (target(OLD, paused=True), [replica_set(60)], False),
        # Nothing was read.
        (target(NEW), [], True),
        (target(OLD), [], False),
        (target(), [], False),
    ],
)
def test_evidence(workload: JSON, revisions: list[JSON], *, changed: bool) -> None:
    assert template_changed(workload, NOON, revisions) is changed
    # However much of its managedFields the cache keeps.
    workload["metadata"]["managedFields"] = managed.reduced(workload)
    assert template_changed(workload, NOON, revisions) is changed


def test_a_replica_set_of_another_template_is_not_the_current_one() -> None:
    """The annotation names it still, although the template moved on."""
    workload = target(NEW)
    old = replica_set(-400)
    template = workload["spec"]["template"]
    labels = {**template["metadata"]["labels"], "pod-template-hash": "abc"}
    old["spec"] = {"template": {**template, "metadata": {"labels": labels}}}
    assert revision_proven(workload, [old])
    assert not template_changed(workload, NOON, [old])
    workload["spec"]["template"] = {**template, "spec": {"hostname": "b"}}
    assert not revision_proven(workload, [old])
    assert template_changed(workload, NOON, [old])


def test_without_a_time_to_compare_with_there_is_no_evidence() -> None:
    assert not template_changed(target(NEW), None, [replica_set(60)])


def test_a_daemonset_s_newest_revision_is_evidence_and_its_age_is_not() -> None:
    def revision(number: int, second: float) -> JSON:
        return {
            **replica_set(second, str(number)),
            "kind": "ControllerRevision",
            "revision": number,
        }

    workload = target(OLD, kind="DaemonSet")
    found = current_revision(workload, [revision(9, -50), revision(10, 20)])
    assert found is not None
    assert found["revision"] == 10
    assert template_changed(workload, NOON, [revision(9, -50), revision(10, 20)])
    assert not template_changed(workload, NOON, [revision(10, -50)])
    # An old revision may be current again: ControllerRevisions do not say so.
    assert template_changed(target(NEW, kind="DaemonSet"), NOON, [revision(10, -50)])


def test_a_controller_that_stops_a_daemonset_has_not_changed_its_template() -> None:
    key: JSON = {"f:flagger.app/scale-to-zero": {}}
    zero: JSON = {"f:template": {"f:spec": {"f:nodeSelector": key}}}
    stopped = entry("flagger", 60, {"f:spec": zero})
    workload = target(OLD, stopped, kind="DaemonSet")
    assert not template_changed(workload, NOON, [])
    zero["f:template"]["f:spec"]["f:nodeSelector"] = {**key, "f:disk": {}}
    assert template_changed(target(OLD, stopped, kind="DaemonSet"), NOON, [])


# -- since when --------------------------------------------------------------------------------------------------------------


def canary(*entries: JSON, moment: str | None = None) -> JSON:
    status = {"lastTransitionTime": moment} if moment else {}
    return {"metadata": {"managedFields": list(entries)}, "status": status}


MOVED: JSON = {"f:status": {"f:lastTransitionTime": {}, "f:phase": {}}}


def test_the_api_server_s_clock_counts_before_the_other_controller_s() -> None:
    written = entry("flagger", 10, MOVED, subresource="status")
    assert last_status_write(canary(written, moment=at(-30))) == NOON + 10
    assert last_status_write(canary(moment=at(-30))) == NOON - 30
    assert last_status_write(canary()) is None


def test_a_status_patched_by_hand_is_no_look_at_the_target() -> None:
    written = entry("flagger", 10, MOVED, subresource="status")
    patched = entry("kubectl", 500, {"f:status": {"f:lastAppliedSpec": {}}}, subresource="status")
    spec = entry("user", 700, {"f:spec": {"f:suspend": {}}})
    assert last_status_write(canary(written, patched, spec)) == NOON + 10


def test_a_primary_s_template_is_as_old_as_its_promotion() -> None:
    primary = target(entry("flagger", 20, {"f:spec": {"f:replicas": {}, "f:template": {}}}))
    assert template_written(primary) == NOON + 20
    assert template_written(target()) == NOON - 1000


# -- the review --------------------------------------------------------------------------------------------------------------


def primary(**spec: Any) -> JSON:
    meta = {"labels": {"app": "web-primary"}, "annotations": {"flagger-id": "x"}}
    return {"spec": {"template": {"metadata": meta, "spec": spec}}}


def test_equal_templates_need_no_evidence() -> None:
    found = review(NAMES, target(NEW), primary(hostname="a"), NOON, [replica_set(60)])
    assert (found.migration, found.unproven) == (Migration.EQUAL, ())


def test_different_templates_need_evidence() -> None:
    other = primary(hostname="b")
    proven = review(NAMES, target(NEW), other, NOON, [replica_set(60)])
    assert (proven.migration, proven.unproven) == (Migration.DIFFERENT, ())
    unproven = review(NAMES, target(OLD), other, NOON, [replica_set(-400)])
    assert unproven.migration is Migration.EQUAL
    assert [str(found) for found in unproven.unproven] == ["spec.hostname"]


def test_in_a_recreated_target_every_time_is_new_and_the_kind_of_difference_decides() -> None:
    fresh = target(NEW)
    fresh["metadata"]["creationTimestamp"] = at(50)
    revisions = [replica_set(60)]
    lost = review(NAMES, fresh, primary(), NOON, revisions)
    assert lost.migration is Migration.EQUAL
    assert lost.unproven
    other = review(NAMES, fresh, primary(hostname="b"), NOON, revisions)
    assert other.migration is Migration.DIFFERENT


def test_a_target_as_young_as_the_last_status_is_judged_by_its_revisions() -> None:
    """Everything in one second: a field added right after the status must not pass as a field that the primary lost."""
    fresh = target(entry("user", 0, {"f:spec": USER}))
    fresh["metadata"]["creationTimestamp"] = at(0)
    found = review(NAMES, fresh, primary(), NOON + 0.5, [replica_set(0)])
    assert found.migration is Migration.DIFFERENT


def test_a_target_as_young_as_its_primary_was_not_changed_after_it_by_that() -> None:
    """Target and Canary applied together, and the other controller was quick: one second holds it all."""
    fresh = target(entry("user", 0, {"f:spec": USER}))
    fresh["metadata"]["creationTimestamp"] = at(0)
    lost = review(NAMES, fresh, primary(), NOON + 0.5, [replica_set(0)], copied=True)
    assert lost.migration is Migration.EQUAL
    other = review(NAMES, fresh, primary(hostname="b"), NOON, [replica_set(0)], copied=True)
    assert other.migration is Migration.DIFFERENT


def test_the_warning_says_whether_images_differ() -> None:
    one, other = target(), primary(hostname="a")
    for workload, image in ((one, "app:1"), (other, "app:2")):
        workload["spec"]["template"]["spec"]["containers"] = [{"name": "c", "image": image}]
    found = review(NAMES, one, other, NOON, [])
    text = adopted(NAMES, one, other, found.unproven)
    assert "has other images than web-primary (spec.containers.c.image)" in text


# -- what is kept of managedFields -------------------------------------------------------------------------------------------


def test_reduced_entries_answer_the_same_questions() -> None:
    obj = target(
        entry("user", 1, {"f:spec": {"f:replicas": {}, **USER}, "f:metadata": {"f:labels": {}}}),
        entry("kcm", 2, {"f:status": {"f:replicas": {}}}, subresource="status"),
        entry("flagger", 3, MOVED, subresource="status"),
    )
    small = {"metadata": {**obj["metadata"], "managedFields": managed.reduced(obj)}}
    for field in (managed.REPLICAS, managed.TEMPLATE, managed.MOVED):
        assert managed.managers(small, field) == managed.managers(obj, field)
        assert managed.written(small, field) == managed.written(obj, field)
    assert len(small["metadata"]["managedFields"]) == 2


def test_that_nobody_holds_a_field_survives_the_reduction() -> None:
    obj = target(entry("kcm", 2, {"f:status": {}}))
    assert managed.managers(obj, managed.REPLICAS) == frozenset()
    obj["metadata"]["managedFields"] = managed.reduced(obj)
    assert managed.managers(obj, managed.REPLICAS) == frozenset()
    obj["metadata"]["managedFields"] = managed.reduced(obj)
    assert managed.managers(obj, managed.REPLICAS) == frozenset()
    assert managed.managers(target(), managed.REPLICAS) is None
