"""Built-in checks of the traces that subject and drill leave: refused requests, and objects left behind."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from harness.model.clock import moment, span
from harness.model.outcome import Outcome
from harness.model.report import Finding, Left
from harness.model.timeline import Kept, Leftovers, SubjectState

if TYPE_CHECKING:
    from harness.checks.windows import Schedule
    from harness.model.timeline import Timeline

NOTHING_FORBIDDEN: Final = "nothing-forbidden"
NOTHING_LEFT: Final = "nothing-left"
_SHOWN: Final = 5


def nothing_forbidden(timeline: Timeline, schedule: Schedule) -> Finding | None:
    """Whether the API server refused the subject nothing while it was observed; teardown takes its rights away.

    None where the harness did not run the subject itself: then it cannot see what the subject is refused.
    """
    seen = timeline.observations[: schedule.over + 1]
    states = [state for state in seen if isinstance(state, SubjectState)]
    if not states:
        return None
    refused: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for state in states:
        if state.state == "forbidden":
            refused.setdefault(state.detail, state.t)
            counts[state.detail] += 1
    title = "The subject was refused nothing"
    if not refused:
        if not any(state.state == "started" for state in states):
            evidence = "the subject was never seen to start"
            return Finding(NOTHING_FORBIDDEN, title, Outcome.UNKNOWN, evidence, builtin=True)
        evidence = "no request was answered with Forbidden"
        return Finding(NOTHING_FORBIDDEN, title, Outcome.PASS, evidence, builtin=True)
    shown = [
        f"{detail} ({_times(counts[detail])} {moment(t)})"
        for detail, t in list(refused.items())[:_SHOWN]
    ]
    if len(refused) > _SHOWN:
        shown.append(f"{len(refused) - _SHOWN} more")
    evidence = f"refused: {'; '.join(shown)}"
    return Finding(NOTHING_FORBIDDEN, title, Outcome.FAIL, evidence, builtin=True)


def _times(count: int) -> str:
    return "at" if count == 1 else f"{count} times, first at"


def left(timeline: Timeline, *, began: bool, lost: bool) -> Left:
    """Return what the drill left, from the listing after teardown.

    Args:
        timeline: The recording.
        began: Whether the drill ever got to make anything.
        lost: Whether the recording just stops, so that no listing will ever come.
    """
    if timeline.of(Kept):
        return Left("kept")
    listings = timeline.of(Leftovers)
    if not listings:
        if began and lost:
            return Left("unlisted", error="the recording ends before teardown was over")
        return Left("pending" if began else "nothing-made")
    last = listings[-1]
    return Left(
        state="unlisted" if last.error else "listed",
        items=last.items,
        kinds_listed=last.kinds_listed,
        removed=dict(last.removed),
        seconds=last.seconds,
        error=last.error,
        refused=last.refused,
        explained=last.explained,
    )


def nothing_left(found: Left) -> Finding | None:
    """Whether nothing is left; None where nothing was made, or nothing was to be removed."""
    title = "Nothing that the drill created is left"
    if found.state in {"nothing-made", "kept"}:
        return None
    if found.state == "pending":
        outcome, evidence = Outcome.UNKNOWN, "teardown in progress"
    elif found.items:
        names = [_name(item) for item in found.items[:_SHOWN]]
        more = len(found.items) - _SHOWN
        names += [f"{more} more"] if more > 0 else []
        outcome, evidence = Outcome.FAIL, f"left behind: {'; '.join(names)}"
        if found.state == "unlisted":
            evidence += f"; the listing is incomplete: {found.error}"
    elif found.state == "unlisted":
        outcome, evidence = Outcome.UNKNOWN, f"could not be listed: {found.error}"
    elif not found.kinds_listed:
        outcome, evidence = Outcome.UNKNOWN, "no resource type was listed"
    else:
        removed = sum(found.removed.values())
        outcome = Outcome.PASS
        evidence = (
            f"{found.kinds_listed} resource types listed after teardown, which removed "
            f"{removed} {'object' if removed == 1 else 'objects'} in {span(found.seconds)}"
        )
        if found.refused:
            evidence += f"; not listed, since that is not allowed: {', '.join(found.refused)}"
    return Finding(NOTHING_LEFT, title, outcome, evidence, builtin=True)


def _name(item: object) -> str:
    row = item if isinstance(item, dict) else {}
    place = f"{row['namespace']}/" if row.get("namespace") else ""
    text = f"{row.get('kind', '?')} {place}{row.get('name', '?')}"
    if row.get("finalizers"):
        text += f" (finalizers: {', '.join(row['finalizers'])})"
    return f"{text}: {row['why']}" if row.get("why") else text
