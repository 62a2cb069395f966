"""A cluster that exists already: a context of a kubeconfig, named by the user."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness import __version__
from harness.clusters.base import ChoiceError, Cluster, ClusterError, capabilities
from harness.clusters.eligible import why_out
from harness.model.timeline import ClusterFacts

if TYPE_CHECKING:
    from harness.kube.client import KubeClient

KWOK_ANNOTATION: Final = "kwok.x-k8s.io/node"
FIRST_CONTACT: Final = 5.0
"""Seconds for a server that does not answer: whoever named a wrong or a sleeping cluster wants to know soon."""


async def open_existing(context: str, kubeconfig: Path | None = None) -> Cluster:
    """Return the cluster behind a context, with facts from its API; without nodes where these may not be listed.

    Without `kubeconfig` the files of `KUBECONFIG` are searched for the context, or the user's own; their current context
    is never used. Raises ClusterError: no such context (with those there are), no answer.
    """
    from harness.kube.client import KubeClient
    from harness.kube.errors import KubeError
    from harness.kube.retry import Budget

    if not context:
        msg = f"No context was named; use --cluster context:NAME with one of: {known_contexts(kubeconfig)}."
        raise ChoiceError(msg)
    path = file_of(context, kubeconfig)
    try:
        agent = f"rollout-drill/{__version__}"
        budget = Budget(total=FIRST_CONTACT)
        connected = await KubeClient.connect(path, context, user_agent=agent, budget=budget)
        async with connected as client:
            facts = await _facts(client, context)
    except KubeError as error:
        msg = f"The cluster of context {context!r} ({path}) cannot be used: {error}."
        raise ClusterError(msg) from error
    return Cluster(f"context:{context}", facts, path, context)


async def _facts(client: KubeClient, context: str) -> ClusterFacts:
    from harness.kube.errors import Forbidden
    from harness.kube.resource import NODE

    kubernetes = await client.version()
    try:
        nodes, _ = await client.list(NODE)
    except Forbidden:
        nodes = []  # whoever has rights in one namespace only has none here
    schedulable = [node for node in nodes if takes_pods(node)]
    simulated = bool(schedulable) and all(_is_simulated(node) for node in schedulable)
    version = next((kubelet_version(node) for node in schedulable), "") if simulated else ""
    return ClusterFacts(
        kind="existing",
        name=context,
        kubernetes=kubernetes,
        nodes=tuple(sorted(str(node["metadata"]["name"]) for node in schedulable)),
        simulated=f"kwok {version}".strip() if simulated else "",
        capabilities=capabilities(kubernetes, simulated=simulated),
    )


def takes_pods(node: dict[str, Any]) -> bool:
    """Whether an ordinary pod can be placed on a node: ready, not cordoned, no taint that keeps it away."""
    return not why_out(node)


def kubelet_version(node: dict[str, Any]) -> str:
    """Return kwok's version as a simulated node states it, e.g. `v0.8.0`; empty when it does not."""
    stated = str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", ""))
    version = stated.removeprefix("kwok-").removeprefix("v")
    return f"v{version}" if stated.startswith("kwok-") else ""


def _is_simulated(node: dict[str, Any]) -> bool:
    return KWOK_ANNOTATION in (node["metadata"].get("annotations") or {})


def file_of(context: str, kubeconfig: Path | None = None) -> Path:
    """Return the kubeconfig that has a context; see `open_existing`. Raises ChoiceError with those that there are."""
    files = _files(kubeconfig)
    for path in files:
        if context in _contexts(path):
            return path
    where = ", ".join(str(path) for path in files)
    msg = f"There is no context {context!r} in {where}; there are: {known_contexts(kubeconfig)}."
    raise ChoiceError(msg)


def known_contexts(kubeconfig: Path | None = None) -> str:
    """Return the names of all contexts, for an error; `none` when there are none."""
    names = [name for path in _files(kubeconfig) for name in _contexts(path)]
    return ", ".join(dict.fromkeys(names)) or "none"


def _files(kubeconfig: Path | None) -> list[Path]:
    if kubeconfig is not None:
        return [kubeconfig]
    given = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return [Path(part).expanduser() for part in given] or [Path.home() / ".kube" / "config"]


def _contexts(path: Path) -> list[str]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe", pure=True).load(path.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, YAMLError) as error:
        msg = f"The kubeconfig {path} cannot be read: {' '.join(str(error).split())}."
        raise ClusterError(msg) from error
    rows = document.get("contexts") if isinstance(document, dict) else None
    return [str(row["name"]) for row in rows or () if isinstance(row, dict) and "name" in row]
