"""Walking the way back: a question first, whether the bundled controller still runs; then the statuses, which are read once more.

There is no lock that says whether it runs. But it puts a fence that is missing back within the same second, and does nothing else
for it (decision D10), so taking one away is a question that harms nobody: whoever answers is still there.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from harness.controller.core.phases import IDLE, RUN
from harness.controller.core.pruned import FENCE_FIELD
from harness.handback.plan import SETTLED, Fate, Return, plan
from harness.handback.reading import read_cases
from harness.handback.told import HandbackError
from harness.kube.errors import Conflict, NotFound
from harness.kube.resource import CANARY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.handback.plan import Case
    from harness.handback.reading import Ask
    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

FIELD_MANAGER: Final = "rollout-drill-handback"
WATCHED_SECONDS: Final = 2.0
"""How long whoever may still run has time to rewrite something; the bundled controller needs a fraction of it."""
TRIES: Final = 4
"""How often a Canary that moves under our hands is planned anew."""


@dataclass(frozen=True, slots=True)
class Handback:
    """What was found and done in one namespace."""

    to: str
    """The subject that takes over, e.g. `flagger@1.44.0`."""
    namespace: str
    kubernetes_api: str
    """Version of the Kubernetes types that it was built with."""
    returns: Sequence[Return]
    applied: bool = False
    """Whether the statuses were written, and not only worked out."""
    written: Sequence[str] = field(default=())
    """Canaries whose status was written."""

    def of(self, fate: Fate) -> list[Return]:
        """Return those with a fate."""
        return [one for one in self.returns if one.fate is fate]

    @property
    def pending(self) -> list[Return]:
        """Those whose status still has to be written."""
        return [one for one in self.returns if one.patch and one.name not in self.written]


async def hand_back(
    client: KubeClient, namespace: str, to: str, ask: Ask, *, apply: bool = False
) -> Handback:
    """Work out what the return of a namespace to Flagger needs, and write it with `apply`.

    `ask` gives the answers of that Flagger's program. Only statuses are written, each on the resourceVersion that was read.
    Raises KubeError and HandbackError; the latter also when somebody rewrites what was written.
    """
    flagger, cases = await read_cases(client, namespace, ask)
    result = Handback(to, namespace, flagger.kubernetes_api, [plan(case) for case in cases])
    if not apply:
        return result
    moved = await _nobody_answers(client, namespace, cases)
    written: dict[str, Return] = {}
    for attempt in range(TRIES):
        if attempt or moved:
            # What has changed since is planned anew; what was written is not looked at again before the end.
            _, cases = await read_cases(client, namespace, ask)
        returns = await _round(client, namespace, cases, written)
        result = replace(result, returns=returns, applied=True, written=tuple(written))
        if not result.pending:
            break
    if written:
        await _undisturbed(client, namespace, written)
    if result.pending:
        names = ", ".join(one.name for one in result.pending)
        msg = f"{names}: the status changed {TRIES} times while it was to be written; somebody else works on it."
        raise HandbackError(msg)
    return result


async def _nobody_answers(client: KubeClient, namespace: str, cases: Sequence[Case]) -> bool:
    """Take a fence away and see that nobody puts it back; return whether one was taken.

    Raises HandbackError when somebody does, and then nothing has changed.
    """
    for asked in sorted(filter(_would_answer, cases), key=_unsettled):
        # One that moved since it was read is no one to ask.
        if await _write(client, namespace, asked, {FENCE_FIELD: None}):
            break
    else:
        return False
    await asyncio.sleep(WATCHED_SECONDS)
    name = asked.canary["metadata"]["name"]
    canary = await client.get(CANARY, name, namespace)
    if (canary.get("status") or {}).get(FENCE_FIELD):
        msg = (
            f"A controller still runs in namespace {namespace}: {_last_writer(canary)} put the fence of Canary {name} back, which was"
            " taken away for this question. Stop the bundled controller first; nothing was changed."
        )
        raise HandbackError(msg)
    return True


def _unsettled(case: Case) -> bool:
    return case.phase not in SETTLED


def _would_answer(case: Case) -> bool:
    """Whether the bundled controller, if it runs, puts the fence of this Canary back, and does no more."""
    suspended = bool((case.canary.get("spec") or {}).get("suspend"))
    looked_at = case.phase in IDLE | RUN and not suspended
    # Without its fence a hash is compared by itself, so it has to be the very one. A Flagger that keeps a fence needs it.
    harmless = case.exact and not case.fenced
    return looked_at and harmless and bool(case.status.get(FENCE_FIELD))


async def _round(
    client: KubeClient, namespace: str, cases: Sequence[Case], written: dict[str, Return]
) -> list[Return]:
    """Plan every Canary that is not yet written, and write it; a refused one is left for the next round."""
    planned = (written.get(case.canary["metadata"]["name"]) or plan(case) for case in cases)
    returns = []
    for case, one in zip(cases, planned, strict=True):
        returns.append(one)
        if (
            one.name not in written
            and one.patch
            and await _write(client, namespace, case, one.patch)
        ):
            written[one.name] = one
    return returns


async def _write(client: KubeClient, namespace: str, case: Case, patch: JSON) -> bool:
    """Write one status; False when the Canary has changed or gone since it was read."""
    meta = case.canary["metadata"]
    body = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": patch}
    try:
        await client.patch(
            CANARY,
            meta["name"],
            namespace,
            body,
            field_manager=FIELD_MANAGER,
            subresource="status",
        )
    except (Conflict, NotFound):
        return False
    return True


async def _undisturbed(client: KubeClient, namespace: str, written: Mapping[str, Return]) -> None:
    """Wait, read back, and raise HandbackError when somebody has rewritten a status."""
    await asyncio.sleep(WATCHED_SECONDS)
    canaries, _ = await client.list(CANARY, namespace)
    for canary in canaries:
        name = canary["metadata"]["name"]
        status = canary.get("status") or {}
        hash_ = written[name].patch.get("lastAppliedSpec") if name in written else None
        if hash_ is None or status.get("lastAppliedSpec") == hash_:
            continue
        msg = (
            f"The status of Canary {name} was written, and {_last_writer(canary)} put another hash back within"
            f" {WATCHED_SECONDS:g} s: a controller was started in namespace {namespace} meanwhile. Stop it, then hand back again."
        )
        raise HandbackError(msg)


def _last_writer(canary: JSON) -> str:
    entries = canary["metadata"].get("managedFields") or ()
    others = [entry for entry in entries if entry.get("manager") != FIELD_MANAGER]
    latest = max(others, key=lambda entry: str(entry.get("time") or ""), default=None)
    return str((latest or {}).get("manager") or "unknown")
