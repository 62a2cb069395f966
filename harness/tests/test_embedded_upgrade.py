"""Upgrades in the middle of a drill, on clusters of their own: of the subject, and of the control plane under it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters.base import ChoiceError
from harness.clusters.embedded import binaries, cluster, components, records
from harness.clusters.embedded.upgrade import REPLACED
from harness.kube.client import KubeClient
from harness.kube.errors import KubeError
from harness.kube.resource import CANARY, CONFIGMAP
from harness.kube.retry import Budget
from harness.model.timeline import Header, ObjectSeen, SubjectFacts, WatchState
from harness.run.crds import replace_crds
from harness.run.recorder import Recorder
from harness.run.redact import Redactor
from harness.subjects.bundled import Bundled
from harness.tests.drill_process import command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.model.timeline import Observation

pytestmark = pytest.mark.embedded

MANIFEST = """\
{% for number in range(3) %}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app-{{ number }}}
spec:
  replicas: 1
  selector: {matchLabels: {app: app-{{ number }}}}
  template:
    metadata: {labels: {app: app-{{ number }}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: registry.example/web:1}]
---
apiVersion: flagger.app/v1beta1
kind: Canary
metadata: {name: app-{{ number }}, labels: {cell: c{{ number % 2 }}}}
spec:
  provider: kubernetes
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: app-{{ number }}}
  progressDeadlineSeconds: 60
  service: {port: 80}
  analysis: {interval: 1s, iterations: 1, threshold: 1}
{% endfor %}
"""
SCENARIO = """\
apiVersion: drill/v1
kind: Scenario
metadata: {name: handed-over}
spec:
  question: Does an upgrade start an analysis?
  requires: [blue-green, audit, kubernetes-upgrade]
  subject: bundled
  nodes: {count: 2}
  values: {what: subject}
  variants:
    subject: {}
    kubernetes: {values: {what: kubernetes}}
  expect: {phase: any}
  manifests: [objects.yaml.j2]
  steps:
    - name: initialise
      apply: [objects.yaml.j2]
      until: size(rollouts) == 3 && rollouts.all(r, r.phase == "Initialized")
    - name: upgrade
      when: '{{ what == "subject" }}'
      upgrade: {subject: bundled}
      until: size(rollouts) == 3 && rollouts.all(r, r.looks >= 1)
    - name: upgrade the cluster
      when: '{{ what == "kubernetes" }}'
      upgrade: {kubernetes: VERSION}
    - name: new revision
      patch: {target: workloads, where: {cell: c0}, template: {annotations: {drill/revision: "2"}}}
      until: size(rollouts) == 3 && rollouts.all(r, r.phase == "Succeeded" || r.labels["cell"] == "c1")
      change: true
  checks:
    - {id: nothing-started, never: 'rollouts.exists(r, r.starts > 0 && r.labels["cell"] == "c1")', from: initialise}
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "state"
    yield folder
    command("cluster", "down", "--all", state=folder)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    folder = tmp_path / "handed-over"
    folder.mkdir()
    (folder / "objects.yaml.j2").write_text(MANIFEST)
    version = components.kubernetes_version(None)
    (folder / "scenario.yaml").write_text(SCENARIO.replace("VERSION", version))
    return folder


