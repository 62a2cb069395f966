"""Knative into a cluster: the order, what is left alone, the waits, and what they say when nothing comes."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.clusters.base import ClusterError
from harness.clusters.embedded.readiness import CancelledError
from harness.clusters.embedded.records import Record
from harness.clusters.knative import install as installing
from harness.clusters.knative import proof, site
from harness.clusters.knative.manifests import Manifests
from harness.clusters.knative.names import NAMESPACE
from harness.clusters.knative.objects import CONFIG
from harness.clusters.knative.programs import Programs
from harness.clusters.knative.proof import DEFAULTED, HOOKS, SERVICE, Patience
from harness.kube.client import KubeClient
from harness.kube.testing import FakeCluster, run_virtual
from harness.tests.test_clusters_knative_objects import ACTIVATOR, MAPS, PORT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from harness.clusters.knative.component import Component

JSON = dict[str, Any]
PATIENCE: Final = Patience("one")
STORED: Final[JSON] = {
    **proof.TRIAL,
    "metadata": {**proof.TRIAL["metadata"], "namespace": NAMESPACE},
}


def hook(name: str, kind: str, **config: str) -> JSON:
    return {
        "apiVersion": HOOKS[0].api_version,
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [{"name": name, "clientConfig": {"service": {"name": "webhook"}, **config}}],
    }


MUTATING, VALIDATING = (resource.kind for resource in HOOKS)


class Serving(FakeCluster):
    """A cluster with Knative's types, whose Services get their defaults from the moment when they are to."""

    def __init__(self, *, defaults: bool = True) -> None:
        super().__init__(SERVICE, *HOOKS)
        self.defaults = defaults

    def _answer(self, asked: Any, request: Any) -> Any:
        if (
            self.defaults
            and asked.verb == "create"
            and asked.path.startswith(f"/apis/{SERVICE.group}/")
        ):
            body = request.body
            spec = {**body["spec"]["template"]["spec"], DEFAULTED: 0}
            body = {**body, "spec": {"template": {**body["spec"]["template"], "spec": spec}}}
            request = dataclasses.replace(request, body=body)
        return super()._answer(asked, request)

    def ready(self, status: str, message: str = "") -> None:
        condition = {"type": "Ready", "status": status, "message": message}
        self.add({**STORED, "status": {"conditions": [condition]}})

    def services(self) -> list[JSON]:
        """Knative's, not those of the core."""

        async def act() -> list[JSON]:
            async with self.client() as client:
                return list((await client.list(SERVICE, NAMESPACE))[0])

        return run_virtual(act())


def waited(
    server: FakeCluster,
    wait: Callable[[KubeClient], Awaitable[None]],
    meanwhile: Callable[[], Coroutine[object, object, None]] | None = None,
) -> float:
    """Return the seconds that a wait took."""

    async def act() -> float:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        other = asyncio.create_task(meanwhile()) if meanwhile else None
        async with server.client() as client:
            await wait(client)
        if other is not None:
            await other
        return loop.time() - begun

    return run_virtual(act())


# The waits


def test_rights_are_waited_for() -> None:
    server = FakeCluster()
    server.forbid("get", "configmaps")
    server.add(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "config-logging", "namespace": NAMESPACE},
        }
    )

    async def filled() -> None:
        await asyncio.sleep(3)
        server._forbidden.clear()

    assert 3 <= waited(server, lambda client: proof.rights(client, PATIENCE), filled) < 4
    server.forbid("get", "configmaps")
    with pytest.raises(
        ClusterError,
        match=r"^Embedded cluster 'one': the service account of Knative had no rights within 30 s: .*403 .* forbidden",
    ):
        waited(server, lambda client: proof.rights(client, PATIENCE))


def test_all_configurations_of_the_webhook_need_its_authority() -> None:
    server = FakeCluster(*HOOKS)
    server.add(hook("defaulting", MUTATING, caBundle="x"))
    server.add(hook("validation", VALIDATING, caBundle="x"))
    server.add(hook("config", VALIDATING))
    server.add(hook("somebody-elses", VALIDATING))

    def wait(client: KubeClient) -> Awaitable[None]:
        return proof.registered(client, ["defaulting", "validation", "config"], PATIENCE)

    async def signs() -> None:
        await asyncio.sleep(2)
        server.add(hook("config", VALIDATING, caBundle="x"))

    with pytest.raises(
        ClusterError, match=r"was not registered within 60 s: there is no CA in config\.$"
    ):
        waited(server, wait)
    assert 2 <= waited(server, wait, signs) < 3


def test_a_service_has_to_become_ready_and_is_gone_afterwards() -> None:
    server = Serving()

    async def controller() -> None:
        await asyncio.sleep(0.5)
        server.ready("Unknown")
        await asyncio.sleep(2)
        server.ready("True")

    def wait(client: KubeClient) -> Awaitable[None]:
        return proof.takes_services(client, PATIENCE)

    assert 2 <= waited(server, wait, controller) < 4
    assert server.services() == []
    dry, real = server.asked("create")
    assert dry.params["dryRun"] == "All"
    assert "dryRun" not in real.params


