"""A stand-in for what simulated pods of Knative cannot answer, on loopback, as the HTTP proxy of Knative's own processes.

    GET http://POD:9090/metrics              the queue-proxy of a pod: its part of the load
    GET http://REVISION.NAMESPACE.svc…/      a probe: `activator` where only its endpoints stand behind a Service, else `queue`

And it plays the activator, which tells the autoscaler of requests that wait for a first pod. It says so only while there are any:
nothing is sent for a Service without load.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

from harness.clusters.knative import load
from harness.clusters.knative.names import NAMESPACE, REVISION
from harness.clusters.knative.stats import MEDIA_TYPE, Stat, encode, encode_all
from harness.kube.errors import NotFound
from harness.kube.resource import POD, Resource
from harness.kube.watch import Listed, Timing, watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.clusters.knative.load import Key
    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

HOST: Final = "127.0.0.1"
METRICS_PORT: Final = 9090
"""Where a queue-proxy tells its statistics."""
SERVICE: Final = Resource("serving.knative.dev", "v1", "services", "Service")
INGRESS: Final = Resource("networking.internal.knative.dev", "v1alpha1", "ingresses", "Ingress")
ENDPOINTS: Final = Resource("", "v1", "endpoints", "Endpoints")
ACTIVATOR: Final = "activator-service"
EVERY: Final = 1.0
"""Seconds between two statistics of the activator, as the real one sends them."""
TIMING: Final = Timing(patience=120.0, longest=0.5)


class DataPlane:
    """What is known of pods, Services and ingresses, and the answers that follow from it."""

    def __init__(self, client: KubeClient, say: Callable[[str], None]) -> None:
        self._client = client
        self._say = say
        self._seen: dict[Resource, dict[Key, JSON]] = {POD: {}, SERVICE: {}, INGRESS: {}}
        self._changed = asyncio.Event()
        self._said: set[str] = set()
        self._began = time.monotonic()

    async def follow(self, resource: Resource) -> None:
        """Keep what is known of a type up to date. Raises KubeError when the API server is away for good."""
        seen = self._seen[resource]
        selector = REVISION if resource == POD else ""
        async for event in watch(self._client, resource, label_selector=selector, timing=TIMING):
            if isinstance(event, Listed):
                seen.clear()
                seen.update({load.key_of(one): one for one in event.items})
            elif event.type == "DELETED":
                seen.pop(load.key_of(event.object), None)
            else:
                seen[load.key_of(event.object)] = event.object
            if resource == SERVICE:
                self._complain()
            self._changed.set()

    async def report(self, autoscaler: str) -> None:
        """Tell the autoscaler at HOST:PORT of requests that wait, for as long as some do."""
        async with aiohttp.ClientSession(trust_env=False) as session:
            while True:
                while not self._waiting():
                    self._changed.clear()
                    await self._changed.wait()
                try:
                    async with session.ws_connect(f"http://{autoscaler}/") as socket:
                        while waiting := self._waiting():
                            await socket.send_bytes(encode_all(self._held(waiting)))
                            await asyncio.sleep(EVERY)
                except (aiohttp.ClientError, OSError) as error:
                    self._once(f"the autoscaler takes no statistics: {error}")
                    await asyncio.sleep(EVERY)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request that was meant for a simulated pod."""
        asked = urlsplit(f"//{request.headers.get('Host', '')}")
        name = asked.hostname or ""
        if asked.port == METRICS_PORT and request.path == "/metrics":
            return self._metrics(name)
        if name.endswith(".svc.cluster.local"):
            service, namespace = name.split(".")[:2]
            return web.Response(text=await self._behind(namespace, service))
        self._once(f"nobody answers {request.method} {request.headers.get('Host')}{request.path}")
        return web.Response(status=404, text="not simulated")

    def _metrics(self, address: str) -> web.Response:
        found = load.of_pod(address, self._load(), self._seen[POD].values())
        if found is None:
            return web.Response(status=404, text="no ready pod has this address")
        name, number = found
        return web.Response(body=encode(self._stat(name, number)), content_type=MEDIA_TYPE)

    async def _behind(self, namespace: str, service: str) -> str:
        """Return who answers probes behind a Service: the activator where there is nobody else."""
        behind = await self._addresses(namespace, service)
        activator = await self._addresses(NAMESPACE, ACTIVATOR)
        return "activator" if behind and behind <= activator else "queue"

    async def _addresses(self, namespace: str, service: str) -> set[str]:
        try:
            found = await self._client.get(ENDPOINTS, service, namespace)
        except NotFound:
            return set()
        subsets = found.get("subsets") or ()
        return {row["ip"] for one in subsets for row in one.get("addresses") or ()}

    def _load(self) -> dict[Key, float]:
        return load.by_revision(self._seen[SERVICE].values(), self._seen[INGRESS])

    def _waiting(self) -> dict[Key, float]:
        return load.waiting(self._load(), self._seen[POD].values())

    def _held(self, waiting: dict[Key, float]) -> list[tuple[str, str, Stat]]:
        return [(*key, self._stat("activator", number)) for key, number in waiting.items()]

    def _stat(self, pod: str, number: float) -> Stat:
        return Stat(pod, number, number, time.monotonic() - self._began, int(time.time()))

    def _complain(self) -> None:
        for service in self._seen[SERVICE].values():
            try:
                load.concurrency(service)
            except load.LoadError as error:
                self._once(str(error))

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)


async def serve(client: KubeClient, port: int, autoscaler: str, say: Callable[[str], None]) -> None:
    """Answer on 127.0.0.1:`port`, and report to the autoscaler at `autoscaler`, until cancelled.

    `say` takes what is unusual, once. Raises KubeError when the API server is away for good, OSError when the port is taken.
    """
    plane = DataPlane(client, say)
    runner = web.ServerRunner(web.Server(plane.answer))
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        async with asyncio.TaskGroup() as tasks:
            for resource in (POD, SERVICE, INGRESS):
                tasks.create_task(plane.follow(resource))
            tasks.create_task(plane.report(autoscaler))
    finally:
        await runner.cleanup()
