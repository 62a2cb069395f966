"""A stand-in for what simulated pods of Knative cannot answer, on loopback, as the HTTP proxy of Knative's own processes.

    GET http://POD:9090/metrics              the queue-proxy of a pod: its part of the load
    GET http://REVISION.NAMESPACE.svc…/      a probe: the activator answers, or a pod (`probes`)

And it plays the activator, which tells the autoscaler of requests that wait for a first pod.
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import tenacity
from aiohttp import web

from harness.clusters.knative import load, probes
from harness.clusters.knative.activator import Activator
from harness.clusters.knative.names import HOST, NAMESPACE, REVISION
from harness.clusters.knative.stats import MEDIA_TYPE, Stat, encode
from harness.kube.errors import KubeError, NotFound
from harness.kube.resource import POD, Resource
from harness.kube.watch import Listed, Timing, watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.clusters.knative.load import Key, Picture
    from harness.kube.client import KubeClient
    from harness.kube.watch import WatchEvent
    from harness.model.timeline import JSON

METRICS_PORT: Final = 9090
"""Where a queue-proxy tells its statistics."""
SERVICE: Final = Resource("serving.knative.dev", "v1", "services", "Service")
INGRESS: Final = Resource("networking.internal.knative.dev", "v1alpha1", "ingresses", "Ingress")
ENDPOINTS: Final = Resource("", "v1", "endpoints", "Endpoints")
ACTIVATOR_SERVICE: Final = "activator-service"
PROBED_WITHIN: Final = 2.0
"""Seconds for asking the API server who stands behind a Service; the autoscaler probes again after one."""
ENDS_WITHIN: Final = 1.0
"""Seconds that requests under way have at the end."""
TIMING: Final = Timing(longest=0.5)
"""A drill restarts its API server: load is spread by what was seen last, so it should be seen soon."""
FOLLOWED_AGAIN: Final = 5.0
"""The longest wait, in seconds, until a type is listed again whose watch has given up."""


class DataPlane:
    """What is known of pods, Services and ingresses, and the answers that follow from it. `changed` is set when they may differ."""

    def __init__(self, client: KubeClient, say: Callable[[str], None]) -> None:
        self.changed = asyncio.Event()
        self.seconds = load.Seconds()
        self._client = client
        self._say = say
        self._seen: dict[Resource, dict[Key, JSON]] = {POD: {}, SERVICE: {}, INGRESS: {}}
        self._listed: set[Resource] = set()
        self._picture: Picture | None = None
        self._lost: set[Resource] = set()
        self._said: set[str] = set()
        self._began = time.monotonic()

    @property
    def picture(self) -> Picture:
        """Where the load is now."""
        if self._picture is None:
            pods, services = self._seen[POD].values(), self._seen[SERVICE].values()
            self._picture = load.Picture.of(services, self._seen[INGRESS], pods)
        return self._picture

    @property
    def informed(self) -> bool:
        """Whether everything was seen once; what is concluded before would be wrong."""
        return self._listed == self._seen.keys()

    def waiting(self) -> dict[Key, float]:
        """Return the requests that no pod takes, by revision."""
        return self.picture.waiting() if self.informed else {}

    async def follow_all(self) -> None:
        """Keep what is known up to date until cancelled, whatever becomes of the API server: meanwhile the last that was seen holds."""
        async with asyncio.TaskGroup() as tasks:
            for resource in self._seen:
                tasks.create_task(self._follow(resource))

    async def _follow(self, resource: Resource) -> None:
        def lost(state: tenacity.RetryCallState) -> None:
            if resource not in self._lost:
                error = state.outcome and state.outcome.exception()
                self._say(f"{resource.label} cannot be followed, and are tried again: {error}")
            self._lost.add(resource)

        attempts = tenacity.AsyncRetrying(
            sleep=asyncio.sleep,
            wait=tenacity.wait_exponential(multiplier=0.5, max=FOLLOWED_AGAIN),
            retry=tenacity.retry_if_exception_type(KubeError),
            before_sleep=lost,
        )
        await attempts(self._watch, resource)

    async def _watch(self, resource: Resource) -> None:
        selector = REVISION if resource == POD else ""
        async for event in watch(self._client, resource, label_selector=selector, timing=TIMING):
            if resource in self._lost:
                self._lost.remove(resource)
                self._say(f"{resource.label} are followed again")
            self._take(resource, event)

    def _take(self, resource: Resource, event: WatchEvent) -> None:
        seen = self._seen[resource]
        if isinstance(event, Listed):
            seen.clear()
            seen.update({load.key_of(one): one for one in event.items})
            self._listed.add(resource)
        elif event.type == "DELETED":
            seen.pop(load.key_of(event.object), None)
        else:
            seen[load.key_of(event.object)] = event.object
        if resource == SERVICE:
            self._complain(event.items if isinstance(event, Listed) else [event.object])
        self._picture = None
        self.changed.set()

    def _complain(self, services: list[JSON]) -> None:
        for service in services:
            try:
                load.concurrency(service)
            except load.LoadError as error:
                self._once(str(error))

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request that was meant for a simulated pod, or for who stands before it."""
        # Sent to a proxy, so it names the whole address.
        url = request.url
        host = url.host or ""
        if url.port == METRICS_PORT and url.path == "/metrics":
            return self._metrics(host)
        wanted = request.headers.get(probes.HEADER)
        service = probes.service_of(host)
        if wanted is not None and service is not None:
            return await self._probed(wanted, *service)
        self._once(f"nobody answers {request.method} {url.host}:{url.port}{url.path}")
        return web.Response(
            status=HTTPStatus.NOT_FOUND, text="not simulated: there is no container to answer"
        )

    def _metrics(self, address: str) -> web.Response:
        if not self.informed:
            return web.Response(
                status=HTTPStatus.SERVICE_UNAVAILABLE, text="pods are not known yet"
            )
        found = self.picture.of_pod(address)
        if found is None:
            return web.Response(
                status=HTTPStatus.NOT_FOUND, text="no ready pod of a revision has this address"
            )
        name, revision, number = found
        now = int(time.time())
        if number and not self.seconds.counts(revision, probes.QUEUE, now):
            number = 0.0
        # A request takes one second: so as many come in one as are under way.
        stat = Stat(name, number, number, time.monotonic() - self._began, now)
        return web.Response(body=encode(stat), content_type=MEDIA_TYPE)

    async def _probed(self, wanted: str, namespace: str, name: str) -> web.Response:
        # Asked of the server, not of a watch that may lag: the answer lets go of the last pod. It is asked for only then.
        try:
            async with asyncio.timeout(PROBED_WITHIN):
                behind = await self._addresses(namespace, name)
                activators = await self._addresses(NAMESPACE, ACTIVATOR_SERVICE)
        except (KubeError, TimeoutError) as error:
            self._once(
                f"a probe of {namespace}/{name} has no answer: {error or type(error).__name__}"
            )
            return web.Response(
                status=HTTPStatus.SERVICE_UNAVAILABLE, text="the API server does not say"
            )
        found = probes.answer(wanted, behind, activators)
        return web.Response(status=found.status, text=found.text)

    async def _addresses(self, namespace: str, service: str) -> set[str]:
        try:
            return probes.addresses(await self._client.get(ENDPOINTS, service, namespace))
        except NotFound:
            return set()

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)


async def serve(client: KubeClient, port: int, autoscaler: str, say: Callable[[str], None]) -> None:
    """Answer on 127.0.0.1:`port`, and tell the autoscaler at `autoscaler` (HOST:PORT) of load that waits, until cancelled.

    An API server or an autoscaler that is away is waited for. `say` takes what is unusual, once. Raises OSError when the port is taken.
    """
    plane = DataPlane(client, say)
    activator = Activator(autoscaler, plane.waiting, plane.changed, say, seconds=plane.seconds)
    runner = web.ServerRunner(web.Server(plane.answer), shutdown_timeout=ENDS_WITHIN)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(plane.follow_all())
            tasks.create_task(activator.run())
    finally:
        await runner.cleanup()
