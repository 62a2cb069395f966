"""Whole drills on a real control plane whose verdict must be a certain one, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.data import data_path
from harness.model.outcome import ExitCode, Outcome
from harness.tests.drilling import altered, drill, failing, session

if TYPE_CHECKING:
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

NODE_SPREAD = data_path("scenarios", "node-spread-blue-green")
CONTROL = "      expect:\n        phase: Failed\n        fail: [never-blocked]\n"
PROMOTE = "    - name: promote\n"
STOPPED = "    - name: controller gone\n      stop: subject\n" + PROMOTE


def test_with_the_key_everything_passes(warm_cluster: EmbeddedCluster, tmp_path: Path) -> None:
    report = drill(warm_cluster, NODE_SPREAD, tmp_path / "out", "with-key")
    assert failing(report) == set()
    assert report.verdict.exit_code == ExitCode.OK
    before, after = report.recorded[0].readings
    assert before.value == after.value
    (term,) = before.value["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"] == {"matchLabels": {"app": "web-primary"}}
    assert term["matchLabelKeys"] == ["pod-template-hash"]


def test_without_the_key_exactly_the_named_check_fails(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    result = session(warm_cluster, NODE_SPREAD, tmp_path / "out", "without-key")
    (report,) = result.report.drills
    assert failing(report) == {"never-blocked"}
    assert report.verdict.outcome is Outcome.FAIL
    assert report.verdict.as_expected
    assert result.exit_code == ExitCode.OK
    finding = report.finding("never-blocked")
    assert finding is not None
    assert "pod web-primary-" in finding.evidence
    assert "Pending since +" in finding.evidence
    assert "didn't match pod anti-affinity rules" in finding.evidence
    assert [note.kind for note in finding.notes] == ["DEADLOCK"]
    folder = next(tmp_path.glob("out/*/"))
    for name in ("controller.log", "events.txt", "objects.json"):
        assert (folder / name).stat().st_size > 0, name


def test_a_control_that_expects_nothing_fails_the_run(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    folder = altered(tmp_path / "scenario", lambda text: text.replace(CONTROL, ""))
    report = drill(warm_cluster, folder, tmp_path / "out", "without-key")
    assert failing(report) == {"never-blocked", "ends-in"}
    assert report.verdict.exit_code == ExitCode.FAILED


def test_a_control_fails_the_run_when_another_check_fails_too(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    folder = altered(
        tmp_path / "scenario",
        lambda text: text.replace("always: primary.ready >= 1", "always: primary.ready >= 3"),
    )
    report = drill(warm_cluster, folder, tmp_path / "out", "without-key")
    assert failing(report) == {"never-blocked", "primary-served-throughout"}
    assert report.verdict.exit_code == ExitCode.FAILED


def test_a_control_whose_controller_is_gone_times_out_and_fails_the_run(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    folder = altered(tmp_path / "scenario", lambda text: text.replace(PROMOTE, STOPPED))
    report = drill(warm_cluster, folder, tmp_path / "out", "without-key", within="6s")
    assert {"steps-completed", "ends-in"} <= failing(report)
    assert report.verdict.exit_code == ExitCode.FAILED
    steps = report.finding("steps-completed")
    assert steps is not None
    assert "did not hold within 6 s; last seen: phase Initialized" in steps.evidence


def test_a_primary_that_restarts_after_the_end_is_seen(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    later = (
        "    - name: after the end\n"
        "      patch:\n"
        "        target: Deployment/web-primary\n"
        "        template:\n"
        "          annotations: {somebody: else}\n"
    )
    folder = altered(
        tmp_path / "scenario", lambda text: text.replace("  record:\n", later + "  record:\n")
    )
    report = drill(warm_cluster, folder, tmp_path / "out", "with-key", settle="3s")
    assert failing(report) == {"settled"}
    settled = report.finding("settled")
    assert settled is not None
    assert "web-primary-" in settled.evidence


def test_a_role_that_lacks_a_right_fails_the_drill(
    warm_cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.subjects.bundled import Bundled

    whole = Bundled.namespace_objects

    def without_services(self: Bundled, namespace: str) -> list[dict[str, object]]:
        objects = whole(self, namespace)
        for obj in objects:
            if obj["kind"] == "Role":
                for rule in obj["rules"]:
                    if "events" in rule["resources"]:
                        rule["verbs"] = ["get"]
        return objects

    monkeypatch.setattr(Bundled, "namespace_objects", without_services)
    report = drill(warm_cluster, NODE_SPREAD, tmp_path / "out", "with-key")
    assert "nothing-forbidden" in failing(report)
    finding = report.finding("nothing-forbidden")
    assert finding is not None
    assert "/events" in finding.evidence
    assert report.verdict.exit_code == ExitCode.FAILED


def test_a_missing_feature_is_unsupported_and_nothing_is_tried(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    folder = altered(
        tmp_path / "scenario", lambda text: text.replace("[blue-green,", "[real-pods, blue-green,")
    )
    report = drill(warm_cluster, folder, tmp_path / "out", "with-key")
    assert report.verdict.outcome is Outcome.UNSUPPORTED
    assert report.verdict.exit_code == ExitCode.UNDECIDED
    assert "real-pods" in report.verdict.sentence


def test_another_number_of_nodes_is_unknown_with_the_reason(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    folder = altered(
        tmp_path / "scenario",
        lambda text: text.replace("    count: '{{ replicas }}'", "    count: 3"),
    )
    report = drill(warm_cluster, folder, tmp_path / "out", "with-key")
    assert report.verdict.outcome is Outcome.UNKNOWN
    assert report.verdict.exit_code == ExitCode.UNDECIDED
    assert "2 eligible nodes, exactly 3 needed" in report.verdict.sentence
