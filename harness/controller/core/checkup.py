"""One round of questions: what hooks and metrics say at this moment of a Canary's life (spec canary-api 5 and 6, state-machine 2).

Questions are asked one after the other, and the first answer that decides ends the round. Nothing is remembered but the answers
themselves: whoever asks again with the same answers comes to the same result. A round that ends in a closed gate writes nothing new
to the status, so the next one, an interval later, is told apart by its number. So does a round without a verdict: metrics whose provider
has too much to do (429, time-outs) neither fail nor pass, and the round is made again when the provider wants to be asked again. A check that
does fail decides all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from harness.controller.core.analysis import metrics, webhooks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.controller.core.calls import Answer, Call, Undecided
    from harness.controller.core.decision import JSON

Outcome = Literal["asking", "passed", "failed", "held", "rollback", "unmeasured"]
STEADY: Final = "steady"
"""The gate that is no hook."""


@dataclass(frozen=True, slots=True)
class Checkup:
    """What a round came to."""

    outcome: Outcome
    pending: Call | None = None
    """The next question; only while asking."""
    gate: str = ""
    """Type of the hook that decided: confirm-promotion and so on."""
    name: str = ""
    """The hook's or the metric's name."""
    message: str = ""
    """Why, in words for people."""
    muted: bool = False
    """The hook asks not to raise an alert."""
    again_in: float | None = None
    """Held and unmeasured: seconds until the next round."""
    undecided: Undecided = ""
    """Unmeasured: why. Failed: that this is no verdict either, and counts only because it has lasted for too long."""


class _Pending(Exception):  # noqa: N818 - not an error: the round goes on when the answer is there
    def __init__(self, call: Call) -> None:
        self.call = call


@dataclass(frozen=True, slots=True)
class Moment:
    """When questions are asked, and about what."""

    canary: JSON
    answers: Mapping[str, Answer]
    occasion: str
    """Names the stay in a phase and the counters: other questions at another occasion."""
    phase: str
    """The Canary's present phase; confirm-rollout and rollback hooks are told of it."""
    interval: float
    """Seconds between two rounds while a gate is closed."""
    now: float
    revision: str = ""
    """The Knative revision under analysis, for metrics."""
    patience: float = 0.0
    """Seconds for which no verdict is no failed check (`Policy.no_verdict_timeout`)."""
    unmeasured_since: float | None = None
    """Since when there has been no verdict, as the status says."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which questions make up a round."""

    rollback: bool = False
    pre_rollout: bool = False
    checks: bool = False
    """rollout hooks, then metrics."""
    gates: tuple[str, ...] = ()
    """Hooks that must agree in the end: confirm-rollout, confirm-traffic-increase, confirm-promotion."""
    unsteady: bool = False
    """The target has yet to prove that its readiness lasts: a round that passes is held, as by a gate, and made again (case C11)."""


def examine(moment: Moment, plan: Plan) -> Checkup:
    """Return what the present round says; `asking` when an answer is missing."""
    number = _newest(moment)
    while True:
        asked = _Round(moment, number)
        try:
            result = asked.result(plan)
        except _Pending as missing:
            return Checkup("asking", missing.call)
        if result.outcome not in ("held", "unmeasured"):
            return result
        wait = moment.interval if result.again_in is None else result.again_in
        again = (asked.last or moment.now) + wait - moment.now
        if again > 0:
            return replace(result, again_in=again)
        number += 1


def _newest(moment: Moment) -> int:
    """Return the number of the newest round of this occasion that has an answer."""
    begin = f"{moment.occasion}|"
    marks = (key.rpartition(begin)[2] for key in moment.answers if begin in key)
    return max((int(mark.partition("|")[0]) for mark in marks), default=0)


def after(moment: Moment, phase: str) -> Checkup:
    """Return how the post-rollout hooks went, told of the phase that the run ended in; the first that fails ends it."""
    asked = _Round(moment, 0)
    try:
        failed = asked.hooks("post-rollout", phase)
    except _Pending as missing:
        return Checkup("asking", missing.call)
    return failed or Checkup("passed")


