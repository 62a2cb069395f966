"""Revisions of a Knative Service, as checks and the table of a report see them."""

from __future__ import annotations

from typing import Any

from harness.checks.judge import judge
from harness.model.outcome import Outcome
from harness.report.markdown import markdown
from harness.tests import knative_objects as knative
from harness.tests.checking import holds, state_of
from harness.tests.timelines import Recording

NEWEST: dict[str, Any] = {"latestRevision": True}


def during() -> Recording:
    """An analysis at 20 %, of which the ingress has not heard yet."""
    story = Recording().synced().at(1.0)
    knative.revision(story, 1)
    knative.pod(story, 1, node="north-1")
    knative.service(story, created=1, traffic={1: 100}, primary=1)
    knative.ingress(story, {1: 100})
    story.rollout("Initialized")
    story.at(2.0).step("new revision", "started", "acted", "held")
    knative.revision(story, 2)
    knative.pod(story, 2, node="north-2")
    asked = [{**NEWEST, "percent": 20}, {"revisionName": knative.name(1), "percent": 80}]
    knative.service(story, created=2, traffic={1: 80, 2: 20}, primary=1, asked=asked)
    story.rollout("Progressing", canaryWeight=20)
    return story


def test_shares_are_those_of_spec_status_and_ingress_each() -> None:
    story = during()
    assert holds(story, 'revisions.map(r, r.name) == ["web-00001", "web-00002"]') is True
    assert holds(story, "revisions.map(r, r.asked) == [80, 20]") is True
    assert holds(story, "revisions.map(r, r.served) == [80, 20]") is True
    assert holds(story, "revisions.map(r, r.routed) == [100, 0]") is True
    assert holds(story, 'revisions.map(r, r.role) == ["primary", "target"]') is True
    assert holds(story, "revisions.map(r, r.newest) == [false, true]") is True


def test_primary_and_target_are_what_knative_made_for_the_revisions() -> None:
    story = during()
    assert holds(story, 'primary.name == "web-00001-deployment" && primary.ready == 1') is True
    assert holds(story, 'target.images == ["registry.example/web:2"] && target.ready == 1') is True
    assert holds(story, 'pods.all(p, p.role == "primary" || p.role == "target")') is True
    # Promoted: the second serves, and there is nothing beside it.
    knative.service(story, created=2, traffic={2: 100}, primary=2)
    assert holds(story, 'primary.name == "web-00002-deployment"') is True
    assert holds(story, "!target.exists && target.ready == 0") is True
    assert holds(story, 'revisions.map(r, r.role) == ["", "primary"]') is True


def test_an_idle_revision_is_ready_and_one_that_never_was_is_not_the_latest_ready() -> None:
    story = during()
    knative.revision(story, 2, active="False")
    story.gone("web-00002-deployment-aaaaa")
    knative.revision(story, 3, ready="Unknown", reason="Deploying")
    knative.service(story, created=3, ready=2, traffic={1: 100}, primary=1, asked=[
        {**NEWEST, "percent": 20}, {"revisionName": knative.name(1), "percent": 80}
    ])  # fmt: skip
    idle = 'revisions.exists(r, r.name == "web-00002" && r.ready && !r.active && r.pods == 0)'
    assert holds(story, idle) is True
    late = 'revisions.exists(r, r.newest && !r.latest_ready && !r.ready && r.reason == "Deploying")'
    assert holds(story, late) is True
    # What follows the newest goes to the newest that is ready.
    assert holds(story, "revisions.map(r, r.asked) == [80, 20, 0]") is True


def test_without_a_knative_service_there_are_none() -> None:
    story = Recording().synced().synced("Revision", "KnativeService")
    assert state_of(story.at(1.0).rollout("Initialized")).world()["revisions"] == []


def test_the_table_has_a_line_for_each_revision_that_matters() -> None:
    story = during()
    story.at(3.0)
    knative.ingress(story, {1: 80, 2: 20})
    story.at(4.0)
    knative.revision(story, 2, ready="False", reason="ExitCode1")
    story.at(5.0).rollout("Succeeded").step("promote", "held").settle(5.1, 6.2)
    report = judge(story.timeline())
    text = markdown(report)
    assert "| revisions |" in text.replace("  ", "").replace("| revisions  ", "| revisions |")
    assert "web-00001 (primary): 80 %, ready, 1 pod on north-1" in text
    assert (
        "web-00002 (target): 20 % asked, 20 % served, 0 % routed, ready, 1 pod on north-2" in text
    )
    assert "web-00002 (target): 20 %, failed: ExitCode1, 1 pod on north-2" in text
    settled = next(one for one in report.findings if one.id == "settled")
    assert settled.outcome is Outcome.PASS
    assert "1 pods of the primary unchanged" in settled.evidence
