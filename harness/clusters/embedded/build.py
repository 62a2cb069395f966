"""Building the programs from the pinned Go modules: slow once, shared by all processes, resumed where it ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError, Progress
from harness.clusters.embedded import toolchain
from harness.clusters.embedded.cache import Cache, check_cancelled, full_disk
from harness.clusters.embedded.components import lock_files

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

    from harness.clusters.embedded.components import Component

NOTICE_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.2
END_SECONDS: Final = 10.0
_VERSION_PACKAGES: Final = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
"""Where Kubernetes keeps the version that it reports."""


def build(
    cache: Cache,
    wanted: Sequence[Component],
    progress: Progress,
    cancelled: threading.Event | None = None,
) -> None:
    """Build those of the wanted programs that the cache lacks. Raises ClusterError.

    Each is kept as soon as it is complete. Two processes share one build: the second waits for the first, says so, and
    goes on with what is still lacking.
    """
    if all(cache.find(component.name) for component in wanted):
        return
    with cache.lock(progress, "is building the control plane", cancelled):
        missing = [component for component in wanted if not cache.find(component.name)]
        if not missing:
            return
        go = toolchain.find(progress, cancelled)
        total = sum(component.seconds for component in missing)
        progress(
            f"Building {len(missing)} programs of the embedded cluster from source, once: up to {_minutes(total)} on two cores, "
            "seconds where Go has them cached."
        )
        for component in missing:
            check_cancelled(cancelled)
            _build_one(go, cache, component, progress, cancelled)


def command_of(go: Path, component: Component, target: Path) -> list[str]:
    """Return the command that builds one program."""
    return [
        str(go),
        "build",
        "-ldflags",
        linker_flags(component),
        "-o",
        str(target),
        component.package,
    ]


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


def environment() -> dict[str, str]:
    """Return the environment of the builds: the user's, without what would change the result."""
    changed = {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    dropped = ("GOOS", "GOARCH", "GOROOT", "GOEXPERIMENT")
    return {name: value for name, value in os.environ.items() if name not in dropped} | changed


def _build_one(
    go: Path,
    cache: Cache,
    component: Component,
    progress: Progress,
    cancelled: threading.Event | None,
) -> None:
    draft = cache.draft(component.name)
    name = f"{component.name} {component.version}"
    progress(f"Building {name} (about {_minutes(component.seconds)}).")
    began = told = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command_of(go, component, draft),
            cwd=lock_files(component.lock)[0].parent,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                check_cancelled(cancelled)
                now = time.monotonic()
                if now - told >= NOTICE_SECONDS:
                    told = now
                    progress(
                        f"Building {name}: {now - began:.0f} s of about {component.seconds} s."
                    )
                time.sleep(POLL_SECONDS)
        finally:
            _end(process)
        output.seek(0)
        said = output.read().decode("utf-8", "replace").strip()
    if process.returncode != 0:
        draft.unlink(missing_ok=True)
        raise _failure(component, draft, said)
    cache.keep(component.name)
    progress(f"Built {name} in {time.monotonic() - began:.0f} s.")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a build that is not wanted any more, with the compilers that it started: they share its session."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()


def _failure(component: Component, path: Path, said: str) -> ClusterError:
    if "no space left on device" in said:
        return full_disk(path)
    words = " / ".join(said.splitlines()[-3:]) or "go said nothing"
    return ClusterError(f"{component.name} {component.version} cannot be built: {words}")


def _minutes(seconds: int) -> str:
    return f"{seconds} s" if seconds < 90 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - a minute and a half
