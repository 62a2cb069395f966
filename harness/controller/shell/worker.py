"""One worker per Canary: passes strictly one after the other, woken by watches, by writes and by time."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import Note, decide, schema
from harness.controller.core.analysis import metrics
from harness.controller.shell.cache import CANARIES, Cache
from harness.controller.shell.questions import Questions
from harness.controller.shell.writer import terminating
from harness.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    ServerError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.controller.core import Decision, World
    from harness.controller.core.calls import Answer, Call
    from harness.controller.core.decision import JSON
    from harness.controller.shell.calls import Calls
    from harness.controller.shell.fence_field import FenceField
    from harness.controller.shell.line import Line
    from harness.controller.shell.meter import Meter, Turns
    from harness.controller.shell.reader import Reader
    from harness.controller.shell.schema import Schema
    from harness.controller.shell.writer import Writer

AFTER_CONFLICT: Final = 0.5
"""Seconds to wait for the watch after a conflict, in case it has nothing to bring."""
FIRST_RETRY: Final = 0.5
LONGEST_RETRY: Final = 30.0
"""Seconds; a refused write is tried again after 0.5, 1, 2 … 30 s, or when something moves."""
MAX_STRAIGHT: Final = 50
"""Passes in a row without a pause. A run needs a dozen; more means that a write does not stick."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What the workers of one controller share."""

    cache: Cache
    writer: Writer
    reader: Reader
    calls: Calls
    fence_field: FenceField
    schema: Schema
    meter: Meter
    turns: Turns
    """First come, first served: nobody starves, and whoever has a turn finishes its pass."""
    line: Line | None
    """Who may analyse; None: everybody."""
    log: Any
    clock: Callable[[], float]


