"""The world outside the simulated cluster: hooks and metrics that answer after a while, or not at all, and who is told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.controller.core.analysis import metrics
from harness.controller.core.calls import Answer, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ANSWERED_AFTER = 0.1
GIVEN_UP_AFTER = 10.0


def yes() -> Answer:
    return Answer(0.0, ok=True)


def no(message: str = "answered 403") -> Answer:
    return Answer(0.0, ok=False, message=message)


def number(value: float) -> Answer:
    return Answer(0.0, ok=True, value=value)


def obliging(call: Call) -> Answer:
    """Every gate is open, every check passes, every metric is 100, and no rollback is asked for."""
    if call.kind == "metric":
        return number(100.0)
    return no() if call.entry.get("type") == "rollback" else yes()


def scripted(answers: Mapping[str, Answer | None]) -> Callable[[Call], Answer | None]:
    """Answers by name of hook or metric (None: it hangs); the others are obliging. The mapping may be changed later."""

    def answer(call: Call) -> Answer | None:
        return answers[call.name] if call.name in answers else obliging(call)

    return answer


def _late(call: Call, said: str) -> Answer:
    """What becomes of a call that hangs: of a metric, no verdict."""
    return metrics.undecided(said, 0.0, "TimedOut") if call.kind == "metric" else no(said)


@dataclass
class _Asked:
    call: Call
    due: float
    given_up: float


class Outside:
    """Calls under way and their answers, as the shell keeps them (`core/calls.py`)."""

    def __init__(self) -> None:
        self.hooks: Callable[[Call], Answer | None] = obliging
        """Asked when the answer is due; None: it still hangs."""
        self.delay = ANSWERED_AFTER
        self.timeout = GIVEN_UP_AFTER
        """Seconds until a call that hangs becomes an answer that says so."""
        self.calls: list[tuple[float, Call]] = []
        """Every call made, with its time."""
        self.replies: list[tuple[Call, Answer]] = []
        """Every answer that came, whether it was counted or lost."""
        self.answers: dict[str, Answer] = {}
        self._asked: dict[str, _Asked] = {}

    def ask(self, calls: tuple[Call, ...], now: float) -> None:
        """Make the calls that the last pass wants; those under way that it does not want any more are given up."""
        wanted = {call.key: call for call in calls if call.key not in self.answers}
        self._asked = {key: asked for key, asked in self._asked.items() if key in wanted}
        for key, call in wanted.items():
            if key not in self._asked:
                self._asked[key] = _Asked(call, now + self.delay, now + self.timeout)
                self.calls.append((now, call))

    def answer(self, now: float) -> bool:
        """Take in what is due; whether anything came."""
        came = False
        for key, asked in list(self._asked.items()):
            found = self.hooks(asked.call) if asked.due <= now else None
            if found is None and asked.given_up <= now:
                found = _late(asked.call, f"no answer within {self.timeout:g} s")
            if found is not None:
                self.answers[key] = replace(found, at=now)
                self.replies.append((asked.call, self.answers[key]))
                del self._asked[key]
                came = True
        return came

    def forget(self) -> None:
        """The status was written: what was answered is counted in it."""
        self.answers.clear()

    def lose(self) -> None:
        """The controller was killed."""
        self.answers.clear()
        self._asked.clear()

    def times(self, now: float) -> Iterator[float]:
        """When answers come, or calls are given up."""
        for asked in self._asked.values():
            yield asked.due if asked.due > now else asked.given_up
