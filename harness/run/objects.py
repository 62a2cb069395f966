"""Making objects for a drill: labelled, journalled before they exist, and never over somebody else's."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from harness.kube.resource import KNOWN, Resource
from harness.run.adapt.group import moved_resource
from harness.run.identity import DRILL_LABEL, FIELD_MANAGER
from harness.run.journal import Entry, Journal, ObjectKey
from harness.run.together import together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON


class RefusedError(Exception):
    """The drill may not or cannot make or change an object; the message is for the user."""


class ResourceMap:
    """From an object's apiVersion and kind to where it is served; asks the server only for what is not built in."""

    def __init__(self, client: KubeClient, api_group: str = "") -> None:
        """`api_group` is that of Canaries; empty: Flagger's."""
        self._client = client
        known = (moved_resource(one, api_group) for one in KNOWN)
        self._known = {(r.api_version, r.kind): r for r in known}
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

    def __init__(
        self,
        client: KubeClient,
        journal: Journal,
        labels: Mapping[str, str],
        *,
        api_group: str = "",
    ) -> None:
        self.client = client
        self.resources = ResourceMap(client, api_group)
        self._journal = journal
        self._labels = dict(labels)
        self._made: dict[ObjectKey, Entry] = {}

    async def apply(self, obj: JSON, namespace: str | None) -> None:
        """Server-side apply `obj`, in `namespace` when its kind has one.

        Raises RefusedError when an object of that name exists that this drill did not make.
        """
        await self.apply_all([obj], namespace)

    async def apply_all(
        self,
        objects: Sequence[JSON],
        namespace: str | None,
        *,
        manager: str = FIELD_MANAGER,
        force: bool = True,
    ) -> None:
        """Apply several objects: kind by kind, in the order in which the kinds come, and those of a kind side by side.

        For the objects of many rollouts, whose order among each other does not matter. Raises as `apply`, and Conflict when others
        than `manager` have a field and `force` is not set. The drill's labels go along whoever applies: they say whose it is.
        """
        waves: dict[Resource, list[tuple[ObjectKey, JSON]]] = {}
        for obj in objects:
            resource = await self.resources.find(str(obj["apiVersion"]), str(obj["kind"]))
            where = namespace if resource.namespaced else None
            full = self._marked(obj, where)
            parts = (resource.group, resource.version, resource.plural, resource.kind)
            key = ObjectKey(*parts, str(full["metadata"]["name"]), where)
            waves.setdefault(resource, []).append((key, full))
        for resource, wave in waves.items():
            new = [key for key, _ in wave if key not in self._made]
            await self._must_be_free(resource, new)
        keys = [key for wave in waves.values() for key, _ in wave if key not in self._made]
        drill = self._labels.get(DRILL_LABEL, "")
        announced = self._journal.make_all(list(dict.fromkeys(keys)), drill)
        entries = {entry.key: entry for entry in announced}

        async def one(item: tuple[ObjectKey, JSON]) -> None:
            key, obj = item
            resource = key.resource
            # Forced, since on its own objects the harness stands for the user who applies a manifest again.
            answer = await self.client.apply(
                resource, obj, key.namespace, field_manager=manager, force=force
            )
            entry = self._made.get(key) or entries[key]
            self._made[key] = entry
            self._journal.made(entry, str(answer["metadata"]["uid"]))

        for wave in waves.values():
            await together(one, wave)

    def _marked(self, obj: JSON, namespace: str | None) -> JSON:
        """Return a copy with the drill's labels, and its namespace if it has one."""
        copied = copy.deepcopy(obj)
        metadata = copied["metadata"]
        if namespace:
            metadata["namespace"] = namespace
        metadata["labels"] = {**(metadata.get("labels") or {}), **self._labels}
        return copied

    async def _must_be_free(self, resource: Resource, keys: Sequence[ObjectKey]) -> None:
        """Raise RefusedError when one of the objects exists."""
        taken = next(iter(keys), None)
        if taken is None:
            return
        if len(keys) == 1:
            if not await self.client.exists(resource, taken.name, taken.namespace):
                return
        else:
            there, _ = await self.client.list(resource, taken.namespace, metadata_only=True)
            names = {str(item["metadata"]["name"]) for item in there}
            taken = next((key for key in keys if key.name in names), None)
            if taken is None:
                return
        msg = f"{taken.label} exists already and was not made by this drill, so it is not touched"
        raise RefusedError(msg)
