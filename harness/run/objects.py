"""Making objects for a drill: labelled, journalled before they exist, and never over somebody else's."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from harness.kube.errors import NotFound
from harness.kube.resource import KNOWN, Resource
from harness.run.identity import DRILL_LABEL, FIELD_MANAGER
from harness.run.journal import Entry, Journal, ObjectKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON


class RefusedError(Exception):
    """The drill may not or cannot make or change an object; the message is for the user."""


class ResourceMap:
    """From an object's apiVersion and kind to where it is served; asks the server only for what is not built in."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._known = {(r.api_version, r.kind): r for r in KNOWN}
        self._discovered = False

    async def find(self, api_version: str, kind: str) -> Resource:
        """Return the resource type of `kind`.

        Raises RefusedError when the cluster does not serve it.
        """
        if (api_version, kind) not in self._known:
            await self._discover()
        try:
            return self._known[api_version, kind]
        except KeyError:
            msg = f"the cluster serves no {kind} of {api_version}"
            raise RefusedError(msg) from None

    async def find_kind(self, kind: str) -> Resource:
        """Return the resource type of `kind` whatever its group; built-in ones win.

        Raises RefusedError when the cluster serves none.
        """
        found = next((r for r in self._known.values() if r.kind == kind), None)
        if found is None:
            await self._discover()
            found = next((r for r in self._known.values() if r.kind == kind), None)
        if found is None:
            msg = f"the cluster serves no kind {kind}"
            raise RefusedError(msg)
        return found

    async def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        for resource in await self._client.discover():
            self._known.setdefault((resource.api_version, resource.kind), resource)


class Maker:
    """Creates and applies the objects of one drill."""

    def __init__(self, client: KubeClient, journal: Journal, labels: Mapping[str, str]) -> None:
        self.client = client
        self.resources = ResourceMap(client)
        self._journal = journal
        self._labels = dict(labels)
        self._made: dict[ObjectKey, Entry] = {}

    async def apply(self, obj: JSON, namespace: str | None) -> JSON:
        """Server-side apply `obj`, in `namespace` when its kind has one; returns what the server answered.

        Raises RefusedError when an object of that name exists that this drill did not make.
        """
        resource = await self.resources.find(str(obj["apiVersion"]), str(obj["kind"]))
        obj = copy.deepcopy(obj)
        metadata = obj["metadata"]
        where = namespace if resource.namespaced else None
        if where:
            metadata["namespace"] = where
        metadata["labels"] = {**(metadata.get("labels") or {}), **self._labels}
        parts = (resource.group, resource.version, resource.plural, resource.kind)
        key = ObjectKey(*parts, str(metadata["name"]), where)
        entry = self._made.get(key)
        if entry is None:
            await self._must_be_free(resource, key)
            entry = self._journal.make(key, self._labels.get(DRILL_LABEL, ""))
        # Forced, since on its own objects the harness stands for the user who applies a manifest again.
        answer = await self.client.apply(
            resource, obj, where, field_manager=FIELD_MANAGER, force=True
        )
        self._made[key] = entry
        self._journal.made(entry, str(answer["metadata"]["uid"]))
        return answer

    async def _must_be_free(self, resource: Resource, key: ObjectKey) -> None:
        try:
            await self.client.get(resource, key.name, key.namespace)
        except NotFound:
            return
        msg = f"{key.label} exists already and was not made by this drill, so it is not touched"
        raise RefusedError(msg)
