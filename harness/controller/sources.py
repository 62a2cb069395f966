"""Where a look at a Canary gets its objects: a cluster, by reading only, or a file that somebody saved."""

from __future__ import annotations

import asyncio
import datetime as dt
import sys
import time
from typing import TYPE_CHECKING, Any

from harness.controller.core import conditions as cond
from harness.controller.core import line
from harness.controller.core.names import KIND
from harness.controller.core.needs import CONFIGS, REVISIONS, SERVICE_LABEL, subject
from harness.controller.core.targets.parked import SETS
from harness.controller.explain import asks_revisions
from harness.controller.look import plural_of, target_key, untold, wanted_keys, world_of
from harness.controller.shell.kinds import RESOURCES
from harness.kube.errors import Forbidden, KubeError, NotFound
from harness.kube.resource import CANARY, REPLICASET

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from harness.controller.core import World
    from harness.controller.core.decision import JSON
    from harness.controller.core.needs import Key
    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource

_LOOKED_AT = {KIND: "targetRef", "Deployment": "template", "DaemonSet": "template"}
"""Kinds that are read closely, and what their spec cannot do without."""
_FROM_SERVER = ("namespace", "uid", "resourceVersion")
STDIN = "-"


class SourceError(Exception):
    """There is no such Canary, or a file holds something else; the message is one sentence for the user."""


async def from_cluster(client: KubeClient, namespace: str, name: str) -> tuple[JSON, World]:
    """Return a Canary and what the controller would see around it. Gets by name, and lists where a name is not enough.

    Raises SourceError when there is no such Canary, or a config that matters may not be read; KubeError for everything else. ReplicaSets that
    may not be read are left out, as the controller does.
    """
    try:
        canary = await client.get(CANARY, name, namespace)
    except NotFound as error:
        raise SourceError(await _no_canary(client, namespace, name)) from error
    around = _Around(client, namespace)
    await around.read([target_key(canary)])
    target = next(iter(around.objects), None)
    await around.read(wanted_keys(canary, target))
    refused = cond.find(canary.get("status") or {}, cond.ACCEPTED) or {}
    if refused.get("reason") == "Conflict" or line.in_line(canary.get("status") or {}):
        around.objects += (await client.list(CANARY, namespace))[0]
    world = around.world(canary, revisions_read=False)
    if missing := untold(canary, world):
        msg = f"{missing} may not be read with these credentials, and without it nothing can be compared"
        raise SourceError(msg)
    if world.target is not None and asks_revisions(world, canary, time.time()):
        around.objects += await _revisions(client, namespace, world.target)
        world = around.world(canary)
    return canary, world


