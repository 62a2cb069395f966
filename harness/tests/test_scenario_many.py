"""Scenarios of many rollouts and several subjects: steps that depend on values, what `where` chooses, and what lint warns of."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from harness.model.actions import (
    DeleteStep,
    PatchStep,
    ScaleStep,
    TemplatePatch,
    UpgradeStep,
    read_action,
)
from harness.model.names import is_subject
from harness.model.outcome import Outcome
from harness.model.resolved import Resolved
from harness.model.timeline import Requests, RolloutKind, TimelineError, dump, parse
from harness.scenario.lint import lint
from harness.scenario.loaded import load
from harness.scenario.manifests import render
from harness.scenario.problem import ScenarioError
from harness.scenario.targets import chosen
from harness.tests.timelines import Recording

if TYPE_CHECKING:
    from pathlib import Path

_SCENARIO = """\
apiVersion: drill/v1
kind: Scenario
metadata: {name: many}
spec:
  question: Does nothing start?
  values: {cells: [a, b], rewrite: none, from: bundled, to: bundled}
  subject: '{{ from }}'
  requires: [kubernetes-upgrade]
  kubernetes: v1.34
  variants:
    plain: {}
    rewritten: {values: {rewrite: legacy}, subject: flagger@1.44.0, expect: {phase: any, fail: [no-start]}}
  manifests: [canaries.yaml.j2]
  steps:
    - {name: initialise, apply: [canaries.yaml.j2], until: 'size(rollouts) == 2 && rollouts.all(r, r.phase == "Initialized")'}
    - name: rewrite
      when: '{{ rewrite == "legacy" }}'
      patch: {target: rollouts, status: {lastAppliedSpec: '5d7f8', lastTrackedRevision: null}}
    - {name: upgrade, upgrade: {subject: '{{ to }}'}, change: true}
    - {name: one cell, scale: {target: workloads, where: {drill/cell: a}, replicas: 3}}
    - {name: away, delete: {target: workloads, where: {drill/cell: b}, orphan: true}}
    - {name: newer, upgrade: {kubernetes: v1.35}}
  checks:
    - {id: no-start, always: 'rollouts.all(r, r.starts == 0)', from: initialise}
    - {id: looked-at, eventually: 'rollouts.all(r, r.looks >= 1)', otherwise: unknown}
