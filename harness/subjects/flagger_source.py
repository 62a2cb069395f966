"""A Flagger to run: its program, CRDs and roles, all of one version, out of its Go module.

Nothing of Flagger is kept in this repository. What was fetched and built once is in the cache of programs.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.programs.errors import NotServedError, ProgramError
from harness.programs.from_module import ModuleProgram, build_from_module
from harness.programs.modules import Module, files, required_version
from harness.subjects import flagger_objects
from harness.subjects.base import SubjectError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from harness.model.timeline import JSON
    from harness.subjects.names import SubjectName

MODULE: Final = "github.com/fluxcd/flagger"
PACKAGE: Final = "cmd/flagger"
BUILD_SECONDS: Final = 110
_CRDS: Final = "artifacts/flagger/crd.yaml"
_ROLES: Final = "kustomize/base/flagger/rbac.yaml"
_GO_MOD: Final = "go.mod"
_OTHERWISE: Final = "give a program with --subject flagger@path:FILE"
_ASK_SECONDS: Final = 10.0
_SAID: Final = re.compile(r"Flagger version v?(\d+\.\d+\.\d+\S*)")


@dataclass(frozen=True, slots=True)
class FlaggerSource:
    """What is needed to run one Flagger."""

    version: str
    """Without a `v`."""
    program: Path
    crds: list[JSON]
    rules: list[JSON]
    """Of its role in the drill's namespace."""
    api: str | None
    """The version of k8s.io/api that its module requires, e.g. `v0.36.2`."""


def module_of(version: str) -> Module:
    """Return the Go module of a version, e.g. `1.44.0`."""
    return Module(MODULE, f"v{version}")


def program_of(version: str) -> ModuleProgram:
    """Return how Flagger itself is built."""
    return ModuleProgram(module_of(version), "flagger", PACKAGE, BUILD_SECONDS)


def get(
    name: SubjectName, progress: Callable[[str], None], cancelled: threading.Event | None = None
) -> FlaggerSource:
    """Return the Flagger that a name means, fetched and built if need be. Blocks, for minutes when it is built. Raises SubjectError."""
    if name.path is None:
        return _of_version(name.version, progress, cancelled, None)
    version = version_of(name.path)
    try:
        return _of_version(version, progress, cancelled, name.path)
    except SubjectError as error:
        msg = f"{name.path} is Flagger {version}, but its CRDs and roles cannot be known: {error}"
        raise SubjectError(msg) from error


def version_of(program: Path) -> str:
    """Return the version that a program says it is. Raises SubjectError when it is not a Flagger that can be run."""
    if not program.is_file():
        msg = f"flagger@path:{program}: there is no such file"
        raise SubjectError(msg)
    if not os.access(program, os.X_OK):
        msg = f"flagger@path:{program}: the file is not executable; make it so with chmod +x"
        raise SubjectError(msg)
    try:
        done = subprocess.run(
            [program, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {_ASK_SECONDS:g} s"
        msg = f"flagger@path:{program}: it cannot be asked for its version: {reason}"
        raise SubjectError(msg) from error
    said = f"{done.stdout}\n{done.stderr}"
    found = _SAID.search(said)
    if found is None:
        first = next((line for line in said.splitlines() if line.strip()), "nothing")
        msg = f"flagger@path:{program}: it is no Flagger; asked for its version it says: {first}"
        raise SubjectError(msg)
    return found[1]


def _of_version(
    version: str,
    progress: Callable[[str], None],
    cancelled: threading.Event | None,
    given: Path | None,
) -> FlaggerSource:
    module = module_of(version)
    try:
        # First what is small: a version that is not served is known within a second.
        folder = files(module, [_CRDS, _ROLES, _GO_MOD], progress, cancelled, otherwise=_OTHERWISE)
        program = given or build_from_module(
            program_of(version), progress, cancelled, otherwise=_OTHERWISE
        )
    except NotServedError as error:
        msg = f"there is no Flagger {version} to be had: {error}"
        raise SubjectError(msg) from error
    except ProgramError as error:
        raise SubjectError(str(error)) from error
    go_mod = (folder / _GO_MOD).read_text(encoding="utf-8")
    return FlaggerSource(
        version,
        program,
        flagger_objects.crds(folder / _CRDS),
        flagger_objects.roles(folder / _ROLES),
        required_version(go_mod, "k8s.io/api"),
    )
