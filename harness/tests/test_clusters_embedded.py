"""Embedded clusters as they are: made, used, left behind, removed. Each test makes its own, which takes seconds."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import os
import shutil
import signal
import stat
import statistics
import subprocess
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from harness.clusters import existing, select
from harness.clusters.base import ClusterError
from harness.clusters.embedded import api, binaries, cluster, components, processes, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.embedded

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture(scope="session")
def programs() -> components.Binaries:
    """The programs, built from the pinned modules unless the environment gives others."""
    return binaries.ensure_binaries(os.environ.get(binaries.VARIABLE, "build"), print)


@pytest.fixture
def make(
    programs: components.Binaries, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., cluster.EmbeddedCluster]]:
    """Make clusters of a test, all of which are removed after it."""
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))

    def up(name: str = "test", **options: Any) -> cluster.EmbeddedCluster:
        defaults = {"nodes": 2, "seed": 7, "binaries": programs, "owner_pid_bound": True}
        return cluster.up(name, progress=print, **{**defaults, **options})

    yield up
    for record in records.read_all():
        cluster.down(record.name)


def _until(holds: Callable[[], Any], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _deployment(name: str, **labels: str) -> dict[str, Any]:
    own = {"app": name, **labels}
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    spec = {
        "topologySpreadConstraints": [spread],
        "containers": [{"name": "app", "image": "example.com/app:1"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": own}, "spec": spec},
        },
    }


def _pod(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]},
    }


def _ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _delays(client: api.Api, name: str) -> dict[tuple[str, str], float]:
    """Return the seconds from Running and not ready to ready, of a Deployment's pods by node and ReplicaSet."""
    client.create(DEPLOYMENTS, _deployment(name))
    running: dict[tuple[str, str], float] = {}
    ready: dict[tuple[str, str], float] = {}

    def all_ready() -> bool:
        now = time.monotonic()
        for pod in client.request("GET", f"{PODS}?labelSelector=app={name}")[1]["items"]:
            which = (pod["spec"].get("nodeName", ""), pod["metadata"]["ownerReferences"][0]["name"])
            if pod["status"].get("phase") == "Running":
                running.setdefault(which, now)
            if _ready(pod):
                ready.setdefault(which, now)
        return len(ready) == 2

    _until(all_ready)
    return {which: ready[which] - running[which] for which in ready}


def _expected(seed: int, node: str, replica_set: str) -> float:
    """Return the seconds that the stage of ready pods asks for, by its own formula in fixtures/stages."""
    number = 7
    for character in f"{seed}/ready/{node}/ReplicaSet/{replica_set}/":
        number = (number * 131 + ord(character)) % 1_000_003
    return (140 + (number * 7919 + 104_729) % 1_000_003 % 180) / 1000


def test_it_is_ready_within_seconds_and_all_on_loopback(
    make: Callable[..., cluster.EmbeddedCluster],
) -> None:
    began = time.monotonic()
    made = make()
    took = time.monotonic() - began
    pids = processes.running(made.record).values()
    sockets = [one for pid in pids for one in psutil.Process(pid).net_connections("inet")]
    addresses = {one.laddr.ip for one in sockets if one.status == psutil.CONN_LISTEN}
    assert addresses == {"127.0.0.1"}
    assert len(pids) == 5
    # Three to four seconds on two idle cores; a busy machine may take longer, but not this long.
    assert took < 20
    assert made.facts.nodes == ("node-1", "node-2")
    assert made.facts.kubernetes == "v1.35.4"
    assert stat.S_IMODE(made.kubeconfig.stat().st_mode) == 0o600
    opened = asyncio.run(existing.open_existing(str(made.context), made.kubeconfig))
    assert opened.facts.nodes == made.facts.nodes
    assert opened.facts.simulated == made.facts.simulated == "kwok v0.8.0"


def test_delays_are_those_of_the_seed(make: Callable[..., cluster.EmbeddedCluster]) -> None:
    client = api.Api(make(seed=7).record)
    _delays(client, "first")  # the first pods of a cluster wait for kwok to compile its stages
    seen: dict[tuple[str, str], float] = {}
    for number in range(5):
        seen |= _delays(client, f"web-{number}")

    def off(seed: int) -> float:
        # The median, since a busy machine delays one pod or another.
        return statistics.median(abs(seen[which] - _expected(seed, *which)) for which in seen)

    assert len(seen) == 10
    assert off(7) < 0.06
    # The control: other seeds ask for other delays.
    assert max(off(seed) for seed in range(100, 120)) > off(7) + 0.03


