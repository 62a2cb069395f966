"""What stands outside the cluster in one drill: its receiver and its metrics server, on loopback, from before the namespace to the end."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import TYPE_CHECKING

from harness.model.actions import ApplyAsStep, GateStep, MetricStep, PatchStep
from harness.model.standins import PROMETHEUS, RECEIVER, addressed
from harness.model.timeline import HarnessError
from harness.model.timeline_outside import Call, GateChanged, StandIn
from harness.programs.errors import ProgramError
from harness.programs.threads import in_thread
from harness.run.objects import RefusedError
from harness.run.queries import QueryLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.model.actions import Action
    from harness.model.resolved import Resolved
    from harness.run.live import Live
    from harness.standins.metrics_server import MetricsServer
    from harness.standins.receiver import Called, Receiver

BY_US = "an HTTP server of the harness"


class Outside:
    """Stand-ins of one drill, those that its scenario declares; without any it does nothing.

    `open` before manifests are rendered, `attach` once there is a timeline, `ready` before the subject starts, `close` at the end.
    """

    def __init__(self, resolved: Resolved, folder: Path, say: Callable[[str], None]) -> None:
        """`folder` is a private one of the drill's, for the data of a Prometheus."""
        self.addresses: dict[str, str] = {}
        """Name in templates -> address of the stand-in; from `open` on."""
        self._resolved = resolved
        self._folder = folder
        self._say = say
        self._live: Live | None = None
        self._receiver: Receiver | None = None
        self._metrics: MetricsServer | None = None
        self._queries = QueryLog()
        self._starting: asyncio.Task[None] | None = None
        self._strange: set[str] = set()

    @property
    def metrics_address(self) -> str:
        """Address of the metrics server; empty where there is none."""
        return self.addresses.get(PROMETHEUS, "")

    async def open(self) -> None:
        """Take the ports. Raises OSError."""
        if self._resolved.receiver is not None:
            from harness.standins.receiver import Receiver

            self._receiver = Receiver(self._resolved.receiver, self._called)
            await self._receiver.open()
            self.addresses[RECEIVER] = self._receiver.address
        if self._resolved.metrics is not None:
            from harness.standins.metrics_server import MetricsServer

            self._metrics = MetricsServer(
                self._resolved.metrics, self._folder, self._puzzled, self._queries.asked
            )
            await self._metrics.open()
            self.addresses[PROMETHEUS] = self._metrics.address

    def attach(self, live: Live, namespace: str) -> None:
        """Record from now on, and start what takes a moment, beside everything else."""
        self._live = live
        self._queries.attach(live)
        if self._receiver is not None:
            live.observe(StandIn(live.now(), "webhooks and alerts", BY_US))
        if self._metrics is not None:
            self._starting = asyncio.create_task(self._start(self._metrics, namespace))

    async def ready(self) -> None:
        """Wait until all are there. Raises RefusedError when one could not be started."""
        if self._starting is not None:
            await asyncio.shield(self._starting)

    async def told(self) -> None:
        """Wait until the metrics server tells the declared values, which takes it some seconds. Raises RefusedError."""
        from harness.standins.metrics_server import NotSeenError

        if self._metrics is not None:
            try:
                await self._metrics.told()
            except NotSeenError as error:
                raise RefusedError(str(error)) from error

    async def _start(self, metrics: MetricsServer, namespace: str) -> None:
        from harness.standins.prometheus_program import obtain

        program, why = None, ""
        try:
            program = await in_thread(lambda cancelled: obtain(self._say, cancelled))
        except ProgramError as error:
            why = f": {error}"
        try:
            await metrics.start(program, namespace)
        except (ProgramError, OSError) as error:
            msg = f"the metrics server could not be started: {error}"
            raise RefusedError(msg) from error
        self._queries.follow(metrics)
        if self._live is not None:
            by = f"{metrics.by}{why}"
            self._live.observe(StandIn(self._live.now(), "metrics", by, metrics.exact))

    async def complete(self) -> None:
        """Tell what was kept back to be told together; for the end of what is judged."""
        await self._queries.complete()

    async def close(self) -> None:
        """End them all; closing twice does no harm."""
        self._live = None
        await self._queries.close()
        if self._starting is not None:
            self._starting.cancel()
            # What it failed with was told by `ready`.
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._starting
        if self._metrics is not None:
            await self._metrics.close()
        if self._receiver is not None:
            await self._receiver.close()

    # ---- what steps do

    def change_gate(self, step: GateStep) -> str:
        """Let a gate answer differently; return how it did and does. Raises RefusedError."""
        try:
            if self._receiver is None:
                raise KeyError(step.name)  # noqa: TRY301 - the same to the user
            before = self._receiver.change(step.name, step.answer)
        except KeyError:
            msg = f"the scenario declares no gate {step.name!r}"
            raise RefusedError(msg) from None
        if self._live is not None:
            told = step.answer.text
            changed = GateChanged(self._live.now(), step.name, step.answer.answer, told)
            self._live.observe(changed)
        return f"{step.name}: {before.text} → {step.answer.text}"

    async def change_metrics(self, step: MetricStep) -> str:
        """Change metrics; return how they were and are, once that is told. Raises RefusedError."""
        from harness.standins.metrics_server import NotSeenError

        if self._metrics is None:
            msg = "the scenario declares no metrics"
            raise RefusedError(msg)
        try:
            return await self._metrics.change(step.values)
        except (NotSeenError, OSError) as error:
            raise RefusedError(str(error)) from error

    def localised(self, action: Action) -> Action:
        """Return an action with the stand-ins' real addresses in the place of placeholders."""
        if not self.addresses:
            return action
        if isinstance(action, PatchStep):
            merge, status = (
                addressed(part, self.addresses) for part in (action.merge, action.status)
            )
            return dataclasses.replace(action, merge=merge, status=status)
        if isinstance(action, ApplyAsStep):
            merge = addressed(action.merge, self.addresses)
            given = action
            return ApplyAsStep(
                given.manager, given.manifests, given.target, merge, given.force, given.prune
            )
        return action

    # ---- what they tell

    def _called(self, called: Called) -> None:
        live = self._live
        if live is not None:
            seconds = round(called.seconds, 4)
            live.observe(
                Call(live.now(), called.sort, called.gate, called.status, seconds, **called.fields)
            )

    def _puzzled(self, query: str) -> None:
        live = self._live
        if live is not None and query not in self._strange:
            self._strange.add(query)
            message = (
                f"the stand-in for a Prometheus cannot answer {query!r}, so nothing can be said about this drill; "
                "install prometheus, or name one with DRILL_PROMETHEUS=FILE"
            )
            live.observe(HarnessError(live.now(), message))
