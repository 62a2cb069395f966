"""spec.traffic of a Knative Service (spec objects 10, O17, case C22)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core.canonical import string_hash
from harness.controller.core.routers.registry import router_for
from harness.tests.controller_sim import Sim, kservice, target_ref
from harness.tests.controller_sim import canary as simulated_canary
from harness.tests.routers_kit import Server, canary

JSON = dict[str, Any]
OLD, NEW = "web-00001", "web-00002"


def reported(server: Server, *entries: JSON) -> str:
    held = server.objects["kservices"]["web"]
    held["status"] |= {
        "observedGeneration": held["metadata"]["generation"],
        "traffic": list(entries),
    }
    return server.router.waiting(server.wish(20))


def test_two_entries_and_nothing_else_is_written() -> None:
    server = Server(canary("knative"))
    (write,) = server.route(20)
    assert (write.verb, write.resource, write.name) == ("patch", "kservices", "web")
    assert write.body == {
        "spec": {
            "traffic": [
                {"latestRevision": True, "percent": 20},
                {"revisionName": OLD, "percent": 80},
            ]
        }
    }


def test_tags_and_unknown_fields_of_entries_stay() -> None:
    server = Server(canary("knative"))
    held: list[JSON] = [
        {"revisionName": "web-00000", "percent": 40, "tag": "rescue"},
        {"revisionName": "web-00000", "percent": 10},
        {"latestRevision": True, "percent": 50, "tag": "next", "invented": 1},
        {"revisionName": "web-00000", "tag": "plain"},
    ]
    server.edit("kservices", "web", {"spec": {"traffic": held}})
    server.route(20)
    assert server.objects["kservices"]["web"]["spec"]["traffic"] == [
        {"latestRevision": True, "percent": 20, "tag": "next", "invented": 1},
        {"revisionName": OLD, "percent": 80, "latestRevision": False},
        {"revisionName": "web-00000", "percent": 0, "tag": "rescue", "latestRevision": False},
        {"revisionName": "web-00000", "tag": "plain", "latestRevision": False},
    ]


def test_after_a_promotion_the_other_revision_is_named() -> None:
    server = Server(canary("knative"))
    server.route(100)
    note = {"metadata": {"annotations": {"flagger.app/primary-revision": NEW}}}
    server.edit("kservices", "web", note)
    server.route(0)
    assert server.rules() == [[("newest", 0), (NEW, 100)]]


@pytest.mark.parametrize("missing", ["target", "annotation", "annotations", "traffic", "status"])
def test_whatever_is_missing_is_waited_for(missing: str) -> None:
    server = Server(canary("knative"))
    held = server.objects["kservices"]["web"]
    if missing == "target":
        server.objects["kservices"] = {}
    elif missing == "annotation":
        del held["metadata"]["annotations"]["flagger.app/primary-revision"]
    elif missing == "annotations":
        del held["metadata"]["annotations"]
    elif missing == "status":
        del held["status"]
    wish = server.wish(20)
    assert server.router.waiting(wish) != ""
    writes = server.router.route(wish)
    assert bool(writes) == (missing in ("traffic", "status"))


@pytest.mark.parametrize(
    ("entries", "good"),
    [
        (
            [
                {"latestRevision": True, "revisionName": NEW, "percent": 20},
                {"revisionName": OLD, "percent": 80},
            ],
            True,
        ),
        (
            [
                {"latestRevision": True, "revisionName": NEW, "percent": 20},
                {"revisionName": OLD, "percent": 80, "latestRevision": False},
                {"revisionName": "web-00000", "tag": "t"},
            ],
            True,
        ),
        ([{"revisionName": OLD, "percent": 100}], False),
        ([{"latestRevision": True}, {"revisionName": OLD}], False),
        (
            [
                {"latestRevision": None, "percent": 20, "revisionName": NEW},
                {"revisionName": OLD, "percent": 80},
            ],
            False,
        ),
        ([], False),
    ],
)
def test_what_knative_reports_is_read_without_assumptions(
    entries: list[JSON], *, good: bool
) -> None:
    server = Server(canary("knative"))
    server.route(20)
    said = reported(server, *entries)
    assert (said == "") == good, said


def test_both_entries_may_resolve_to_one_revision() -> None:
    server = Server(canary("knative"))
    server.route(0)
    held = server.objects["kservices"]["web"]
    held["status"] |= {
        "observedGeneration": held["metadata"]["generation"],
        "traffic": [
            {"latestRevision": True, "revisionName": OLD, "percent": 0},
            {"revisionName": OLD, "percent": 100},
        ],
    }
    assert server.router.waiting(server.wish(0)) == ""


def test_an_older_generation_is_waited_for() -> None:
    server = Server(canary("knative"))
    server.route(20)
    good = [
        {"latestRevision": True, "revisionName": NEW, "percent": 20},
        {"revisionName": OLD, "percent": 80},
    ]
    assert reported(server, *good) == ""
    server.objects["kservices"]["web"]["metadata"]["generation"] += 1
    assert "generation" in server.router.waiting(server.wish(20))


def test_the_newest_revision_has_to_have_its_share_itself() -> None:
    """Until it is ready, Knative gives it to the one before."""
    server = Server(canary("knative"))
    server.route(20)
    before = [
        {"latestRevision": True, "revisionName": OLD, "percent": 20},
        {"revisionName": OLD, "percent": 80},
    ]
    assert f"20 % go to {OLD} as long as {NEW} is not ready" in reported(server, *before)


@pytest.mark.parametrize(
    ("phase", "applied", "share"),
    [
        ("Promoting", OLD, 0),
        ("Promoting", NEW, 20),
        ("Progressing", OLD, 20),
    ],
)
def test_a_revision_that_comes_while_another_is_promoted_has_no_share(
    phase: str, applied: str, share: int
) -> None:
    """OLD is the primary already, and what it is named by; NEW came since. Otherwise the annotation is only late."""
    server = Server(canary("knative"))
    server.canary["status"] = {"phase": phase, "lastAppliedSpec": string_hash(applied)}
    server.route(20)
    assert server.rules() == [[("newest", share), (OLD, 100 - share)]]
    good = [
        {"latestRevision": True, "revisionName": NEW, "percent": share},
        {"revisionName": OLD, "percent": 100 - share},
    ]
    assert reported(server, *good) == ""


def test_in_the_end_the_target_serves_alone() -> None:
    server = Server(canary("knative"))
    server.route(20)
    note = {"metadata": {"annotations": {"flagger.app/primary-revision": None}}}
    server.edit("kservices", "web", note)  # the target kind goes first, or second
    server.revert()
    spec = server.objects["kservices"]["web"]["spec"]
    assert spec["traffic"] == [{"latestRevision": True, "percent": 100}]
    assert spec["invented"] == {"a": 1}


def test_traffic_that_was_never_ours_is_left() -> None:
    server = Server(canary("knative"))
    theirs = {"spec": {"traffic": [{"latestRevision": True, "percent": 100, "tag": "x"}]}}
    note = {"metadata": {"annotations": {"flagger.app/primary-revision": None}}}
    server.edit("kservices", "web", theirs | note)
    assert server.revert() == ()


@pytest.mark.parametrize("field", ["match", "mirror", "sessionAffinity"])
def test_what_only_requests_can_tell_is_refused(field: str) -> None:
    owner = canary("knative", analysis={field: {"a": "b"}})
    router = router_for(owner)
    assert router is not None
    assert f"spec.analysis.{field}" in router.problem(owner)


def test_a_knative_service_needs_no_service_section() -> None:
    """Knative makes the Services of its targets itself, and Flagger asks for none either."""
    sim = Sim()
    sim.add("kservices", kservice())
    rollout = simulated_canary(
        provider="knative",
        targetRef=target_ref("Knative"),
        analysis={"interval": "2s", "threshold": 2, "stepWeight": 50, "maxWeight": 50},
    )
    del rollout["spec"]["service"]
    sim.add("canaries", rollout)
    sim.run(until="Initialized")
    assert sim.traffic()["web-00001"] == 100
