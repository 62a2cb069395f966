"""What a user chooses on a cluster that is not ours: nodes, a namespace, an image."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.clusters.base import ChoiceError
from harness.clusters.eligible import eligible, parse_selector
from harness.clusters.protected import refuse_protected
from harness.clusters.select import parse
from harness.run.selection import select

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.model.scenario import Resolved
    from harness.scenario.loaded import Loaded


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choices, each empty where none was made."""

    nodes: tuple[str, ...] = ()
    node_selector: str = ""
    namespace: str = ""
    image: str = ""

    @property
    def arguments(self) -> list[str]:
        """The options that make the same choices again."""
        given = {
            "--nodes": ",".join(self.nodes),
            "--node-selector": self.node_selector,
            "--namespace": self.namespace,
            "--image": self.image,
        }
        return [part for name, value in given.items() if value for part in (name, value)]


def choose(
    cluster: str,
    *,
    nodes: str | None,
    node_selector: str | None,
    namespace: str | None,
    image: str | None,
    image_given: bool = True,
    prefix: str = "--",
) -> Chosen:
    """Return the choices of a command line; options are named with `prefix` in errors.

    `image_given`: whether the image stands on the command line; one of the environment means nothing elsewhere. Raises ChoiceError for
    choices on a cluster of ours, which has its own nodes and images, and for a selector that is none.
    """
    existing = parse(cluster).kind == "context"
    if not existing and not image_given:
        image = None
    given = {
        "nodes": nodes,
        "node-selector": node_selector,
        "namespace": namespace,
        "image": image,
    }
    first = next((name for name, value in given.items() if value), None)
    if first is not None and not existing:
        msg = f"{prefix}{first} is for a cluster of your own (--cluster context:NAME); {cluster} is made by the harness."
        raise ChoiceError(msg)
    parse_selector(node_selector or "")
    return Chosen(_listed(nodes), node_selector or "", namespace or "", image or "")


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (part.strip() for part in (text or "").split(",")))))


def follows_nodes(drills: Iterable[Any], cluster: str) -> bool:
    """Whether one of these resolved drills has as many replicas as a cluster that is not ours has nodes."""
    return parse(cluster).kind == "context" and any(
        drill.nodes.replicas_per_eligible is not None for drill in drills
    )


def select_on(  # noqa: PLR0917 - what a selection consists of, and where it runs
    cluster: str,
    chosen: Chosen,
    names: Sequence[str],
    folders: Sequence[Path],
    variants: Sequence[str] = (),
    sets: Mapping[str, str] | None = None,
    across: Mapping[str, Sequence[Any]] | None = None,
) -> list[tuple[Loaded, Resolved]]:
    """Return drills as `selection.select` does, with as many replicas as the cluster has nodes where a scenario wants that.

    Asks the cluster then, so not from within an event loop. Raises ScenarioError and ClusterError; ChoiceError for a protected context.
    """
    found = select(names, folders, variants, sets, across)
    if not follows_nodes((drill for _, drill in found), cluster):
        return found
    refuse_protected(parse(cluster).name)
    count = asyncio.run(count_eligible(cluster, chosen))
    return select(names, folders, variants, sets, across, count)


async def count_eligible(cluster: str, chosen: Chosen) -> int | None:
    """Return how many nodes of an existing cluster a drill may use; None when nobody knows.

    Raises ClusterError: no such cluster, no answer, no such nodes.
    """
    from harness import __version__
    from harness.clusters.base import ClusterError
    from harness.clusters.existing import FIRST_CONTACT, file_of
    from harness.kube.client import KubeClient
    from harness.kube.errors import Forbidden, KubeError
    from harness.kube.resource import NODE
    from harness.kube.retry import Budget

    context = parse(cluster).name
    path = file_of(context)
    agent, budget = f"rollout-drill/{__version__}", Budget(total=FIRST_CONTACT)
    try:
        connecting = KubeClient.connect(path, context, user_agent=agent, budget=budget)
        async with await connecting as client:
            try:
                nodes, _ = await client.list(NODE)
            except Forbidden:
                return len(eligible(None, chosen.nodes, chosen.node_selector).names) or None
    except KubeError as error:
        msg = f"The cluster of context {context!r} ({path}) cannot be used: {error}."
        raise ClusterError(msg) from error
    return len(eligible(nodes, chosen.nodes, chosen.node_selector).names) or None
