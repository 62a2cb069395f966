"""The end of one drill: remove what it made, then prove by a listing that nothing is left."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from harness.kube.errors import KubeError
from harness.model.timeline import Leftovers
from harness.run.leftovers import Listing, Mine, count_in_namespace, left_behind, list_everything
from harness.run.patience import patiently
from harness.run.scoped import remove_scoped
from harness.run.stuck_look import why_stuck
from harness.run.teardown import GONE_WITHIN, tear_down

if TYPE_CHECKING:
    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON
    from harness.run.journal import Entry
    from harness.run.live import Live
    from harness.run.place import Place

SECOND_LOOK: Final = 2.0
"""Seconds between two listings when the first shows something: the garbage collector may still be at it."""
PER_OBJECT: Final = 0.05
"""Seconds that each object of the namespace adds to its deadline: thousands take a busy machine minutes."""


async def remove_drill(client: KubeClient, place: Place, namespace: Entry, live: Live) -> Leftovers:
    """Remove the drill's objects and return what the listing found; an error is part of the result, never raised."""
    if place.namespace:
        return await remove_scoped(client, place, namespace, live)
    began = time.monotonic()
    try:
        return await patiently(lambda: _removed(client, place, namespace, live, began))
    except KubeError as problem:
        return Leftovers(
            live.now(),
            (),
            0,
            {},
            time.monotonic() - began,
            error=f"nothing could be listed: {problem}",
        )


async def _removed(
    client: KubeClient, place: Place, namespace: Entry, live: Live, began: float
) -> Leftovers:
    name = namespace.key.name
    mine = [entry for entry in place.journal.entries if entry.drill == namespace.drill]
    removed, _ = await count_in_namespace(client, name)
    removal = await tear_down(
        client,
        place.journal,
        only=mine,
        first_kinds=(live.header.subject.rollout.kind,),
        within=GONE_WITHIN + PER_OBJECT * sum(removed.values()),
    )
    items, listing = await _look_twice(client, place, name, namespace.drill)
    error = ""
    if removal.problems and not items:
        error = "; ".join(removal.problems)
    explained = await why_stuck(client, name) if items or error else ()
    return Leftovers(
        live.now(),
        tuple(items),
        listing.kinds,
        {**removed, **removal.removed},
        time.monotonic() - began,
        error,
        listing.refused,
        explained,
    )


async def _look_twice(
    client: KubeClient, place: Place, namespace: str, drill: str
) -> tuple[list[JSON], Listing]:
    for look in (1, 2):
        after = await list_everything(client)
        mine = Mine(
            run=place.run,
            drill=drill,
            namespace=namespace,
            exclusive=place.cluster.facts.exclusive,
            others=place.namespaces - {namespace},
            accounted=place.shared,
        )
        items = left_behind(place.before, after, mine)
        if not items or look > 1:
            break
        await asyncio.sleep(SECOND_LOOK)
    return items, after
