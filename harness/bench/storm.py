"""The storm: everything that happens to one subject, stage by stage."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from harness.bench import audit, population
from harness.bench.figures import Change
from harness.bench.following import Following
from harness.bench.ledger import Ledger
from harness.bench.machine import Machine
from harness.bench.meter import Meter
from harness.bench.model import Profile, SubjectFigures
from harness.bench.parallel import each
from harness.bench.profiles import ProfiledBundled
from harness.bench.requests_log import RequestsLog
from harness.kube.errors import Unreachable
from harness.kube.resource import CANARY, DEPLOYMENT
from harness.run.identity import FIELD_MANAGER
from harness.subjects.base import Access, SubjectError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.bench.ledger import Open
    from harness.bench.plan import StormPlan
    from harness.bench.scene import Scene
    from harness.subjects.base import Subject, SubjectEvent

CALM: Final = 2.0
"""Seconds without a change of any rollout object, after which a restarted subject counts as done."""
CALM_WITHIN: Final = 10.0
LISTED_WITHIN: Final = 30.0
LOOK_SECONDS: Final = 0.25
"""How often the audit log is looked into for what a restarted subject has looked at."""
LOOKED_WITHIN: Final = 60.0
LOOKED_PER_CANARY: Final = 0.5
ENDED_WITHIN: Final = 600.0
ENDED_PER_CANARY: Final = 4.0
"""Seconds that a stage may take, at least and for each object: enough for a subject that polls, on a busy machine."""
STALLED_AFTER: Final = 300.0
"""Seconds without a change of any rollout object, after which whoever has not got there by then will not any more."""
FIRST_PHASE: Final = "Initialized"
LAST_PHASE: Final = "Succeeded"


class Storm:
    """One subject in the storm. Every wait is bounded; a stage whose objects do not all end is the last one."""

    def __init__(
        self, scene: Scene, subject: Subject, plan: StormPlan, say: Callable[[str], None]
    ) -> None:
        self._scene = scene
        self._subject = subject
        self._plan = plan
        self._say = say
        self._names = population.names(plan.canaries)
        self._meter = Meter()
        self._log = RequestsLog(scene.audit_log, scene.user)
        self._looked: set[str] = set()
        """Objects that the running subject says it looked at."""
        self._problems: list[str] = []
        self._following = Following(subject.facts.rollout)
        self._ledger = Ledger(
            self._meter, Machine(scene.parts), self._log, self._following, self._profile
        )

    async def run(self) -> SubjectFigures:
        """Run all stages and return the figures. The subject is stopped by then, whatever happens.

        Raises KubeError, and SubjectError when it does not even start.
        """
        scene, subject = self._scene, self._subject
        watching = asyncio.create_task(self._meter.watch())
        try:
            async with self._following.watching(scene.client, scene.namespace):
                await self._watched()
                await self._start()
                try:
                    await self._all_stages()
                except SubjectError as error:
                    # It was there and is no more: that is its failure, and what was measured by then counts.
                    self._problems.append(str(error))
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            self._log.close()
            await subject.stop()
        return self.figures

    @property
    def figures(self) -> SubjectFigures:
        """What was measured so far."""
        facts, ledger = self._subject.facts, self._ledger
        return SubjectFigures(
            facts.name,
            facts.version,
            tuple(ledger.stages),
            tuple(self._problems),
            tuple(ledger.profiles),
        )

    async def _watched(self) -> None:
        """Wait until the watch has begun. A CRD that was installed a moment ago is served with errors at first, which are no figures."""
        following = self._following
        if not await following.until(lambda: following.listed, LISTED_WITHIN, lambda: None):
            kind = self._subject.facts.rollout.kind
            msg = f"no watch of every {kind} could be opened within {LISTED_WITHIN:g} s"
            raise Unreachable(msg)

    async def _all_stages(self) -> None:
        if not await self._initialise():
            return
        await self._idle()
        if not await self._promote():
            return
        if self._plan.upgrade:
            await self._restarts("upgrade", 1)
        if self._plan.restarts:
            await self._restarts("restart loop", self._plan.restarts)

    # ---- the stages

    async def _initialise(self) -> bool:
        stage = await self._begin("initialise all")
        client, namespace = self._scene.client, self._scene.namespace

        async def make(name: str) -> None:
            sent = _now()
            target = population.workload(name, namespace)
            await client.create(DEPLOYMENT, target, field_manager=FIELD_MANAGER)
            canary = population.rollout(name, namespace)
            await client.create(CANARY, canary, field_manager=FIELD_MANAGER)
            stage.changes[name] = Change(sent, _now())

        await each(self._names, make)
        return await self._all_in(stage, FIRST_PHASE)

    async def _idle(self) -> None:
        stage = await self._begin("idle")
        stage.ended = len(self._names)
        await self._following.rest(self._plan.idle)
        await self._end(stage, settle=0.0)

    async def _promote(self) -> bool:
        stage = await self._begin("promote all")
        client, namespace = self._scene.client, self._scene.namespace
        patch = population.change("2")

        async def change(name: str) -> None:
            sent = _now()
            await client.patch(DEPLOYMENT, name, namespace, patch, field_manager=FIELD_MANAGER)
            stage.changes[name] = Change(sent, _now())

        await each(self._names, change)
        return await self._all_in(stage, LAST_PHASE)

    async def _restarts(self, name: str, times: int) -> None:
        stage = await self._begin(name)
        stage.ended = stage.looked = len(self._names)
        for number in range(times):
            since, looked = await self._restart(stage)
            await self._following.rest(CALM_WITHIN, CALM)
            self._log.read()
            sent = audit.within(self._log.sent, since, time.time())
            stage.starts += 1
            stage.looked = min(stage.looked, looked)
            stage.writes += (sum(request.write for request in sent),)
            self._tell(
                stage,
                f"start {number + 1} of {times}: {looked} looked at, {stage.writes[-1]} writes",
            )
        if stage.looked < len(self._names):
            self._problems.append(
                f"{name}: after a start only {stage.looked} of {len(self._names)} were provably looked at"
            )
        await self._end(stage)

    # ---- their parts

    async def _all_in(self, stage: Open, phase: str) -> bool:
        """Wait until every object is in `phase`, and end the stage."""
        board, wanted = self._following.board, len(self._names)
        began = max(board.moved, _now())
        limit = ENDED_WITHIN + ENDED_PER_CANARY * wanted

        def stalled() -> bool:
            return _now() - max(board.moved, began) >= STALLED_AFTER

        await self._following.until(
            lambda: board.inside(phase) >= wanted or stalled(),
            limit,
            lambda: self._tell(stage, f"{board.inside(phase)} of {wanted} {phase}"),
        )
        stage.ended = board.inside(phase)
        if stage.ended < wanted:
            why = (
                f"nothing moved for {STALLED_AFTER:.0f} s" if stalled() else f"after {limit:.0f} s"
            )
            self._problems.append(
                f"{stage.name}: {wanted - stage.ended} of {wanted} did not get to {phase} "
                f"({why}; seen last: {board.outside(phase)})"
            )
        await self._end(stage, phase)
        return stage.ended >= wanted

    async def _restart(self, stage: Open) -> tuple[float, int]:
        """Stop the subject and start it again; return when that was (since the epoch), and how many objects it has looked at since."""
        self._meter.dismiss()
        await self._subject.stop()
        # What was sent before the stop is no look after it.
        self._log.read()
        since = time.time()
        wanted, read = len(self._names), len(self._log.sent)
        suffix = self._subject.facts.rollout.primary_suffix
        seen: set[str] = set()
        await self._start()

        def all_looked_at() -> bool:
            nonlocal read
            self._log.read()
            seen.update(self._looked, audit.naming(self._log.sent[read:], self._names, suffix))
            read = len(self._log.sent)
            return len(seen) >= wanted

        await self._following.until(
            all_looked_at,
            LOOKED_WITHIN + LOOKED_PER_CANARY * wanted,
            lambda: self._tell(stage, f"{len(seen)} of {wanted} looked at"),
            LOOK_SECONDS,
        )
        stage.looked_after += (time.time() - since,)
        return since, len(seen)

    async def _start(self) -> None:
        scene = self._scene
        self._looked = set()
        self._meter.expect()
        access = Access(scene.kubeconfig, scene.namespace, scene.log)
        await self._subject.start(access, self._notify)
        self._meter.adopt()

    def _notify(self, event: SubjectEvent, detail: str) -> None:
        match event:
            case "looked":
                self._looked.add(detail.partition(" ")[0])
            case "exited":
                self._following.fail(SubjectError(f"the subject ended by itself ({detail})"))
            case "forbidden":
                told = f"the subject was refused: {detail}"
                if told not in self._problems:
                    self._problems.append(told)
            case _:
                pass

    async def _begin(self, name: str) -> Open:
        stage = await self._ledger.begin(name)
        self._tell(stage, "begins")
        return stage

    async def _end(self, stage: Open, phase: str = "", **settle: float) -> None:
        took = stage.seconds
        await self._ledger.end(stage, phase, **settle)
        figures = self._ledger.stages[-1]
        if figures.unasked:
            self._problems.append(
                f"{stage.name}: {figures.unasked} analyses began although nothing had changed"
            )
        self._say(
            f"{self._subject.facts.name}: {stage.name}: took {took:.1f} s; {figures.requests.total} requests, "
            f"{figures.usage.cpu:.1f} CPU seconds"
        )

    async def _profile(self, stage: str) -> Profile | None:
        if isinstance(self._subject, ProfiledBundled):
            return await self._subject.take(self._meter.processes, stage)
        return None

    def _tell(self, stage: Open, text: str) -> None:
        self._log.read()
        self._say(f"{self._subject.facts.name}: {stage.name}: {text} ({stage.seconds:.0f} s)")


def _now() -> float:
    return asyncio.get_running_loop().time()
