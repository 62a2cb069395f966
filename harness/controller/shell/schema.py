"""What of the Canary CRD is there, asked of the API server: once at the start for the log, and by dry runs for Canaries that depend on it.

At the start the published schema is read, as every client may. It lags behind the one that is applied, and some servers publish none; so
what becomes of a Canary is decided by dry runs of the very writes that it would lead to (`fence_field.py` says more).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import schema
from harness.controller.core.names import KIND, MANAGER
from harness.kube.errors import Forbidden, Invalid, KubeError, NotFound
from harness.kube.resource import CANARY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.controller.core.decision import JSON
    from harness.controller.core.schema import Place
    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource

_MERGE: Final = "application/merge-patch+json"


class Schema:
    """The installed Canary CRD, as far as the controller asks."""

    def __init__(
        self, client: KubeClient, namespace: str, log: Any, *, canaries: Resource = CANARY
    ) -> None:
        self._client = client
        self._canaries = canaries
        self._namespace = namespace
        self._log = log

    async def look(self) -> None:
        """Log one warning that names what the published schema lacks."""
        try:
            missing = await self._published()
        except KubeError as error:
            self._log.info("schema not read", message=str(error))
            return
        if missing:
            self._log.warning(
                "schema lacks",
                fields=[str(place) for place in missing],
                message=f"the CRD {self._canaries.label} is another one than this controller comes with: apply {schema.FILE};"
                " what depends on it is refused on the Canaries that ask for it",
            )

    async def drops(self, canary: JSON) -> tuple[str, ...]:
        """Return what of a Canary's wishes the CRD has no place for, in words; empty without wishes. Raises KubeError."""
        places = [place for wish in schema.wishes(canary) for place in wish.places]
        missing = await self._missing(canary["metadata"]["name"], places) if places else []
        return schema.dropped(canary, missing)

    async def _missing(self, name: str, places: Iterable[Place]) -> list[Place]:
        found: list[Place] = []
        for place in places:
            try:
                answer = await self._ask(name, place)
            except Invalid as error:
                unknown = not _about(error, place)
            except Forbidden:
                unknown = True
            else:
                if not place.kept(answer):
                    found.append(place)
                continue
            # Something else stands in the way of the dry run: a policy, a webhook that allows none. What is published has to do.
            if not unknown or await self._unpublished(place):
                found.append(place)
        return found

    async def _unpublished(self, place: Place) -> bool:
        try:
            return place in await self._published()
        except (Forbidden, NotFound):
            return True  # not known: rather refused than lost

    async def _ask(self, name: str, place: Place) -> JSON:
        path = self._canaries.path(self._namespace, name, "status" if place.in_status else None)
        params = {"dryRun": "All", "fieldManager": MANAGER}
        return await self._client.raw("PATCH", path, params, place.patch(), content_type=_MERGE)

    async def _published(self) -> tuple[Place, ...]:
        """Return what the published schema lacks. Raises KubeError."""
        document = await self._client.raw("GET", published(self._canaries))
        return schema.absent(_canary(document))


def published(canaries: Resource) -> str:
    """Return where the schemas of the group are published."""
    return f"/openapi/v3/apis/{canaries.api_version}"


def _about(error: Invalid, place: Place) -> bool:
    """Whether a refusal names this very field."""
    causes = error.details.get("causes") or []
    dotted = ".".join(place.path)
    return any(str(cause.get("field") or "") == dotted for cause in causes)


def _canary(document: JSON) -> JSON:
    """Return the Canary's schema out of a group's OpenAPI document; an empty one when it holds none."""
    for found in ((document.get("components") or {}).get("schemas") or {}).values():
        kinds = found.get("x-kubernetes-group-version-kind") or []
        if any(each.get("kind") == KIND for each in kinds):
            return dict(found)
    return {}
