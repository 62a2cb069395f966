"""The subject `flagger@…`: a real Flagger of any version, run out of the cluster and fenced to one namespace."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from harness.model.timeline import JSON, RolloutKind, SubjectFacts
from harness.programs.threads import in_thread
from harness.subjects import flagger_objects, flagger_source
from harness.subjects.base import Access, SubjectError, SubjectEvent
from harness.subjects.flagger_capabilities import capabilities
from harness.subjects.flagger_log import FlaggerLog
from harness.subjects.process import REFUSING_PROXY, SubjectProcess, fenced_environment, server_host

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from harness.kube.client import KubeClient
    from harness.subjects.flagger_source import FlaggerSource
    from harness.subjects.names import SubjectName

READY_WITHIN: Final = 30.0
"""Seconds from start to filled caches; it takes one on a quiet machine."""
_KEPT: Final = ("PATH", "TMPDIR", "TZ")
"""All that Flagger sees of the user's environment: it would take tokens and addresses of Slack, Teams and clouds from it."""


class Flagger:
    """A real Flagger as a child process."""

    service_account = flagger_objects.ACCOUNT

    def __init__(self, name: SubjectName) -> None:
        self._name = name
        self._source: FlaggerSource | None = None
        self._process: SubjectProcess | None = None
        self.facts = SubjectFacts(
            str(name), name.version, capabilities(name.version), RolloutKind()
        )

    async def obtain(self, progress: Callable[[str], None]) -> None:
        """Fetch and build it, unless that was done before. Raises SubjectError, e.g. for a version that is not served."""
        if self._source is not None:
            return
        source = await in_thread(
            lambda cancelled: flagger_source.get(self._name, progress, cancelled)
        )
        self._source = source
        self.facts = SubjectFacts(
            str(self._name),
            source.version,
            capabilities(source.version, source.api),
            RolloutKind(),
        )

    async def look(self, client: KubeClient) -> None:
        """There is nothing to find out: it is what we start."""

    def cluster_objects(self) -> list[JSON]:
        """Return its CRDs, as its module has them."""
        return self._obtained().crds

    def namespace_objects(self, namespace: str) -> list[JSON]:
        """Return service account, role and binding: its own rules, but in this namespace only."""
        return flagger_objects.namespace_objects(namespace, self._obtained().rules)

    async def warm_up(self) -> None:
        """There is nothing to do: it connects at once when it starts."""

    async def start(self, access: Access, notify: Callable[[SubjectEvent, str], None]) -> None:
        """Start it; returns when its workers run."""
        process = self._process = SubjectProcess(self.facts.name)
        argv = arguments(self._obtained().program, access)
        await process.spawn(argv, environment(access.kubeconfig))
        ready = asyncio.Event()
        log = FlaggerLog(ready, notify)
        process.follow(access.log, log.read, notify)
        notify("started", f"{self.facts.name} {self.facts.version}")
        silent = await process.until(ready, READY_WITHIN)
        if silent:
            await self.stop()
            msg = f"{self.facts.name} {silent}; its log ends with: {log.last or 'nothing'}"
            raise SubjectError(msg)

    async def stop(self) -> None:
        """End it in an orderly way."""
        if self._process is not None:
            await self._process.stop()

    async def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None:
            await self._process.kill()

    def _obtained(self) -> FlaggerSource:
        if self._source is None:
            msg = f"{self.facts.name} has not been obtained yet"
            raise SubjectError(msg)
        return self._source


def arguments(program: Path, access: Access) -> list[str]:
    """Return how it is started: as its users do, except for what fences it.

    Its own server (metrics, health) listens on every interface, since Flagger takes a port but no address; on a port that the
    kernel chooses, so that drills side by side never meet.
    """
    return [
        str(program),
        "-kubeconfig",
        str(access.kubeconfig),
        "-namespace",
        access.namespace,
        "-mesh-provider",
        "kubernetes",
        # By default it looks for a host called prometheus at start. Where a drill has none, nobody answers, and at once.
        "-metrics-server",
        access.metrics_server or REFUSING_PROXY,
        "-port",
        "0",
        "-log-level",
        "info",
        "-enable-leader-election=false",
    ]


def environment(kubeconfig: Path) -> Mapping[str, str]:
    """Return its environment: nothing but loopback and the API server can be reached over HTTP."""
    fenced = fenced_environment()
    kept = {
        name: value
        for name, value in fenced.items()
        if name in _KEPT or name.lower().endswith("_proxy")
    }
    server = server_host(kubeconfig)
    if server:
        for name in ("NO_PROXY", "no_proxy"):
            kept[name] = f"{kept[name]},{server}"
    return kept
