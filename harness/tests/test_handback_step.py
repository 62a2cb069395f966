"""The verb `handback` of a scenario: read, carried out, and its program there before the drill begins."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.handback import program
from harness.handback.told import HandbackError
from harness.kube.testing import run_virtual
from harness.model.actions import HandbackStep, read_action
from harness.run.casting import Casting
from harness.run.objects import RefusedError
from harness.run.plan import Plan
from harness.run.verbs import handback as verb
from harness.scenario.loaded import load
from harness.scenario.problem import ScenarioError
from harness.subjects.base import SubjectError
from harness.tests.test_handback_carry_out import cluster_of, status
from harness.tests.test_handback_reading import Oracle

if TYPE_CHECKING:
    from harness.run.verbs.context import Context

TO = "flagger@1.44.0"


def scenario(folder: Path, to: str) -> Path:
    (folder / "web.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")
    (folder / "scenario.yaml").write_text(
        "apiVersion: drill/v1\n"
        "kind: Scenario\n"
        "metadata: {name: way-back}\n"
        "spec:\n"
        "  question: Does it?\n"
        "  manifests: [web.yaml]\n"
        f"  values: {{back: '{to}'}}\n"
        "  steps:\n"
        "    - {name: make, apply: [web.yaml]}\n"
        "    - {name: stop, stop: subject}\n"
        "    - {name: back, handback: {to: '{{ back }}'}}\n"
        "  checks:\n"
        "    - {id: there, always: rollout.exists}\n"
    )
    return folder


def plan_of(folder: Path) -> Plan:
    (drill,) = load(scenario(folder, TO)).drills
    return Plan(drill, folder, "bundled", "embedded", "drill run")


def test_a_step_is_read_and_survives_a_recording(tmp_path: Path) -> None:
    action = plan_of(tmp_path).resolved.steps[2].action
    assert action == HandbackStep(TO)
    assert read_action("handback", {"to": TO}) == action


@pytest.mark.parametrize("to", ["bundled", "installed", "flagger@path:/bin/true", "flagger@latest"])
def test_only_a_released_flagger_can_be_named(tmp_path: Path, to: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(scenario(tmp_path, to))
    assert "steps[2].handback.to" in str(caught.value)


def test_its_program_is_there_before_the_drill_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    had: list[str] = []

    async def obtain(version: str, _say: object) -> Path:
        had.append(version)
        return Path("program")

    monkeypatch.setattr(program, "obtain", obtain)
    asyncio.run(Casting(print).obtain(plan_of(tmp_path)))
    assert had == ["1.44.0"]


def test_a_version_that_cannot_be_had_ends_the_drill_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def obtain(version: str, _say: object) -> Path:
        raise HandbackError(version)

    monkeypatch.setattr(program, "obtain", obtain)
    with pytest.raises(SubjectError, match=r"1\.44\.0"):
        asyncio.run(Casting(print).obtain(plan_of(tmp_path)))


def act(monkeypatch: pytest.MonkeyPatch, cluster: Any) -> str:
    async def obtain(_version: str, _say: object) -> Path:
        return Path("program")

    oracle = Oracle()
    monkeypatch.setattr(verb, "obtain", obtain)
    monkeypatch.setattr(verb, "ask", lambda _program, questions: oracle(questions))
    context = SimpleNamespace(client=cluster.client(), namespace="n", say=print)
    return run_virtual(verb.act(cast("Context", context), HandbackStep(TO)))


def test_the_statuses_are_written_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of("a", "b")
    assert act(monkeypatch, cluster) == "2 statuses written. Under flagger@1.44.0, 2 rest."
    assert status(cluster, "a")["lastAppliedSpec"] == "hash-app:1"


def test_what_stands_in_the_way_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of("a", "b")
    cluster.fail_next(409, "Conflict", times=99, match=lambda asked: asked.verb == "patch")
    with pytest.raises(RefusedError, match="somebody else works on it"):
        act(monkeypatch, cluster)
