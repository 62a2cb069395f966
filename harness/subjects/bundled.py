"""The subject `bundled`: our own controller, run out of the cluster with only the rights we ship."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Final

from ruamel.yaml import YAML

from harness import __version__
from harness.data import data_path
from harness.model.timeline import JSON, RolloutKind, SubjectFacts
from harness.subjects.base import Access, SubjectError, SubjectEvent
from harness.subjects.process import SubjectProcess, fenced_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READY_WITHIN: Final = 20.0
"""Seconds from start to synced caches; it takes one on a quiet machine, several when every core is busy."""

CAPABILITIES: Final = (
    "blue-green",
    "deployment",
    "match-label-keys",
    "progress-deadline",
    "provider-kubernetes",
    "restart-on-new-revision",
    "skip-analysis",
    "suspend",
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

    def cluster_objects(self) -> list[JSON]:
        """Return the Canary CRD."""
        return _documents(data_path("fixtures", "crds", "canaries.yaml"))

    def namespace_objects(self, namespace: str) -> list[JSON]:
        """Return service account, role and binding, all in the drill's namespace."""
        objects = _documents(data_path("fixtures", "rbac", "controller.yaml"))
        for obj in objects:
            obj["metadata"]["namespace"] = namespace
            for reference in obj.get("subjects", []):
                reference["namespace"] = namespace
        return objects

    async def warm_up(self) -> None:
        """Start a process that loads everything and then waits: that takes as long as a pod takes to become ready."""
        if self._waiting is None:
            self._waiting = SubjectProcess("the bundled controller")
            argv = [sys.executable, "-m", "harness.controller", "--from-stdin"]
            await self._waiting.spawn(argv, fenced_environment())

    async def start(self, access: Access, notify: Callable[[SubjectEvent, str], None]) -> None:
        """Start the controller; returns when its caches are synced."""
        await self.warm_up()
        process, self._waiting = self._waiting, None
        assert process is not None  # noqa: S101 - warmed up a line ago
        self._process = process
        ready = asyncio.Event()
        lines = _Lines(ready, notify)
        process.follow(access.log, lines.read, notify)
        given = {"kubeconfig": str(access.kubeconfig), "namespace": access.namespace}
        await process.tell(json.dumps(given))
        notify("started", f"{self.facts.name} {self.facts.version}")
        waits = [
            asyncio.create_task(ready.wait()),
            asyncio.create_task(process.exited()),
        ]
        done, pending = await asyncio.wait(
            waits, timeout=READY_WITHIN, return_when=asyncio.FIRST_COMPLETED
        )
        for task in pending:
            task.cancel()
        if ready.is_set():
            return
        what = "ended" if done else f"was not ready within {READY_WITHIN:g} s"
        await self.stop()
        msg = f"the bundled controller {what}; its log ends with: {lines.last or 'nothing'}"
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
    """Reads the controller's log lines: `ready` once, and each refusal of the API server."""

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


def _documents(path: Path) -> list[JSON]:
    with path.open(encoding="utf-8") as file:
        return [
            dict(document) for document in YAML(typ="safe", pure=True).load_all(file) if document
        ]
