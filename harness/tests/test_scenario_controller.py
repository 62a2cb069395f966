"""Flags of the bundled controller in a scenario: from the file to the process that is started with them."""

from __future__ import annotations

import dataclasses
import io
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness.checks.judge import judge
from harness.controller import __main__ as module
from harness.controller.flags import arguments, names, written, wrong
from harness.controller.options import Options, flags
from harness.controller.shell import process
from harness.model.features import FEATURES, OF_FLAGS
from harness.model.resolved import Resolved
from harness.model.standins import PLACEHOLDERS
from harness.model.timeline import SubjectFacts
from harness.report.markdown import markdown
from harness.run import subjects
from harness.run.adapt import Adaptation
from harness.scenario.loaded import load
from harness.subjects.bundled_objects import CAPABILITIES
from harness.subjects.flagger_capabilities import CAPABILITIES as FLAGGERS
from harness.subjects.flagger_capabilities import capabilities
from harness.tests.timelines import Recording

if TYPE_CHECKING:
    from pathlib import Path


NEW = ("freeze", "metrics-rate", "restore-adopt", "restore-revert", "start-limit")
SCENARIO = """\
apiVersion: drill/v1
kind: Scenario
metadata: {name: flagged}
spec:
  question: Is it started with them?
  requires: [start-limit]
  controller:
    maxConcurrentAnalyses: '{{ limit }}'
    clusterName: 'drill-{{ limit }}'
    eventWebhook: '{{ receiver }}/gate/events'
    leaderElect: false
  receiver: {gates: {events: {answer: open}}}
  values: {limit: 5}
  variants:
    limited: {}
    control: {values: {limit: null}}
  manifests: [good.yaml]
  steps: [{name: initialise, apply: [good.yaml], until: rollout.ended}]
  checks: [{id: served, always: primary.ready >= 1}]
"""


@pytest.fixture
def drills(tmp_path: Path) -> dict[str, Resolved]:
    good = {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "web"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    }
    (tmp_path / "good.yaml").write_text(json.dumps(good))
    file = tmp_path / "scenario.yaml"
    # A value that may be none has none when it is declared.
    file.write_text(
        SCENARIO.replace("values: {limit: 5}", "values: {limit: null}").replace(
            "limited: {}", "limited: {values: {limit: 5}}"
        )
    )
    return {drill.variant: drill for drill in load(file).drills}


def test_a_drill_has_the_flags_of_its_variant(drills: dict[str, Resolved]) -> None:
    receiver = PLACEHOLDERS["receiver"]
    assert drills["limited"].controller == {
        "maxConcurrentAnalyses": 5,
        "clusterName": "drill-5",
        "eventWebhook": f"{receiver}/gate/events",
        "leaderElect": False,
    }
    assert "maxConcurrentAnalyses" not in (drills["control"].controller or {})


def test_flags_survive_a_recording(drills: dict[str, Resolved]) -> None:
    for drill in drills.values():
        assert Resolved.from_json(json.loads(json.dumps(drill.to_json()))) == drill
    none = dataclasses.replace(drills["limited"], controller=None)
    assert "controller" not in none.to_json(), "recordings of scenarios without are as they were"


def test_a_subject_gets_them_with_the_real_addresses(drills: dict[str, Resolved]) -> None:
    parts: Any = SimpleNamespace(
        plan=SimpleNamespace(resolved=drills["limited"]),
        outside=SimpleNamespace(addresses={"receiver": "http://127.0.0.1:4711"}),
        place=SimpleNamespace(adaptation=Adaptation()),
    )
    given = {
        "max_concurrent_analyses": "5",
        "cluster_name": "drill-5",
        "event_webhook": "http://127.0.0.1:4711/gate/events",
        "leader_elect": False,
    }
    assert subjects._flags(parts) == given
    parts.place.adaptation = Adaptation(api_group="r.rollout-drill.dev")
    assert subjects._flags(parts) == {**given, "api_group": "r.rollout-drill.dev"}


def test_the_process_is_told_of_switches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Options] = []

    def run(options: Options) -> int:
        ran.append(options)
        return 0

    monkeypatch.setattr(process, "run", run)
    given = {"kubeconfig": "file", "namespace": "n", "workers": "7", "config_tracking": False}
    line = json.dumps({**given, "leader_elect": True, "no_cross_namespace_refs": True})
    monkeypatch.setattr("sys.stdin", io.StringIO(line + "\n"))
    assert module.main(["--from-stdin"]) == 0
    (options,) = ran
    assert (options.workers, options.config_tracking, options.leader_elect) == (7, False, True)
    assert not options.cross_namespace_refs


def test_every_flag_has_one_name_and_what_the_harness_gives_has_none() -> None:
    assert names()["includeLabelPrefix"] == "include_label_prefix"
    assert all(written(name, 1)[0] == key for name, key in names().items())
    assert {key.replace("_", "-") for key in names().values()} <= set(flags())
    assert not {"kubeconfig", "context", "namespace", "metricsServer", "log"} & set(names())


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("workers", 5, ""),
        ("workers", "5", ""),
        ("workers", 0, "'0' is not a whole number from 1 to 1000"),
        ("workers", 2.5, "'2.5' is not a whole number from 1 to 1000"),
        ("configTracking", False, ""),
        ("noCrossNamespaceRefs", False, ""),
        ("configTracking", "false", "must be true or false"),
        ("workers", True, "needs a value, not true or false"),
        ("clusterName", "--log=x", ""),
    ],
)
def test_a_value_is_what_the_flag_takes(name: str, value: str | float | bool, problem: str) -> None:  # noqa: FBT001
    assert wrong(name, value) == problem


def test_a_command_line_has_no_loose_values() -> None:
    given: dict[str, str | bool] = {
        "cluster_name": "-x",
        "leader_elect": False,
        "no_cross_namespace_refs": False,
    }
    assert arguments(given) == ["--cluster-name=-x", "--no-leader-elect"]


def test_a_report_says_with_which_flags_it_was_started(drills: dict[str, Resolved]) -> None:
    story = Recording(drills["limited"].to_json()).at(1.0).synced()
    report = judge(story.timeline())
    assert report.flags[0] == "maxConcurrentAnalyses 5"
    assert report.flags[-1] == "leaderElect false"
    assert "| flags | maxConcurrentAnalyses 5, clusterName drill-5, " in markdown(report)
    others = Recording(
        drills["limited"].to_json(), subject=SubjectFacts("flagger@1.44.0", "1.44.0")
    )
    assert judge(others.at(1.0).synced().timeline()).flags == ()
    assert "| flags |" not in markdown(judge(Recording().at(1.0).synced().timeline()))


# Features


def test_the_new_features_are_the_bundled_controllers_alone() -> None:
    assert set(NEW) <= set(CAPABILITIES) <= set(FEATURES)
    known = {row.feature: row for row in FLAGGERS}
    for feature in NEW:
        assert FEATURES[feature].of == "subject"
        assert known[feature].since is None
        assert known[feature].why
    assert not set(NEW) & set(capabilities("1.44.0", "v0.36.2"))


def test_every_flag_of_a_feature_is_a_flag() -> None:
    assert set(OF_FLAGS) <= set(names())
    assert set(OF_FLAGS.values()) <= set(FEATURES)
