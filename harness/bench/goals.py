"""What is wanted of the bundled controller, against a subject that was measured in the same run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.bench.model import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.bench.model import Stage, SubjectFigures

IDLE_REQUESTS: Final = 0.01
INITIALISE_TIME: Final = 1 / 3
IDLE_CPU: Final = 0.1
MEMORY: Final = 1.5
DETECTION_SECONDS: Final = 1.0
_SUBJECT: Final = "bundled"
_REFERENCE: Final = "flagger"


def goals(subjects: Sequence[SubjectFigures]) -> tuple[Goal, ...]:
    """Return what is wanted of `bundled` and what it reached: by itself, and against Flagger where that is the first subject."""
    ours = next((subject for subject in subjects if subject.name == _SUBJECT), None)
    if ours is None:
        return ()
    first = subjects[0]
    against = first if first.name.startswith(_REFERENCE) else None
    return (*_alone(ours), *(_compared(ours, against) if against is not None else ()))


def _alone(ours: SubjectFigures) -> Iterator[Goal]:
    unasked = sum(stage.unasked for stage in ours.stages)
    yield Goal(ours.name, "analyses that nobody asked for", "0", f"{unasked}", unasked == 0)
    promote = ours.stage("promote all")
    if promote is not None and promote.detection is not None:
        median = promote.detection.median
        met = median < DETECTION_SECONDS
        yield Goal(
            ours.name,
            "promote all: a change is detected, at the median",
            f"under {DETECTION_SECONDS:g} s",
            f"{median:.2f} s",
            met,
        )
    loop = ours.stage("restart loop")
    if loop is not None:
        later = sum(loop.writes_by_start[1:])
        yield Goal(
            ours.name, "restart loop: writes after the first start", "0", f"{later}", later == 0
        )


def _compared(ours: SubjectFigures, first: SubjectFigures) -> Iterator[Goal]:
    idle, their_idle = ours.stage("idle"), first.stage("idle")
    if idle and their_idle:
        requests, theirs = idle.requests.total, their_idle.requests.total
        yield _goal(ours, "idle: requests", IDLE_REQUESTS, requests, theirs)
        yield _goal(ours, "idle: CPU", IDLE_CPU, idle.usage.cpu, their_idle.usage.cpu)
    initialise, theirs_too = ours.stage("initialise all"), first.stage("initialise all")
    if initialise and theirs_too:
        figure = "initialise all: time"
        yield _goal(ours, figure, INITIALISE_TIME, initialise.seconds, theirs_too.seconds)
    yield _goal(ours, "RSS, the most", MEMORY, _most(ours.stages), _most(first.stages))


def _most(stages: Sequence[Stage]) -> int:
    return max((stage.usage.rss_most for stage in stages), default=0)


def _goal(ours: SubjectFigures, figure: str, wanted: float, mine: float, theirs: float) -> Goal:
    share = mine / theirs if theirs else None
    at_most = f"at most {percent(wanted)} of the first subject's"
    reached = "nothing to compare with" if share is None else percent(share)
    return Goal(ours.name, figure, at_most, reached, share is not None and share <= wanted)


def percent(share: float) -> str:
    """Return a share in per cent with as many digits as matter."""
    value = 100 * share
    if value >= 9.95:  # noqa: PLR2004 - from ten on, whole numbers
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.95 else f"{value:.2g} %"  # noqa: PLR2004 - the same
