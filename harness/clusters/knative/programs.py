"""Knative's programs: two of its own, and its controller with a main of ours, all built from one version's module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.clusters.addons import ADDONS, KNATIVE, OTHERWISE
from harness.clusters.base import ClusterError
from harness.clusters.knative.isolation import possible
from harness.data import data_path
from harness.programs.errors import ProgramError
from harness.programs.from_module import ModuleProgram, build_from_module, cached

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from harness.clusters.base import Progress

MODULE: Final = ADDONS[KNATIVE].module
_OURS: Final = "knative-controller"


@dataclass(frozen=True, slots=True)
class Programs:
    """Paths of the programs."""

    webhook: Path
    controller: Path
    autoscaler: Path


def wanted() -> dict[str, ModuleProgram]:
    """Return what has to be built, by the name of its field in `Programs`."""
    # fixtures/go/knative-controller says why this one is ours.
    source = data_path("fixtures", "go", _OURS, "main.go")
    return {
        "webhook": ModuleProgram(MODULE, "knative-webhook", "cmd/webhook", 150),
        "controller": ModuleProgram(MODULE, _OURS, f"cmd/{_OURS}", 60, sources=(source,)),
        "autoscaler": ModuleProgram(MODULE, "knative-autoscaler", "cmd/autoscaler", 60),
    }


def obtain(progress: Progress, cancelled: threading.Event | None = None) -> Programs:
    """Return the programs, built if need be, which takes some minutes once; later neither Go nor a network is needed.

    Blocks. Raises ClusterError also where there can be no network namespace, without which they are not run.
    """
    refused = possible()
    if refused:
        msg = f"The add-on {KNATIVE} runs in a network namespace of its own, and {refused}; {OTHERWISE}."
        raise ClusterError(msg)
    try:
        built = {
            name: cached(program)
            or build_from_module(program, progress, cancelled, otherwise=OTHERWISE)
            for name, program in wanted().items()
        }
    except ProgramError as error:
        msg = f"The add-on {KNATIVE} cannot be had: {error}"
        raise ClusterError(msg) from error
    return Programs(**built)
