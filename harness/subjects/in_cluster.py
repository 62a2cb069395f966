"""The subject `bundled@in-cluster`: our own controller as a Deployment in the drill's namespace, with only the rights we ship.

It reaches what only pods reach: webhooks and a Prometheus that are addressed by Service names. The Deployment is made with the other
objects of the subject, with no pod; starting and ending it is a matter of its replicas.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from harness import __version__
from harness.controller.flags import arguments as written
from harness.kube.errors import KubeError, NotFound
from harness.kube.resource import DEPLOYMENT, POD
from harness.model.names import IN_CLUSTER
from harness.model.timeline import JSON, RolloutKind, SubjectFacts
from harness.subjects.base import Access, SubjectError, SubjectEvent, in_group
from harness.subjects.bundled_log import Lines
from harness.subjects.bundled_objects import (
    CAPABILITIES,
    CONTROLLER,
    arguments,
    crds,
    deployment,
    rights,
)
from harness.subjects.pod_log import Follower

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.kube.client import KubeClient

READY_WITHIN: Final = 120.0
"""Seconds from the first pod to synced caches: an image may have to be pulled; where it is there, it takes three."""
GONE_WITHIN: Final = 45.0
"""Seconds for a pod to end: it has thirty to end its passes."""
KILLED_SECONDS: Final = 1
"""Grace of a pod that is killed. With none at all its name would be free before anybody knows that its process has ended."""
_MANAGER: Final = "rollout-drill"


class InCluster:
    """Our controller as a pod."""

    service_account = CONTROLLER

    def __init__(self, image: str = "") -> None:
        """`image` is one that the cluster has or can pull; empty: one is made, which has to be loaded into the cluster's nodes."""
        self.facts = SubjectFacts(
            name=IN_CLUSTER, version=__version__, capabilities=CAPABILITIES, rollout=RolloutKind()
        )
        self.archive: Path | None = None
        """Where no image was given: one as `docker save` writes it; only after `obtain`."""
        self._image = image
        self._client: KubeClient | None = None
        self._namespace = ""
        self._notify: Callable[[SubjectEvent, str], None] = lambda _event, _detail: None
        self._follower: Follower | None = None

    async def obtain(self, progress: Callable[[str], None]) -> None:
        """Make the image, unless one was given."""
        if self._image:
            return
        from harness.programs.errors import ProgramError
        from harness.programs.threads import in_thread
        from harness.subjects.controller_image import IMAGE, made

        try:
            self.archive = await in_thread(lambda cancelled: made(progress, cancelled))
        except ProgramError as error:
            msg = f"the image of the controller cannot be made: {error}"
            raise SubjectError(msg) from error
        self._image = IMAGE

    def move(self, api_group: str) -> None:
        """Drive Canaries of another API group."""
        self.facts = in_group(self.facts, api_group)

    async def look(self, client: KubeClient) -> None:
        """Remember the way to the cluster."""
        self._client = client

    def cluster_objects(self) -> list[JSON]:
        """Return the CRDs, those of `bundled`."""
        return crds()

    def namespace_objects(self, namespace: str) -> list[JSON]:
        """Return service account, role and binding, and the Deployment, without a pod yet."""
        return [*rights(namespace), deployment(namespace, self._image)]

    async def warm_up(self) -> None:
        """There is nothing to do before its objects are there."""

    async def start(self, access: Access, notify: Callable[[SubjectEvent, str], None]) -> None:
        """Give the Deployment one pod; returns when its log says that its caches are synced."""
        if self._client is None:
            msg = f"{IN_CLUSTER} was not shown its cluster"
            raise SubjectError(msg)
        ready = asyncio.Event()
        lines = Lines(ready, notify)
        follower = Follower(
            self._client,
            access.namespace,
            CONTROLLER,
            log=access.log,
            on_line=lines.read,
            on_exit=lambda how: notify("exited", how),
        )
        self._namespace, self._notify, self._follower = access.namespace, notify, follower
        follower.begin()
        try:
            await self._run_with(self._client, access)
            notify("started", f"{self.facts.name} {self.facts.version}")
            async with asyncio.timeout(READY_WITHIN):
                await follower.until(lambda: ready.is_set() or bool(follower.trouble))
            silent = "" if ready.is_set() else f"does not start: {follower.trouble}"
        except KubeError as error:
            silent = f"cannot be started: {error}"
        except TimeoutError:
            silent = f"was not ready within {READY_WITHIN:g} s: {follower.standing}"
        if not silent:
            return
        await self._end("stopped")
        said = f"; its log ends with: {lines.last}" if lines.last else ""
        msg = f"the bundled controller {silent}{said}"
        raise SubjectError(msg)

    async def stop(self) -> None:
        """End it in an orderly way: no replicas, so that the kubelet sends SIGTERM. No error when it does not run. Raises SubjectError."""
        await self._end("stopped")

    async def kill(self) -> None:
        """End it at once: its pod is deleted with a second's grace, and no other one is made. Raises SubjectError."""
        await self._end("killed")

    async def _run_with(self, client: KubeClient, access: Access) -> None:
        """Set the container's arguments and one replica. Raises KubeError."""
        given = dict(access.flags)
        if access.metrics_server:
            given["metrics_server"] = access.metrics_server
        container = {"name": "controller", "args": arguments(written(given))}
        patch = {
            "spec": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
        }
        await client.patch(
            DEPLOYMENT,
            CONTROLLER,
            access.namespace,
            patch,
            field_manager=_MANAGER,
            kind="strategic",
        )

    async def _end(self, how: SubjectEvent) -> None:
        """Wait until its pod is gone, and tell `how` it ended; nothing when it does not run."""
        follower, client, self._follower = self._follower, self._client, None
        if follower is None or client is None:
            return
        follower.ending = True
        problem = ""
        try:
            async with asyncio.timeout(GONE_WITHIN):
                await self._without_pods(client, follower, at_once=how == "killed")
        except NotFound:
            pass  # its namespace is gone, and it with that
        except KubeError as error:
            problem = f"could not be ended: {error}"
        except TimeoutError:
            problem = f"was not gone within {GONE_WITHIN:g} s: {follower.standing}"
        await follower.close()
        if problem:
            msg = f"the bundled controller {problem}"
            raise SubjectError(msg)
        self._notify(how, follower.last_end)

    async def _without_pods(self, client: KubeClient, follower: Follower, *, at_once: bool) -> None:
        await client.patch(
            DEPLOYMENT,
            CONTROLLER,
            self._namespace,
            {"spec": {"replicas": 0}},
            field_manager=_MANAGER,
        )
        if at_once:
            body = {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "gracePeriodSeconds": KILLED_SECONDS,
            }
            for pod in list(follower.pods.values()):
                path = POD.path(self._namespace, pod["metadata"]["name"])
                await client.raw("DELETE", path, None, body)
        await follower.until(lambda: not follower.pods)
