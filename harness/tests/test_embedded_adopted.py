"""Somebody's own manifests, as they are: drilled without a scenario, or made into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.tests.drill_process import command

if TYPE_CHECKING:
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

SETTINGS = """\
# What the shop reads at its start.
apiVersion: v1
kind: ConfigMap
metadata:
  name: shop-settings
  namespace: shop
data:
  mode: "on"
---
apiVersion: v1
kind: Service
metadata:
  name: metrics
  namespace: shop
spec:
  selector: {app: exporter}
  ports:
    - {port: 9100}
"""
WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  namespace: shop
spec:
  replicas: 2
  selector:
    matchLabels: {app: shop}
  template:
    metadata:
      labels: {app: shop}
    spec:
      containers:
        - name: shop
          image: registry.example/shop:1
          envFrom:
            - configMapRef: {name: shop-settings}
          ports:
            - containerPort: 8080
"""
CANARY = """\
apiVersion: flagger.app/v1beta1
kind: Canary
metadata:
  name: shop
  namespace: shop
spec:
  provider: kubernetes
  targetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: shop
  service:
    port: 80
    targetPort: 8080
  analysis:
    interval: 1s
    iterations: 2
    threshold: 2
"""


@pytest.fixture
def rendered(tmp_path: Path) -> Path:
    folder = tmp_path / "rendered"
    (folder / "base").mkdir(parents=True)
    (folder / "base" / "settings.yaml").write_text(SETTINGS)
    (folder / "shop.yml").write_text(f"---\n{WORKLOAD}---\n{CANARY}")
    (folder / "notes.txt").write_text("not a manifest")
    return folder


def where(cluster: EmbeddedCluster) -> tuple[str, str]:
    return "--cluster", f"embedded:{cluster.record.name}"


def report_of(out: Path) -> str:
    (path,) = out.glob("*/report.md")
    return path.read_text(encoding="utf-8")


def test_manifests_are_drilled_as_they_are(
    warm_cluster: EmbeddedCluster, rendered: Path, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in rendered.rglob("*.y*ml")}
    out = tmp_path / "out"
    status, output = command("run", "-f", str(rendered), *where(warm_cluster), "--out", str(out))
    assert status == 0, output
    assert "Namespace 'shop' in the manifests is replaced by the drill's own." in output
    report = report_of(out)
    assert "Nothing. Teardown removed" in report
    assert f"drill run -f {rendered}" in report
    assert (out / "report.md").is_file()
    assert {path: path.read_bytes() for path in before} == before
    assert command("sweep", "--dry-run")[1] == "nothing is left of earlier runs\n"


def test_manifests_become_a_scenario_that_lints_and_runs(
    warm_cluster: EmbeddedCluster, rendered: Path, tmp_path: Path
) -> None:
    status, output = command("init", "-f", str(rendered), cwd=tmp_path)
    assert status == 0, output
    (scenario,) = (tmp_path / "scenarios").iterdir()
    written = {path.relative_to(scenario).as_posix() for path in scenario.rglob("*.y*ml")}
    assert written == {"scenario.yaml", "shop.yml", "base/settings.yaml"}
    settings = (scenario / "base" / "settings.yaml").read_text()
    assert settings == SETTINGS.replace("  namespace: shop\n", "")
    status, output = command("lint", str(scenario))
    assert status == 0, output
    assert output.endswith("1 scenario, no error\n")
    assert "error:" not in output
    assert scenario.name in command("list", cwd=tmp_path)[1]
    out = ("--out", str(tmp_path / "out"))
    status, output = command("run", scenario.name, *where(warm_cluster), *out, cwd=tmp_path)
    assert status == 0, output
    assert "Nothing. Teardown removed" in report_of(tmp_path / "out")
    status, output = command("init", "-f", str(rendered), cwd=tmp_path)
    assert status == 4
    assert "exists already, and nothing is overwritten" in output
