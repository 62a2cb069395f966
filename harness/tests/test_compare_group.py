"""A recording from beside another controller is compared with others as if its rollout objects were of the usual API group."""

from __future__ import annotations

from dataclasses import replace

from harness.compare.names import Names
from harness.model.timeline import RolloutKind
from harness.tests.timelines import Recording


def test_the_group_of_a_run_is_said_as_the_usual_one() -> None:
    header = Recording().header()
    own = RolloutKind(api_version="run-1.rollout-drill.dev/v1beta1")
    beside = replace(header, subject=replace(header.subject, rollout=own))
    assert Names(beside).text(f"owner {own.api_version}") == "owner flagger.app/v1beta1"
    assert Names(header).text(own.api_version) == own.api_version
