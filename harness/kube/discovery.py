"""Which resource types an API server serves.

Asked in the aggregated form first (two requests), group by group where a server does not know it.
A group behind a broken aggregated API is named and left out, instead of failing everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.kube.errors import ApiError
from harness.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

_AGGREGATED: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)


@dataclass(frozen=True, slots=True)
class Discovered:
    """The types that can be listed, and the groups that did not answer (`group/version: why`).

    Each type comes once, in the version its group prefers. Some objects are served by two groups
    (events by the core group and by events.k8s.io): they share their uid.
    """

    resources: tuple[Resource, ...]
    broken: tuple[str, ...] = ()


async def discover(client: KubeClient) -> Discovered:
    """Ask for all types. Raises ApiError or Unreachable when not even the list of groups comes."""
    found: dict[tuple[str, str], Resource] = {}
    broken: list[str] = []
    for path in ("/api", "/apis"):
        answer = await client.raw("GET", path, accept=_AGGREGATED)
        if answer.get("kind") == "APIGroupDiscoveryList":
            rows = list(_aggregated(answer, broken))
        else:
            rows = await _one_by_one(client, path, answer, broken)
        for resource in rows:
            found.setdefault((resource.group, resource.plural), resource)
    listable = (r for r in found.values() if "list" in r.verbs)
    return Discovered(tuple(sorted(listable, key=lambda r: (r.group, r.plural))), tuple(broken))


def _aggregated(answer: JSON, broken: list[str]) -> Iterator[Resource]:
    for item in answer.get("items") or ():
        group = item.get("metadata", {}).get("name", "")
        for version in item.get("versions") or ():
            name = version.get("version", "")
            rows = version.get("resources") or ()
            # A stale version may still list what it served last; only an empty one says nothing.
            if version.get("freshness") == "Stale" and not rows:
                broken.append(f"{group}/{name}: its API server does not answer")
            for row in rows:
                kind = (row.get("responseKind") or {}).get("kind", "")
                yield Resource(
                    group,
                    name,
                    row["resource"],
                    kind,
                    row.get("scope") == "Namespaced",
                    frozenset(row.get("verbs") or ()),
                )


async def _one_by_one(
    client: KubeClient, path: str, answer: JSON, broken: list[str]
) -> list[Resource]:
    rows: list[Resource] = []
    for group, version in _versions(path, answer):
        where = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            listing = await client.raw("GET", where)
        except ApiError as error:
            broken.append(f"{group}/{version}: {error.message}")
            continue
        rows += [
            Resource(
                group,
                version,
                row["name"],
                row["kind"],
                bool(row.get("namespaced")),
                frozenset(row.get("verbs") or ()),
            )
            for row in listing.get("resources") or ()
            if "/" not in row["name"]
        ]
    return rows


def _versions(path: str, answer: JSON) -> Iterator[tuple[str, str]]:
    """Yield group and version, preferred versions first within their group."""
    if path == "/api":
        yield from (("", version) for version in answer.get("versions") or ())
        return
    for group in answer.get("groups") or ():
        preferred: Any = (group.get("preferredVersion") or {}).get("version")
        versions = [v["version"] for v in group.get("versions") or ()]
        for version in sorted(versions, key=lambda v: v != preferred):
            yield group["name"], version
