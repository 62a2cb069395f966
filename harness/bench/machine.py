"""Who uses the processors: the parts of the control plane, this process, and everything else on the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

from harness.bench.model import HARNESS, OTHERS

if TYPE_CHECKING:
    from collections.abc import Mapping


class Machine:
    """CPU seconds by name since `reset`. `parts` are the processes that are looked at beside this one, by name."""

    def __init__(self, parts: Mapping[str, int]) -> None:
        self._processes = {HARNESS: psutil.Process()}
        for name, pid in parts.items():
            try:
                self._processes[name] = psutil.Process(pid)
            except psutil.Error:
                continue
        self._base = self._now()
        self._busy = _busy()

    def reset(self) -> None:
        """Begin a stage."""
        self._base, self._busy = self._now(), _busy()

    def used(self, subject: float) -> dict[str, float]:
        """Return the CPU seconds of each since `reset`; what neither they nor the subject used is somebody else's."""
        now = self._now()
        spent = {name: max(now[name] - self._base[name], 0.0) for name in now if name in self._base}
        rest = _busy() - self._busy - sum(spent.values()) - subject
        return {**spent, OTHERS: max(rest, 0.0)}

    def _now(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, process in self._processes.items():
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            found[name] = times.user + times.system
        return found


def _busy() -> float:
    times = psutil.cpu_times()
    # Guests are in user already; what a hypervisor stole was used by nobody here.
    idle = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return float(sum(times) - idle - guests)
