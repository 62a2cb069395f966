"""Drills on real nodes, made by kind: what simulation proves holds there too, and a cluster of somebody else is left as it was."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.clusters.select import open_cluster
from harness.programs.image_archive import Image, write
from harness.programs.threads import in_thread
from harness.subjects import flagger_source
from harness.subjects.names import parse
from harness.tests.drill_process import DrillProcess, command
from harness.tests.kind_site import CONTEXT, Site, namespace, neighbours, users_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.clusters.local.cluster import LocalCluster
    from harness.subjects.flagger_source import FlaggerSource

pytestmark = pytest.mark.drill

ONE: Final = ("node-spread-blue-green", "--variant", "with-key")
FLAGGER: Final = "1.44.0"
ALIKE: Final = (
    "node-spread-blue-green[with-key]",
    "node-spread-blue-green[without-key]",
    "node-spread-blue-green[no-surge]",
    "daemonset-blue-green[one-by-one]",
    "daemonset-blue-green[crashing]",
    "crashing-image[crashing]",
    "freeze-on-failure[fixed]",
    "freeze-on-failure[not-asked-for]",
)
"""One of each sort that both kinds of nodes can show."""


@pytest.fixture(scope="session")
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """The cluster of the session, opened as drills open it."""
    folder = tmp_path_factory.mktemp("kind")
    choice = str(request.config.getoption("--drill-cluster"))
    opened = open_cluster(choice, nodes=2, seed=None, binaries_source="auto", progress=print)
    with asyncio.Runner() as runner:
        cluster: LocalCluster = runner.run(opened.__aenter__())  # type: ignore[assignment]  # kind's
        try:
            yield Site(cluster, users_config(cluster.kubeconfig, folder / "config"))
        finally:
            runner.run(opened.__aexit__(None, None, None))


def _outcomes(out: Path) -> dict[str, dict[str, str]]:
    """Return drill -> check -> outcome of all reports in a folder."""
    found = {}
    for path in sorted(out.glob("*/report.json")):
        report: dict[str, Any] = json.loads(path.read_text("utf-8"))
        checks = {one["id"]: one["outcome"] for one in report["findings"]}
        verdict = report["verdict"]
        name = f"{report['scenario']['name']}[{report['scenario']['variant']}]"
        found[name] = {**checks, "verdict": verdict["outcome"]}
    return found


def test_verdicts_are_those_of_simulated_nodes(site: Site, tmp_path: Path) -> None:
    """Every check of every drill comes out alike, and each report says what its nodes were."""
    real, simulated = tmp_path / "real", tmp_path / "simulated"
    kind = command("run", *ALIKE, "--cluster", site.cluster.name, "--out", str(real), within=400)
    embedded = command("run", *ALIKE, "--out", str(simulated), within=400)
    assert kind[0] == 0, kind[1]
    assert embedded[0] == 0, embedded[1]
    assert _outcomes(real) == _outcomes(simulated)
    assert sorted(_outcomes(real)) == sorted(ALIKE)
    for folder, says in ((real, "Nodes: real: "), (simulated, "Nodes: simulated (kwok ")):
        assert all(says in path.read_text("utf-8") for path in folder.glob("*/report.md"))
    assert site.ours() == []


def test_somebody_elses_objects_stay_as_they_are(site: Site, tmp_path: Path) -> None:
    """Objects that look like the drill's, in another namespace, are the same to the byte; so are the CRDs, and the kubeconfig."""
    theirs = f"shop-{secrets.token_hex(3)}"
    site.install_crds()
    try:
        site.apply(namespace(theirs), *neighbours(theirs, site.cluster.workload_image))
        site.kubectl("rollout", "status", "-n", theirs, "deployment/web", "--timeout=90s")
        site.kubectl("rollout", "status", "-n", theirs, "deployment/web-primary", "--timeout=90s")
        before = site.everything(theirs), site.kubectl("get", "crds", "-o", "json")
        assert "Canary/web" in before[0]
        image = ("--image", site.cluster.workload_image)
        status, said = site.run("run", *ONE, *image, "--out", str(tmp_path / "out"))
        assert status == 0, said
        status, said = site.run("sweep", "--older-than", "0s")
        assert status == 0, said
        assert (site.everything(theirs), site.kubectl("get", "crds", "-o", "json")) == before
        assert site.ours() == []
    finally:
        site.kubectl("delete", "namespace", theirs, "--ignore-not-found")
        site.remove_crds()


def test_a_run_that_is_killed_is_swept(site: Site, tmp_path: Path) -> None:
    """SIGKILL in mid-run leaves a namespace with running pods; sweep removes that, and nothing else."""
    given = ("--cluster", f"context:{CONTEXT}", "--image", site.cluster.workload_image)
    drill = DrillProcess(tmp_path / "out", *ONE, *given, KUBECONFIG=str(site.config))
    drill.wait_for_phase("Progressing")
    drill.signal(signal.SIGKILL)
    drill.process.communicate()
    assert site.ours() == [f"namespace/{drill.namespace}"]
    status, said = command("sweep", KUBECONFIG=str(site.config))
    assert status == 0, said
    assert f"Namespace {drill.namespace}" in said
    assert site.ours() == []
    crds = site.kubectl("get", "crds", "-o", "name")
    assert "flagger.app" not in crds


