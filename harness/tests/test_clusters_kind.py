"""kind: the configuration that a cluster is made from, what a site sets, and how the tool is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.clusters.base import ChoiceError, ClusterError
from harness.clusters.kind import child
from harness.clusters.kind.provider import Kind
from harness.clusters.kind.settings import AFTER_CREATE, CONFIG, base_of, configuration, settings
from harness.clusters.local import records
from harness.tests.fake_tool import FakeTool


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeTool:
    """A PATH with a kind and a kubectl, a state folder, and no site settings."""
    made = FakeTool(tmp_path / "bin")
    made.write("kind", 'case "$1 $2" in "get clusters") echo there;; *) echo text;; esac')
    made.write("kubectl")
    monkeypatch.setenv("PATH", f"{made.folder}:/usr/bin:/bin")
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    for name in (CONFIG, AFTER_CREATE, "DRILL_KIND_IMAGE"):
        monkeypatch.delenv(name, raising=False)
    return made


def _record(nodes: int = 2) -> records.Record:
    record = records.new("kind", "one", nodes, "kind", bound=True)
    records.write(record)
    return record


def _calls(tools: FakeTool) -> list[str]:
    return [call for call in tools.calls if call != "kind get clusters"]


def test_the_nodes_are_the_drills_to_say() -> None:
    base = {"nodes": [{"role": "worker", "labels": {"disk": "ssd"}}, {"role": "control-plane"}]}
    roles = [node["role"] for node in configuration(base, "x", 3)["nodes"]]
    assert roles == ["control-plane", "worker", "worker", "worker"]


def test_what_a_base_says_of_a_role_goes_to_each_node_of_it() -> None:
    mount = [{"hostPath": "/a", "containerPath": "/b"}]
    base: dict[str, Any] = {
        "nodes": [
            {"role": "control-plane", "image": "first"},
            {"role": "worker", "extraMounts": mount},
        ]
    }
    first, *workers = configuration(base, "x", 2)["nodes"]
    assert first == {"role": "control-plane", "image": "first"}
    assert [worker["extraMounts"] for worker in workers] == [mount, mount]


def test_a_base_keeps_what_it_says_but_the_name() -> None:
    base = {
        "name": "theirs",
        "networking": {"ipFamily": "ipv6"},
        "kubeadmConfigPatches": ["kind: KubeletConfiguration"],
    }
    made = configuration(base, "x", 1)
    assert made["name"] == "x"
    assert made["networking"] == {"apiServerAddress": "127.0.0.1", "ipFamily": "ipv6"}
    assert made["kubeadmConfigPatches"] == ["kind: KubeletConfiguration"]
    assert base["name"] == "theirs"


def test_nobody_else_reaches_it_unless_the_site_says_so() -> None:
    assert configuration({}, "x", 1)["networking"]["apiServerAddress"] == "127.0.0.1"
    open_ = {"networking": {"apiServerAddress": "0.0.0.0"}}  # noqa: S104 - a site's choice
    assert configuration(open_, "x", 1)["networking"]["apiServerAddress"] == "0.0.0.0"  # noqa: S104


def test_a_file_of_another_kind_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "kind.yaml"
    path.write_text("apiVersion: kind.x-k8s.io/v1alpha4\nkind: Klaster\n", encoding="utf-8")
    with pytest.raises(
        ChoiceError, match=r"kind\.yaml, line 2: kind is 'Klaster'; allowed: Cluster"
    ):
        base_of(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChoiceError, match=r"DRILL_KIND_CONFIG: there is no file .*nowhere"):
        base_of(tmp_path / "nowhere")


def test_a_file_that_is_no_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "kind.yaml"
    path.write_text("kind: Cluster\n  nodes: [\n", encoding="utf-8")
    with pytest.raises(ChoiceError, match=r"DRILL_KIND_CONFIG: kind\.yaml:2"):
        base_of(path)


def test_settings_are_those_of_the_environment() -> None:
    given = settings({AFTER_CREATE: "run 'two words'", CONFIG: "/c.yaml", "DRILL_KIND_IMAGE": "i"})
    assert given.after_create == ("run", "two words")
    assert given.config == Path("/c.yaml")
    assert given.image == "i"
    with pytest.raises(ChoiceError, match="DRILL_KIND_AFTER_CREATE is no command: no closing"):
        settings({AFTER_CREATE: "run 'half"})


def test_it_says_what_is_missing(tools: FakeTool) -> None:
    assert Kind().missing() == ""
    (tools.folder / "kind").unlink()
    assert Kind().missing() == "--cluster kind needs kind on PATH, and there is none."


def test_an_engine_that_does_not_answer_is_missing(tools: FakeTool) -> None:
    tools.write("kind", "echo cannot connect to the engine >&2; exit 1")
    assert "cannot connect to the engine" in Kind().missing()


def test_a_cluster_is_made_with_a_private_kubeconfig(
    tools: FakeTool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    users = tmp_path / "config"
    users.write_text("the user's own", encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(users))
    monkeypatch.setenv("DRILL_KIND_IMAGE", "node:1")
    # What pytest-kind reads of a cluster that was made.
    config = json.dumps({"clusters": [], "contexts": [], "users": []})
    tools.write(
        "kind",
        f'case "$1 $2" in "get clusters") ;; create*) echo \'{config}\' > {tmp_path}/state/local/kind/one/kubeconfig;; esac',
    )
    record = _record()
    job = child.Job("one", str(record.folder), str(record.kubeconfig), "/k", "/c", "node:1", "/y")
    assert child.argv("create", job)[1:4] == ["-m", "harness.clusters.kind.child", "create"]
    _created(record)
    (create,) = _calls(tools)
    assert "--image=node:1" in create
    assert f"--kubeconfig={record.kubeconfig}" in create
    assert f"--config {record.folder / 'kind.yaml'}" in create
    assert tools.kubeconfig == str(record.kubeconfig)
    assert users.read_text("utf-8") == "the user's own"
    # pytest-kind leaves a folder where it stands, and it does not stand here.
    assert not Path(".pytest-kind").exists()


def _created(record: records.Record) -> None:
    """Make it; pytest-kind looks into a kubeconfig that no real kind wrote, so its complaint is expected."""
    try:
        Kind().create(record, print, None)
    except ClusterError as error:
        assert "current-context" in str(error) or "current_context" in str(error)  # noqa: PT017 - the only one allowed


def test_too_many_nodes_are_refused(tools: FakeTool) -> None:
    with pytest.raises(ClusterError, match="A kind cluster has 1 to 20 workers, not 21"):
        Kind().create(_record(21), print, None)
    assert tools.calls == []


def test_a_failure_has_kinds_last_words_and_its_log(tools: FakeTool) -> None:
    tools.write(
        "kind", 'case "$1 $2" in "get clusters") ;; *) echo no such node >&2; exit 1;; esac'
    )
    record = _record()
    with pytest.raises(ClusterError, match=r"Loading a\.tar into kind:one failed: no such node"):
        Kind().load(record, Path("a.tar"))
    assert "no such node" in record.log.read_text("utf-8")


def test_an_image_is_loaded_on_every_node(tools: FakeTool) -> None:
    Kind().load(_record(), Path("/x/a.tar"))
    Kind().load_local(_record(), "mine:1")
    assert tools.calls == [
        "kind load image-archive /x/a.tar --name one",
        "kind load docker-image mine:1 --name one",
    ]


def test_logs_are_exported_where_they_are_wanted(tools: FakeTool, tmp_path: Path) -> None:
    Kind().export_logs(_record(), tmp_path / "logs")
    assert tools.calls == [f"kind export logs {tmp_path / 'logs'} --name one"]


def test_a_cluster_of_somebody_elses_is_taken_with_its_kubeconfig(tools: FakeTool) -> None:
    record = _record()
    Kind().adopt(record)
    assert tools.calls == ["kind get kubeconfig --name one"]
    assert record.kubeconfig.read_text("utf-8") == "text\n"
    assert record.kubeconfig.stat().st_mode & 0o077 == 0
