"""k3s by k3d: the command line that its documentation describes, and what is read of its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.clusters.base import ClusterError
from harness.clusters.k3s.provider import K3d, creation, names_in, nodes_in
from harness.clusters.local import records
from harness.tests.fake_tool import FakeTool, listed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeTool:
    """A PATH with a k3d and a docker, and a state folder."""
    made = FakeTool(tmp_path / "bin")
    made.write("k3d", f"""case "$1" in cluster) echo '{listed("a", "b")}';; *) echo text;; esac""")
    made.write("docker", "echo said")
    monkeypatch.setenv("PATH", f"{made.folder}:/usr/bin:/bin")
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    return made


def _record(nodes: int = 2) -> records.Record:
    record = records.new("k3s", "one", nodes, "k3d", bound=True)
    records.write(record)
    return record


def test_a_cluster_listens_on_loopback_and_changes_nothing_of_the_users() -> None:
    argv = creation("one", 2, "")
    assert argv[:7] == ["cluster", "create", "one", "--servers", "1", "--agents", "2"]
    assert argv[argv.index("--api-port") + 1] == "127.0.0.1:random"
    assert "--kubeconfig-update-default=false" in argv
    assert "--kubeconfig-switch-context=false" in argv
    assert "--image" not in argv


def test_the_server_takes_no_pods_so_that_the_agents_are_the_drills_nodes() -> None:
    argv = creation("one", 2, "k3s:1")
    assert "--node-taint=node-role.kubernetes.io/control-plane=true:NoSchedule@server:*" in argv
    assert argv[argv.index("--image") + 1] == "k3s:1"


def test_it_is_made_and_its_kubeconfig_is_private(tools: FakeTool) -> None:
    record = _record()
    K3d().create(record, print, None)
    create, get = tools.calls
    assert create.startswith("k3d cluster create one ")
    assert get == "k3d kubeconfig get one"
    assert record.kubeconfig.read_text("utf-8") == "text\n"
    assert record.kubeconfig.stat().st_mode & 0o077 == 0


def test_too_many_agents_are_refused(tools: FakeTool) -> None:
    with pytest.raises(ClusterError, match="A k3s cluster has 1 to 20 agents, not 0"):
        K3d().create(_record(0), print, None)
    assert tools.calls == []


def test_it_says_what_is_missing(tools: FakeTool) -> None:
    assert K3d().missing() == ""
    tools.write("k3d", "echo no Docker here >&2; exit 1")
    assert "no Docker here" in K3d().missing()
    (tools.folder / "k3d").unlink()
    assert K3d().missing() == "--cluster k3s needs k3d on PATH, and there is none."
    tools.write("k3s")
    assert "use it as a cluster of your own with --cluster context:NAME" in K3d().missing()


def test_lists_are_read_as_k3d_prints_them() -> None:
    assert names_in(listed("a", "b")) == ["a", "b"]
    assert names_in("null") == []
    assert names_in("") == []
    nodes = '[{"name":"k3d-a-server-0","runtimeLabels":{"k3d.cluster":"a"}},{"name":"x"}]'
    assert nodes_in(nodes, "a") == ["k3d-a-server-0"]
    with pytest.raises(ClusterError, match="k3d printed no list"):
        names_in('{"name": "a"}')


def test_images_and_logs(tools: FakeTool, tmp_path: Path) -> None:
    row = '[{"name":"k3d-one-agent-0","runtimeLabels":{"k3d.cluster":"one"}}]'
    tools.write("k3d", f"""case "$1" in node) echo '{row}';; esac""")
    record = _record()
    K3d().load(record, tmp_path / "a.tar")
    K3d().load_local(record, "mine:1")
    K3d().export_logs(record, tmp_path)
    K3d().delete(record)
    assert tools.calls == [
        f"k3d image import {tmp_path / 'a.tar'} --cluster one",
        "k3d image import mine:1 --cluster one",
        "k3d node list -o json",
        "docker logs k3d-one-agent-0",
        "k3d cluster delete one",
    ]
    assert (tmp_path / "k3d-one-agent-0.log").read_text("utf-8") == "said"
