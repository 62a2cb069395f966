"""Does the installed CRD keep `status.lastTrackedRevision`? (D10). The API server itself is asked, never the CRD.

Reading the CRD would take a cluster-wide right, and the schema that the server publishes lags behind the one it applies. What
prunes is the write: each answer to a status write with a fence shows whether it was kept. A controller that starts over Canaries
which say that it was not asks with a dry run, before it writes anything; so does one that waits for a better CRD. A healthy
controller asks nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import conditions as cond
from harness.controller.core import pruned
from harness.controller.core.names import MANAGER
from harness.controller.shell.cache import CANARIES, Cache
from harness.kube.errors import KubeError
from harness.kube.resource import CANARY

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core.decision import JSON
    from harness.controller.shell.meter import Meter
    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource

RECHECK: Final = 10.0
"""Seconds between two looks for the field while it is missing."""
ASK_WITHIN: Final = 5.0
"""Seconds until a start goes on without an answer."""
GAUGE: Final = "rollout_drill_controller_degraded"
_PROBE: Final = "probe/1"
_MERGE: Final = "application/merge-patch+json"


class FenceField:
    """Whether the field is pruned, as far as is known; `pruned` is False until an answer says otherwise."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        cache: Cache,
        log: Any,
        changed: Callable[[], None],
        *,
        meter: Meter,
        canaries: Resource = CANARY,
    ) -> None:
        self.pruned = False
        self._client = client
        self._namespace = namespace
        self._cache = cache
        self._log = log
        self._changed = changed
        self._meter = meter
        self._canaries = canaries
        self._missing = asyncio.Event()

    def saw(self, sent: JSON, answer: JSON) -> None:
        """Learn from the answer to a status patch."""
        if sent.get(pruned.FENCE_FIELD):
            self._set(pruned.FENCE_FIELD not in (answer.get("status") or {}))

    async def ask_if_suspect(self) -> None:
        """Ask, if a Canary says that the field was missing before this start."""
        suspects = [name for name in self._cache.names(CANARIES) if self._suspect(name)]
        if not suspects:
            return
        try:
            async with asyncio.timeout(ASK_WITHIN):
                await self._ask(suspects)
        except TimeoutError:
            self._log.warning("no answer", question=f"is status.{pruned.FENCE_FIELD} kept?")

    async def watch(self) -> None:
        """Look for the field again while it is missing, so that a better CRD heals everything; never ends by itself."""
        while True:
            await self._missing.wait()
            await asyncio.sleep(RECHECK)
            if self.pruned:
                await self._ask(self._cache.names(CANARIES))

    def _suspect(self, name: str) -> bool:
        canary = self._cache.get(CANARIES, name) or {"metadata": {}}
        told = cond.find(canary.get("status") or {}, pruned.CONDITION) is not None
        return told or pruned.annotated(canary)

    async def _ask(self, names: list[str]) -> None:
        """Send a dry run to the first of these Canaries that still exists."""
        body = {"status": {pruned.FENCE_FIELD: _PROBE}}
        params = {"dryRun": "All", "fieldManager": MANAGER}
        for name in names:
            path = self._canaries.path(self._namespace, name, "status")
            try:
                answer = await self._client.raw("PATCH", path, params, body, content_type=_MERGE)
            except KubeError as error:
                self._log.info("not asked", canary=name, message=str(error))
                continue
            self.saw(body["status"], answer)
            return

    def _set(self, is_pruned: bool) -> None:  # noqa: FBT001 - the state itself
        if is_pruned == self.pruned:
            return
        self.pruned = is_pruned
        self._meter.degraded(on=is_pruned)
        log, event = (self._log.warning, "degraded") if is_pruned else (self._log.info, "healed")
        log(
            event,
            gauge=GAUGE,
            value=int(is_pruned),
            field=f"status.{pruned.FENCE_FIELD}",
            message=pruned.MESSAGE if is_pruned else "the fence is in the status again",
        )
        if is_pruned:
            self._missing.set()
        else:
            self._missing.clear()
        self._changed()
