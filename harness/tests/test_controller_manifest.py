"""The rights and the manifest that the controller ships: nothing missing, nothing superfluous, and accepted by a real API server."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import secrets
import time
import typing
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest
from ruamel.yaml import YAML

import harness.controller
from harness.cli.main import _run as drill
from harness.controller.core.decision import Plural, Write
from harness.controller.manifest import ManifestError, manifest
from harness.controller.options import parse
from harness.controller.shell import log as logs
from harness.controller.shell.kinds import RESOURCES
from harness.controller.shell.lease import LEASE_NAME, Election, Timing
from harness.kube import config, in_cluster
from harness.kube.client import KubeClient
from harness.kube.discovery import discover
from harness.kube.errors import Forbidden
from harness.kube.resource import CONFIGMAP, DEPLOYMENT, LEASE, NAMESPACE, POD, SERVICEACCOUNT
from harness.kube.transport import HttpTransport
from harness.kube.watch import Changed, watch
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from harness.clusters.embedded.cluster import EmbeddedCluster

JSON = dict[str, Any]
Right = tuple[str, str, str]
"""Group, resource, verb."""
CORE: Final = Path(harness.controller.__file__).parent / "core"
IMAGE: Final = "registry.example/rollout-drill:1"

CHOSEN: Final[dict[str, tuple[str, ...]]] = {
    "targets/workload.py": ("deployments", "daemonsets"),
    "restore.py": ("deployments", "daemonsets"),
    "upkeep.py": ("deployments", "daemonsets"),
    "configs/copies.py": ("configmaps", "secrets"),
    "autoscalers/base.py": ("horizontalpodautoscalers", "scaledobjects"),
    "routers/objects.py": ("httproutes", "virtualservices", "destinationrules"),
}
"""What is written where the source names no kind: each file that computes it must be in here."""
BESIDES: Final[set[Right]] = {
    # Status writes go to the subresource.
    ("flagger.app", "canaries/status", "patch"),
    # The API server asks for this one itself, on behalf of owner references.
    ("flagger.app", "canaries/finalizers", "update"),
    # shell/references.py
    ("flagger.app", "metrictemplates", "get"),
    ("flagger.app", "alertproviders", "get"),
    ("", "secrets", "get"),
    # shell/reader.py
    ("apps", "replicasets", "list"),
    ("", "pods", "list"),
    # shell/writer.py
    ("", "events", "create"),
    # shell/lease.py
    ("coordination.k8s.io", "leases", "get"),
    ("coordination.k8s.io", "leases", "create"),
    ("coordination.k8s.io", "leases", "update"),
}
VERBS: Final = {"create": "create", "patch": "patch", "replace": "update", "delete": "delete"}


def documents(text: str) -> list[JSON]:
    return list(YAML(typ="safe", pure=True).load_all(text))


def shipped(kind: str) -> JSON:
    (found,) = [one for one in documents(manifest("shop", IMAGE)) if one["kind"] == kind]
    return found


def granted() -> Iterator[Right]:
    for rule in shipped("Role")["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield group, resource, verb


def written() -> Iterator[tuple[str, str]]:
    """Yield kind and verb of each write that the core can decide on."""
    for file in sorted(CORE.rglob("*.py")):
        name = file.relative_to(CORE).as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id == "Write":
                yield from _meant(name, node)


def _meant(file: str, call: ast.Call) -> Iterator[tuple[str, str]]:
    verb, resource = call.args[:2]
    assert isinstance(verb, ast.Constant), f"{file}:{call.lineno}: a verb that is computed"
    plurals: tuple[str, ...] = CHOSEN.get(file, ())
    if isinstance(resource, ast.Constant):
        plurals = (str(resource.value),)
    assert plurals, f"{file}:{call.lineno}: which kinds does it write? Say so in CHOSEN"
    for plural in plurals:
        yield plural, str(verb.value)


def place(plural: str) -> tuple[str, str]:
    return RESOURCES[plural].group, RESOURCES[plural].plural


def test_every_kind_has_its_place() -> None:
    assert set(RESOURCES) == set(typing.get_args(Plural))
    assert set(VERBS) == set(typing.get_args(typing.get_type_hints(Write)["verb"]))


def test_the_role_allows_what_can_be_done_and_nothing_else() -> None:
    needed = set(BESIDES)
    for plural, verb in written():
        needed.add((*place(plural), VERBS[verb]))
    for plural in RESOURCES:
        needed |= {(*place(plural), "list"), (*place(plural), "watch")}
    rights = set(granted())
    assert rights - needed == set(), "superfluous"
    assert needed - rights == set(), "missing"


def test_there_is_no_wildcard_and_nothing_cluster_wide() -> None:
    for rule in shipped("Role")["rules"]:
        for part in ("apiGroups", "resources", "verbs"):
            assert "*" not in rule[part]
    kinds = [one["kind"] for one in documents(manifest("shop", IMAGE))]
    assert kinds == [
        "CustomResourceDefinition",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "Deployment",
    ]


def test_namespace_and_image_are_filled_in_everywhere() -> None:
    text = manifest("shop", IMAGE, crd=False)
    assert '"{{' not in text
    for one in documents(text):
        assert one["metadata"]["namespace"] == "shop"
        assert [subject["namespace"] for subject in one.get("subjects", ())] in ([], ["shop"])
    (container,) = shipped("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGE


def test_the_arguments_are_flags_and_the_lease_is_the_one_of_the_role(tmp_path: Path) -> None:
    spec = shipped("Deployment")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    (tmp_path / "namespace").write_text("shop")
    inside = {in_cluster.HOST: "10.0.0.1"}
    options = parse(container["args"], prog="test", environment=inside, folder=tmp_path)
    assert options.leader_elect
    assert options.namespace == "shop"
    (port,) = container["ports"]
    assert options.metrics_port == port["containerPort"]
    named = [rule["resourceNames"] for rule in shipped("Role")["rules"] if "resourceNames" in rule]
    assert named == [[options.lease_name]]
    assert spec["replicas"] > 1
    probes = {container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
    assert probes == {"/healthz", "/readyz"}


@pytest.mark.parametrize(
    ("namespace", "image", "told"),
    [
        ("Shop", IMAGE, "--namespace 'Shop' is not the name of a namespace"),
        ("shop", "", "--image '' is not the name of an image"),
        ("shop", 'a"b', "is not the name of an image"),
    ],
)
def test_what_cannot_be_filled_in(namespace: str, image: str, told: str) -> None:
    with pytest.raises(ManifestError, match=told):
        manifest(namespace, image)


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["controller", "manifest", "-n", "shop", "--image", IMAGE]
    assert drill(arguments) == ExitCode.OK
    assert capsys.readouterr().out == manifest("shop", IMAGE)
    assert drill([*arguments, "--no-crd"]) == ExitCode.OK
    assert "CustomResourceDefinition" not in capsys.readouterr().out
    assert drill([*arguments[:-1], ""]) == ExitCode.USAGE


# ---- against a real API server

ME: Any = {"field_manager": "rollout-drill"}


@contextlib.asynccontextmanager
async def restricted(cluster: EmbeddedCluster) -> AsyncIterator[tuple[KubeClient, str]]:
    """A namespace whose pods must be as Pod Security `restricted` wants them."""
    name = f"manifest-{secrets.token_hex(4)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    async with await KubeClient.connect(cluster.kubeconfig, user_agent="test") as client:
        await client.create(NAMESPACE, {"metadata": {"name": name, "labels": labels}}, **ME)
        try:
            yield client, name
        finally:
            await client.delete(NAMESPACE, name)


@pytest.mark.embedded
def test_a_real_server_takes_all_of_it_and_pod_security_admits_the_pods(
    warm_cluster: EmbeddedCluster,
) -> None:
    async def story() -> None:
        async with restricted(warm_cluster) as (client, namespace):
            types = {one.kind: one for one in (await discover(client)).resources}
            strict = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "t"}
            for one in documents(manifest(namespace, IMAGE)):
                path = types[one["kind"]].path(namespace, one["metadata"]["name"])
                apply = "application/apply-patch+yaml"
                await client.raw("PATCH", path, strict | {"force": "true"}, one, content_type=apply)
            account = {"metadata": {"name": "rollout-drill-controller"}}
            await client.create(SERVICEACCOUNT, account, namespace, **ME)
            (deployment,) = [
                one for one in documents(manifest(namespace, IMAGE)) if one["kind"] == "Deployment"
            ]
            pod = {"metadata": {"name": "one"}, "spec": deployment["spec"]["template"]["spec"]}
            path, params = POD.path(namespace), {"dryRun": "All", "fieldValidation": "Strict"}
            await client.raw("POST", path, params, pod)
            del pod["spec"]["securityContext"]["seccompProfile"]
            with pytest.raises(Forbidden, match="violates PodSecurity"):
                await client.raw("POST", path, params, pod)

    asyncio.run(story())


@pytest.mark.embedded
def test_a_pod_with_the_shipped_rights_can_lead_and_may_do_nothing_else(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    async def story() -> None:
        async with restricted(warm_cluster) as (client, namespace):
            environment = await _service_account(warm_cluster, client, namespace, tmp_path)
            inside = await in_cluster.load(environment, tmp_path)
            transport = HttpTransport(inside)
            async with KubeClient(transport, user_agent="test") as own:
                await _lead(own, client, namespace)
                lease = await client.get(LEASE, LEASE_NAME, namespace)
                assert not lease["spec"].get("holderIdentity")
                assert lease["spec"]["leaseTransitions"] == 1
                # With the Role of its namespace, and no other one.
                await own.list(DEPLOYMENT, namespace)
                for refused in (
                    own.list(SERVICEACCOUNT, namespace),
                    own.list(CONFIGMAP, "default"),
                ):
                    with pytest.raises(Forbidden):
                        await refused
                inside.configuration.api_key["BearerToken"] = "Bearer expired"
                # A token that is refused is read again.
                await own.list(DEPLOYMENT, namespace)

    asyncio.run(story())


async def _lead(own: KubeClient, admin: KubeClient, namespace: str) -> None:
    """Be the leader twice, as two processes that follow each other."""
    for turn in ("first", "second"):
        log = logs.to(io.StringIO())
        timing = Timing(duration=3, poll=0.2, retry=0.2)
        election = Election(own, namespace, log, time.time, me=turn, timing=timing)
        began = asyncio.Event()

        async def work(began: asyncio.Event = began) -> None:
            began.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(election.run(work))
        async with asyncio.timeout(30):
            await began.wait()
        async with asyncio.timeout(30), aclosing(watch(admin, LEASE, namespace)) as events:
            async for event in events:
                if isinstance(event, Changed):
                    break  # renewed
        assert election.holds()
        task.cancel()
        await asyncio.wait({task})


async def _service_account(
    cluster: EmbeddedCluster, client: KubeClient, namespace: str, folder: Path
) -> dict[str, str]:
    """Make what the manifest says but the Deployment, and what the kubelet would mount; return the environment of a pod."""
    types = {one.kind: one for one in (await discover(client)).resources}
    for one in documents(manifest(namespace, IMAGE, crd=False)):
        if one["kind"] != "Deployment":
            await client.create(types[one["kind"]], one, namespace, **ME)
    path = SERVICEACCOUNT.path(namespace, "rollout-drill-controller", "token")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await client.raw("POST", path, None, request)
    (folder / "token").write_text(answer["status"]["token"])
    admin = await config.load(cluster.kubeconfig, cluster.context)
    (folder / "ca.crt").symlink_to(admin.configuration.ssl_ca_cert)
    url = urlsplit(admin.configuration.host)
    return {in_cluster.HOST: str(url.hostname), in_cluster.PORT: str(url.port)}
