"""`gate`, `metric` and `applyAs`: what the world outside does, and another writer inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.errors import Conflict
from harness.kube.testing import run_virtual
from harness.model.actions import ApplyAsStep, GateStep, MetricStep, read_action
from harness.model.resolved import Resolved
from harness.model.standins import GateAnswer, Receiver
from harness.run.identity import FIELD_MANAGER, RUN_LABEL
from harness.run.journal import Journal
from harness.run.objects import RefusedError
from harness.run.verbs import VERBS
from harness.run.verbs.apply_as import merged
from harness.scenario.loaded import load
from harness.tests.test_run_prometheus import bare
from harness.tests.test_run_verbs import NS, Stage, canary, config, deployment

if TYPE_CHECKING:
    from pathlib import Path

MANIFESTS = {"all.yaml": [deployment("web"), config("web"), canary("web", "web")]}
SCENARIO = """
apiVersion: drill/v1
kind: Scenario
metadata: {name: x}
spec:
  question: Does it?
  values: {answer: closed, code: 503}
  receiver:
    gates:
      approve: {answer: '{{ answer }}'}
      odd: {answer: '{{ code }}', first: [hang, 204], delay: 2s, body: no}
    alerts: {team: {}}
  metrics: {good: 99.50, bad: NaN, gone: absent, 'c{a="b"}': 5/s}
  manifests: [m.yaml]
  steps:
    - {name: open, gate: {name: approve, answer: open}}
    - {name: worse, metric: {good: down, bad: 1e3}}
    - {name: git, applyAs: {manager: gitops, manifests: [m.yaml], prune: [ConfigMap/c]}}
    - {name: patch, applyAs: {manager: gitops, target: ConfigMap/c, merge: {data: {u: '{{ receiver }}/gate/odd'}}, force: false}}
  checks:
    - {id: called, eventually: 'gates.exists(g, g.name == "approve" && g.calls > 0)'}
"""


class Witness:
    """Takes what the verbs pass on."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def change_gate(self, step: GateStep) -> str:
        self.given.append(step)
        return "changed"

    async def change_metrics(self, step: MetricStep) -> str:
        self.given.append(step)
        return "told"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    journal = Journal.open("run-1", "fake", tmp_path / "kubeconfig", None)
    return Stage(journal, MANIFESTS, Witness())


def done(stage: Stage, *actions: Any) -> list[str | None]:
    async def run() -> list[str | None]:
        return [await VERBS[action.VERB](stage.context, action) for action in actions]

    return run_virtual(run())


def appliers(stage: Stage, plural: str) -> list[str]:
    """Return under which names objects of a type were applied, in order."""
    asked = [
        one for one in stage.cluster.requests if f"/{plural}/" in one.path and one.method == "PATCH"
    ]
    return [one.params["fieldManager"] for one in asked]


def test_both_verbs_pass_their_step_on_and_return_what_came_of_it(stage: Stage) -> None:
    steps = GateStep("approve"), MetricStep({"good": "80"})
    assert done(stage, *steps) == ["changed", "told"]
    assert tuple(stage.context.outside.given) == steps  # type: ignore[attr-defined]


def test_another_manager_makes_an_object_and_is_its_only_owner(stage: Stage) -> None:
    (told,) = done(stage, ApplyAsStep("gitops", ("all.yaml",)))
    assert told == "gitops: Deployment/web applied, ConfigMap/web applied, Canary/web applied"
    made = stage.get("Deployment", "web")
    assert appliers(stage, "deployments") == ["gitops"]
    # The drill must find it again, whoever made it.
    assert made["metadata"]["labels"][RUN_LABEL] == "run-1"


def test_a_field_that_it_leaves_out_is_given_up(stage: Stage) -> None:
    less = ApplyAsStep("gitops", target="workload", merge={"spec": {"replicas": None}})
    done(stage, ApplyAsStep("gitops", ("all.yaml",)), less)
    assert "replicas" not in stage.get("Deployment", "web")["spec"]


