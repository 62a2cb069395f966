"""Traffic on real pods: a pod in the drill's namespace asks a Service at a fixed rate, and its log is followed.

It begins before a step is over (`spec.traffic.after`), goes on until the settle time is, and goes with the drill's other objects.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TYPE_CHECKING, Final

from harness.checks.rollout import apex_name
from harness.kube.errors import ApiError, Unreachable
from harness.kube.resource import POD
from harness.kube.retry import repeatable
from harness.model.timeline import HarnessError, WatchState
from harness.model.traffic import TRAFFIC
from harness.run.adapt import adapted
from harness.run.identity import token
from harness.run.objects import RefusedError
from harness.run.traffic_lines import Lines
from harness.run.traffic_pod import CONTAINER, address, first_port, probe_pod, ran, trouble

if TYPE_CHECKING:
    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON
    from harness.model.traffic import Traffic
    from harness.run.adapt import Adaptation
    from harness.run.live import Live
    from harness.run.objects import Maker

RUNS_WITHIN: Final = 120.0
"""Seconds for the probe's container to be started; its image may have to be pulled."""
ANSWERED_WITHIN: Final = 60.0
"""Seconds from then on for the first answer."""
SILENCE: Final = 15.0
"""Seconds without a line after which a connection is taken for dead: there are several a second."""
PATIENCE: Final = 60.0
"""Seconds for which connections may fail, or end, without a new line."""
COMPLETE_WITHIN: Final = 5.0
"""Seconds, beside the timeout of a request, for the log to catch up with the end of what is judged."""
_PAUSES: Final = (0.2, 2.0)
_OVERLAP: Final = 3
"""Seconds of the log that are read again where it is followed anew; lines are numbered."""


class TrafficProbe:
    """The traffic of one drill: it `flows` from one step on, `complete` before what is judged ends, and `close` it."""

    def __init__(
        self,
        traffic: Traffic,
        *,
        client: KubeClient,
        maker: Maker,
        live: Live,
        namespace: str,
        image: str,
        adaptation: Adaptation,
    ) -> None:
        """`image` has the program of ours that asks."""
        self.traffic = traffic
        self._client = client
        self._maker = maker
        self._live = live
        self._namespace = namespace
        self._image = image
        self._adaptation = adaptation
        self._name = f"{TRAFFIC}-probe-{token(3)}"
        self._lines: Lines | None = None
        self._following: asyncio.Task[None] | None = None
        self._broken = ""
        """Why the log is not followed any more."""

    async def flows(self, step: str) -> bool:
        """Let the pod ask if it has to with this step, and return when the first request was answered and is recorded.

        False when the cluster does not run it; then that is recorded, and nothing can be said about the drill. Raises
        RefusedError when there is nobody to ask, or nobody answers: that is what came of the step.
        """
        if step != self.traffic.after:
            return True
        url = self._url()
        pod = probe_pod(self._name, self._image, url, self.traffic)
        (changed,), _ = adapted([pod], self._adaptation)
        try:
            await self._maker.apply(changed, self._namespace)
        except ApiError as error:
            # A quota, a policy: nothing that the subject could do about.
            self._failed(f"is refused: {error}")
            return False
        if not await self._live.wait_for(lambda: ran(self._pod()), RUNS_WITHIN):
            self._failed(f"was not started within {RUNS_WITHIN:g} s: {trouble(self._pod())}")
            return False
        lines = self._lines = Lines(url, self.traffic.rate, self._name)
        self._following = asyncio.create_task(self._follow(lines))
        first = asyncio.create_task(self._live.wait_for(lambda: lines.began, ANSWERED_WITHIN))
        # Who does not listen any more will hear of no answer.
        try:
            await asyncio.wait((first, self._following), return_when=asyncio.FIRST_COMPLETED)
        finally:
            first.cancel()
        if lines.began:
            return True
        if self._broken:
            self._failed(f"cannot be listened to: {self._broken}; {trouble(self._pod())}")
            return False
        told = f" (last: {lines.complaint})" if lines.complaint else ""
        msg = f"traffic: no request to {url} was answered within {ANSWERED_WITHIN:g} s{told}"
        raise RefusedError(msg)

    async def complete(self) -> None:
        """Wait until it is known what became of all requests so far; what is not known in time is a gap."""
        lines = self._lines
        if lines is None or not lines.began:
            return
        now = self._live.now()
        within = self.traffic.timeout + COMPLETE_WITHIN
        if not await self._live.wait_for(lambda: lines.until >= now, within):
            reason = self._broken or "the probe's log did not get that far in time"
            self._live.observe(
                WatchState(self._live.now(), TRAFFIC, "gap", min(lines.until, now), reason)
            )

    async def close(self) -> None:
        """Listen no more; closing twice does no harm."""
        if self._following is not None:
            self._following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._following

    def _url(self) -> str:
        given, state = self.traffic, self._live.state
        if given.service:
            service = given.service
        elif state.rollout is not None:
            service = apex_name(state.rollout, state.kind)
        else:
            msg = f"traffic: there is no {state.kind.kind}, whose Service could be asked"
            raise RefusedError(msg)
        port = given.port
        if not port:
            found = state.get("Service", service)
            port = 0 if found is None else first_port(found)
            if not port:
                what = "no Service" if found is None else "no port of Service"
                msg = f"traffic: there is {what} {service} to ask"
                raise RefusedError(msg)
        return address(service, port, given.path)

    def _pod(self) -> JSON | None:
        return self._live.state.get(POD.kind, self._name)

    def _failed(self, why: str) -> None:
        message = f"the probe of traffic (pod {self._name}, image {self._image}) {why}"
        self._live.observe(HarnessError(self._live.now(), message))

    async def _follow(self, lines: Lines) -> None:
        """Follow the log, anew where a connection breaks, until nothing has come for too long."""
        clock = asyncio.get_running_loop().time
        heard: float | None = None
        failing, pause = clock(), _PAUSES[0]
        while not lines.ended:
            problem = "the log ended"
            params = {"container": CONTAINER, "follow": "true"}
            if heard is not None:
                params["sinceSeconds"] = str(math.ceil(clock() - heard) + _OVERLAP)
            path = POD.path(self._namespace, self._name, "log")
            try:
                async with self._client.stream(
                    path, params, silence=SILENCE, accept="*/*"
                ) as stream:
                    async for line in stream:
                        for seen in lines.take(line, self._live.now()):
                            self._live.observe(seen)
                        heard = failing = clock()
                        pause = _PAUSES[0]
            except ValueError as error:
                problem = str(error)
            except (ApiError, Unreachable) as error:
                problem = str(error)
                if not repeatable(error, idempotent=True) and not _starting(error):
                    break
            if clock() - failing > PATIENCE:
                break
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])
        else:
            problem = "the probe ended by itself"
        self._broken = problem


def _starting(error: Exception) -> bool:
    """Return whether a refusal says that there is no log yet: the API server hears of a container later than of its pod."""
    return isinstance(error, ApiError) and error.status == 400  # noqa: PLR2004 - Bad Request