def test_pods_behave_as_their_label_asks(make: Callable[..., cluster.EmbeddedCluster]) -> None:
    client = api.Api(make().record)
    for value in ("never-ready", "failing", "flapping", "slow"):
        client.create(PODS, _pod(value, **{"rollout-drill/pod": value}))
    client.create(PODS, _pod("ordinary"))
    history: dict[str, list[bool]] = {}
    restarts = [0]

    def look() -> bool:
        for pod in client.request("GET", PODS)[1]["items"]:
            name = pod["metadata"]["name"]
            states = history.setdefault(name, [])
            if pod["status"].get("phase") == "Running" and _ready(pod) not in states[-1:]:
                states.append(_ready(pod))
            if name == "failing" and "containerStatuses" in pod["status"]:
                restarts[0] = pod["status"]["containerStatuses"][0]["restartCount"]
        return history.get("flapping") == [False, True, False, True]

    _until(look, 30)
    assert history["never-ready"] == history["failing"] == [False]
    assert history["ordinary"] == history["slow"] == [False, True]
    assert restarts[0] >= 2


def test_a_pod_that_lost_its_node_for_a_moment_becomes_ready_again(
    make: Callable[..., cluster.EmbeddedCluster],
) -> None:
    made = make()
    client = api.Api(made.record)
    client.create(PODS, _pod("one"))
    path = f"{PODS}/one"
    _until(lambda: _ready(client.request("GET", path)[1]))
    pod = client.request("GET", path)[1]
    for condition in pod["status"]["conditions"]:
        if condition["type"] == "Ready":
            condition["status"] = "False"
    assert client.request("PUT", f"{path}/status", pod)[0] == 200
    _until(lambda: _ready(client.request("GET", path)[1]))


def test_deleted_pods_take_a_moment_and_wait_for_finalizers(
    make: Callable[..., cluster.EmbeddedCluster],
) -> None:
    client = api.Api(make().record)
    held = _pod("held")
    held["metadata"]["finalizers"] = ["example.com/held"]
    for pod in (held, _pod("free")):
        client.create(PODS, pod)
        path = f"{PODS}/{pod['metadata']['name']}"
        _until(lambda path=path: _ready(client.request("GET", path)[1]))  # type: ignore[misc]
    for name in ("held", "free"):
        client.request("DELETE", f"{PODS}/{name}")
    assert client.exists(f"{PODS}/free")
    _until(lambda: not client.exists(f"{PODS}/free"))
    _until(lambda: not _ready(client.request("GET", f"{PODS}/held")[1]))

    def released() -> bool:
        status, pod = client.request("GET", f"{PODS}/held")
        if status == HTTPStatus.NOT_FOUND:
            return True
        # Refused when the pod's status was written a moment ago; then once more.
        client.request(
            "PUT", f"{PODS}/held", pod | {"metadata": pod["metadata"] | {"finalizers": []}}
        )
        return False

    assert client.exists(f"{PODS}/held")
    _until(released)


def test_deleted_namespaces_and_owned_objects_go(
    make: Callable[..., cluster.EmbeddedCluster],
) -> None:
    made = make()
    assert cluster.prove_collectors(made) < 15
    os.kill(processes.running(made.record)["kube-controller-manager"], signal.SIGKILL)
    _until(lambda: "kube-controller-manager" not in processes.running(made.record))
    with pytest.raises(
        ClusterError, match=r"controller-manager .* is not running, so nothing that"
    ):
        cluster.prove_collectors(made)


def test_without_a_controller_manager_it_does_not_start_and_says_why(
    make: Callable[..., cluster.EmbeddedCluster], programs: components.Binaries, tmp_path: Path
) -> None:
    broken = tmp_path / "kube-controller-manager"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo Kubernetes v1.35.4 && exit 0\necho oops\nexit 1\n',
        encoding="utf-8",
    )
    broken.chmod(0o700)
    changed = dataclasses.replace(programs, kube_controller_manager=broken)
    with pytest.raises(ClusterError, match=r"controller-manager .* is not running") as caught:
        make(binaries=changed)
    log = Path(str(caught.value).rsplit("its log is ", 1)[1].rstrip("."))
    assert "oops" in log.read_text(encoding="utf-8")
    assert cluster.listing() == []


