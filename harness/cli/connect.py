"""A client for commands that look at, or mend, a cluster that is there already."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from harness import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from harness.kube.client import KubeClient


@contextlib.asynccontextmanager
async def connected(cluster: str) -> AsyncIterator[KubeClient]:
    """Yield a client of `context:NAME` or `embedded:NAME`. Raises ClusterError and KubeError.

    Of a context nothing is asked but what the command itself asks: its user may have rights in one namespace only.
    """
    from harness.clusters.existing import file_of
    from harness.clusters.select import open_cluster, parse
    from harness.kube.client import KubeClient

    choice = parse(cluster)
    agent = f"rollout-drill/{__version__}"
    if choice.kind == "context":
        path = file_of(choice.name)
        async with await KubeClient.connect(path, choice.name, user_agent=agent) as client:
            yield client
        return
    # A named cluster is only opened, never made, so neither nodes nor binaries matter.
    opened = open_cluster(
        cluster, nodes=1, seed=None, binaries_source="auto", progress=lambda _line: None
    )
    async with opened as found:
        connecting = KubeClient.connect(found.kubeconfig, found.context, user_agent=agent)
        async with await connecting as client:
            yield client