def test_a_service_without_defaults_is_never_created() -> None:
    server = Serving(defaults=False)
    with pytest.raises(
        ClusterError,
        match=r"the webhook of Knative did not answer within 60 s: a Service came back as it was sent\.$",
    ):
        waited(server, lambda client: proof.takes_services(client, PATIENCE))
    assert server.services() == []


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        ("False", "no image.", r"its condition Ready is False \(no image\.\)"),
        ("Unknown", "", "its condition Ready is Unknown"),
        (None, "", "it has no condition Ready, since nobody looks after it"),
    ],
)
def test_a_service_that_does_not_become_ready_is_quoted(
    status: str | None, message: str, said: str
) -> None:
    server = Serving()
    # Of an installation that was cut short.
    server.add(STORED)
    if status is not None:
        server.ready(status, message)
    with pytest.raises(
        ClusterError, match=rf"no Service of Knative became ready within 60 s: {said}\.$"
    ):
        waited(server, lambda client: proof.takes_services(client, PATIENCE))


def test_nobody_waits_for_a_cluster_that_is_not_wanted_any_more() -> None:
    cancelled = threading.Event()

    async def change_of_mind() -> None:
        await asyncio.sleep(1)
        cancelled.set()

    server = Serving(defaults=False)
    patience = Patience("one", cancelled)
    with pytest.raises(CancelledError, match="'one' was cancelled"):
        waited(server, lambda client: proof.takes_services(client, patience), change_of_mind)


# The order


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Record:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    made = Record(
        "one", 2, 7, 1, 0.0, owner_bound=True, kwokctl="", ports={site.WEBHOOK_PORT: PORT}
    )
    made.folder.mkdir(parents=True)
    return made


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Serving:
    """A cluster in which everybody does his part at once."""
    made = Serving()

    class Client(KubeClient):
        @classmethod
        async def connect(cls, *_: object, **__: object) -> KubeClient:
            return made.client()

    async def settled(_: KubeClient, __: Patience) -> None:
        log.append("ready")

    async def registered(_: KubeClient, names: Sequence[str], __: Patience) -> None:
        log.append(f"registered {' '.join(names)}")

    async def write(*_: object, target: Path, seconds: int, **__: object) -> None:
        log.append(f"kubeconfig {target.name}")
        assert seconds > 30 * 24 * 3600, "a cluster that was asked for stays"

    log: list[str] = []
    made.log = log  # type: ignore[attr-defined]
    documents = Manifests(
        rights=[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}],
        configs=[
            {"apiVersion": "v1", **one, "metadata": {**one["metadata"], "namespace": NAMESPACE}}
            for one in MAPS
        ],
        hooks=[hook("validation", VALIDATING)],
        activator=[
            {
                **ACTIVATOR[0],
                "apiVersion": "apps/v1",
                "metadata": {"name": "activator", "namespace": NAMESPACE},
            }
        ],
    )
    monkeypatch.setattr(installing, "KubeClient", Client)
    monkeypatch.setattr(installing, "write_kubeconfig", write)
    monkeypatch.setattr(installing, "manifests", lambda *_: documents)
    programs = Programs(Path("/b/webhook"), Path("/b/controller"), Path("/b/autoscaler"))
    monkeypatch.setattr(installing, "obtain", lambda *_: programs)
    monkeypatch.setattr(proof, "registered", registered)
    monkeypatch.setattr(proof, "takes_services", settled)

    def start(_: Record, components: Sequence[Component]) -> None:
        log.append(f"start {len(components)} beside {len(made.asked('create'))} objects")

    monkeypatch.setattr(site, "start", start)
    return made


def test_objects_come_first_then_processes_then_proof(record: Record, server: Serving) -> None:
    installing.install(record, print)
    created = [asked.body["metadata"]["name"] for asked in server.asked("create")]
    assert created == [
        NAMESPACE,
        *CONFIG,
        "config-logging",
        "webhook",
        "validation",
        "activator",
    ]
    assert server.log == [  # type: ignore[attr-defined]
        "kubeconfig knative-kubeconfig",
        f"start 3 beside {len(created)} objects",
        "registered validation",
        "ready",
    ]


def test_what_an_interrupted_installation_made_is_left_alone(
    record: Record, server: Serving
) -> None:
    installing.install(record, print)
    server.requests.clear()
    installing.install(record, print)
    # Where the webhook does not run yet, creating a second one would be refused by it, not by its name.
    assert server.asked("create") == []


def test_a_refusal_names_the_cluster(record: Record, server: Serving) -> None:
    server.forbid("create", "configmaps")
    with pytest.raises(
        ClusterError, match=r"^Knative cannot be installed in embedded cluster 'one': .*forbidden"
    ):
        installing.install(record, print)
    assert not [said for said in server.log if said.startswith("start")]  # type: ignore[attr-defined]
