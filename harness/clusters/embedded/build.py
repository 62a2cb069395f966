"""Building the programs of the embedded cluster from the pinned Go modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.clusters.embedded.components import lock_files, needed_go
from harness.programs.build import Order, Program
from harness.programs.build import build as build_programs

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from harness.clusters.embedded.components import Component
    from harness.programs.cache import Cache, Progress

_VERSION_PACKAGES: Final = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
"""Where Kubernetes keeps the version that it reports."""


def build(
    cache: Cache,
    wanted: Sequence[Component],
    progress: Progress,
    cancelled: threading.Event | None = None,
) -> None:
    """Build those of the wanted programs that the cache lacks. Raises ProgramError."""
    order = Order(
        needed_go=needed_go(wanted),
        what="is building the control plane",
        of="of the embedded cluster",
        otherwise="give the programs with --binaries path:DIR",
    )
    build_programs(cache, [program_of(one) for one in wanted], order, progress, cancelled)


def program_of(component: Component) -> Program:
    """Return how a component is built."""
    return Program(
        name=component.name,
        version=component.version,
        folder=lock_files(component.lock)[0].parent,
        package=component.package,
        seconds=component.seconds,
        linker_flags=linker_flags(component),
    )


def linker_flags(component: Component) -> str:
    """Return the linker's flags: no debugging tables, and the version that Kubernetes reports."""
    flags = ["-s", "-w"]
    if component.module == "k8s.io/kubernetes":
        major, minor, _ = component.version.removeprefix("v").split(".", 2)
        for package in _VERSION_PACKAGES:
            values = {
                "gitVersion": component.version,
                "gitMajor": major,
                "gitMinor": minor,
                # A working tree of nobody's: without this the version says that it had changes.
                "gitTreeState": "archive",
            }
            flags += [f"-X {package}.{name}={value}" for name, value in values.items()]
    return " ".join(flags)