"""
_CANARIES = """\
{% for cell in cells %}
---
apiVersion: flagger.app/v1beta1
kind: Canary
metadata:
  name: web-{{ cell }}
  labels: {drill/cell: {{ cell }}}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web-{{ cell }}}
{% endfor %}
"""


def write(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    folder = tmp_path / "many"
    folder.mkdir(exist_ok=True)
    text = _SCENARIO
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "scenario.yaml").write_text(text)
    (folder / "canaries.yaml.j2").write_text(_CANARIES)
    return folder


def test_a_step_whose_when_is_false_is_none(tmp_path: Path) -> None:
    plain, rewritten = load(write(tmp_path)).resolve()
    names = ["initialise", "upgrade", "one cell", "away", "newer"]
    assert [step.name for step in plain.steps] == names
    assert [step.name for step in rewritten.steps] == [names[0], "rewrite", *names[1:]]
    assert rewritten.steps[1].action == PatchStep(
        "rollouts", status={"lastAppliedSpec": "5d7f8", "lastTrackedRevision": None}
    )
    assert plain.change_step == rewritten.change_step == "upgrade"


def test_actions_subjects_and_versions_are_resolved(tmp_path: Path) -> None:
    plain, rewritten = load(write(tmp_path)).resolve()
    actions = [step.action for step in plain.steps[1:]]
    assert actions == [
        UpgradeStep(subject="bundled"),
        ScaleStep("workloads", 3, {"drill/cell": "a"}),
        DeleteStep("workloads", {"drill/cell": "b"}, orphan=True),
        UpgradeStep(kubernetes="v1.35"),
    ]
    assert (plain.subject, rewritten.subject) == ("bundled", "flagger@1.44.0")
    assert rewritten.subjects == ("flagger@1.44.0", "bundled")
    assert plain.kubernetes == "v1.34"
    assert (plain.expect.phase, rewritten.expect.phase) == ("Succeeded", "any")
    assert [check.otherwise for check in plain.checks] == [Outcome.FAIL, Outcome.UNKNOWN]


def test_what_values_make_of_another_variant_is_no_matter(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, ("subject: flagger@1.44.0, ", "subject: '{{ to }}', ")))
    (drill,) = loaded.resolve("plain", {"to": "flagger@path:/bin/flagger"})
    assert drill.subjects == ("bundled", "flagger@path:/bin/flagger")
    with pytest.raises(ScenarioError, match="names no subject"):
        loaded.resolve(None, {"to": "nobody"})
    with pytest.raises(ScenarioError, match="there is no variant 'plane'"):
        loaded.resolve("plane", {"to": "bundled"})


def test_a_subject_that_renders_to_nothing_is_the_users_choice(tmp_path: Path) -> None:
    plain = load(write(tmp_path, ("from: bundled", "from: null"))).resolve("plain")[0]
    assert plain.subjects == (None, "bundled")


def test_the_json_form_reads_back_the_same(tmp_path: Path) -> None:
    for drill in load(write(tmp_path)).resolve():
        assert Resolved.from_json(json.loads(json.dumps(drill.to_json()))) == drill


@pytest.mark.parametrize("verb", ["patch", "delete", "scale", "upgrade", "wait", "teleport", None])
@pytest.mark.parametrize(
    "body", [{}, None, {"where": 3, "subject": 7, "status": [], "replicas": "x", "seconds": {}}]
)
def test_an_action_of_any_shape_is_read_without_failing(verb: str | None, body: object) -> None:
    action = read_action(verb, body)
    assert (action is None) == (verb in {"teleport", None})


def test_a_patch_of_a_template_keeps_its_place() -> None:
    body = {"target": "workloads", "template": {"labels": {"a": "b"}}, "where": {"c": "d"}}
    assert read_action("patch", body) == PatchStep(
        "workloads", TemplatePatch(labels={"a": "b"}), where={"c": "d"}
    )


def test_where_chooses_by_all_labels_and_nothing_chooses_all(tmp_path: Path) -> None:
    loaded = load(write(tmp_path))
    objects = [manifest.object for manifest in render(loaded.drills[0], loaded.folder)]
    names = [obj["metadata"]["name"] for obj in chosen(objects, {})]
    assert names == ["web-a", "web-b"]
    assert [o["metadata"]["name"] for o in chosen(objects, {"drill/cell": "b"})] == ["web-b"]
    assert chosen(objects, {"drill/cell": "b", "x": "y"}) == []
    assert [o["metadata"]["name"] for o in chosen([*objects, *objects], {})] == names


def test_values_that_leave_nothing_to_choose_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no rollout object has 'b' as 'drill/cell'"):
        load(write(tmp_path)).resolve(sets={"cells": "[a]"})


def warnings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(folder.parent)
    return [str(problem) for problem in lint(os.path.relpath(folder))]


def test_lint_has_nothing_to_say_about_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert warnings(write(tmp_path), monkeypatch) == []


def test_lint_warns_of_what_is_true_of_no_rollouts_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = warnings(write(tmp_path, ("size(rollouts) == 2 && ", "")), monkeypatch)
    assert found == [
        (
            "many/scenario.yaml:15: warning: spec.steps[0].until: is true as long as there is no rollout; "
            "say how many there are too, e.g. size(rollouts) == 3 && …"
        )
    ]


def test_lint_warns_of_a_cluster_that_cannot_be_upgraded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = warnings(write(tmp_path, ("  requires: [kubernetes-upgrade]\n", "")), monkeypatch)
    assert [line.partition("warning: ")[2] for line in found] == [
        "spec.steps[5].upgrade: not every cluster can; require 'kubernetes-upgrade'"
    ]


def test_lint_warns_of_a_wait_unless_a_check_is_about_that_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = ("    - {name: newer", "    - {name: quiet, wait: 3s}\n    - {name: newer")
    (found,) = warnings(write(tmp_path, step), monkeypatch)
    assert "spec.steps[5].wait: makes every run as slow" in found
    window = ("from: initialise}", "from: initialise, until: quiet}")
    assert warnings(write(tmp_path, step, window), monkeypatch) == []


def test_lint_warns_of_a_step_that_no_variant_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = warnings(write(tmp_path, ('rewrite == "legacy"', 'rewrite == "other"')), monkeypatch)
    assert [line.partition("warning: ")[2] for line in found] == [
        "spec.steps[1].when: is true in no variant"
    ]


def test_what_a_step_says_need_not_make_sense_where_it_is_left_out(tmp_path: Path) -> None:
    step = "    - {name: newer, "
    changed = f"{step}when: '{{{{ rewrite == \"legacy\" }}}}', "
    folder = write(
        tmp_path, (step, changed), ("kubernetes: v1.35}", "kubernetes: '{{ rewrite }}'}")
    )
    with pytest.raises(ScenarioError) as caught:
        load(folder)
    (problem,) = caught.value.problems
    assert "'legacy' is no version of Kubernetes [only in rewritten]" in str(problem)


WHEN = ("no-start, always", """no-start, when: '{{ rewrite == "none" }}', always""")


def test_a_check_whose_when_is_false_is_none_and_takes_its_lines_with_it(tmp_path: Path) -> None:
    folder = write(tmp_path, WHEN)
    with (folder / "scenario.yaml").open("a") as file:
        file.write("  doneWhen:\n    - {text: Both., by: [looked-at, no-start]}\n")
        file.write("    - {text: One., by: [looked-at]}\n")
    plain, rewritten = load(folder).resolve()
    assert [check.id for check in plain.checks] == ["no-start", "looked-at"]
    assert [check.id for check in rewritten.checks] == ["looked-at"]
    assert [line.text for line in plain.done_when] == ["Both.", "One."]
    assert [line.text for line in rewritten.done_when] == ["One."]


def test_what_a_check_says_need_not_make_sense_where_it_is_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path, WHEN, ("r.starts == 0)", "r.starts == {{ rewrite }})"))
    with pytest.raises(ScenarioError) as caught:
        load(folder)
    assert "[only in plain]" in str(caught.value)


def test_lint_finds_a_check_that_no_variant_has_and_keeps_the_places_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = (WHEN[0], WHEN[1].replace("none", "other"))
    wrong = ("r.looks >= 1)", 'r.labels["nosuch"] == "")')
    found = warnings(write(tmp_path, never, wrong), monkeypatch)
    assert [line.partition("warning: ")[2] for line in found] == [
        "spec.checks[0].when: is true in no variant",
        "spec.checks[1].eventually: cannot be decided in an example world: nosuch is not known",
    ]


def test_lint_finds_a_group_that_the_table_of_expectations_forgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ("rewrite: none,", "rewrite: none, starts: {a: 0, c: 0},")
    check = ("r.starts == 0)", 'r.starts == values.starts[r.labels["drill/cell"]])')
    found = warnings(write(tmp_path, table, check), monkeypatch)
    assert [line.partition("warning: ")[2] for line in found] == [
        "spec.checks[0].always: cannot be decided in an example world: b is not known"
    ]


def test_a_window_that_refers_to_a_step_left_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="step 'rewrite' is left out"):
        load(write(tmp_path, ("from: initialise}", "from: rewrite}")))


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("bundled", True),
        ("installed", True),
        ("flagger@1.44.0", True),
        ("flagger@v1.44.0", True),
        ("flagger@1.45.0-beta.1", True),
        ("flagger@path:/bin/flagger", True),
        ("flagger", False),
        ("flagger@", False),
        ("flagger@1.44", False),
        ("flagger@path:", False),
        ("bundled@1", False),
        ("argo@1.0.0", False),
        ("", False),
    ],
)
def test_subjects_are_known_by_their_shape(name: str, *, good: bool) -> None:
    assert is_subject(name) is good


def test_requests_are_read_back_from_their_line() -> None:
    story = Recording().at(1.0)
    story.add(Requests, rollouts={"web": (3, 1)}, total=12, watches=4)
    (seen,) = story.timeline().of(Requests)
    assert seen.rollouts == {"web": (3, 1)}
    assert json.loads(dump(seen))["source"] == "audit log"
    lines = story.text().replace("[3,1]", "[3]").splitlines()
    with pytest.raises(TimelineError, match="requests does not fit"):
        parse(lines)


def test_a_header_without_the_newer_paths_is_read_with_their_defaults() -> None:
    lines = Recording().text().splitlines()
    header = json.loads(lines[0])
    for key in ("applied_path", "promoted_path", "fence_path", "suspend_path"):
        del header["subject"]["rollout"][key]
    assert parse([json.dumps(header)]).header.subject.rollout == RolloutKind()
