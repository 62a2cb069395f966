"""The shipped scenarios, and what they resolve to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.data import data_path
from harness.model.resolved import ApplyStep, Nodes, PatchStep, Resolved
from harness.scenario.catalogue import entries
from harness.scenario.dump import render_yaml
from harness.scenario.lint import lint
from harness.scenario.loaded import Loaded, load
from harness.scenario.manifests import DrillContext, render, select
from harness.scenario.problem import ScenarioError
from harness.scenario.reader import read_yaml

_SPREAD = "node-spread-blue-green"


@pytest.fixture(scope="module")
def spread() -> Loaded:
    return load(data_path("scenarios", _SPREAD))


def _objects(drill: Resolved, loaded: Loaded) -> dict[str, Any]:
    return {m.object["kind"]: m.object for m in render(drill, loaded.folder)}


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_lint_has_nothing_to_say_about_a_shipped_scenario(entry: Any) -> None:
    assert lint(entry.file) == []


def test_node_spread_is_three_drills(spread: Loaded) -> None:
    assert [drill.id for drill in spread.resolve()] == [
        f"{_SPREAD}[with-key]",
        f"{_SPREAD}[without-key]",
        f"{_SPREAD}[no-surge]",
    ]


def test_the_control_expects_its_failure(spread: Loaded) -> None:
    control = spread.resolve("without-key")[0]
    assert control.control
    assert (control.expect.phase, control.expect.fail) == ("Failed", ("never-blocked",))
    assert _objects(control, spread)["Canary"]["spec"]["progressDeadlineSeconds"] == 10
    assert not spread.resolve("with-key")[0].control


def test_templates_keep_types_and_durations_become_seconds(spread: Loaded) -> None:
    drill = spread.resolve("no-surge")[0]
    assert drill.nodes == Nodes(count=2, replicas_per_eligible=1)
    assert drill.settle == 1.0
    assert {check.id: check.hold_for for check in drill.checks}["never-blocked"] == 5.0
    assert drill.change_step == "new revision"
    assert [step.verb for step in drill.steps] == ["apply", "patch", None]
    assert [step.within for step in drill.steps] == [120.0, None, 120.0]


def test_variants_differ_in_the_key_and_in_the_strategy_only(spread: Loaded) -> None:
    key, bare, no_surge = (_objects(d, spread)["Deployment"]["spec"] for d in spread.resolve())
    affinity = key["template"]["spec"]["affinity"]["podAntiAffinity"]
    term = affinity["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert term.pop("matchLabelKeys") == ["pod-template-hash"]
    assert key["template"] == bare["template"] == no_surge["template"]
    assert "strategy" not in key
    assert "strategy" not in bare
    assert no_surge["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_the_digest_is_of_the_files_and_not_of_the_values(spread: Loaded) -> None:
    digests = {drill.digest for drill in spread.resolve(sets={"replicas": "3"})}
    assert digests == {spread.drills[0].digest}
    assert len(digests.pop()) == 12


def test_the_json_form_reads_back_the_same(spread: Loaded) -> None:
    for drill in spread.resolve():
        assert Resolved.from_json(json.loads(json.dumps(drill.to_json()))) == drill


def test_the_json_form_reads_back_after_redaction(spread: Loaded) -> None:
    body = spread.resolve("with-key")[0].to_json()
    body["values"] = {"image": "<redacted>", "replicas": "<redacted>"}
    body["setup"] = "<redacted>"
    body["steps"][1]["action"]["template"]["annotations"] = {"drill/revision": "<redacted>"}
    body["nodes"] = "<redacted>"
    body["later"] = {"a": "field of another version"}
    drill = Resolved.from_json(body)
    assert drill.steps[1].verb == "patch"
    assert drill.nodes == Nodes()


def test_the_json_form_of_nothing_reads_as_an_empty_scenario() -> None:
    assert Resolved.from_json({}).steps == ()


def test_steps_carry_typed_verbs(spread: Loaded) -> None:
    first, second, third = spread.resolve("with-key")[0].steps
    assert first.action == ApplyStep(("workload.yaml.j2", "canary.yaml.j2"))
    assert isinstance(second.action, PatchStep)
    assert second.action.template is not None
    assert second.action.template.annotations == {"drill/revision": "2"}
    assert third.action is None


def test_rendered_text_names_its_sources_and_reads_back(spread: Loaded) -> None:
    drill = spread.resolve("with-key")[0]
    text = render_yaml(drill, spread.folder)
    assert "# workload.yaml.j2:1\n" in text
    objects = [m.object for m in render(drill, spread.folder)]
    assert [document.data for document in read_yaml(text, "rendered")] == objects


def test_a_step_applies_its_manifests_in_its_own_order(spread: Loaded) -> None:
    drill = spread.resolve("with-key")[0]
    found = render(drill, spread.folder, DrillContext("drill-x", "r1"))
    chosen = select(found, ("canary.yaml.j2", "workload.yaml.j2"))
    assert [item.object["kind"] for item in chosen] == ["Canary", "Deployment"]


@pytest.mark.parametrize(
    ("sets", "line"),
    [
        ({"replica": "3"}, "--set: replica: the scenario declares no such value"),
        ({"replicas": "many"}, "--set: replicas: must be a whole number"),
        ({"replicas": "true"}, "--set: replicas: must be a whole number"),
        (
            {"interval": "5"},
            "--set: interval: must be a text, as declared in spec.values, not a number",
        ),
        ({"replicas": "[1"}, "--set: replicas: '[1' is not YAML"),
        ({"settle": "soon"}, "spec.settle: 'soon' is not a duration"),
        ({"replicas": "0"}, "spec.nodes.count: must be at least 1, not 0"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    spread: Loaded, sets: dict[str, str], line: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        spread.resolve(sets=sets)
    assert line in str(caught.value)


def test_values_given_win_over_those_of_a_variant(spread: Loaded) -> None:
    drill = spread.resolve("without-key", {"progressDeadlineSeconds": "7", "maxSurge": "25%"})[0]
    assert drill.values["progressDeadlineSeconds"] == 7
    assert _objects(drill, spread)["Deployment"]["spec"]["strategy"]["rollingUpdate"] == {
        "maxSurge": "25%"
    }


def test_an_unknown_variant_is_refused_with_those_there_are(spread: Loaded) -> None:
    with pytest.raises(ScenarioError, match=r"with-key, without-key, no-surge"):
        spread.resolve("with-keys")