def test_rights_in_one_namespace_are_enough(site: Site, tmp_path: Path) -> None:
    """A service account with rights in one namespace drills there; the CRD is somebody's, nodes may not even be listed."""
    where = f"team-{secrets.token_hex(3)}"
    site.install_crds()
    try:
        site.apply(namespace(where), *_restricted(where))
        token = site.kubectl("create", "token", "-n", where, "drills", "--duration", "1h").strip()
        config = users_config(site.cluster.kubeconfig, tmp_path / "config", token)
        before = site.everything(where)
        image, place = ("--image", site.cluster.workload_image), ("--namespace", where)
        nodes = ("--nodes", ",".join(site.cluster.facts.nodes))
        out = tmp_path / "out"
        status, said = site.run(
            "run", *ONE, *image, *place, *nodes, "--out", str(out), config=config
        )
        assert status == 0, said
        assert set(site.everything(where)) == set(before)
        status, said = site.run("run", *ONE, *image, "--out", str(tmp_path / "no"), config=config)
        assert status != 0, said
        assert "namespaces" in said
    finally:
        site.kubectl("delete", "namespace", where, "--ignore-not-found")
        site.remove_crds()


@pytest.fixture
def flagger(site: Site, tmp_path: Path) -> Iterator[str]:
    """A real Flagger in a namespace of its own, in charge of all others: its version."""
    source = asyncio.run(_flagger())
    image = f"local/flagger:{FLAGGER}"
    archive = tmp_path / "flagger.tar"
    write(Image(image, {"flagger": source.program}, ["/flagger"]), archive)
    asyncio.run(site.cluster.load(archive, print))
    site.apply(*source.crds)
    site.kubectl("wait", "--for=condition=Established", "crd", "canaries.flagger.app")
    try:
        site.apply(namespace("flagger-system"), *_flagger_objects(image))
        deployment = ("-n", "flagger-system", "deployment/flagger", "--timeout=90s")
        site.kubectl("rollout", "status", *deployment)
        yield FLAGGER
    finally:
        site.kubectl("delete", "namespace", "flagger-system", "--ignore-not-found")
        site.kubectl("delete", "clusterrolebinding", "flagger", "--ignore-not-found")
        site.remove_crds()


@pytest.mark.slow
def test_beside_a_flagger_that_is_installed(site: Site, flagger: str, tmp_path: Path) -> None:
    """Ours keeps to Canaries of its own API group; the installed one is used where it is asked for; a neighbour's are its own."""
    theirs = f"shop-{secrets.token_hex(3)}"
    site.apply(namespace(theirs), *neighbours(theirs, site.cluster.workload_image))
    try:
        site.kubectl("rollout", "status", "-n", theirs, "deployment/web", "--timeout=90s")
        site.kubectl("rollout", "status", "-n", theirs, "deployment/web-primary", "--timeout=90s")
        before = site.everything(theirs), site.kubectl("get", "crds", "-o", "json")
        image = ("--image", site.cluster.workload_image)
        status, said = site.run("run", *ONE, *image, "--out", str(tmp_path / "beside"))
        assert status == 0, said
        (report,) = (tmp_path / "beside").glob("*/report.md")
        assert f"Flagger {flagger} would act on the drill's Canaries here" in report.read_text()
        installed = ("--subject", "installed", "--set", "interval=10s")
        out = tmp_path / "installed"
        status, said = site.run("run", *ONE, *image, *installed, "--out", str(out))
        assert status == 0, said
        (report,) = out.glob("*/report.md")
        assert f"installed {flagger}" in report.read_text()
        status, said = site.run("run", *ONE, *image, "--subject", f"flagger@{flagger}")
        assert (status, "would prune" in said) == (4, True)
        assert (site.everything(theirs), site.kubectl("get", "crds", "-o", "json")) == before
        assert site.ours() == []
    finally:
        site.kubectl("delete", "namespace", theirs, "--ignore-not-found")


async def _flagger() -> FlaggerSource:
    return await in_thread(
        lambda cancelled: flagger_source.get(parse(f"flagger@{FLAGGER}"), print, cancelled)
    )


def _flagger_objects(image: str) -> list[dict[str, Any]]:
    """Return what installs Flagger, with all rights, for core Services."""
    metadata = {"name": "flagger", "namespace": "flagger-system"}
    rbac = "rbac.authorization.k8s.io"
    labels = {"app": "flagger"}
    container = {
        "name": "flagger",
        "image": image,
        # Nothing answers there, and nothing in these drills asks.
        "args": ["-mesh-provider=kubernetes", "-metrics-server=http://127.0.0.1:9090"],
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "flagger"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"serviceAccountName": "flagger", "containers": [container]},
                },
            },
        },
    ]


def _restricted(where: str) -> list[dict[str, Any]]:
    """Return a service account that may do anything with common objects of one namespace, and nothing elsewhere."""
    metadata = {"name": "drills", "namespace": where}
    groups = ["", "apps", "autoscaling", "batch", "events.k8s.io", "flagger.app"]
    groups += ["networking.k8s.io", "discovery.k8s.io"]
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": metadata,
            "rules": [
                {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
            ],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "drills"},
            "subjects": [{"kind": "ServiceAccount", "name": "drills", "namespace": where}],
        },
    ]