@pytest.fixture
def source(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--drill-binaries"))


def recorded(out: Path) -> list[dict[str, Any]]:
    (file,) = out.glob("*/timeline.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def of(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["type"] == kind]


@pytest.mark.parametrize("variant", ["subject", "kubernetes"])
def test_a_drill_goes_on_over_an_upgrade_and_misses_nothing(
    scenario: Path, state: Path, source: str, tmp_path: Path, variant: str
) -> None:
    out = tmp_path / "out"
    options = ["--variant", variant, "--binaries", source, "--out", str(out)]
    status, told = command("run", str(scenario), *options, state=state)
    assert status == 0, told
    rows = recorded(out)
    assert [row for row in of(rows, "watch") if row["state"] == "gap"] == []
    acted = [row["detail"] for row in of(rows, "step") if row["state"] == "acted"]
    started = [row for row in of(rows, "subject") if row["state"] == "started"]
    requests = of(rows, "requests")
    falls = [b for a, b in itertools.pairwise(requests) if b["total"] < a["total"]]
    if variant == "subject":
        assert acted[1].startswith("bundled ")
        assert len(started) == 2
        # Counted from the start of the second one, which had to read what was there.
        assert [fall["total"] for fall in falls] == [0]
    else:
        version = components.kubernetes_version(None)
        assert acted[1] == f"Kubernetes {version} → {version}"
        assert len(started) == 1
        assert falls == []
    # The two that were changed were written to, the third was left alone since.
    last = requests[-1]["rollouts"]
    assert last["app-0"][1] > 2
    assert last["app-2"][1] > 2
    if variant == "subject":
        assert "app-1" not in last
    assert records_of(state) == []


def records_of(state: Path) -> list[Path]:
    return [
        path
        for folder in ("records", "clusters", "journals", "runs")
        for path in (state / folder).glob("*")
    ]


def test_neither_another_subject_nor_a_cluster_of_others_can_be_asked_for(
    scenario: Path, state: Path
) -> None:
    where = [str(scenario), "--variant", "subject"]
    status, told = command("run", *where, "--subject", "bundled", state=state)
    assert (status, told.count("\n")) == (4, 1)
    assert "names its subject itself (bundled, then bundled)" in told
    status, told = command("run", *where, "--cluster", "embedded:dev", state=state)
    assert (status, told.count("\n")) == (4, 1)
    assert "on a cluster of its own only: --cluster embedded, not embedded:dev" in told
    # From the environment it is a preference, which such a scenario overrules.
    status, told = command("run", "no-such", state=state, DRILL_SUBJECT="nobody")
    assert status == 4


# ---- the control plane


@pytest.fixture
def made(source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A cluster of its own, whose programs may be replaced."""
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    programs = binaries.ensure_binaries(source, print)
    yield cluster.up(
        "old", nodes=1, seed=1, binaries=programs, progress=print, owner_pid_bound=True
    )
    cluster.down("old")


def elsewhere(source: str, folder: Path) -> Path:
    """Return a folder with the same programs, which stand for those of another version."""
    folder.mkdir()
    for name, path in binaries.ensure_binaries(source, print).by_name().items():
        (folder / name).symlink_to(path)
    return folder


class Churn:
    """Somebody who changes objects all the time, and goes on when nobody answers."""

    def __init__(self, client: KubeClient, number: int) -> None:
        self._client = client
        self._number = number
        self.over = False

    async def run(self) -> None:
        for turn in itertools.count():
            if self.over:
                return
            name = f"churn-{self._number}-{turn % 5}"
            with contextlib.suppress(KubeError):
                await self._change(name, turn)
            await asyncio.sleep(0.02)

    async def _change(self, name: str, turn: int) -> None:
        metadata = {"name": name, "namespace": "default"}
        await self._client.apply(
            CONFIGMAP,
            {"metadata": metadata, "data": {"turn": str(turn)}},
            field_manager="churn",
            force=True,
        )
        spec = {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "service": {"port": 80},
            "analysis": {"interval": "1s", "threshold": 1, "iterations": 1},
            "progressDeadlineSeconds": turn,
        }
        await self._client.apply(
            CANARY, {"metadata": metadata, "spec": spec}, field_manager="churn", force=True
        )
        if turn % 4 == 0:
            await self._client.delete(CONFIGMAP, name, "default")


def test_the_control_plane_is_replaced_under_its_data_and_every_change_is_recorded(
    made: EmbeddedCluster, source: str, tmp_path: Path
) -> None:
    folder = elsewhere(source, tmp_path / "newer")
    version = made.facts.kubernetes
    seen: list[Observation] = []

    async def run() -> EmbeddedCluster:
        async with (
            await KubeClient.connect(made.kubeconfig, user_agent="test") as client,
            await KubeClient.connect(
                made.kubeconfig, user_agent="churn", budget=Budget(total=0)
            ) as writer,
        ):
            await replace_crds(client, Bundled().cluster_objects(), exclusive=True)
            _, began = await client.list(CONFIGMAP, "default")
            recorder = _recorder(made, client, seen)
            recording = asyncio.create_task(recorder.run())
            await recorder.synced()
            churn = [Churn(writer, number) for number in range(2)]
            changing = [asyncio.create_task(one.run()) for one in churn]
            await asyncio.sleep(1)
            new = await made.upgrade(version, binaries=f"path:{folder}", progress=print)
            await asyncio.sleep(1)
            for one in churn:
                one.over = True
            await asyncio.gather(*changing)
            assert await recorder.complete()
            for resource in (CONFIGMAP, CANARY):
                _, until = await client.list(resource, "default")
                truth = await new.missed(resource, "default", int(began), int(until))
                assert truth is not None
                there = {int(o.object["metadata"]["resourceVersion"]) for o in _objects(seen)}
                assert [change for change in truth if not change.deleted] != []
                assert {one.version for one in truth if not one.deleted} <= there
            recording.cancel()
            await asyncio.gather(recording, return_exceptions=True)
            return new

    new = asyncio.run(run())
    assert [o for o in seen if isinstance(o, WatchState) and o.state == "gap"] == []
    assert {"ADDED", "MODIFIED", "DELETED"} == {o.change for o in _objects(seen)}
    leads = {name: (made.record.workdir / "bin" / name).readlink().parent for name in REPLACED}
    assert set(leads.values()) == {folder}
    assert new.facts.kubernetes == version
    assert not new.record.default_version
    found = cluster.find("old")
    assert found is not None
    assert found.record == new.record
    assert cluster.prove_collectors(new) < 15


def _recorder(made: EmbeddedCluster, client: KubeClient, seen: list[Observation]) -> Recorder:
    header = Header(
        *("r", "d", "default", "", "", {}), SubjectFacts("bundled", "1"), made.facts, ""
    )
    began = asyncio.get_running_loop().time()
    clock = asyncio.get_running_loop().time
    return Recorder(
        client, header, seen.append, Redactor(), lambda: clock() - began, missed=made.missed
    )


def _objects(seen: list[Observation]) -> list[ObjectSeen]:
    return [o for o in seen if isinstance(o, ObjectSeen)]


def test_a_version_that_is_not_there_is_refused_before_anything_is_stopped(
    made: EmbeddedCluster, tmp_path: Path
) -> None:
    with pytest.raises(ChoiceError, match=r"v1\.20"):
        asyncio.run(made.upgrade("v1.20", binaries=f"path:{tmp_path}", progress=print))
    assert cluster.find("old") is not None
    assert records.read("old") == made.record


@pytest.mark.parametrize("minor", ["1.34", "1.36"])
def test_another_version_serves_the_same_data(
    made: EmbeddedCluster, source: str, minor: str
) -> None:
    """Needs those programs at hand: nothing is built for it here."""
    version = components.kubernetes_version(minor)
    chosen = os.environ.get(binaries.VARIABLE, "") if source == "auto" else source
    folder = Path(chosen.removeprefix("path:")) / version
    if not chosen.startswith("path:") or shutil.which("kube-apiserver", path=folder) is None:
        pytest.skip(f"the programs of {version} are not at hand")
    new = asyncio.run(made.upgrade(minor, binaries=source, progress=print))
    assert new.facts.kubernetes == version
    assert cluster.prove_collectors(new) < 15
