"""The controller as a process: credentials, metrics and probes, leader election, and the engine in the middle of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from harness.controller.shell import log as logs
from harness.controller.shell.counting import Counting
from harness.controller.shell.engine import Engine
from harness.controller.shell.guarded import Guarded
from harness.controller.shell.health import STANDBY, STARTING, Health, ListenError, serving
from harness.controller.shell.lease import Election, StuckError
from harness.controller.shell.meter import Meter
from harness.kube import config, in_cluster
from harness.kube.client import KubeClient
from harness.kube.errors import ConfigError, KubeError
from harness.kube.retry import Budget
from harness.kube.transport import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.options import Options
    from harness.kube.transport import Transport

USER_AGENT: Final = "rollout-drill-controller"
AT_ONCE: Final = Budget(total=0.0)
"""The election repeats its requests itself, within its own deadlines."""


def run(options: Options) -> int:
    """Run until SIGTERM or SIGINT. Return 0 then, and 1 after an error, which is logged."""
    with contextlib.ExitStack() as stack:
        stream = sys.stderr
        if options.log is not None:
            try:
                stream = stack.enter_context(options.log.open("a", encoding="utf-8"))
            except OSError as error:
                print(f"--log {options.log}: {error.strerror}", file=sys.stderr)  # noqa: T201 - there is no log
                return 1
        log = logs.to(stream, options.log_level)
        try:
            asyncio.run(_until_signal(options, log))
        except (ConfigError, ListenError) as error:
            log.error("stopped", message=str(error))  # noqa: TRY400 - a sentence for the user, no bug
            return 1
        except KubeError as error:
            log.exception("stopped", message=str(error))
            return 1
        except Exception:
            log.exception("crashed")
            return 1
        log.info("stopped")
    return 0


async def _until_signal(options: Options, log: Any) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    if task is None:
        msg = "not inside a task"
        raise RuntimeError(msg)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    log.info("starting", namespace=options.namespace)
    with contextlib.suppress(asyncio.CancelledError):
        try:
            await serve(options, log, time.time, await _transport(options))
        except StuckError as error:
            log.error("stopped", message=str(error))  # noqa: TRY400 - a sentence says it all
            os._exit(1)  # whatever hangs must not write once more


async def _transport(options: Options) -> Transport:
    if options.kubeconfig is None:
        return HttpTransport(await in_cluster.load())
    return HttpTransport(await config.load(options.kubeconfig, options.context))


async def serve(
    options: Options, log: Any, clock: Callable[[], float], transport: Transport
) -> None:
    """Run until cancelled, with everything that the options ask for. Closes `transport`. Raises ListenError, KubeError, StuckError."""
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(transport.close)
        term = _Term(options, log, clock)
        if options.metrics_port is not None:
            transport = await term.measure(transport, options.metrics_port, stack)
        if not options.leader_elect:
            await term.work(transport)
            return
        election = Election(
            KubeClient(transport, user_agent=USER_AGENT, budget=AT_ONCE),
            options.namespace,
            log,
            clock,
            name=options.lease_name,
            meter=term.meter,
        )
        guarded = Guarded(transport, election.holds)
        await election.run(lambda: term.work(guarded))


class _Term:
    """One engine after the other, and what is told of the present one."""

    def __init__(self, options: Options, log: Any, clock: Callable[[], float]) -> None:
        self._options = options
        self._log = log
        self._clock = clock
        self.meter = Meter()
        self._watches: dict[str, float] = {}
        self._engine: Engine | None = None

    async def measure(
        self, transport: Transport, port: int, stack: contextlib.AsyncExitStack
    ) -> Transport:
        """Open the port, and return a transport that counts."""
        from harness.controller.shell.metrics import Metrics

        self.meter = metrics = Metrics(self._clock)
        counting = Counting(transport, metrics)
        self._watches = counting.watches
        health = Health(counting.watches)
        health.waits_for = self._waits_for
        host = self._options.metrics_host
        port = await stack.enter_async_context(serving(health, metrics.text, host, port))
        self._log.info("listening", host=host, port=port)
        return counting

    async def work(self, transport: Transport) -> None:
        """Run an engine."""
        self.meter.leading(on=True)
        client = KubeClient(transport, user_agent=USER_AGENT)
        self._engine = Engine(client, self._options, self._log, self._clock, meter=self.meter)
        try:
            await self._engine.run()
        finally:
            self._engine = None
            self._watches.clear()

    def _waits_for(self) -> str:
        engine = self._engine
        if engine is None:
            return STANDBY if self._options.leader_elect else STARTING
        if engine.ready.is_set():
            return ""
        return f"not listed yet: {', '.join(sorted(engine.unsynced)) or 'nothing'}"
