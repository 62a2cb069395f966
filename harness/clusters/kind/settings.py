"""What a site sets for its kind clusters, and the configuration that a cluster is made from.

`DRILL_KIND_IMAGE`: the node image; kind's own default unless given. `DRILL_KIND_CONFIG`: a configuration file of kind, into which the
nodes go. `DRILL_KIND_AFTER_CREATE`: a command that is run once the nodes are ready.
"""

from __future__ import annotations

import copy
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.clusters.base import ChoiceError

if TYPE_CHECKING:
    from collections.abc import Mapping

IMAGE: Final = "DRILL_KIND_IMAGE"
CONFIG: Final = "DRILL_KIND_CONFIG"
AFTER_CREATE: Final = "DRILL_KIND_AFTER_CREATE"
MOST_NODES: Final = 20
_API_VERSION: Final = "kind.x-k8s.io/v1alpha4"
_CONTROL_PLANE: Final = "control-plane"
_WORKER: Final = "worker"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says."""

    image: str = ""
    config: Path | None = None
    after_create: tuple[str, ...] = ()
    """A command with its arguments; it gets KUBECONFIG, DRILL_KIND_NAME and the user's environment."""


def settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Return what the environment sets. Raises ChoiceError for a command that cannot be read."""
    given = os.environ if environment is None else environment
    config = given.get(CONFIG, "")
    try:
        command = tuple(shlex.split(given.get(AFTER_CREATE, "")))
    except ValueError as error:
        msg = f"{AFTER_CREATE} is no command: {str(error).lower()}."
        raise ChoiceError(msg) from error
    path = Path(config).expanduser().absolute() if config else None
    return Settings(given.get(IMAGE, ""), path, command)


def base_of(path: Path | None) -> dict[str, Any]:
    """Return the site's configuration as it stands, or an empty one. Raises ChoiceError that names file, line and field."""
    if path is None:
        return {}
    from harness.scenario.problem import ScenarioError
    from harness.scenario.reader import read_text, read_yaml

    if not path.is_file():
        msg = f"{CONFIG}: there is no file {path}."
        raise ChoiceError(msg)
    try:
        documents = read_yaml(read_text(path, path.name), path.name)
    except ScenarioError as error:
        msg = f"{CONFIG}: {error}"
        raise ChoiceError(msg) from error
    if len(documents) != 1 or not isinstance(documents[0].data, dict):
        msg = f"{CONFIG}: {path} must hold one document, a Cluster of kind ({_API_VERSION})."
        raise ChoiceError(msg)
    document = documents[0]
    data: dict[str, Any] = document.data
    for field, wanted in (("kind", "Cluster"), ("apiVersion", _API_VERSION)):
        if data.get(field, wanted) != wanted:
            where = document.positions.of((field,))
            line = f", line {where.line}" if where else ""
            msg = f"{CONFIG}: {path}{line}: {field} is {data[field]!r}; allowed: {wanted}."
            raise ChoiceError(msg)
    return data


def configuration(base: Mapping[str, Any], name: str, nodes: int) -> dict[str, Any]:
    """Return the configuration of a cluster with so many nodes that take pods, beside its control plane.

    Whatever the base says about a control plane or a worker goes to the first, or to every, node of that role; how many there are is the
    drill's to say. Nodes listen on loopback unless the base says otherwise.
    """
    config = copy.deepcopy(dict(base))
    rows = [row for row in config.pop("nodes", None) or () if isinstance(row, dict)]
    first = _of(rows, _CONTROL_PLANE)
    worker = _of(rows, _WORKER)
    networking = {"apiServerAddress": "127.0.0.1", **(config.pop("networking", None) or {})}
    return {
        **config,
        "kind": "Cluster",
        "apiVersion": _API_VERSION,
        "name": name,
        "networking": networking,
        "nodes": [first, *(copy.deepcopy(worker) for _ in range(nodes))],
    }


def _of(rows: list[dict[str, Any]], role: str) -> dict[str, Any]:
    found = next((row for row in rows if row.get("role", _CONTROL_PLANE) == role), {})
    return {**found, "role": role}
