"""From the lines of a probe's log to observations: numbered, so that nothing is lost unnoticed, and on the drill's clock.

`fixtures/go/workload/probe.go` says what the lines are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.model.timeline import PRECISION, WatchState
from harness.model.timeline_traffic import TrafficBegan, TrafficWindow
from harness.model.traffic import TRAFFIC

if TYPE_CHECKING:
    from harness.model.timeline import JSON, Observation

SETTING: Final = 1.0
"""Seconds from the first line within which the clock is set: what was written before the log was followed comes late, and says little."""
_SOONEST: Final = 5
"""So many of the lines that came soonest tell how well the clock is set."""
_MICRO: Final = 1e6


class Lines:
    """Takes the lines of one probe, in order, those that come twice included."""

    def __init__(self, url: str, rate: float, pod: str) -> None:
        self.began = False
        """Whether a request was answered, and that was told."""
        self.until = 0.0
        """Up to when it is known what became of requests, on the drill's clock."""
        self.complaint = ""
        """Why nothing is answered yet."""
        self.ended = False
        """Whether the probe has said that it sends nothing any more."""
        self._url, self._rate, self._pod = url, rate, pod
        self._next = 0
        self._delays: list[float] = []
        """When each line was read minus when it was written, on two clocks."""
        self._first_read: float | None = None
        self._first_asked: float | None = None
        self._offset: float | None = None
        """What to add to the probe's clock."""
        self._waiting: list[JSON] = []
        """Windows that came before the clock was set."""

    def take(self, line: JSON, now: float) -> list[Observation]:
        """Return what a line says. `now`: when it was read. Raises ValueError for what is no line of a probe."""
        try:
            return self._take(line, now)
        except (KeyError, TypeError, AttributeError) as error:
            msg = f"no line of a probe: {str(line)[:100]}"
            raise ValueError(msg) from error

    def _take(self, line: JSON, now: float) -> list[Observation]:
        number = int(line["seq"])
        if number < self._next:
            return []  # the log was followed anew, from a little earlier
        lost = number - self._next
        found: list[Observation] = []
        if lost and self.began:
            reason = f"{lost} lines of the probe's log were lost"
            found.append(WatchState(now, TRAFFIC, "gap", self.until, reason))
        self._next = number + 1
        if self._offset is None:
            self._delays.append(now - float(line["at"]) / _MICRO)
            self._first_read = now if self._first_read is None else self._first_read
        kind = line["kind"]
        if kind == "waiting":
            self.complaint = " ".join(str(line[key]) for key in ("error", "status") if line[key])
        if kind in {"waiting", "window"} and self._first_asked is None:
            self._first_asked = float(line["from" if kind == "window" else "at"]) / _MICRO
        if kind == "window":
            self._waiting.append(line)
        self.ended = self.ended or kind == "end"
        return found + self._told(now)

    def _told(self, now: float) -> list[Observation]:
        """Return what the windows say that were kept back, once the clock is set."""
        if self._offset is None and self._waiting and self._first_read is not None:
            if now - self._first_read < SETTING and not self.ended:
                return []
            self._offset = min(self._delays)
        if self._offset is None:
            return []
        found: list[Observation] = []
        windows, self._waiting = self._waiting, []
        for window in windows:
            seen = _window(window, self._offset, now)
            if not self.began:
                self.began = True
                found.append(self._beginning(seen, now))
            self.until = seen.until
            found.append(seen)
        return found

    def _beginning(self, first: TrafficWindow, now: float) -> TrafficBegan:
        offset = min(self._delays)
        soonest = sorted(self._delays)[:_SOONEST]
        asked = first.since if self._first_asked is None else self._first_asked + offset
        return TrafficBegan(
            now,
            self._url,
            self._rate,
            self._pod,
            round(max(first.since - asked, 0.0), PRECISION),
            len(self._delays),
            round(soonest[-1] - soonest[0], PRECISION),
        )


def _window(line: JSON, offset: float, now: float) -> TrafficWindow:
    def moment(value: Any) -> float:
        return round(float(value) / _MICRO + offset, PRECISION)

    def ms(value: Any) -> float:
        return round(float(value) / 1000, 2)

    return TrafficWindow(
        now,
        moment(line["from"]),
        moment(line["to"]),
        int(line["sent"]),
        tuple(
            {"pod": str(row["pod"]), "ms": [ms(took) for took in row["took"]]}
            for row in line["answers"]
        ),
        tuple(
            {
                "at": moment(row["at"]),
                "kind": str(row["kind"]),
                "ms": ms(row["took"]),
                "status": int(row["status"]),
                "pod": str(row["pod"]),
            }
            for row in line["failures"]
        ),
    )
