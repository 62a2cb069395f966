"""The subject `bundled`: our own controller, run out of the cluster with only the rights we ship."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Final

from harness import __version__
from harness.data import data_path
from harness.model.timeline import JSON, RolloutKind, SubjectFacts
from harness.subjects.base import Access, SubjectError, SubjectEvent
from harness.subjects.documents import documents
from harness.subjects.process import SubjectProcess, fenced_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.kube.client import KubeClient

READY_WITHIN: Final = 20.0
"""Seconds from start to synced caches; it takes one on a quiet machine, several when every core is busy."""

CAPABILITIES: Final = (
    "ab-testing",
    "autoscaler",
    "blue-green",
    "change-fence",
    "config-tracking",
    "confirm-promotion",
    "daemonset",
    "deployment",
    "freeze",
    "knative-service",
    "manual-rollback-aborts",
    "match-label-keys",
    "metrics",
    "metrics-rate",
    "mirroring",
    "progress-deadline",
    "provider-kubernetes",
    "restart-on-new-revision",
    "restore-adopt",
    "restore-revert",
    "session-affinity",
    "skip-analysis",
    "start-limit",
    "sub-10s-interval",
    "suspend",
    "traffic-weights",
    "webhooks",
)


class Bundled:
    """Our controller as a child process."""

    service_account = "rollout-drill-controller"

    def __init__(self) -> None:
        self.facts = SubjectFacts(
            name="bundled", version=__version__, capabilities=CAPABILITIES, rollout=RolloutKind()
        )
        self._process: SubjectProcess | None = None
        self._waiting: SubjectProcess | None = None
        """Started, and waiting to be told where its API server is."""

    async def obtain(self, progress: Callable[[str], None]) -> None:
        """There is nothing to get."""

    async def look(self, client: KubeClient) -> None:
        """There is nothing to find out."""

    def cluster_objects(self) -> list[JSON]:
        """Return the CRDs of Canaries, and of the metrics and receivers that they refer to."""
        names = ("canaries", "metrictemplates", "alertproviders")
        found = (documents(data_path("fixtures", "crds", f"{name}.yaml")) for name in names)
        return [obj for each in found for obj in each]

    def namespace_objects(self, namespace: str) -> list[JSON]:
        """Return service account, role and binding, all in the drill's namespace."""
        objects = documents(data_path("fixtures", "rbac", "controller.yaml"))
        for obj in objects:
            obj["metadata"]["namespace"] = namespace
            for reference in obj.get("subjects", []):
                reference["namespace"] = namespace
        return objects

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
        lines = _Lines(ready, notify)
        process.follow(access.log, lines.read, notify)
        # Later ones win: what is the harness' own to say is not the scenario's.
        given = {
            **access.flags,
            "kubeconfig": str(access.kubeconfig),
            "namespace": access.namespace,
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


class _Lines:
    """Reads the controller's log lines: `ready` once, each refusal of the API server, and each look at a canary."""

    def __init__(self, ready: asyncio.Event, notify: Callable[[SubjectEvent, str], None]) -> None:
        self._ready = ready
        self._notify = notify
        self.last = ""

    def read(self, line: bytes) -> None:
        self.last = line.decode(errors="replace").strip() or self.last
        try:
            row = json.loads(line)
        except ValueError:
            return
        match row.get("event") if isinstance(row, dict) else None:
            case "ready":
                self._ready.set()
            case "forbidden":
                self._notify("forbidden", f"{row.get('verb', '?')} {row.get('path', '?')}")
            case "looked":
                # Not every pass has a row: a suspended canary is looked at, and no more.
                self._notify("looked", f"{row.get('canary', '?')} {row.get('row') or ''}".rstrip())