class Worker:
    """Drives one Canary until it is gone."""

    def __init__(self, name: str, tools: Tools) -> None:
        self.name = name
        self._tools = tools
        self._wake = asyncio.Event()
        self._failures = 0
        self._straight = 0
        self._last_row = ""
        self._last_look: tuple[str, ...] = ()
        self._tracking_refused = 0
        self._held_until = 0.0
        """Until when tracking is left out, because writing it was refused."""
        self._questions = Questions(self._ask, self.wake)
        self._admitted = 0
        """Generation of the Canary whose metrics were looked at."""
        self._unmeasurable = ""
        self._wishes: tuple[object, ...] = ()
        """What of the Canary the installed CRD was asked about, with the generation."""
        self._crd_drops: tuple[str, ...] = ()
        self._refused_write = ""
        """What the API server said when it refused the last write, until one goes through."""
        self._asked_turn = self._keeps_turn = False
        """Whether the present pass asked the line for a turn; whether it goes on with it later."""
        self._sure = True
        """Whether it is known what the present pass has written."""

    def wake(self) -> None:
        """Ask for a pass; several requests while one is under way give one more."""
        self._wake.set()

    async def run(self) -> None:
        """Make passes until the Canary is deleted."""
        self.wake()
        pause: float | None = None
        try:
            while True:
                await self._sleep(pause)
                canary = self._tools.cache.get(CANARIES, self.name)
                if canary is None:
                    return
                self._tools.meter.saw(canary)
                self._asked_turn = self._keeps_turn = False
                self._sure = True
                if self._tools.cache.missing(canary):
                    pause = None  # the list of what it needs is on its way, and wakes us
                    self._tell_line()
                    continue
                pause = await self._timed(canary)
                self._tell_line()
        finally:
            self._tools.meter.forget(self.name)
            await self._questions.close()

    async def _timed(self, canary: JSON) -> float | None:
        begin = self._tools.clock()
        try:
            return await self._pass(canary)
        finally:
            self._tools.meter.passed(self.name, self._tools.clock() - begin, self._last_row)

    async def _ask(self, call: Call) -> Answer:
        canary = self._tools.cache.get(CANARIES, self.name) or {"metadata": {"name": self.name}}
        begin = self._tools.clock()
        answer = await self._tools.calls.carry_out(call, canary)
        self._tools.meter.called(call.kind, self._tools.clock() - begin, ok=answer.ok)
        if answer.value is not None:
            self._tools.meter.measured(canary, call.name, answer.value)
        return answer

    async def _sleep(self, pause: float | None) -> None:
        if pause is None:
            await self._wake.wait()
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
        self._wake.clear()

    async def _pass(self, canary: JSON) -> float | None:
        """Make one pass; return the seconds until the next one is due, None for when something moves."""
        decision = None
        try:
            canary = await self._admit(canary)
            await self._complete(canary)
            decision = self._decide(canary)
            self._questions.asked(decision.calls)
            if _idle(decision):
                self._log(canary, decision)
            else:
                async with self._tools.turns:
                    # Waiting for the turn may have taken a while.
                    canary = self._tools.cache.get(CANARIES, self.name) or canary
                    if self._tools.cache.missing(canary):
                        return None
                    await self._complete(canary)
                    decision = await self._decide_anew(canary)
                    self._log(canary, decision)
                    await self._tools.writer.carry_out(canary, decision)
        except Conflict:
            self._sure = False
            return AFTER_CONFLICT
        except KubeError as error:
            self._sure = _refusal(error) is not None or not _unclear(error)
            if (reason := _refusal(error)) is not None:
                self._refused_write = reason
                self._wishes = ()  # the CRD may be another one by now
                if canary["metadata"].get("deletionTimestamp"):
                    # Otherwise the next pass says it, and keeps it in a condition for as long as it lasts.
                    await self._say_refused(canary, reason)
            return self._refused(decision)
        except Exception:
            # A Canary that cannot be understood must not stop the others.
            self._tools.log.exception("pass failed", canary=self.name)
            return self._backoff()
        return self._next(decision)

    async def _admit(self, canary: JSON) -> JSON:
        """Find out whether every metric can be measured, once for each version of the spec, and again while one cannot (G1).

        The same for what the installed CRD must have a place for; an apply that the CRD took the wish out of has no generation of its own.
        """
        canary = await self._served(canary) if self._crd_drops else canary
        generation = int(canary["metadata"].get("generation") or 0)
        wishes = (generation, *schema.wishes(canary))
        if wishes != self._wishes or self._crd_drops:
            self._crd_drops = await self._tools.schema.drops(canary)
            self._wishes = wishes
        if generation == self._admitted and not self._unmeasurable:
            return canary
        if any(metrics.source(entry) == "template" for entry in metrics.entries(canary)):
            self._unmeasurable = await self._tools.calls.unsupported(canary)
        else:
            self._unmeasurable = ""
        self._admitted = generation
        return canary

    async def _served(self, canary: JSON) -> JSON:
        """Read a Canary anew that is refused for what the CRD drops: the next CRD serves more of it. Raises KubeError."""
        served = await self._tools.reader.canary(self.name)
        if served is None:
            return canary
        self._tools.cache.renew(served)
        return self._tools.cache.get(CANARIES, self.name) or canary

    async def _complete(self, canary: JSON) -> None:
        """Read the configs that the target has begun to refer to since their kind was listed. Raises KubeError."""
        cache, reader = self._tools.cache, self._tools.reader
        while unread := cache.unread(canary):
            for key in unread:
                cache.read(key, await reader.config(*key))

    def _next(self, decision: Decision) -> float | None:
        """Return the pause after a pass that was carried out."""
        self._failures = 0
        self._keeps_turn = self._asked_turn and bool(decision.calls or decision.writes)
        if not decision.writes and decision.status is None:
            self._straight = 0
            due = self._until_due(decision.requeue_after)
            unsupported = bool(self._unmeasurable or self._crd_drops)
            return LONGEST_RETRY if due is None and unsupported else due
        if decision.writes:
            self._refused_write = ""
        if decision.tracking:
            self._tracking_refused = 0
        if decision.status is not None and not decision.keeps_answers:
            self._questions.forget()
        self._straight += 1
        if self._straight > MAX_STRAIGHT:
            self._tools.log.error("not settling", canary=self.name, row=decision.row)
            self._straight = 0
            return LONGEST_RETRY
        return 0.0  # what was written is in the cache: go on at once

    def _decide(
        self,
        canary: JSON,
        revisions: Sequence[JSON] | None = None,
        ready_pods: int | None = None,
    ) -> Decision:
        world = replace(self._world(canary), revisions=revisions, ready_pods=ready_pods)
        now = self._tools.clock()
        decision = decide(world, canary, now)
        if decision.asks_turn and self._tools.line is not None:
            self._asked_turn = True
            decision = decide(replace(world, turn=self._tools.line.ask(canary, now)), canary, now)
        return decision

    def _tell_line(self) -> None:
        """Tell the line that the pass is over."""
        if self._tools.line is None:
            return
        canary = self._tools.cache.get(CANARIES, self.name)
        self._tools.line.passed(
            self.name, canary, asked=self._asked_turn, keeps=self._keeps_turn, sure=self._sure
        )

    async def _decide_anew(self, canary: JSON) -> Decision:
        decision = self._decide(canary)
        target = self._tools.cache.target(canary)
        if target is None:
            return decision
        if decision.reads_pods:
            return self._decide(
                canary, ready_pods=await self._tools.reader.ready_pods(target, decision.pods)
            )
        if decision.reads_revisions:
            return self._decide(canary, await self._tools.reader.revisions(target))
        return decision

    def _world(self, canary: JSON) -> World:
        return replace(
            self._tools.cache.world(canary),
            prunes_fence=self._tools.fence_field.pruned,
            tracking_held=self._held,
            answers=self._questions.answers,
            unmeasurable=self._unmeasurable,
            crd_drops=self._crd_drops,
            refused_write=self._refused_write,
        )

    @property
    def _held(self) -> bool:
        return self._tools.clock() < self._held_until

    def _until_due(self, due: float | None) -> float | None:
        """Return the earlier of what the decision waits for and the next attempt to write tracking."""
        if not self._held:
            return due
        held = self._held_until - self._tools.clock()
        return held if due is None else min(due, held)

    def _refused(self, decision: Decision | None) -> float:
        """Return when to try again. Tracking alone holds nothing up: the next pass comes at once and goes on without."""
        if decision is None or not decision.tracking:
            return self._backoff()
        self._tracking_refused += 1
        self._held_until = self._tools.clock() + _pause(self._tracking_refused)
        self._tools.log.warning("tracking not written", canary=self.name, row=decision.row)
        return 0.0

    def _backoff(self) -> float:
        self._failures += 1
        return _pause(self._failures)

    def _log(self, canary: JSON, decision: Decision) -> None:
        """Tell the row that decided, and that this Canary was looked at: once for each state of it and its target."""
        log = self._tools.log
        target = self._tools.cache.target(canary)
        look = (decision.looked, _version(canary), _version(target))
        if decision.looked and look != self._last_look:
            log.info("looked", canary=self.name, row=decision.looked)
            self._last_look = look
        busy = bool(decision.writes) or decision.status is not None
        if busy or decision.row != self._last_row:
            phase = (canary.get("status") or {}).get("phase") or ""
            log.info("pass", canary=self.name, phase=phase, row=decision.row)
        self._last_row = decision.row

    async def _say_refused(self, canary: JSON, reason: str) -> None:
        text = f"The API server refuses a write: {reason}"
        await self._tools.writer.note(canary, Note("Warning", text, f"invalid|{reason}"))


def _refusal(error: KubeError) -> str | None:
    """Return what people have to do something about: an object that is refused (a quota, a policy, a permission), or a policy that is down."""
    if isinstance(error, ServerError):
        return error.message if "webhook" in error.message else None
    if isinstance(error, Invalid | Forbidden) and not terminating(error):
        return error.message
    return None


def _unclear(error: KubeError) -> bool:
    """Whether a write may have been carried out all the same: no answer came, or one that does not say."""
    return isinstance(error, ServerError) or not isinstance(error, ApiError)


def _pause(failures: int) -> float:
    return float(min(FIRST_RETRY * 2 ** min(failures - 1, 10), LONGEST_RETRY))


def _idle(decision: Decision) -> bool:
    acts = decision.writes or decision.notes or decision.reads_revisions or decision.reads_pods
    return not acts and decision.status is None


def _version(obj: JSON | None) -> str:
    return str(obj["metadata"].get("resourceVersion") or "") if obj else ""
