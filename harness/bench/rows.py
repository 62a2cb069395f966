"""The rows of the benchmark's table: one figure of one stage, of every subject, with ratios to the first subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.bench.spread import spread
from harness.model.clock import span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.bench.model import BenchReport, Spread, Stage

    Figure = Callable[[Stage], float | None]
    Shown = Callable[[float], str]

_MEBIBYTE: Final = 1 << 20
NOTHING: Final = "-"
STAGES: Final = ("initialise all", "idle", "promote all", "upgrade", "restart loop")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table."""

    stage: str
    figure: str
    values: tuple[str, ...]
    """As text, one for each subject."""
    ratios: tuple[str, ...]
    """To the first subject, one for each of the others."""


def rows(report: BenchReport) -> list[Row]:
    """Return all rows that say anything of any subject."""
    found: list[Row] = []
    for name in STAGES:
        stages = [subject.stage(name) for subject in report.subjects]
        if any(stages):
            found += _rows(name, stages, report.setup.canaries)
    return found


def _rows(name: str, stages: Sequence[Stage | None], canaries: int) -> Iterator[Row]:
    for figure, value, shown in _FIGURES:
        values = [None if stage is None else value(stage) for stage in stages]
        if figure in _ONLY_IF_ANY and not any(values):
            continue
        if all(one is None for one in values):
            continue
        texts = tuple(NOTHING if one is None else shown(one) for one in values)
        first = values[0]
        ratios = tuple(ratio(one, first) for one in values[1:])
        yield Row(name, figure, texts, ratios)
    ended = tuple(NOTHING if stage is None else f"{stage.ended} of {canaries}" for stage in stages)
    if any(stage is not None and stage.ended != canaries for stage in stages):
        yield Row(name, "rollouts that got there", ended, (NOTHING,) * (len(ended) - 1))


def ratio(value: float | None, first: float | None) -> str:
    """Return a value as a multiple of the first subject's, to three digits; a dash where that says nothing."""
    if value is None or not first:
        return NOTHING
    times = value / first
    if times == 0:
        return "0"
    return f"{times:.3f}" if times < 1 else f"{times:.3g}"


def count(value: float) -> str:
    """Return a number of things."""
    return f"{value:,.0f}"


def size(value: float) -> str:
    """Return a size in memory."""
    return f"{value / _MEBIBYTE:.0f} MiB"


def seconds(value: float) -> str:
    """Return a time with the digits that matter."""
    return f"{value:.2f} s" if value < 10 else span(value)  # noqa: PLR2004 - hundredths say something below that


def _least(of: Spread | None, part: str) -> float | None:
    return None if of is None else float(getattr(of, part))


def _median(values: Sequence[float]) -> float | None:
    return _least(spread(values), "median")


def _looked(stage: Stage) -> float | None:
    return None if stage.looked is None else float(stage.looked)


def _later_writes(stage: Stage) -> float | None:
    return float(sum(stage.writes_by_start[1:])) if len(stage.writes_by_start) > 1 else None


def _first_writes(stage: Stage) -> float | None:
    return float(stage.writes_by_start[0]) if stage.writes_by_start else None


_FIGURES: Final[tuple[tuple[str, Figure, Shown], ...]] = (
    ("time", lambda stage: None if stage.starts else stage.seconds, seconds),
    ("last change acknowledged after", lambda stage: stage.changed, seconds),
    ("change detected after, median", lambda s: _least(s.detection, "median"), seconds),
    ("change detected after, 95 %", lambda s: _least(s.detection, "p95"), seconds),
    ("change detected after, most", lambda s: _least(s.detection, "largest"), seconds),
    ("change to end, median", lambda s: _least(s.finish, "median"), seconds),
    ("change to end, 95 %", lambda s: _least(s.finish, "p95"), seconds),
    ("starts of the subject", lambda stage: float(stage.starts), count),
    ("rollouts looked at after each start", _looked, count),
    ("all looked at after a start, median", lambda s: _median(s.looked_after), seconds),
    ("all looked at after a start, most", lambda s: max(s.looked_after, default=None), seconds),
    ("writes after the first start", _first_writes, count),
    ("writes after all later starts", _later_writes, count),
    ("requests", lambda stage: float(stage.requests.total), count),
    ("of them reads", lambda stage: float(stage.requests.reads), count),
    ("of them writes", lambda stage: float(stage.requests.writes), count),
    ("of them watches", lambda stage: float(stage.requests.watches), count),
    ("of them refused", lambda stage: float(stage.requests.refused), count),
    ("CPU seconds", lambda stage: stage.usage.cpu, lambda value: f"{value:.2f}"),
    ("RSS, most", lambda stage: float(stage.usage.rss_most), size),
    ("RSS, at the end", lambda stage: float(stage.usage.rss_end), size),
    ("analyses that nobody asked for", lambda stage: float(stage.unasked), count),
    ("gaps in our watch", lambda stage: float(stage.gaps), count),
)
_ONLY_IF_ANY: Final = frozenset(
    {"starts of the subject", "of them refused", "of them watches", "gaps in our watch"}
)
