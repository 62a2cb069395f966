"""What a drill leaves in the cluster (nothing) and in its outputs (no secrets), on a real control plane."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.data import data_path
from harness.kube import access
from harness.kube.resource import CLUSTERROLE, CONFIGMAP, NAMESPACE
from harness.model.outcome import ExitCode
from harness.run.identity import labels, run_id
from harness.run.journal import all_journals, state_dir
from harness.run.plan import Plan
from harness.run.teardown import tear_down
from harness.scenario.loaded import load
from harness.tests import drilling
from harness.tests.drilling import altered, drill, failing, session, with_client

if TYPE_CHECKING:
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.kube.client import KubeClient

pytestmark = pytest.mark.embedded

NODE_SPREAD = data_path("scenarios", "node-spread-blue-green")
PLANTED = {
    "secret": "kept-by-nobody-7731",
    "token": "tok-live-5512-abcdef",
    "webhook": "hooks.example.com/T0001/path-9934",
}


def cluster_role(name: str, marks: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": CLUSTERROLE.api_version,
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": marks},
        "rules": [],
    }


def test_a_planted_leftover_is_found_and_changes_the_exit_code(
    warm_cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (resolved,) = load(NODE_SPREAD).resolve("with-key")
    where = f"embedded:{warm_cluster.record.name}"
    name = Plan(resolved, NODE_SPREAD, "bundled", where, "").name
    run = run_id()
    monkeypatch.setattr(drilling, "run_id", lambda: run)
    marks = labels(run, name.label)
    with_client(
        warm_cluster,
        lambda client: client.create(
            CLUSTERROLE, cluster_role("planted", marks), field_manager="test"
        ),
    )
    try:
        result = session(warm_cluster, NODE_SPREAD, tmp_path / "out", "with-key")
    finally:
        with_client(warm_cluster, lambda client: client.delete(CLUSTERROLE, "planted"))
    (report,) = result.report.drills
    assert failing(report) == {"nothing-left"}
    assert [item["name"] for item in report.left.items] == ["planted"]
    assert result.exit_code == ExitCode.LEFT_BEHIND


def with_manifest(folder: Path, obj: dict[str, Any]) -> Path:
    """Return a copy of the scenario that applies one more object first."""
    copy = altered(
        folder,
        lambda text: text.replace(
            "manifests: [workload.yaml.j2,", "manifests: [more.yaml, workload.yaml.j2,"
        ).replace("apply: [workload.yaml.j2,", "apply: [more.yaml, workload.yaml.j2,"),
    )
    (copy / "more.yaml").write_text(json.dumps(obj))
    return copy


def test_an_object_that_the_drill_did_not_make_is_not_touched(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    # The control plane makes this one in every namespace.
    theirs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kube-root-ca.crt"},
        "data": {"ca.crt": "not a certificate"},
    }
    folder = with_manifest(tmp_path / "scenario", theirs)
    report = drill(warm_cluster, folder, tmp_path / "out", "with-key")
    assert "steps-completed" in failing(report)
    steps = report.finding("steps-completed")
    assert steps is not None
    assert "kube-root-ca.crt exists already and was not made by this drill" in steps.evidence


def test_eight_drills_side_by_side_share_a_cluster_and_nothing_else(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    folder = altered(
        tmp_path / "scenario",
        lambda text: text.replace(
            "  variants:\n", "  matrix:\n    threshold: [1, 2, 3, 4, 5, 6, 7, 8]\n  variants:\n"
        ),
    )
    result = session(warm_cluster, folder, tmp_path / "out", "with-key", jobs=8)
    assert result.errors == []
    assert [failing(report) for report in result.report.drills] == [set()] * 8
    assert len({report.namespace for report in result.report.drills}) == 8


def test_the_subjects_token_is_in_no_output_even_if_it_logs_it(
    warm_cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = access.write_kubeconfig
    tokens: list[str] = []

    async def logged(client: KubeClient, **given: Any) -> str:
        tokens.append(await write(client, **given))
        given["target"].with_suffix(".log").write_text(f"using <{tokens[0]}>\n")
        return tokens[0]

    monkeypatch.setattr(access, "write_kubeconfig", logged)
    drill(warm_cluster, NODE_SPREAD, tmp_path / "out", "without-key")
    (log,) = (tmp_path / "out").glob("*/controller.log")
    assert log.read_text().startswith("using <")
    for path in (tmp_path / "out").rglob("*.*"):
        if path.is_file():
            assert tokens[0] not in path.read_text(encoding="utf-8"), path.name


def test_planted_secrets_are_in_no_output(warm_cluster: EmbeddedCluster, tmp_path: Path) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "planted"},
        "stringData": {"password": PLANTED["secret"]},
    }
    folder = with_manifest(tmp_path / "scenario", secret)
    workload = folder / "workload.yaml.j2"
    env = (
        f"          env:\n            - name: API_TOKEN\n              value: {PLANTED['token']}\n"
    )
    workload.write_text(
        workload.read_text().replace("          ports:\n", env + "          ports:\n")
    )
    canary = folder / "canary.yaml.j2"
    hook = f"    webhooks:\n      - name: gate\n        url: https://{PLANTED['webhook']}\n"
    canary.write_text(canary.read_text() + hook)
    # The webhook is not implemented, so this drill fails early, with every kind of evidence written.
    report = drill(warm_cluster, folder, tmp_path / "out", "with-key", within="5s")
    assert failing(report)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) > 6
    for path in files:
        text = path.read_text(encoding="utf-8")
        for what, value in PLANTED.items():
            assert value not in text, f"{what} in {path.name}"
            assert base64.b64encode(value.encode()).decode() not in text, f"{what} in {path.name}"


def test_a_namespace_that_cannot_go_is_reported_with_its_finalizer(
    warm_cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.removal.GONE_WITHIN", 8.0)
    stuck = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "stuck", "finalizers": ["example.com/never"]},
    }
    folder = with_manifest(tmp_path / "scenario", stuck)
    result = session(warm_cluster, folder, tmp_path / "out", "with-key")
    (report,) = result.report.drills

    async def free(client: KubeClient) -> None:
        patch = {"metadata": {"finalizers": None}}
        await client.patch(CONFIGMAP, "stuck", report.namespace, patch, field_manager="test")

    with_client(warm_cluster, free)
    assert failing(report) == {"nothing-left"}
    assert result.exit_code == ExitCode.LEFT_BEHIND
    left = {item["kind"]: item for item in report.left.items}
    assert left["ConfigMap"]["finalizers"] == ["example.com/never"]
    assert "Namespace" in left


def test_what_is_to_be_kept_is_there_afterwards_and_in_the_journal(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    result = session(warm_cluster, NODE_SPREAD, tmp_path / "out", "with-key", keep=True)
    (report,) = result.report.drills
    assert result.exit_code == ExitCode.OK
    assert report.left.state == "kept"
    assert with_client(warm_cluster, lambda client: client.exists(NAMESPACE, report.namespace))
    assert not (state_dir() / "runs" / report.run_id).exists(), "tokens and raw logs are not kept"
    (journal,) = [j for j in all_journals() if j.reach.run == report.run_id]

    async def remove(client: KubeClient) -> None:
        assert (await tear_down(client, journal)).problems == []

    with_client(warm_cluster, remove)
    journal.close()
    assert not with_client(warm_cluster, lambda client: client.exists(NAMESPACE, report.namespace))


def test_the_namespace_is_gone_when_the_drill_is_over(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    report = drill(warm_cluster, NODE_SPREAD, tmp_path / "out", "with-key")
    assert not with_client(warm_cluster, lambda client: client.exists(NAMESPACE, report.namespace))
    assert report.left.kinds_listed > 50