def test_an_outage_keeps_the_data(make: Callable[..., cluster.EmbeddedCluster]) -> None:
    made = make()
    api.Api(made.record).create(PODS, _pod("one"))
    cluster.stop(made)
    assert cluster.find("test") is None
    cluster.start(made)
    assert api.Api(made.record).exists(f"{PODS}/one")


def test_two_at_once_do_not_take_each_others_ports(
    make: Callable[..., cluster.EmbeddedCluster],
) -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first, second = pool.map(make, ("one", "two"))
    assert not set(first.record.ports.values()) & set(second.record.ports.values())
    assert cluster.find("one") is not None
    assert cluster.find("two") is not None


def test_a_dead_cluster_is_made_again(make: Callable[..., cluster.EmbeddedCluster]) -> None:
    made = make(owner_pid_bound=False)
    with pytest.raises(ClusterError, match=r"already an embedded cluster 'test'"):
        make(owner_pid_bound=False)
    for pid in processes.running(made.record).values():
        os.kill(pid, signal.SIGKILL)
    _until(lambda: not processes.running(made.record))
    again = make(owner_pid_bound=False)
    assert again.record.id != made.record.id


_OWNER = """
import signal, sys, time
# A test run in the background of a script ignores interrupts, and what it starts inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from harness.clusters.embedded import binaries, cluster
made = cluster.up("orphan", nodes=1, seed=1, binaries=binaries.ensure_binaries(sys.argv[1], print),
                  progress=print, owner_pid_bound=True)
print("ready", flush=True)
time.sleep(600)
"""


def test_a_killed_owner_takes_its_cluster_along(
    make: Callable[..., cluster.EmbeddedCluster], programs: components.Binaries
) -> None:
    del make  # only for the folder, and for cleaning up
    command = [sys.executable, "-c", _OWNER, f"path:{_folder(programs)}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert any(line.strip() == "ready" for line in owner.stdout)
        record = records.read("orphan")
        assert record is not None
        assert len(processes.running(record)) == 5
        owner.kill()
    _until(lambda: records.read("orphan") is None, 30)
    assert not processes.running(record)
    assert not record.workdir.exists()


def test_an_interrupt_for_the_whole_group_leaves_nothing(
    make: Callable[..., cluster.EmbeddedCluster], programs: components.Binaries
) -> None:
    del make
    command = [sys.executable, "-c", _OWNER, f"path:{_folder(programs)}"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as owner:
        assert owner.stdout is not None
        assert any(line.strip() == "ready" for line in owner.stdout)
        os.killpg(owner.pid, signal.SIGINT)
    _until(lambda: records.read("orphan") is None, 30)


def test_it_works_where_there_is_only_loopback_and_nothing_tries_to_leave(
    make: Callable[..., cluster.EmbeddedCluster], programs: components.Binaries
) -> None:
    del make
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], check=False).returncode != 0:
        pytest.skip("this machine lets nobody make a network of their own")
    script = f"""
import subprocess
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
from harness.clusters.embedded import binaries, cluster
made = cluster.up("alone", nodes=2, seed=1, binaries=binaries.ensure_binaries("path:{_folder(programs)}", print),
                  progress=print, owner_pid_bound=True)
cluster.prove_collectors(made)
cluster.down("alone")
names, values = [line.split() for line in open("/proc/net/snmp") if line.startswith("Ip:")]
print("no routes:", dict(zip(names, values))["OutNoRoutes"])
"""
    done = subprocess.run(
        [unshare, "-rn", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.splitlines()[-1:] == ["no routes: 0"], done.stdout + done.stderr


def test_opening_a_cluster_for_a_run_leaves_nothing(
    make: Callable[..., cluster.EmbeddedCluster], programs: components.Binaries
) -> None:
    del make

    async def run() -> None:
        async with select.open_cluster(
            "embedded",
            nodes=1,
            seed=3,
            binaries_source=f"path:{_folder(programs)}",
            progress=print,
        ) as opened:
            assert opened.facts.exclusive
            assert [one.owner_bound for one in cluster.listing()] == [True]

    asyncio.run(run())
    assert cluster.listing() == []


def _folder(programs: components.Binaries) -> Path:
    """Return one folder with all programs."""
    folders = {path.parent for path in programs.by_name().values()}
    if len(folders) != 1:
        pytest.skip("the programs are in several folders")
    return folders.pop()
