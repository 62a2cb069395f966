"""Knative's manifests, read out of its module when they are first needed, and kept as JSON: reading YAML takes a second."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.clusters.addons import KNATIVE, OTHERWISE
from harness.clusters.base import ClusterError
from harness.clusters.knative.programs import MODULE
from harness.programs.cache import Cache, disk_errors
from harness.programs.errors import ProgramError
from harness.programs.modules import files, required_files
from harness.programs.paths import cache_root

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from harness.clusters.base import Progress
    from harness.model.timeline import JSON

_CORE: Final = "config/core"
_MAPS: Final = (
    "autoscaler",
    "certmanager",
    "defaults",
    "deployment",
    "domain",
    "features",
    "gc",
    "leader-election",
    "logging",
    "observability",
    "tracing",
)
_ROLES: Final = (
    "activator",
    "addressable-resolvers-clusterrole",
    "clusterrole-namespaced",
    "clusterrole",
    "podspecable-bindings-clusterrole",
)
_HOOKS: Final = ("configmap-validation", "defaulting", "resource-validation", "secret")
_FILES: Final[dict[str, tuple[str, ...]]] = {
    "rights": (
        f"{_CORE}/100-namespace.yaml",
        f"{_CORE}/200-serviceaccount.yaml",
        *(f"{_CORE}/200-roles/{name}.yaml" for name in _ROLES),
    ),
    "configs": tuple(f"{_CORE}/configmaps/{name}.yaml" for name in _MAPS),
    "hooks": tuple(f"{_CORE}/webhooks/{name}.yaml" for name in _HOOKS),
    "activator": (f"{_CORE}/deployments/activator.yaml",),
}
_NETWORK: Final = ("knative.dev/networking/config", "config-network.yaml")


@dataclass(frozen=True, slots=True)
class Manifests:
    """Documents as their authors wrote them."""

    rights: list[JSON]
    """Namespace, service accounts, roles."""
    configs: list[JSON]
    hooks: list[JSON]
    """Webhook configurations, and the Secret for the certificate."""
    activator: list[JSON]


def manifests(progress: Progress, cancelled: threading.Event | None = None) -> Manifests:
    """Return the manifests. Blocks for some seconds the first time. Raises ClusterError."""
    kept = _kept()
    try:
        return Manifests(**json.loads(kept.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError):
        pass
    try:
        return _fetched(kept, progress, cancelled)
    except ProgramError as error:
        msg = f"The add-on {KNATIVE} cannot be had: {error}"
        raise ClusterError(msg) from error


def _fetched(kept: Path, progress: Progress, cancelled: threading.Event | None) -> Manifests:
    names = [name for group in _FILES.values() for name in group]
    folder = files(MODULE, names, progress, cancelled, otherwise=OTHERWISE)
    package, name = _NETWORK
    network = required_files(MODULE, package, [name], progress, cancelled, otherwise=OTHERWISE)
    found = {
        part: [one for name in names for one in _documents(folder / name)]
        for part, names in _FILES.items()
    }
    found["configs"] += _documents(network / name)
    with Cache(kept.parent).lock(progress, f"gets the manifests of {MODULE.label}", cancelled):
        draft = kept.with_name(f".{kept.name}.draft")
        with disk_errors(kept):
            draft.write_text(json.dumps(found), encoding="utf-8")
            draft.replace(kept)
    return Manifests(**found)


def _kept() -> Path:
    digest = hashlib.sha256(json.dumps([_FILES, _NETWORK]).encode()).hexdigest()[:12]
    return cache_root() / "addons" / f"{KNATIVE}-manifests-{MODULE.version}-{digest}.json"


def _documents(path: Path) -> list[JSON]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = path.read_text(encoding="utf-8")
        return [one for one in YAML(typ="safe", pure=True).load_all(text) if one]
    except (OSError, ValueError, YAMLError) as error:
        msg = f"{path} cannot be read: {str(error).splitlines()[0]}"
        raise ProgramError(msg) from error
