"""From the log of a probe to observations: numbers, clocks, gaps."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model.timeline import Observation, WatchState
from harness.model.timeline_traffic import TrafficBegan, TrafficWindow
from harness.run.traffic_lines import Lines

AHEAD = 1_700_000_000.0
"""Seconds by which the probe's clock is ahead of the drill's."""


def line(number: int, kind: str, at: float, **fields: Any) -> dict[str, Any]:
    """Return a line that was written at a moment of the drill's clock."""
    return {"seq": number, "at": micro(at), "kind": kind, **fields}


def micro(t: float) -> int:
    return round((t + AHEAD) * 1e6)


def window(number: int, since: float, sent: int = 5) -> dict[str, Any]:
    return line(
        number,
        "window",
        since + 0.26,
        **{"from": micro(since), "to": micro(since + 0.25)},
        sent=sent,
        answers=[{"pod": "web-a", "took": [1500] * (sent - 1)}],
        failures=[
            {
                "at": micro(since + 0.1),
                "kind": "status",
                "took": 2000,
                "status": 503,
                "pod": "web-b",
            }
        ],
    )


class Log:
    """Feeds lines, each with the delay with which it is read."""

    def __init__(self) -> None:
        self.lines = Lines("http://web:80/hostname", 20, "probe")
        self.seen: list[Observation] = []

    def read(self, given: dict[str, Any], delay: float) -> None:
        written = given["at"] / 1e6 - AHEAD
        self.seen += self.lines.take(given, written + delay)

    def of(self, kind: type[Any]) -> list[Any]:
        return [one for one in self.seen if isinstance(one, kind)]


def begun() -> Log:
    """Return a log up to its second window; the soonest line was 10 ms under way."""
    log = Log()
    log.read(line(0, "hello", 4.0), 0.2)
    for number, delay in enumerate((0.2, 0.014, 0.012, 0.011, 0.010), 1):
        log.read(line(number, "tick", 4.0 + number / 40), delay)
    log.read(line(6, "waiting", 4.2, error="refused", status=0), 0.05)
    log.read(window(7, 5.0), 0.05)
    log.read(window(8, 5.25), 0.05)
    return log


def test_windows_are_on_the_drills_clock_by_the_line_that_came_soonest() -> None:
    log = begun()
    first, second = log.of(TrafficWindow)
    # 10 ms late: as long as the soonest line took.
    assert (first.since, first.until) == (5.01, 5.26)
    assert second.since == 5.26
    assert first.sent == 5
    assert first.answers == ({"pod": "web-a", "ms": [1.5] * 4},)
    (failure,) = first.failures
    assert failure == {"at": 5.11, "kind": "status", "ms": 2.0, "status": 503, "pod": "web-b"}
    assert log.lines.until == pytest.approx(5.51)


def test_it_says_how_well_the_clock_is_set_and_how_long_nobody_answered() -> None:
    (began,) = begun().of(TrafficBegan)
    assert (began.url, began.rate, began.pod) == ("http://web:80/hostname", 20, "probe")
    assert began.waited == pytest.approx(0.8)
    assert began.within == pytest.approx(0.040)
    assert began.lines == 8


def test_nothing_is_told_until_the_clock_is_set_and_then_everything() -> None:
    log = Log()
    log.read(line(0, "hello", 4.0), 0.01)
    log.read(window(1, 4.1), 0.01)
    log.read(window(2, 4.35), 0.01)
    assert (log.seen, log.lines.began) == ([], False)
    log.read(window(3, 4.8), 0.01)
    assert len(log.of(TrafficWindow)) == 3
    assert log.lines.began


def test_a_probe_that_ends_soon_is_told_of_all_the_same() -> None:
    log = Log()
    log.read(line(0, "hello", 4.0), 0.01)
    log.read(window(1, 4.1), 0.01)
    log.read(line(2, "end", 4.3, sent=5), 0.01)
    assert len(log.of(TrafficWindow)) == 1
    assert log.lines.ended


def test_lines_that_come_twice_count_once() -> None:
    log = begun()
    before = list(log.seen)
    log.read(window(7, 5.0), 0.4)
    log.read(window(8, 5.25), 0.4)
    assert log.seen == before


def test_lines_that_never_come_are_a_gap() -> None:
    log = begun()
    log.read(window(11, 6.0), 0.05)
    (gap,) = log.of(WatchState)
    assert (gap.kind, gap.state, gap.since) == ("traffic", "gap", pytest.approx(5.51))
    assert "2 lines" in gap.reason
    log.read(window(12, 6.25), 0.05)
    assert len(log.of(WatchState)) == 1


def test_lines_that_are_lost_before_anything_counts_are_no_gap() -> None:
    log = Log()
    log.read(line(5, "tick", 4.0), 0.01)
    log.read(window(6, 5.5), 0.01)
    assert [type(one) for one in log.seen] == [TrafficBegan, TrafficWindow]


def test_while_nobody_answers_it_says_why() -> None:
    log = Log()
    log.read(line(0, "hello", 4.0), 0.01)
    log.read(line(1, "waiting", 4.3, error="status", status=503), 0.01)
    assert log.lines.complaint == "status 503"
    log.read(line(2, "waiting", 4.6, error="dns", status=0), 0.01)
    assert log.lines.complaint == "dns"
    assert not log.lines.began


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"seq": 0, "kind": "window", "at": 1},
        {"seq": "x", "at": 1, "kind": "tick"},
        {"seq": 0, "at": None, "kind": "hello"},
    ],
)
def test_what_is_no_line_of_a_probe_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no line of a probe|invalid literal"):
        Lines("u", 1, "p").take(given, 2.0)
