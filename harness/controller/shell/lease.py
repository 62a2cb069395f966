"""Leader election: of several processes only the one that holds a Lease works (`coordination.k8s.io/v1`).

What makes two leaders at once impossible:

- A leader counts from the moment *before* it sent the renewal that succeeded, and stops working when 2/3 of the duration have passed
  since. The others count from when they *saw* the Lease change, which is later, and wait for the whole duration. The third between is
  for work that has to be cancelled, and for clocks that run at different speeds.
- Only this machine's monotonic clock is compared, never a time that somebody else wrote: wrong clocks do no harm. The times in the Lease are
  for people.
- Every write names the version that it was decided on, so that of two who try at the same time one is refused.
- A process that was stopped for a while (SIGSTOP, a frozen virtual machine) may wake up anywhere in its work. `Election.holds` is asked before
  each write (`harness.controller.shell.guarded`), and says no by the clock alone.

The election of the Kubernetes library keeps time by the wall clock, may renew beyond its own deadline, neither waits for the work to end nor
gives the Lease back, and reads models instead of raw objects.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from harness.controller.shell.meter import Meter
from harness.kube.errors import Conflict, KubeError, NotFound
from harness.kube.resource import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

LEASE_NAME: Final = "rollout-drill-controller"
_MANAGER: Final = "rollout-drill-controller"


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of the election, in seconds.

    `duration` is written into the Lease; the holder renews every third of it and gives up after two thirds without success. `poll` is how often the
    others look, and so how long they may take to notice that the Lease was given back. `retry` lies between two attempts to renew.
    """

    duration: int = 15
    poll: float = 2.0
    retry: float = 1.0
    release: float = 3.0
    """How long giving the Lease back may take."""

    @property
    def renew(self) -> float:
        """Seconds between two renewals."""
        return self.duration / 3

    @property
    def give_up(self) -> float:
        """Seconds since the last renewal after which the holder stops working."""
        return self.duration * 2 / 3


DEFAULT: Final = Timing()


class LostError(Exception):
    """The Lease is no longer ours; the message says why."""


class StuckError(Exception):
    """The work did not end in time after the Lease was lost: only the end of the process can make sure that it writes nothing more."""