def test_a_field_that_others_have_too_stays(stage: Stage) -> None:
    from harness.model.actions import ApplyStep

    less = ApplyAsStep("gitops", target="workload", merge={"spec": {"replicas": None}})
    done(stage, ApplyStep(("all.yaml",)), ApplyAsStep("gitops", ("all.yaml",)), less)
    assert stage.get("Deployment", "web")["spec"]["replicas"] == 1
    assert appliers(stage, "deployments") == [FIELD_MANAGER, "gitops", "gitops"]


def test_without_force_a_conflict_is_raised(stage: Stage) -> None:
    from harness.model.actions import ApplyStep

    more = {"spec": {"replicas": 7}}
    done(stage, ApplyStep(("all.yaml",)))
    with pytest.raises(Conflict):
        done(stage, ApplyAsStep("gitops", target="workload", merge=more, force=False))
    done(stage, ApplyAsStep("gitops", target="workload", merge=more))
    assert stage.get("Deployment", "web")["spec"]["replicas"] == 7


def test_what_is_pruned_is_deleted_and_may_be_gone_already(stage: Stage) -> None:
    prune = ApplyAsStep("gitops", prune=("ConfigMap/web",))
    assert done(stage, ApplyAsStep("gitops", ("all.yaml",)), prune, prune)[1:] == [
        "gitops: ConfigMap/web pruned",
        "gitops: ConfigMap/web pruned",
    ]
    assert stage.cluster.get("ConfigMap", "web", NS) is None


def test_a_target_that_no_manifest_has_is_refused(stage: Stage) -> None:
    with pytest.raises(RefusedError, match="hold no Deployment/web-primary, so that gitops has"):
        done(stage, ApplyAsStep("gitops", target="Deployment/web-primary"))


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({"a": None}, {"b": {"c": 1}}),
        ({"b": {"d": 2}}, {"a": 1, "b": {"c": 1, "d": 2}}),
        ({"b": [1]}, {"a": 1, "b": [1]}),
        ({"x": {"y": None, "z": 1}}, {"a": 1, "b": {"c": 1}, "x": {"z": 1}}),
    ],
)
def test_a_merge_patch_is_that_of_the_rfc(change: Any, result: Any) -> None:
    given = {"a": 1, "b": {"c": 1}}
    assert merged(given, change) == result
    assert given == {"a": 1, "b": {"c": 1}}


def test_a_scenario_that_declares_it_all_resolves_and_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "m.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    (drill,) = load(tmp_path).drills
    assert drill.receiver == Receiver(
        {
            "approve": GateAnswer("closed"),
            "odd": GateAnswer("503", "no", 2.0, ("hang", "204")),
        },
        {"team": GateAnswer()},
    )
    assert drill.metrics == {"good": "99.5", "bad": "NaN", "gone": "absent", 'c{a="b"}': "5/s"}
    assert [step.action for step in drill.steps] == [
        GateStep("approve", GateAnswer("open")),
        MetricStep({"good": "down", "bad": "1000"}),
        ApplyAsStep("gitops", ("m.yaml",), prune=("ConfigMap/c",)),
        ApplyAsStep(
            "gitops",
            target="ConfigMap/c",
            merge={"data": {"u": "http://receiver.drill.invalid/gate/odd"}},
            force=False,
        ),
    ]
    assert drill.change_step == "git"
    assert Resolved.from_json(drill.to_json()) == drill


def test_scenarios_without_stand_ins_are_recorded_as_before() -> None:
    assert not {"receiver", "metrics"} & bare().to_json().keys()


@pytest.mark.parametrize("verb", ["gate", "metric", "applyAs"])
@pytest.mark.parametrize("value", [None, {}, "[redacted]", {"values": 1, "answer": []}])
def test_a_redacted_action_is_read_back(verb: str, value: Any) -> None:
    action = read_action(verb, value)
    assert action is not None
    assert verb == action.VERB
