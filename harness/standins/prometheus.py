"""A real Prometheus as a child process: on loopback, with nothing to scrape but the drill's own endpoint, and gone with the harness."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Final

from harness.programs.errors import ProgramError
from harness.standins.site import HOST
from harness.subjects.base import SubjectError
from harness.subjects.process import SubjectProcess, fenced_environment

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

READY_WITHIN: Final = 20.0
"""Seconds from start until it listens; it takes a tenth of one on a quiet machine."""
SCRAPE: Final = "1s"
"""How often it looks: the shortest time in which a change of a metric can be seen."""
_LISTENS: Final = re.compile(rb'Listening on"?.*address="?[0-9.]+:(\d+)')
_COUNTED: Final = re.compile(
    r'^prometheus_http_requests_total\{[^}]*handler="([^"]+)"[^}]*\} (\S+)$', re.MULTILINE
)
_LABELS: Final = ("namespace", "kubernetes_namespace", "destination_workload_namespace")
"""Labels that hold the drill's namespace, by which the built-in queries of controllers choose."""


class Prometheus:
    """One drill's Prometheus."""

    def __init__(self, program: Path, folder: Path) -> None:
        """`folder` is its own: it keeps data, configuration and log there."""
        self.port = 0
        self._program = program
        self._folder = folder
        self._process = SubjectProcess("prometheus")
        self._last = ""
        self._listens = asyncio.Event()

    async def start(self, exposition: int, namespace: str) -> None:
        """Start it, and return once it listens. Raises ProgramError with the last line of its log."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        config = self._folder / "prometheus.json"
        # JSON is YAML, which is what it reads.
        config.write_text(json.dumps(configuration(exposition, namespace)), encoding="utf-8")
        environment = {**fenced_environment(), "GOMAXPROCS": "1"}
        try:
            await self._process.spawn(arguments(self._program, config, self._folder), environment)
        except SubjectError as error:
            raise ProgramError(str(error)) from error
        self._process.follow(self._folder / "prometheus.log", self._read, lambda *_: None)
        silent = await self._process.until(self._listens, READY_WITHIN)
        if silent:
            await self.stop()
            msg = f"Prometheus {silent}; its log ends with: {self._last or 'nothing'}"
            raise ProgramError(msg)

    async def counted(self, paths: Collection[str]) -> int | None:
        """Return how many requests for these paths it says that it has answered since it started; None while it says nothing."""
        import aiohttp

        url, limit = f"http://{HOST}:{self.port}/metrics", aiohttp.ClientTimeout(total=5)
        try:
            async with aiohttp.ClientSession(trust_env=False, timeout=limit) as http:
                answer = await http.get(url)
                return counted(await answer.text(), paths)
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None

    async def stop(self) -> None:
        """End it."""
        await self._process.stop()

    def _read(self, line: bytes) -> None:
        self._last = line.decode(errors="replace").strip() or self._last
        found = _LISTENS.search(line)
        if found is not None:
            self.port = int(found[1])
            self._listens.set()


def counted(text: str, paths: Collection[str]) -> int:
    """Return how many requests for some paths a Prometheus' own metrics tell, whatever it answered."""
    found = _COUNTED.findall(text)
    return sum(int(float(number)) for path, number in found if path in paths)


def configuration(exposition: int, namespace: str) -> dict[str, object]:
    """Return its configuration: it scrapes one port of this machine."""
    target = {"targets": [f"{HOST}:{exposition}"], "labels": dict.fromkeys(_LABELS, namespace)}
    return {
        "global": {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE},
        "scrape_configs": [{"job_name": "drill", "static_configs": [target]}],
    }


def arguments(program: Path, config: Path, folder: Path) -> Sequence[str]:
    """Return how it is started: on a port that the kernel chooses, which its log tells."""
    return [
        str(program),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={HOST}:0",
        "--log.level=info",
    ]
