"""CPU time and memory of the subject's processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import psutil

from harness.bench.model import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

LOOK_SECONDS: Final = 0.5


class Meter:
    """Measures the processes that this one starts between `expect` and `adopt`, so that it works for any subject.

    Nothing else may be started meanwhile, which holds for a benchmark: it does one thing at a time.
    """

    def __init__(self) -> None:
        self._me = psutil.Process()
        self._before: set[psutil.Process] = set()
        self._mine: list[psutil.Process] = []
        self._ended = 0.0
        """CPU seconds of processes that have ended."""
        self._base = 0.0
        self._most = 0

    def expect(self) -> None:
        """Say that the subject is about to be started."""
        self._before = set(self._me.children())

    def adopt(self) -> None:
        """Say that it has been started."""
        self._mine = [child for child in self._me.children() if child not in self._before]

    def dismiss(self) -> None:
        """Say that it is about to be stopped: its CPU time is read for the last time."""
        self._ended += _cpu(self._mine)
        self._mine = []

    @property
    def processes(self) -> list[int]:
        """Process numbers of what was started, without its children."""
        return [process.pid for process in self._mine]

    def reset(self) -> None:
        """Begin a stage."""
        self._base = self._ended + _cpu(self._mine)
        self._most = 0
        self.look()

    def look(self) -> int:
        """Look at the resident size, in bytes, and return it."""
        size = sum(_rss(process) for process in _family(self._mine))
        self._most = max(self._most, size)
        return size

    def usage(self) -> Usage:
        """Return what was used since `reset`."""
        size = self.look()
        return Usage(max(self._ended + _cpu(self._mine) - self._base, 0.0), self._most, size)

    async def watch(self) -> None:
        """Look at the memory again and again, until cancelled: the kernel keeps a peak for a whole life only."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)


def _family(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in processes:
        try:
            found += [process, *process.children(recursive=True)]
        except psutil.Error:
            continue
    return found


def _cpu(processes: Iterable[psutil.Process]) -> float:
    total = 0.0
    for process in _family(processes):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        # The last two are of children that have ended; those that live are in the family themselves.
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
