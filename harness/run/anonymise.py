"""Anonymising (`--anonymise`): names, nodes and registries replaced, the same ones everywhere.

For recordings that leave a company. It works on what is published, never on what the harness acts
on, and keeps what a verdict needs: `web-primary` becomes `app-1-primary`, so that the same checks
over the anonymised timeline give the same verdict.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final

from harness.model.timeline import ObjectSeen, Requests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.timeline import JSON, Header, Observation

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_VERBATIM: Final = frozenset(
    {"apiVersion", "kind", "type", "change", "state", "signal", "requires", "uid", "t", "phase"}
)
"""Keys and fields whose values are vocabulary, never somebody's name."""
_RESERVED: Final = frozenset(
    {
        *(
            "primary",
            "target",
            "canary",
            "rollout",
            "apex",
            "other",
            "pods",
            "workload",
            "workloads",
        ),
        *("services", "nodes", "values", "step", "name", "ready", "end", "settled", "default"),
        *("kubernetes", "kube-system", "cluster", "app", "true", "false", "null", "none"),
    }
)
_SHORTEST: Final = 3


class Anonymiser:
    """Replaces what it has learned; the first name learned is `app-1`, and so on."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._pattern: re.Pattern[str] | None = None

    def learn(self, objects: Iterable[JSON]) -> None:
        """Learn the names of objects (all addresses of nodes) and the images they run."""
        for obj in objects:
            metadata = obj.get("metadata") or {}
            name = str(metadata.get("name", ""))
            if obj.get("kind") == "Node":
                status = obj.get("status") or {}
                rows = [row.get("address", "") for row in status.get("addresses") or ()]
                self.learn_node(name, *rows, str((obj.get("spec") or {}).get("providerID", "")))
            elif metadata.get("generateName") is None and not metadata.get("ownerReferences"):
                self._add(name, "app")
            self._images(obj)

    def learn_node(self, *names: str) -> None:
        """Learn the names and addresses of one node."""
        alias = next((self._aliases[n] for n in names if n in self._aliases), None)
        for name in names:
            alias = self._add(name, "node", alias) or alias

    def learn_cluster(self, name: str) -> None:
        """Learn the name that the user has for the cluster, which is that of a context."""
        self._add(name, "cluster", "cluster")

    def text(self, text: str) -> str:
        """Return `text` with every learned name replaced where it stands as a word."""
        if self._pattern is None:
            names = sorted(self._aliases, key=len, reverse=True)
            words = "|".join(map(re.escape, names)) or r"(?!)"
            self._pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])")
        return self._pattern.sub(lambda found: self._aliases[found[0]], text)

    def json(self, value: Any) -> Any:
        """Return a copy of any JSON with learned names replaced in its values, not in its keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {k: v if k in _VERBATIM else self.json(v) for k, v in value.items()}
        return value

    def header(self, header: Header) -> Header:
        """Return an anonymised header, having learned its nodes."""
        for node in header.cluster.nodes:
            self.learn_node(node)
        nodes = tuple(self.text(node) for node in header.cluster.nodes)
        notes = tuple(self.text(note) for note in header.cluster.notes)
        cluster = dataclasses.replace(
            header.cluster, nodes=nodes, name=header.cluster.kind, notes=notes
        )
        return dataclasses.replace(
            header,
            drill_id=self.text(header.drill_id),
            cluster=cluster,
            namespace=self.text(header.namespace),
            scenario=self._scenario(header.scenario),
            reproduce=self.text(header.reproduce),
        )

    def _scenario(self, scenario: JSON) -> JSON:
        result: JSON = self.json(scenario)
        receiver = result.get("receiver")
        if isinstance(receiver, dict):
            # Gates are called by these keys elsewhere, in steps, checks and calls.
            result["receiver"] = {
                group: {self.text(name): given for name, given in (gates or {}).items()}
                for group, gates in receiver.items()
            }
        return result

    def observation(self, observation: Observation) -> Observation:
        """Return an anonymised observation; a node that turns up in it is learned first."""
        if isinstance(observation, ObjectSeen) and observation.object.get("kind") == "Node":
            self.learn([observation.object])
        changed: dict[str, Any] = {}
        if isinstance(observation, Requests):
            rollouts = {self.text(name): pair for name, pair in observation.rollouts.items()}
            return dataclasses.replace(observation, rollouts=rollouts)
        for field in dataclasses.fields(observation):
            value = getattr(observation, field.name)
            if field.name not in _VERBATIM:
                changed[field.name] = (
                    tuple(self.json(list(value))) if isinstance(value, tuple) else self.json(value)
                )
        return dataclasses.replace(observation, **changed)

    def _images(self, value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                if key in _CONTAINERS and isinstance(item, list):
                    for row in item:
                        self._image(str(row.get("image", "")))
                else:
                    self._images(item)
        elif isinstance(value, list):
            for item in value:
                self._images(item)

    def _image(self, image: str) -> None:
        repository = image.partition("@")[0]
        host, _, path = repository.rpartition("/")
        path = path.partition(":")[0]
        if host:
            self._add(f"{host}/{path}", "registry.example/image")
            self._add(host.partition("/")[0], "registry")
        # An image without a registry is public, and its name may be any word.

    def _add(self, name: str, what: str, alias: str | None = None) -> str | None:
        if len(name) < _SHORTEST or name.lower() in _RESERVED:
            return None
        if name not in self._aliases:
            if alias is None:
                self._counts[what] = self._counts.get(what, 0) + 1
                alias = f"{what}-{self._counts[what]}"
            self._aliases[name] = alias
            self._pattern = None
        return self._aliases[name]
