"""Add-ons: types of other projects that a scenario may require, and the Go module that each comes from.

This table is the only place where their versions are written down. Nothing of them is kept in this repository: the CRDs are fetched
when the first drill needs them (or by `drill cluster build`), checked by Go against the checksum database, and kept in the cache.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ChoiceError, ClusterError
from harness.programs.cache import Cache, disk_errors
from harness.programs.errors import ProgramError
from harness.programs.modules import Module, files, required_files
from harness.programs.paths import cache_root

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable
    from pathlib import Path

    from harness.clusters.base import Progress
    from harness.model.timeline import JSON

SIMULATED_ROUTES: Final = "simulated-routes"
"""Routes obey the label `rollout-drill/route`, and no gateway routes anything."""
KNATIVE: Final = "knative"
"""The add-on that is more than types: its controllers run beside an embedded cluster (`harness.clusters.knative`)."""
OTHERWISE: Final = "run the drill on a cluster that has it, with --cluster context:NAME"
_NEXT: Final = re.compile(r"^---.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AddOn:
    """One add-on."""

    name: str
    """As a scenario's `requires` names it."""
    title: str
    module: Module
    files: tuple[str, ...]
    """Files of the module that have the CRDs."""
    crds: tuple[str, ...]
    """Names of the CRDs that are taken; the module has more."""
    simulated: str
    """What is simulated, or missing, on an embedded cluster; completes `TITLE VERSION: …` in a report."""
    gives: tuple[str, ...] = ()
    """Further features that it gives to an embedded cluster."""
    packages: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Packages of modules that the module requires, at the version that it locks, and their files that have CRDs."""

    @property
    def needs(self) -> str:
        """What an embedded cluster needs of it."""
        return "the CRDs and programs" if self.name == KNATIVE else "the CRDs"

    @property
    def says(self) -> str:
        """How a report names it on an embedded cluster."""
        return f"{self.title} {self.module.version}: {self.simulated}"


_GATEWAY: Final = "config/crd/standard/gateway.networking.k8s.io_"
_KNATIVE: Final = "config/core/300-resources/"
_KNATIVE_FILES: Final = (
    "configuration",
    "domain-mapping",
    "metric",
    "podautoscaler",
    "revision",
    "route",
    "service",
)
_KNATIVE_CRDS: Final = (
    "configurations.serving.knative.dev",
    "domainmappings.serving.knative.dev",
    "revisions.serving.knative.dev",
    "routes.serving.knative.dev",
    "services.serving.knative.dev",
    "metrics.autoscaling.internal.knative.dev",
    "podautoscalers.autoscaling.internal.knative.dev",
    "certificates.networking.internal.knative.dev",
    "clusterdomainclaims.networking.internal.knative.dev",
    "ingresses.networking.internal.knative.dev",
    "serverlessservices.networking.internal.knative.dev",
    "images.caching.internal.knative.dev",
)
_EVERY: Final = (
    AddOn(
        "gateway-api",
        "Gateway API",
        Module("sigs.k8s.io/gateway-api", "v1.4.1"),
        (
            f"{_GATEWAY}gatewayclasses.yaml",
            f"{_GATEWAY}gateways.yaml",
            f"{_GATEWAY}httproutes.yaml",
        ),
        (
            "gatewayclasses.gateway.networking.k8s.io",
            "gateways.gateway.networking.k8s.io",
            "httproutes.gateway.networking.k8s.io",
        ),
        "route status played by a kwok stage; no gateway runs, no traffic is routed",
        (SIMULATED_ROUTES,),
    ),
    AddOn(
        "istio",
        "Istio",
        Module("istio.io/api", "v1.32.0"),
        ("kubernetes/customresourcedefinitions.gen.yaml",),
        ("destinationrules.networking.istio.io", "virtualservices.networking.istio.io"),
        "its CRDs alone; no mesh runs, no traffic is routed",
    ),
    AddOn(
        "keda",
        "KEDA",
        Module("github.com/kedacore/keda/v2", "v2.21.0"),
        ("config/crd/bases/keda.sh_scaledobjects.yaml",),
        ("scaledobjects.keda.sh",),
        "its CRD alone; nothing scales by it",
    ),
    AddOn(
        KNATIVE,
        "Knative Serving",
        Module("knative.dev/serving", "v0.49.1"),
        tuple(f"{_KNATIVE}{name}.yaml" for name in _KNATIVE_FILES),
        _KNATIVE_CRDS,
        "its webhook, controller and autoscaler run; containers, queue-proxy, activator, ingress and requests are simulated: "
        "no request reaches a pod, and shares of traffic are what Knative's objects say",
        packages=(
            (
                "knative.dev/networking/config",
                ("certificate.yaml", "domain-claim.yaml", "ingress.yaml", "serverlessservice.yaml"),
            ),
            ("knative.dev/caching/config", ("image.yaml",)),
        ),
    ),
)
ADDONS: Final = {one.name: one for one in _EVERY}
"""Name -> add-on."""


def chosen(names: Iterable[str]) -> list[AddOn]:
    """Return add-ons by their names, in the order of the table. Raises ChoiceError with the allowed names."""
    wanted = set(names)
    unknown = sorted(wanted - set(ADDONS))
    if unknown:
        msg = f"There is no add-on {unknown[0]!r}; allowed: {', '.join(ADDONS)}."
        raise ChoiceError(msg)
    return [one for one in _EVERY if one.name in wanted]


def among(requires: Iterable[str]) -> tuple[str, ...]:
    """Return those features of a scenario's `requires` that are add-ons, in the order of the table."""
    wanted = set(requires)
    return tuple(name for name in ADDONS if name in wanted)


