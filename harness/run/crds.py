"""CRDs of a subject that takes over: replaced as a user would, and waited for until the API server works with them.

Only on a cluster that was made for the drill. Elsewhere a CRD is never altered.
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any, Final

from harness.kube.errors import ApiError, Conflict, NotFound
from harness.kube.resource import CRD
from harness.run.identity import FIELD_MANAGER, MANAGED_BY
from harness.run.objects import RefusedError
from harness.run.shared import established

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON
    from harness.run.leftovers import Key

SERVED_WITHIN: Final = 20.0
"""Seconds until the API server works with a changed schema; it takes some tenths of one."""
_LOOK_SECONDS: Final = 0.1
"""Published schemas cannot be watched."""
_TRIES: Final = 5


async def replace_crds(client: KubeClient, crds: Sequence[JSON], *, exclusive: bool) -> set[Key]:
    """Make these CRDs what the cluster has, and return their keys; those that are the same already are left alone.

    Raises RefusedError when one differs and the cluster is not the drill's own (`exclusive`), or is not served in time.
    """
    keys: set[Key] = set()
    for crd in crds:
        name = str(crd["metadata"]["name"])
        keys.add((CRD.group, CRD.plural, "", name))
        if not await differs(client, crd):
            continue
        if not exclusive:
            msg = f"CustomResourceDefinition {name} differs from the one that is needed, and on a cluster that others use it is not replaced"
            raise RefusedError(msg)
        await _put(client, crd)
        await established(client, name)
        await _served(client, crd)
    return keys


async def differs(client: KubeClient, crd: JSON) -> bool:
    """Return whether putting this CRD in place would change anything that matters; the API server itself compares, by a dry run."""
    for _ in range(_TRIES):
        try:
            there = await client.get(CRD, str(crd["metadata"]["name"]))
        except NotFound:
            return True
        if there["spec"] == crd["spec"]:
            return False
        try:
            then = await _replace(client, there, crd, dry=True)
        except Conflict:
            continue  # its status was written a moment ago, which says nothing about its spec
        except ApiError:
            return True  # refused, so that it is surely not what is there
        return bool(then["spec"] != there["spec"])
    return True


async def _put(client: KubeClient, crd: JSON) -> None:
    name = str(crd["metadata"]["name"])
    for _ in range(_TRIES):
        try:
            there = await client.get(CRD, name)
        except NotFound:
            await client.create(CRD, _marked(crd), field_manager=FIELD_MANAGER)
            return
        try:
            # Replaced, not applied: what the new one does not have any more is gone, too.
            await _replace(client, there, crd)
        except Conflict:
            continue  # its status was written a moment ago
        return
    msg = f"CustomResourceDefinition {name} was changed by others {_TRIES} times in a row"
    raise RefusedError(msg)


async def _replace(client: KubeClient, there: JSON, crd: JSON, *, dry: bool = False) -> JSON:
    obj = _marked(crd)
    labels = {**(there["metadata"].get("labels") or {}), **obj["metadata"]["labels"]}
    version = there["metadata"]["resourceVersion"]
    obj["metadata"] |= {"resourceVersion": version, "labels": labels}
    params = {"fieldManager": FIELD_MANAGER, **({"dryRun": "All"} if dry else {})}
    return await client.raw("PUT", CRD.path(name=there["metadata"]["name"]), params, obj)


def _marked(crd: JSON) -> JSON:
    obj = copy.deepcopy(crd)
    obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), **MANAGED_BY}
    return obj


async def _served(client: KubeClient, crd: JSON) -> None:
    """Wait until the published schemas are the CRD's: by then the API server prunes by the new ones."""
    spec = crd["spec"]
    names = [str(version["name"]) for version in spec["versions"] if version.get("served")]
    for name in names:
        wanted = _wanted(spec, name)
        try:
            async with asyncio.timeout(SERVED_WITHIN):
                while await _published(client, spec, name) != wanted:  # noqa: ASYNC110 - the server is what is waited for
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            seen = await _published(client, spec, name)
            lacking = sorted(wanted - seen) or sorted(seen - wanted)
            msg = (
                f"the new schema of {crd['metadata']['name']} ({name}) was not served within {SERVED_WITHIN:g} s; "
                f"seen last: it differs in {len(wanted ^ seen)} fields, among them {lacking[0].split()[0]}"
            )
            raise RefusedError(msg) from None


def _wanted(spec: JSON, version: str) -> set[str]:
    found = next(one for one in spec["versions"] if one["name"] == version)
    return set(_fields((found.get("schema") or {}).get("openAPIV3Schema") or {}))


async def _published(client: KubeClient, spec: JSON, version: str) -> set[str]:
    try:
        answer = await client.raw("GET", f"/openapi/v3/apis/{spec['group']}/{version}")
    except NotFound:
        return set()  # published a moment later
    schemas = (answer.get("components") or {}).get("schemas") or {}
    kind = {"group": spec["group"], "version": version, "kind": spec["names"]["kind"]}
    for schema in schemas.values():
        if kind in (schema.get("x-kubernetes-group-version-kind") or ()):
            return set(_fields(schema))
    return set()


def _fields(schema: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every field of a schema, but not of what all objects have, which is published in another form."""
    if not isinstance(schema, dict):
        return
    for name, inner in (schema.get("properties") or {}).items():
        if not path and name in {"apiVersion", "kind", "metadata"}:
            continue
        below = f"{path}.{name}" if path else name
        yield f"{below} {inner.get('type', '')} {inner.get('enum', '')}"
        yield from _fields(inner, below)
    for key in ("items", "additionalProperties"):
        yield from _fields(schema.get(key), f"{path}[]")