class _Around:
    """What was read of a namespace, and what could not be."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self.objects: list[JSON] = []
        self._absent: dict[str, str] = {}
        self._read = set(CONFIGS)

    async def read(self, keys: Iterable[Key]) -> None:
        """Read objects by plural and name."""
        wanted = list(keys)
        for found in await asyncio.gather(*(self._one(*key) for key in wanted)):
            self.objects += found
        seen = {plural_of(obj) for obj in self.objects}
        for plural in sorted({plural for plural, _ in wanted} - seen):
            # The answer to a get does not tell a missing object from a kind that is not there.
            resource = RESOURCES[plural]
            if "." in resource.group and not await self._served(resource):
                self._absent[plural] = f"{resource.label}: its CRD is not installed"

    def world(self, canary: JSON, *, revisions_read: bool = True) -> World:
        """Return it as the controller sees it."""
        return world_of(
            canary,
            self.objects,
            revisions_read=revisions_read,
            absent=self._absent,
            read=self._read,
        )

    async def _one(self, plural: str, name: str) -> list[JSON]:
        resource = RESOURCES[plural]
        try:
            if plural == SETS:
                # By whom they belong to, and no label tells that.
                found, _ = await self._client.list(resource, self._namespace)
                return [one for one in found if subject(plural, one) == name]
            if plural == REVISIONS:
                of = f"{SERVICE_LABEL}={name}"
                return (await self._client.list(resource, self._namespace, label_selector=of))[0]
            return [await self._client.get(resource, name, self._namespace)]
        except NotFound:
            return []
        except Forbidden:
            if plural not in CONFIGS:
                raise
            self._read.discard(plural)
            return []

    async def _served(self, resource: Resource) -> bool:
        try:
            await self._client.list(resource, self._namespace, field_selector="metadata.name=-")
        except NotFound:
            return False
        return True


def from_file(path: Path, namespace: str | None, name: str | None) -> list[tuple[JSON, World]]:
    """Return the Canaries of a file (`-`: standard input), with what else it holds of each one's namespace.

    YAML or JSON: documents, Lists, or both, as `kubectl get -o yaml` prints them. Raises SourceError and OSError.
    """
    label = "standard input" if str(path) == STDIN else str(path)
    text = sys.stdin.read() if str(path) == STDIN else path.read_text("utf-8")
    objects = _objects(text, label)
    canaries = [obj for obj in objects if obj["kind"] == KIND]
    if not canaries:
        kinds = ", ".join(sorted({str(obj["kind"]) for obj in objects})) or "nothing"
        msg = f"{label}: there is no Canary in it (there is: {kinds})"
        raise SourceError(msg)
    chosen = [
        canary
        for canary in canaries
        if name in (None, canary["metadata"]["name"])
        and namespace in (None, canary["metadata"].get("namespace"))
    ]
    if not chosen:
        known = ", ".join(_label(canary) for canary in canaries)
        where = f" in namespace {namespace}" if namespace else ""
        what = f"Canary {name!r}" if name else "Canary"
        msg = f"{label}: there is no {what}{where} in it (there is: {known})"
        raise SourceError(msg)
    return [(canary, _world(canary, objects, label)) for canary in chosen]


def _world(canary: JSON, objects: list[JSON], label: str) -> World:
    world = world_of(canary, objects)
    if missing := untold(canary, world):
        msg = f"{label}: {missing} is not in it, and without it Canary {_label(canary)} cannot be compared"
        raise SourceError(msg)
    return world


async def _revisions(client: KubeClient, namespace: str, target: JSON) -> list[JSON]:
    labels = target["spec"]["selector"].get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    try:
        items, _ = await client.list(REPLICASET, namespace, label_selector=selector)
    except Forbidden:
        return []
    return items


async def _no_canary(client: KubeClient, namespace: str, name: str) -> str:
    try:
        canaries, _ = await client.list(CANARY, namespace)
    except NotFound:
        return f"There is no Canary {name!r}: the cluster serves no {CANARY.label}"
    except KubeError:
        return f"There is no Canary {name!r} in namespace {namespace!r}"
    known = ", ".join(canary["metadata"]["name"] for canary in canaries) or "none"
    return f"There is no Canary {name!r} in namespace {namespace!r} (there is: {known})"


def _objects(text: str, label: str) -> list[JSON]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        documents = list(YAML(typ="safe", pure=True).load_all(text))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        msg = f"{label}{line}: neither YAML nor JSON: {problem}"
        raise SourceError(msg) from error
    found: list[JSON] = []
    for document in documents:
        if document is None:
            continue
        items = document.get("items") if isinstance(document, dict) else None
        for obj in items if isinstance(items, list) else [document]:
            problem = _problem(obj)
            if problem:
                msg = f"{label}: {problem}"
                raise SourceError(msg)
            found.append(_plain(obj))
    return found


def _problem(obj: Any) -> str:
    """Return why an object cannot be looked at; empty when it can."""
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
        return f"not an object of Kubernetes, it has no kind: {str(obj)[:60]!r}"
    kind, meta = obj["kind"], obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        return f"{kind} without metadata.name"
    if kind not in _LOOKED_AT:
        return ""
    lacking = [field for field in _FROM_SERVER if not isinstance(meta.get(field), str)]
    lacking = [f"metadata.{field}" for field in lacking]
    spec = obj.get("spec")
    needed = _LOOKED_AT[kind]
    if not isinstance(spec, dict) or not isinstance(spec.get(needed), dict):
        lacking.append(f"spec.{needed}")
    if not lacking:
        return ""
    return (
        f"{kind} {meta['name']!r} is not as an API server sends it, it has no {', '.join(lacking)}"
    )


def _plain(value: Any) -> Any:
    """YAML reads an unquoted time as one; JSON has only text."""
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case dt.datetime():
            return value.isoformat().replace("+00:00", "Z")
        case dt.date():
            return value.isoformat()
    return value


def _label(canary: JSON) -> str:
    namespace = canary["metadata"].get("namespace")
    return f"{namespace}/{canary['metadata']['name']}" if namespace else canary["metadata"]["name"]