def crds(addon: AddOn, progress: Progress, cancelled: threading.Event | None = None) -> list[JSON]:
    """Return an add-on's CRDs as its module has them; what was fetched before needs neither Go nor a network.

    Blocks: fetching takes some seconds. Raises ClusterError.
    """
    try:
        return _crds(addon, progress, cancelled)
    except ProgramError as error:
        msg = f"The add-on {addon.name} cannot be had: {error}"
        raise ClusterError(msg) from error


def _crds(addon: AddOn, progress: Progress, cancelled: threading.Event | None) -> list[JSON]:
    kept = _kept(addon)
    found = _read(kept)
    if found is not None:
        return found
    progress(f"Getting the CRDs of {addon.title} {addon.module.version} (a Go module, once).")
    folder = files(addon.module, addon.files, progress, cancelled, otherwise=OTHERWISE)
    paths = [folder / name for name in addon.files]
    for package, names in addon.packages:
        folder = required_files(
            addon.module, package, names, progress, cancelled, otherwise=OTHERWISE
        )
        paths += [folder / name for name in names]
    parsed = [one for path in paths for one in _documents(path, addon.crds)]
    by_name = {str(one["metadata"]["name"]): one for one in parsed}
    lacking = [name for name in addon.crds if name not in by_name]
    if lacking:
        msg = f"{addon.module.label} has no CustomResourceDefinition {', '.join(lacking)}."
        raise ProgramError(msg)
    taken = [by_name[name] for name in addon.crds]
    # Parsing a megabyte of YAML takes a second, reading JSON does not.
    with Cache(kept.parent).lock(progress, f"gets the CRDs of {addon.title}", cancelled):
        draft = kept.with_name(f".{kept.name}.draft")
        with disk_errors(kept):
            draft.write_text(json.dumps(taken), encoding="utf-8")
            draft.replace(kept)
    return taken


def _kept(addon: AddOn) -> Path:
    said = json.dumps([addon.files, addon.crds, addon.packages])
    digest = hashlib.sha256(said.encode()).hexdigest()[:12]
    return cache_root() / "addons" / f"{addon.name}-{addon.module.version}-{digest}.json"


def _read(path: Path) -> list[JSON] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, list) else None


def _documents(path: Path, names: tuple[str, ...]) -> list[JSON]:
    """Return the CRDs of a YAML file that have one of these names."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        texts = _NEXT.split(path.read_text(encoding="utf-8"))
        # One file has a megabyte of types that nobody asked for.
        wanted = [text for text in texts if any(name in text for name in names)]
        loaded = [YAML(typ="safe", pure=True).load(text) for text in wanted]
    except (OSError, ValueError, YAMLError) as error:
        msg = f"{path} cannot be read: {str(error).splitlines()[0]}"
        raise ProgramError(msg) from error
    return [
        one
        for one in loaded
        if isinstance(one, dict) and one.get("kind") == "CustomResourceDefinition"
    ]
