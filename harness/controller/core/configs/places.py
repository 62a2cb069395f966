"""The places of a pod template that name ConfigMaps and Secrets (spec objects 6).

Reading and rewriting go through one list of places, so a reference that counts is rewritten, and no other is.

Not among them, although they name Secrets:

- imagePullSecrets: they let the kubelet fetch an image and reach no container. The image stands in the template already, and a copy would
  be one more place where a registry's credentials lie, made stale by every rotation until the next promotion. Their type
  (`kubernetes.io/dockerconfigjson`) would not be tracked anyway.
- Secrets of storage drivers (CSI and older volume kinds), projected service account tokens: credentials of the node or the cluster.
- ephemeral containers: no template can hold any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.controller.core.names import PRIMARY_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.controller.core.configs.checksums import Configs
    from harness.controller.core.decision import JSON

Kind = Literal["configmap", "secret"]

_WORDS: Final[dict[Kind, str]] = {"configmap": "ConfigMap", "secret": "Secret"}
_VOLUMES: Final[tuple[tuple[str, Kind, str], ...]] = (
    ("configMap", "configmap", "name"),
    ("secret", "secret", "secretName"),
)
_PROJECTED: Final[tuple[tuple[str, Kind, str], ...]] = (
    ("configMap", "configmap", "name"),
    ("secret", "secret", "name"),
)
_ENV: Final[tuple[tuple[str, Kind, str], ...]] = (
    ("configMapKeyRef", "configmap", "name"),
    ("secretKeyRef", "secret", "name"),
)
_ENV_FROM: Final[tuple[tuple[str, Kind, str], ...]] = (
    ("configMapRef", "configmap", "name"),
    ("secretRef", "secret", "name"),
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A ConfigMap or Secret that a pod template names."""

    kind: Kind
    name: str
    optional: bool = False
    """Whether pods start without it: every reference to it must say so (D9)."""

    @property
    def key(self) -> str:
        """How the status names it: `configmap/NAME` or `secret/NAME`."""
        return f"{self.kind}/{self.name}"

    def __str__(self) -> str:
        return f"{_WORDS[self.kind]} {self.name!r}"


def references(template: JSON) -> tuple[Reference, ...]:
    """Return what a pod template (with its `spec`) refers to, each object once, sorted by kind and name."""
    optional: dict[tuple[Kind, str], bool] = {}
    for place in _places(template.get("spec") or {}):
        same = (place.kind, place.name)
        optional[same] = optional.get(same, True) and place.optional
    return tuple(Reference(*same, optional[same]) for same in sorted(optional))


def rewrite(spec: JSON, configs: Configs) -> None:
    """Point a pod spec at the `-primary` copies of what is tracked. `spec` must be a copy: it is changed in place.

    Once only: a name that was rewritten could be that of another tracked object.
    """
    for place in _places(spec):
        if place.key in configs.tracked:
            place.holder[place.field] = place.name + PRIMARY_SUFFIX


def seeming_copies(spec: JSON) -> frozenset[str]:
    """Return the keys of those references of a pod spec whose name ends as that of a copy does; a user's own may be among them."""
    return frozenset(place.key for place in _places(spec) if place.name.endswith(PRIMARY_SUFFIX))


def undo(spec: JSON, keys: frozenset[str]) -> None:
    """Point a pod spec (a copy, changed in place) back at the originals of copies; `keys` name the copies."""
    for place in _places(spec):
        if place.key in keys:
            place.holder[place.field] = place.name.removesuffix(PRIMARY_SUFFIX)


@dataclass(frozen=True, slots=True)
class _Place:
    kind: Kind
    holder: JSON
    field: str

    @property
    def name(self) -> str:
        return str(self.holder[self.field])

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def optional(self) -> bool:
        return bool(self.holder.get("optional"))


def _places(spec: JSON) -> Iterator[_Place]:
    for volume in _each(spec, "volumes"):
        yield from _named(volume, _VOLUMES)
        for source in _each(volume.get("projected"), "sources"):
            yield from _named(source, _PROJECTED)
    # Init containers that run on as sidecars are init containers with a restartPolicy (case C04).
    for group in ("initContainers", "containers"):
        for container in _each(spec, group):
            for variable in _each(container, "env"):
                yield from _named(variable.get("valueFrom") or {}, _ENV)
            for source in _each(container, "envFrom"):
                yield from _named(source, _ENV_FROM)


def _named(holder: JSON, fields: tuple[tuple[str, Kind, str], ...]) -> Iterator[_Place]:
    for field, kind, name in fields:
        inner = holder.get(field)
        # The API lets old objects pass without a name; such a reference names nothing.
        if inner and inner.get(name):
            yield _Place(kind, inner, name)


def _each(holder: JSON | None, field: str) -> list[Any]:
    return (holder or {}).get(field) or []
