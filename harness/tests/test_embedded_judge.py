"""The verdict is in the recording: judged again it is the same, byte for byte, anonymised or not."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.data import data_path
from harness.kube.resource import NODE
from harness.tests.drill_process import DrillProcess, command
from harness.tests.drilling import kubeconfig, with_client

if TYPE_CHECKING:
    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

NAMES = {
    "workload": "payroll-service",
    "context": "acme-shop-eu",
    "registry": "registry.acme.example",
    "image": "payroll/backend",
    "node": "rack-seven.acme.example",
}


@dataclass(frozen=True)
class Runs:
    """Finished runs of the same scenario on the same cluster."""

    plain: Path
    hidden: Path

    def folder(self, name: str) -> Path:
        (timeline,) = getattr(self, name).glob("*/timeline.jsonl")
        return Path(timeline).parent


def scenario(folder: Path) -> Path:
    """Return a scenario whose workload, image and registry have names that stand nowhere else."""
    shutil.copytree(data_path("scenarios", "node-spread-blue-green"), folder)
    for file in folder.glob("*.j2"):
        text = file.read_text(encoding="utf-8")
        assert ": web\n" in text
        renamed = text.replace(": web\n", f": {NAMES['workload']}\n")
        file.write_text(renamed, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs(warm_cluster: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A plain run of the failing control, and an anonymised one side by side."""
    base = tmp_path_factory.mktemp("runs")
    config = kubeconfig(warm_cluster, base / "config", NAMES["context"])
    own = scenario(base / "scenario")
    image = f"image={NAMES['registry']}/{NAMES['image']}:1"
    arguments = [str(own), "--variant", "without-key", "--set", image]
    arguments += ["--cluster", f"context:{NAMES['context']}"]
    # The cluster's own nodes are called as the aliases are. This one takes no pods, so it does not count.
    node = {"metadata": {"name": NAMES["node"]}, "spec": {"unschedulable": True}}
    with_client(warm_cluster, lambda client: client.create(NODE, node, field_manager="test"))
    try:
        plain = DrillProcess(base / "plain", *arguments, KUBECONFIG=str(config))
        hidden = DrillProcess(base / "hidden", *arguments, "--anonymise", KUBECONFIG=str(config))
        for drill in (plain, hidden):
            status, output = drill.end()
            assert status == 0, output
    finally:
        with_client(warm_cluster, lambda client: client.delete(NODE, NAMES["node"]))
    return Runs(plain.out, hidden.out)


@pytest.mark.parametrize("run", ["plain", "hidden"])
def test_a_recording_gets_the_same_report_again(runs: Runs, tmp_path: Path, run: str) -> None:
    folder = runs.folder(run)
    status, output = command("judge", str(folder / "timeline.jsonl"), "--out", str(tmp_path))
    assert status == 0, output
    for name in ("report.md", "report.json", "junit.xml"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_an_anonymised_run_names_nothing(runs: Runs) -> None:
    plain = "".join(p.read_text("utf-8") for p in runs.plain.rglob("*") if p.is_file())
    assert [name for name in NAMES.values() if name not in plain] == [], "the control"
    found = {
        (what, path.name)
        for path in runs.hidden.rglob("*")
        for what, name in NAMES.items()
        if name in str(path) or (path.is_file() and name in path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_an_anonymised_run_has_the_same_verdict(runs: Runs) -> None:
    def verdict(name: str) -> tuple[Any, ...]:
        report = json.loads((runs.folder(name) / "report.json").read_text(encoding="utf-8"))
        return report["verdict"]["outcome"], [(f["id"], f["outcome"]) for f in report["findings"]]

    assert verdict("plain") == verdict("hidden")
