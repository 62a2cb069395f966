"""The subject `bundled`: our own controller, run out of the cluster with only the rights we ship."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Final

from harness import __version__
from harness.controller.flags import NO_PROXY
from harness.model.timeline import JSON, RolloutKind, SubjectFacts
from harness.subjects.base import Access, SubjectError, SubjectEvent, in_group
from harness.subjects.bundled_log import Lines
from harness.subjects.bundled_objects import CAPABILITIES, CONTROLLER, crds, rights
from harness.subjects.process import SubjectProcess, fenced_environment, server_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.kube.client import KubeClient

READY_WITHIN: Final = 20.0
"""Seconds from start to synced caches; it takes one on a quiet machine, several when every core is busy."""


class Bundled:
    """Our controller as a child process."""

    service_account = CONTROLLER

    def __init__(self) -> None:
        self.facts = SubjectFacts(
            name="bundled", version=__version__, capabilities=CAPABILITIES, rollout=RolloutKind()
        )
        self._process: SubjectProcess | None = None
        self._waiting: SubjectProcess | None = None
        """Started, and waiting to be told where its API server is."""

    async def obtain(self, progress: Callable[[str], None]) -> None:
        """There is nothing to get."""

    def move(self, api_group: str) -> None:
        """Drive Canaries of another API group."""
        self.facts = in_group(self.facts, api_group)

    async def look(self, client: KubeClient) -> None:
        """There is nothing to find out."""

    def cluster_objects(self) -> list[JSON]:
        """Return the CRDs of Canaries, and of the metrics and receivers that they refer to."""
        return crds()

    def namespace_objects(self, namespace: str) -> list[JSON]:
        """Return service account, role and binding, all in the drill's namespace."""
        return rights(namespace)

    async def warm_up(self) -> None:
        """Start a process that loads everything and then waits: that takes as long as a pod takes to become ready."""
        if self._waiting is None:
            self._waiting = SubjectProcess("the bundled controller")
            argv = [sys.executable, "-m", *self._module(), "--from-stdin"]
            await self._waiting.spawn(argv, fenced_environment())

    def _module(self) -> list[str]:
        """Return the module that is run, with its first arguments."""
        return ["harness.controller"]

    async def start(self, access: Access, notify: Callable[[SubjectEvent, str], None]) -> None:
        """Start the controller; returns when its caches are synced."""
        await self.warm_up()
        process, self._waiting = self._waiting, None
        assert process is not None  # noqa: S101 - warmed up a line ago
        self._process = process
        ready = asyncio.Event()
        lines = Lines(ready, notify)
        process.follow(access.log, lines.read, notify)
        # Later ones win: what is the harness' own to say is not the scenario's.
        given = {
            **access.flags,
            "kubeconfig": str(access.kubeconfig),
            "namespace": access.namespace,
            # It was fenced before anybody knew where its API server is.
            NO_PROXY: server_host(access.kubeconfig),
        }
        if access.metrics_server:
            given["metrics_server"] = access.metrics_server
        await process.tell(json.dumps(given))
        notify("started", f"{self.facts.name} {self.facts.version}")
        silent = await process.until(ready, READY_WITHIN)
        if not silent:
            return
        await self.stop()
        msg = f"the bundled controller {silent}; its log ends with: {lines.last or 'nothing'}"
        raise SubjectError(msg)

    async def stop(self) -> None:
        """End the controller in an orderly way, a waiting one too."""
        for process in (self._process, self._waiting):
            if process is not None:
                await process.stop()
        self._waiting = None

    async def kill(self) -> None:
        """End the controller with SIGKILL."""
        if self._process is not None:
            await self._process.kill()