def identity() -> str:
    """Return a name for this process that no other one has: host, process, and a random part."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


class Election:
    """One candidate for one Lease.

    `now` is the wall clock (seconds since the epoch), only ever written down. `meter` is told who works.
    """

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        log: Any,
        now: Callable[[], float],
        *,
        name: str = LEASE_NAME,
        me: str | None = None,
        timing: Timing = DEFAULT,
        meter: Meter | None = None,
    ) -> None:
        self.me = me or identity()
        self._client = client
        self._namespace = namespace
        self._name = name
        self._log = log
        self._now = now
        self._timing = timing
        self._meter = meter or Meter()
        self._lease: JSON | None = None
        """As last seen; None when there is none, or nothing is known."""
        self._seen: tuple[str, str] = ("", "")
        """Holder and version as last seen."""
        self._seen_at = 0.0
        """When that was seen for the first time, by the loop's clock."""
        self._patience = 0.0
        """How long the holder may stay silent, as it wrote down itself."""
        self._renewed: float | None = None
        """When the last successful renewal was begun; None while this process is no holder."""
        self._touched = False
        """A write of ours may have made us the holder, even if no answer said so."""
        self._problem = ""

    def holds(self) -> bool:
        """Return whether this process may write now. Asks nobody but the clock."""
        return self._renewed is not None and _time() < self._renewed + self._timing.give_up

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for the Lease, do `work` while it is held, wait again when it is lost; ends only with `work` or when it is cancelled.

        `work` is begun anew each time, and is cancelled when the Lease is lost. When this is cancelled, `work` is ended first and the Lease given back then.
        Raises what `work` raises, and StuckError.
        """
        try:
            while True:
                await self._acquire()
                self._log.info("leading", lease=self._name, identity=self.me)
                self._meter.leading(on=True)
                try:
                    if await self._lead(work):
                        return
                finally:
                    self._meter.leading(on=False)
        finally:
            await self._release()

    # ---- as one of the others

    async def _acquire(self) -> None:
        self._meter.leading(on=False)
        while True:
            try:
                # An answer that takes longer is worth nothing: others may have been waiting since it was asked for.
                async with asyncio.timeout(self._timing.give_up):
                    held = await self._try()
            except (KubeError, TimeoutError) as error:
                held = False
                self._complain("lease not reached", str(error) or "no answer in time")
            if held:
                self._problem = ""
                return
            self._renewed = None
            await asyncio.sleep(self._pause())

    async def _try(self) -> bool:
        """Look at the Lease, and take it if it is free."""
        await self._look()
        if not self._free():
            return False
        began = _time()
        self._touched = True
        try:
            await self._write(self.me)
        except (Conflict, NotFound):  # somebody else was faster
            return False
        self._renewed = began
        return True

    async def _look(self) -> None:
        try:
            self._take(await self._client.get(LEASE, self._name, self._namespace))
        except NotFound:
            # Deleted by hand, maybe under a holder that has not noticed yet: its time counts on.
            self._lease = None

    def _take(self, lease: JSON) -> None:
        """Take note of a state of the Lease, and of the time when it is a new one."""
        spec = lease.get("spec") or {}
        seen = str(spec.get("holderIdentity") or ""), lease["metadata"]["resourceVersion"]
        self._lease = lease
        if seen == self._seen:
            return
        if seen[0] != self._seen[0] and seen[0] not in ("", self.me):
            self._log.info("standby", lease=self._name, holder=seen[0])
        self._seen, self._seen_at = seen, _time()
        self._patience = float(spec.get("leaseDurationSeconds") or self._timing.duration)

    def _free(self) -> bool:
        return self._seen[0] in ("", self.me) or _time() >= self._seen_at + self._patience

    def _pause(self) -> float:
        if self._free():
            return self._timing.poll
        return min(self._timing.poll, self._seen_at + self._patience - _time())

    # ---- as the holder

    async def _lead(self, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Work and renew; return whether the work has ended by itself, which it does not when the Lease was lost."""
        working = asyncio.create_task(work(), name="leader")
        renewing = asyncio.create_task(self._keep(), name="lease")
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = working.done()
            # Renewals go on while the work is being ended in an orderly way; without them there is only the time that is left.
            await self._end(working, renewing)
        if ended:
            await working
        return ended

    async def _end(self, working: asyncio.Task[None], renewing: asyncio.Task[None]) -> None:
        lost = renewing.done() and not renewing.cancelled()
        error = renewing.exception() if lost else None
        if isinstance(error, LostError):
            self._log.warning("lease lost", lease=self._name, why=str(error))
        working.cancel()
        left = None
        if lost:
            left = max((self._renewed or 0.0) + self._timing.duration - _time(), 0.1)
            self._renewed = None
        try:
            await asyncio.wait({working}, timeout=left)
        finally:
            renewing.cancel()
            await asyncio.wait({renewing})
        if not working.done():
            msg = f"the work did not end within {left:.0f} s after the lease was lost"
            raise StuckError(msg)
        if error is not None and not isinstance(error, LostError):
            raise error

    async def _keep(self) -> None:
        """Renew for ever. Raises LostError."""
        while True:
            await asyncio.sleep(self._timing.renew)
            renewed = self._renewed or 0.0
            try:
                async with asyncio.timeout_at(renewed + self._timing.give_up):
                    await self._renew()
            except TimeoutError:
                text = f"not renewed for {_time() - renewed:.1f} s: {self._problem or 'no answer'}"
                raise LostError(text) from None
            self._problem = ""

    async def _renew(self) -> None:
        """Renew once, with as many attempts as it takes."""
        while True:
            began = _time()
            try:
                await self._write(self.me)
            except (Conflict, NotFound):
                if await self._still_ours():
                    continue
            except KubeError as error:
                self._complain("lease not renewed", str(error))
            else:
                self._renewed = began
                return
            await asyncio.sleep(self._timing.retry)

    async def _still_ours(self) -> bool:
        """Look after a refused renewal. Raises LostError when another process holds the Lease."""
        try:
            await self._look()
        except KubeError as error:
            self._complain("lease not renewed", str(error))
            return False
        if self._lease is not None and self._seen[0] != self.me:
            text = f"{self._seen[0] or 'nobody'} holds it"
            raise LostError(text)
        return True

    async def _release(self) -> None:
        """Give the Lease back, so that the next one need not wait; a failure costs only that wait."""
        if not self._touched:
            return
        self._renewed = None
        with contextlib.suppress(KubeError, TimeoutError):
            async with asyncio.timeout(self._timing.release):
                await self._look()
                if self._lease is not None and self._seen[0] == self.me:
                    await self._write("")
                    self._log.info("lease released", lease=self._name)

    async def _write(self, holder: str) -> None:
        """Write holder and time on the state last seen. Raises KubeError: Conflict when that is an old one."""
        lease = self._lease
        moment = datetime.fromtimestamp(self._now(), tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = dict((lease or {}).get("spec") or {})
        if holder and spec.get("holderIdentity") != holder:
            before = spec.get("leaseTransitions")
            spec["leaseTransitions"] = 0 if before is None else int(before) + 1
            spec["acquireTime"] = moment
        spec |= {
            "holderIdentity": holder,
            "leaseDurationSeconds": self._timing.duration,
            "renewTime": moment,
        }
        if lease is None:
            body: JSON = {"metadata": {"name": self._name}, "spec": spec}
            answer = await self._client.create(LEASE, body, self._namespace, field_manager=_MANAGER)
        else:
            body = {**lease, "spec": spec}
            answer = await self._client.replace(
                LEASE, body, self._namespace, field_manager=_MANAGER
            )
        self._take(answer)

    def _complain(self, event: str, why: str) -> None:
        """Log a problem, once until another one takes its place or it is over."""
        if why != self._problem:
            self._log.warning(event, lease=self._name, message=why)
        self._problem = why


def _time() -> float:
    """Return the loop's time: monotonic."""
    return asyncio.get_running_loop().time()
