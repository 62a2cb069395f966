"""Who plays the Deployment controller over the API server in memory: no pods, just counts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.kube.testing import FakeCluster


async def rolling(
    cluster: FakeCluster, seen: dict[tuple[str, int], float], *, pause: float
) -> None:
    """Make every pod of a generation available one second after it was `seen` first; looks every `pause` seconds. Never ends."""
    loop = asyncio.get_running_loop()
    while True:
        for obj in cluster.objects("Deployment", "n"):
            meta, count = obj["metadata"], obj["spec"]["replicas"]
            first = seen.setdefault((meta["uid"], meta["generation"]), loop.time())
            status = {
                "observedGeneration": meta["generation"],
                "replicas": count,
                "updatedReplicas": count,
                "availableReplicas": count if loop.time() >= first + 1 else 0,
            }
            if obj.get("status") != status:
                cluster.update("Deployment", meta["name"], "n", {"status": status})
        await asyncio.sleep(pause)