class _Round:
    """The questions of one round, with the answers that there are."""

    def __init__(self, moment: Moment, number: int) -> None:
        self._moment = moment
        self._occasion = f"{moment.occasion}|{number}"
        self.last = 0.0
        """When the newest answer came."""

    def result(self, plan: Plan) -> Checkup:
        """Ask everything in order. Raises _Pending."""
        live = self._moment.phase
        if plan.rollback and (hit := self._agreed("rollback", live)):
            return hit
        if plan.pre_rollout and (failed := self.hooks("pre-rollout", "Progressing")):
            return failed
        if plan.checks:
            failed = self.hooks("rollout", "Progressing") or self._metrics()
            if failed:
                return failed
        for gate in plan.gates:
            phase = live if gate == "confirm-rollout" else "Progressing"
            if refused := self.hooks(gate, phase, outcome="held"):
                return refused
        return Checkup("held", gate=STEADY) if plan.unsteady else Checkup("passed")

    def hooks(self, kind: str, phase: str, outcome: Outcome = "failed") -> Checkup | None:
        """Return the first hook that does not agree, or None."""
        for hook, answer in self._each(kind, phase):
            if not answer.ok:
                return self._of(outcome, kind, hook, answer)
        return None

    def _agreed(self, kind: str, phase: str) -> Checkup | None:
        """Return the first hook that does agree, or None."""
        for hook, answer in self._each(kind, phase):
            if answer.ok:
                return self._of("rollback", kind, hook, answer)
        return None

    def _metrics(self) -> Checkup | None:
        """Return the first check that fails, or that there is no verdict; None when all pass."""
        open_: list[tuple[JSON, Answer]] = []
        for index, entry in enumerate(metrics.entries(self._moment.canary)):
            occasion = f"{self._occasion}|{index}"
            call = metrics.call(
                self._moment.canary, entry, occasion, revision=self._moment.revision
            )
            answer = self._answer(call)
            if answer.undecided and self._moment.patience > 0:
                open_.append((entry, answer))
                continue
            good, message = metrics.verdict(entry, answer)
            if not good:
                return Checkup("failed", name=str(entry.get("name") or ""), message=message)
        return self._undecided(open_) if open_ else None

    def _undecided(self, open_: list[tuple[JSON, Answer]]) -> Checkup:
        """Return what comes of metrics without a verdict: another round, or a failed check when that has lasted for too long."""
        moment = self._moment
        entry, answer = open_[0]
        _, message = metrics.verdict(entry, answer)
        name = str(entry.get("name") or "")
        since = moment.unmeasured_since
        # By the time of the answers: the same ones must never come to another result only because time has passed.
        if since is not None and self.last - since >= moment.patience:
            message += f" (no verdict for {moment.patience:g} s, which counts as a failed check)"
            return Checkup("failed", name=name, message=message, undecided=answer.undecided)
        waits = (moment.interval if a.retry_after is None else a.retry_after for _, a in open_)
        return Checkup(
            "unmeasured",
            name=name,
            message=message,
            again_in=max(waits),
            undecided=answer.undecided,
        )

    def _each(self, kind: str, phase: str) -> Iterator[tuple[JSON, Answer]]:
        """Yield each hook with its answer. Lazily: one is only called when those before it did not decide."""
        canary = self._moment.canary
        for index, hook in enumerate(webhooks.hooks(canary, kind)):
            occasion = f"{self._occasion}|{index}"
            yield hook, self._answer(webhooks.call(canary, hook, phase, occasion))

    def _answer(self, call: Call) -> Answer:
        answer = self._moment.answers.get(call.key)
        if answer is None:
            raise _Pending(call)
        self.last = max(self.last, answer.at)
        return answer

    @staticmethod
    def _of(outcome: Outcome, kind: str, hook: JSON, answer: Answer) -> Checkup:
        name = str(hook.get("name") or "")
        return Checkup(outcome, None, kind, name, answer.message, webhooks.muted(hook))
