"""Clusters that a tool makes: what is kept of them, when they go, and that nothing is left when one cannot be made."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import tarfile
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.clusters import workload
from harness.clusters.base import ChoiceError, Cluster, ClusterError
from harness.clusters.local import cluster as local
from harness.clusters.local import images, records
from harness.clusters.select import ALLOWED, Choice, open_cluster, parse
from harness.data import data_path
from harness.model.timeline import ClusterFacts
from harness.run.parts import _images
from harness.run.sweep import sweep
from harness.tests.fake_tool import FakeTool

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from harness.clusters.base import Progress
    from harness.clusters.local.records import Record


@dataclass
class FakeProvider:
    """A tool whose clusters are names in a list."""

    kind: str = "kind"
    tool: str = "kind"
    there: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    why: str = ""
    fails: str = ""

    def missing(self) -> str:
        return self.why

    def names(self) -> list[str]:
        return list(self.there)

    def create(self, record: Record, progress: Progress, cancelled: threading.Event | None) -> None:
        del progress, cancelled
        self.done.append(f"create {record.name}")
        self.there.append(record.name)
        if self.fails:
            raise ClusterError(self.fails)

    def adopt(self, record: Record) -> None:
        self.done.append(f"adopt {record.name}")

    def delete(self, record: Record) -> None:
        self.done.append(f"delete {record.name}")
        with contextlib.suppress(ValueError):
            self.there.remove(record.name)

    def load(self, record: Record, archive: Path) -> None:
        self.done.append(f"load {archive.name} into {record.name}")

    def load_local(self, record: Record, image: str) -> None:
        self.done.append(f"load {image} of the engine into {record.name}")

    def export_logs(self, record: Record, folder: Path) -> None:
        (folder / f"{record.name}.log").write_text("said", encoding="utf-8")


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeProvider:
    """The tool; images cost nothing, and its clusters answer at once."""
    made = FakeProvider()
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(local, "provider_of", lambda _kind: made)
    monkeypatch.setattr(local, "_image", lambda *_: tmp_path / "image-1.tar")

    async def ready(record: Record, wanted: int) -> None:
        made.done.append(f"wait for {wanted} of {record.name}")

    async def opened(provider: Any, record: Record, *, exclusive: bool) -> local.LocalCluster:
        facts = ClusterFacts("kind", record.name, "v1.35.4", ("a", "b"), exclusive=exclusive)
        return local.LocalCluster(
            record.title, facts, record.kubeconfig, record=record, provider=provider
        )

    monkeypatch.setattr(local, "nodes_ready", ready)
    monkeypatch.setattr(local, "opened", opened)
    return made


def _up(name: str = "one", *, bound: bool = True) -> local.LocalCluster:
    made = local.up("kind", name, nodes=2, progress=print, bound=bound, exclusive=bound)
    return asyncio.run(made)


def test_a_cluster_is_made_and_gets_our_image(tool: FakeProvider) -> None:
    made = _up()
    assert tool.done == ["create one", "wait for 2 of one", "load image-1.tar into one"]
    assert made.workload_image == workload.IMAGE
    record = records.read("kind", "one")
    assert record is not None
    assert record.ready
    assert record.images == ["image-1.tar"]


def test_one_that_cannot_be_made_leaves_nothing(tool: FakeProvider) -> None:
    tool.fails = "no space"
    with pytest.raises(ClusterError, match="no space"):
        _up()
    assert tool.there == []
    assert records.read_all("kind") == []


def test_one_whose_nodes_do_not_come_leaves_nothing(
    tool: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(record: Record, _wanted: int) -> None:
        msg = f"the nodes of {record.title} were not ready"
        raise ClusterError(msg)

    monkeypatch.setattr(local, "nodes_ready", never)
    with pytest.raises(ClusterError, match="the nodes of kind:one were not ready"):
        _up()
    assert tool.there == []
    assert records.read_all("kind") == []


def test_a_name_that_is_taken_is_left_alone(tool: FakeProvider) -> None:
    tool.there.append("one")
    with pytest.raises(ChoiceError, match="There is a kind cluster 'one' already"):
        _up()
    assert tool.done == []
    assert tool.there == ["one"]


def test_without_the_tool_nothing_is_begun(tool: FakeProvider) -> None:
    tool.why = "there is no kind"
    with pytest.raises(ClusterError, match="there is no kind"):
        _up()
    assert tool.done == []


def test_somebody_elses_cluster_is_used_and_never_deleted(tool: FakeProvider) -> None:
    tool.there.append("theirs")
    found = asyncio.run(local.find("kind", "theirs", print))
    assert not found.facts.exclusive
    assert "adopt theirs" in tool.done
    assert local.down("kind", "theirs")
    assert tool.there == ["theirs"]
    assert records.read("kind", "theirs") is None


def test_an_image_is_loaded_once(tool: FakeProvider) -> None:
    _up(bound=False)
    asyncio.run(local.find("kind", "one", print))
    assert sum(one.startswith("load") for one in tool.done) == 1


def test_an_unknown_name_is_refused_with_those_there_are(tool: FakeProvider) -> None:
    tool.there += ["a", "b"]
    with pytest.raises(ChoiceError, match=r"no kind cluster 'c' \(there are: a, b\); make it with"):
        asyncio.run(local.find("kind", "c", print))


def test_what_a_dead_run_left_is_known_and_what_was_to_stay_is_not(tool: FakeProvider) -> None:
    _up("dead")
    _up("kept", bound=False)
    _up("mine")
    for name in ("dead", "kept"):
        record = records.read("kind", name)
        assert record is not None
        records.write(replace(record, owner_started=0.0))
    assert [one.name for one in local.abandoned()] == ["dead"]
    local.remove(local.abandoned()[0])
    assert sorted(tool.there) == ["kept", "mine"]


def test_sweep_removes_what_a_dead_run_left(tool: FakeProvider) -> None:
    _up("dead")
    _up("mine")
    record = records.read("kind", "dead")
    assert record is not None
    records.write(replace(record, owner_started=0.0))
    assert asyncio.run(sweep(dry_run=True)).removed == ["cluster kind:dead"]
    assert sorted(tool.there) == ["dead", "mine"]
    assert asyncio.run(sweep(dry_run=False)).removed == ["cluster kind:dead"]
    assert tool.there == ["mine"]
    assert asyncio.run(sweep(dry_run=False)).removed == []


def test_a_run_takes_one_that_stays_and_leaves_it(tool: FakeProvider) -> None:
    _up("warm", bound=False)

    async def use() -> str:
        async with open_cluster(
            "kind", nodes=2, seed=None, binaries_source="auto", progress=print
        ) as cluster:
            return cluster.name

    assert asyncio.run(use()) == "kind:warm"
    assert tool.there == ["warm"]


def test_a_run_makes_its_own_where_none_fits_and_removes_it(tool: FakeProvider) -> None:
    _up("warm", bound=False)

    async def use(nodes: int, *, keep: bool = False) -> str:
        async with open_cluster(
            "kind", nodes=nodes, seed=None, binaries_source="auto", progress=print, keep=keep
        ) as cluster:
            assert cluster.facts.exclusive
            return cluster.name

    name = asyncio.run(use(3))
    assert name.startswith("kind:drill-")
    assert tool.there == ["warm"]
    kept = asyncio.run(use(3, keep=True))
    assert tool.there == ["warm", kept.removeprefix("kind:")]


def test_its_logs_can_be_kept(tool: FakeProvider, tmp_path: Path) -> None:
    made = _up()
    asyncio.run(made.save_logs(tmp_path))
    assert (tmp_path / "one.log").read_text("utf-8") == "said"
    assert tool.there == ["one"]


def test_choices_of_the_command_line() -> None:
    assert parse("kind") == Choice("kind")
    assert parse("kind:dev") == Choice("kind", "dev")
    assert parse("k3s:dev") == Choice("k3s", "dev")
    for wrong in ("kind:", "minikube"):
        with pytest.raises(ChoiceError, match=f"allowed: {ALLOWED}"):
            parse(wrong)


def test_another_program_is_another_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path / "cache"))
    program = tmp_path / "thing"
    paths = []
    for text in ("one", "two", "two"):
        program.write_text(text, encoding="utf-8")
        paths.append(images.archive(program, "a/b:1"))
    assert paths[0] != paths[1] == paths[2]
    assert paths[0].name.startswith("a-b-1-")
    with tarfile.open(paths[0]) as tar:
        (manifest,) = json.load(_member(tar, "manifest.json"))
        config = json.load(_member(tar, manifest["Config"]))
    assert manifest["RepoTags"] == ["a/b:1", *images.REVISIONS]
    assert config["config"]["Entrypoint"] == ["/thing"]


def test_an_image_of_another_sort_is_loaded_once_too(tool: FakeProvider, tmp_path: Path) -> None:
    made = _up(bound=False)
    for _ in range(2):
        asyncio.run(made.load(tmp_path / "other-1.tar", print))
    assert tool.done[-1] == "load other-1.tar into one"
    assert len(tool.done) == 4


def test_images_of_a_scenario_that_docker_has_are_loaded_once_each_and_anew_when_they_changed(
    tool: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _up(bound=False)
    begun = len(tool.done)
    docker = FakeTool(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{docker.folder}:/usr/bin:/bin")
    docker.write(
        "docker", 'case "$*" in *mine:1) echo sha256:one;; *) echo none >&2; exit 1;; esac'
    )
    for _ in range(2):
        asyncio.run(made.load_local(["mine:1", "elsewhere:2"], print))
    assert tool.done[begun:] == ["load mine:1 of the engine into one"]
    docker.write("docker", "echo sha256:two")
    asyncio.run(made.load_local(["mine:1"], print))
    assert len(tool.done[begun:]) == 2


def test_without_docker_there_is_nothing_to_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert images.in_engine(["mine:1"]) == {}


def test_a_drill_asks_for_the_images_of_its_manifests_and_steps() -> None:
    container = {"name": "web", "image": "mine:1"}
    kept = {"name": "log", "image": f"{images.RESERVED}/web:1"}
    workload_ = {"spec": {"template": {"spec": {"containers": [container, kept]}}}}
    steps = [{"patch": {"template": {"image": "mine:2"}}}]
    plan = SimpleNamespace(resolved=SimpleNamespace(to_json=lambda: {"steps": steps}))
    assert _images(cast("Any", plan), {"a.yaml": [workload_]}) == ["mine:1", "mine:2"]


def _member(tar: tarfile.TarFile, name: str) -> io.BytesIO:
    file = tar.extractfile(name)
    assert file is not None
    return io.BytesIO(file.read())


def test_other_clusters_have_no_logs_to_keep(tmp_path: Path) -> None:
    facts = ClusterFacts("existing", "x", "v1.35.4", ())
    asyncio.run(Cluster("context:x", facts, tmp_path / "k").save_logs(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_every_image_that_shipped_scenarios_promise_to_run_is_loaded() -> None:
    named = set()
    for path in data_path("scenarios").rglob("*"):
        if path.suffix in (".yaml", ".j2"):
            named |= set(re.findall(rf"{images.RESERVED}/[a-z]+:[0-9]+", path.read_text("utf-8")))
    assert named
    assert named <= set(images.REVISIONS)
