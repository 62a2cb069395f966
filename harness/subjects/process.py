"""A subject's process: started with its log in a file, watched, and dead when the harness is dead."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from harness.programs.lifeline import die_with_parent
from harness.subjects.base import SubjectError, SubjectEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

STOP_GRACE: Final = 5.0
"""Seconds between SIGTERM and SIGKILL."""
REFUSING_PROXY: Final = "http://127.0.0.1:9"
"""Nothing listens on the discard port, so what a subject sends to a simulated pod's address is refused on this machine."""
_LINE_LIMIT: Final = 1 << 20


def fenced_environment() -> dict[str, str]:
    """Return an environment in which nothing but loopback can be reached over HTTP, and no kubeconfig is found by chance."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.lower().endswith("_proxy") and k != "KUBECONFIG"
    }
    loopback = "127.0.0.1,localhost,::1"
    return {
        **kept,
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), REFUSING_PROXY),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), loopback),
    }


def server_host(kubeconfig: Path) -> str:
    """Return the host of the API server that a kubeconfig of ours names (JSON, one cluster), which a fence has to leave open."""
    config = json.loads(kubeconfig.read_text(encoding="utf-8"))
    return urlsplit(str(config["clusters"][0]["cluster"]["server"])).hostname or ""


class SubjectProcess:
    """One subject as a child process of the harness."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ending: SubjectEvent | None = None

    async def spawn(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the process. Its output is read from `follow` on.

        Raises SubjectError when the program cannot be executed.
        """
        try:
            self._process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                limit=_LINE_LIMIT,
                env=dict(environment),
                # A Ctrl-C in the terminal is for the harness: the subject lives until finalizers are done.
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        except OSError as error:
            msg = f"{self._name} cannot be started: {argv[0]}: {error.strerror}"
            raise SubjectError(msg) from error

    def follow(
        self,
        log: Path,
        on_line: Callable[[bytes], None],
        notify: Callable[[SubjectEvent, str], None],
    ) -> None:
        """Append each line of its output to `log` and hand it to `on_line`; tell `notify` when it ends."""
        assert self._process is not None  # noqa: S101 - spawned before
        self._reader = asyncio.create_task(self._read(self._process, log, on_line, notify))

    async def tell(self, line: str) -> None:
        """Write a line to its standard input; a process that has ended hears nothing, and `exited` says so."""
        assert self._process is not None  # noqa: S101 - spawned before
        assert self._process.stdin is not None  # noqa: S101 - asked for with PIPE above
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(line.encode() + b"\n")
            await self._process.stdin.drain()

    async def _read(
        self,
        process: asyncio.subprocess.Process,
        log: Path,
        on_line: Callable[[bytes], None],
        notify: Callable[[SubjectEvent, str], None],
    ) -> None:
        assert process.stdout is not None  # noqa: S101 - asked for with PIPE above
        with log.open("ab") as sink:
            while True:
                try:
                    line = await process.stdout.readline()
                except ValueError:  # a line beyond the limit; asyncio drops what it held of it
                    continue
                if not line:
                    break
                sink.write(line)
                sink.flush()
                on_line(line)
        code = await process.wait()
        notify(self._ending or "exited", f"exit status {code}")

    async def until(self, ready: asyncio.Event, seconds: float) -> str:
        """Wait until it is ready and return nothing; else return what happened instead, e.g. `was not ready within 20 s`."""
        waits = [asyncio.create_task(ready.wait()), asyncio.create_task(self.exited())]
        done, pending = await asyncio.wait(
            waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        for task in pending:
            task.cancel()
        if ready.is_set():
            return ""
        return "ended" if done else f"was not ready within {seconds:g} s"

    async def exited(self) -> None:
        """Wait until the process ended and its output is read to the end."""
        if self._reader is not None:
            await asyncio.shield(self._reader)

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL after `STOP_GRACE` seconds."""
        await self._end("stopped", signal.SIGTERM)

    async def kill(self) -> None:
        """SIGKILL."""
        await self._end("killed", signal.SIGKILL)

    async def _end(self, ending: SubjectEvent, number: signal.Signals) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self._ending = ending
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        try:
            await asyncio.wait_for(self._process.wait(), STOP_GRACE)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        await self.exited()
