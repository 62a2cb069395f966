"""A change that the API server must refuse: its webhook's words are what the step waits for, and being accepted is a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.kube.errors import ApiError
from harness.kube.testing import run_virtual
from harness.model.scenario import ApplyStep, PatchStep
from harness.run.journal import Journal
from harness.run.objects import RefusedError
from harness.run.verbs import VERBS
from harness.tests.test_run_verbs import MANIFESTS, Stage

if TYPE_CHECKING:
    from pathlib import Path

EDIT = PatchStep("Deployment/one", merge={"spec": {"replicas": 7}}, refused="Immutable fields")


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    return Stage(Journal.open("run-1", "fake", tmp_path / "kubeconfig", None), MANIFESTS)


def edited(stage: Stage, refusal: str) -> str:
    async def run() -> str:
        await stage.act(ApplyStep(("all.yaml",)))
        if refusal:
            stage.cluster.fail_next(
                400, "BadRequest", refusal, match=lambda asked: asked.verb == "patch"
            )
        return await VERBS["patch"](stage.context, EDIT) or ""

    return run_virtual(run())


def test_what_is_refused_as_expected_is_said(stage: Stage) -> None:
    said = edited(stage, "admission webhook denied the request: Immutable fields changed")
    assert said == "refused, as it should be: Immutable fields"
    assert stage.get("Deployment", "one")["spec"]["replicas"] == 1


def test_what_is_accepted_fails_the_step(stage: Stage) -> None:
    with pytest.raises(RefusedError, match="Deployment/one was accepted, and should have been"):
        edited(stage, "")


def test_what_is_refused_for_another_reason_fails_the_step(stage: Stage) -> None:
    with pytest.raises(ApiError, match="Traffic targets sum to 60"):
        edited(stage, "Traffic targets sum to 60, want 100")
