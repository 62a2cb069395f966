"""Objects that a Canary refers to, and their Secrets, read when they are needed and never kept."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.controller.core.names import GROUP
from harness.controller.shell.kinds import moved
from harness.kube.errors import Forbidden, KubeError, NotFound
from harness.kube.resource import ALERTPROVIDER, METRICTEMPLATE, SECRET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.decision import JSON
    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource


class BrokenReferenceError(Exception):
    """Something that is referred to cannot be used; the message is one clause that names it."""


@dataclass(frozen=True, slots=True)
class Referred:
    """A MetricTemplate or AlertProvider with what its Secret holds."""

    obj: JSON
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Decoded values by key; empty without `secretRef`. Never to be logged."""
    secret_name: str = ""


class References:
    """Reads them through the API."""

    def __init__(self, client: KubeClient, *, group: str = GROUP) -> None:
        self._client = client
        self._templates = moved(METRICTEMPLATE, group)
        self._providers = moved(ALERTPROVIDER, group)

    async def template(self, name: str, namespace: str) -> JSON:
        """Return a MetricTemplate without its Secret. Raises BrokenReferenceError."""
        return await self._read(self._templates, name, namespace)

    async def metric_source(self, name: str, namespace: str) -> Referred:
        """Return a MetricTemplate with its Secret. Raises BrokenReferenceError."""
        obj = await self._read(self._templates, name, namespace)
        provider = (obj.get("spec") or {}).get("provider") or {}
        return await self._with_secret(obj, provider, namespace)

    async def alert_provider(self, name: str, namespace: str) -> Referred:
        """Return an AlertProvider with its Secret. Raises BrokenReferenceError."""
        obj = await self._read(self._providers, name, namespace)
        return await self._with_secret(obj, obj.get("spec") or {}, namespace)

    async def _with_secret(self, obj: JSON, holder: JSON, namespace: str) -> Referred:
        name = str((holder.get("secretRef") or {}).get("name") or "")
        if not name:
            return Referred(obj)
        found = await self._read(SECRET, name, namespace)
        data = found.get("data") or {}
        return Referred(obj, {key: _decoded(value) for key, value in data.items()}, name)

    async def _read(self, resource: Resource, name: str, namespace: str) -> JSON:
        what = f"{resource.kind} {name!r} in namespace {namespace!r}"
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound as error:
            msg = f"there is no {what}"
            raise BrokenReferenceError(msg) from error
        except Forbidden as error:
            msg = f"the controller may not read {what}"
            raise BrokenReferenceError(msg) from error
        except KubeError as error:
            msg = f"{what} cannot be read ({error})"
            raise BrokenReferenceError(msg) from error


def _decoded(value: object) -> str:
    try:
        return base64.b64decode(str(value)).decode("utf-8", "replace").strip()
    except (binascii.Error, ValueError):
        return ""
