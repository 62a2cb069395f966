"""A program out of a Go module at a version: one of its own, or one of ours that is compiled among its sources.

It is built in the module's own folder, with the versions that its go.mod and go.sum lock: as its authors build it. A program of
ours is built in a copy of that folder; so it sees the same packages, types and versions as they do.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.programs import build, golang, mends, toolchain
from harness.programs.build import Program
from harness.programs.cache import Cache, disk_errors
from harness.programs.modules import Module, fetch, go_version
from harness.programs.paths import cache_root

if TYPE_CHECKING:
    import threading

    from harness.programs.cache import Progress

_DIGITS: Final = 12
_LIST_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class ModuleProgram:
    """What is to be built."""

    module: Module
    name: str
    """Of the program, e.g. `flagger`."""
    package: str
    """Its folder in the module, e.g. `cmd/flagger`; for a program of ours one that the module does not have."""
    seconds: int
    """What building it takes on two cores with nothing cached."""
    sources: tuple[Path, ...] = ()
    """Go files of ours that make up `package`; empty for a program of the module itself."""

    @property
    def label(self) -> str:
        """The program as progress and errors name it."""
        return f"{self.name} {self.module.version.removeprefix('v')}"


def cached(program: ModuleProgram) -> Path | None:
    """Return the program if it was built before."""
    return _cache(program).find(program.name)


def build_from_module(
    program: ModuleProgram,
    progress: Progress,
    cancelled: threading.Event | None = None,
    *,
    otherwise: str,
) -> Path:
    """Return the path of the program, built if need be. Blocks, for minutes with nothing cached.

    `otherwise` says what the user can do instead of installing Go. Raises NotServedError when the module has no such
    version, ProgramError (one sentence) for everything else.
    """
    cache = _cache(program)
    if found := cache.find(program.name):
        return found
    with cache.lock(progress, f"is building {program.label}", cancelled):
        if found := cache.find(program.name):
            return found
        folder = fetch(program.module, progress, cancelled, otherwise=otherwise)
        lowest = go_version((folder / "go.mod").read_text(encoding="utf-8"))
        go = toolchain.find(lowest, progress, cancelled, otherwise=otherwise)
        progress(f"Building {program.label}, once (about {golang.minutes(program.seconds)}).")
        with tempfile.TemporaryDirectory() as scratch:
            plain = Program(
                program.name,
                program.module.version.removeprefix("v"),
                _laid_over(program, folder, Path(scratch)),
                f"./{program.package}",
                program.seconds,
            )
            mended = _mended(go, plain, Path(scratch), progress, cancelled)
            said = build.compile_one(go, cache, mended, progress, cancelled)
        if said.code != 0:
            raise build.failure(cache, plain, said)
        return cache.keep(program.name)


def _mended(
    go: Path,
    plain: Program,
    scratch: Path,
    progress: Progress,
    cancelled: threading.Event | None,
) -> Program:
    """Return the program, with a go.mod of ours where this Go would not compile it with its own."""

    def packages() -> str:
        return golang.run(
            go,
            ["list", *plain.flags, "-deps", plain.package],
            folder=plain.folder,
            label=f"Reading the packages of {plain.label}",
            seconds=_LIST_SECONDS,
            progress=progress,
            cancelled=cancelled,
        ).output

    text = (plain.folder / "go.mod").read_text(encoding="utf-8")
    mend = mends.needed(toolchain.version_of(go), text, packages)
    if mend is None:
        return plain
    progress(f"{mend.why}: building {plain.label} with {mend.path} {mend.version}.")
    lock = scratch / "go.mod"
    with disk_errors(lock):
        lock.write_text(mends.apply(mend, text), encoding="utf-8")
        shutil.copyfile(plain.folder / "go.sum", lock.with_name("go.sum"))
    # Whatever the newer version needs in turn is found by go; everything else stays as it is locked.
    return replace(plain, flags=(*plain.flags, "-mod=mod", f"-modfile={lock}"))


def _laid_over(program: ModuleProgram, folder: Path, scratch: Path) -> Path:
    """Return the folder to build in: the module's own, or a copy of it in which a program of ours has its place.

    A copy, since Go lets nobody lay files over its module cache.
    """
    if not program.sources:
        return folder
    copy = scratch / "module"
    with disk_errors(copy):
        # Only the contents: Go's module cache takes the right to write from everything.
        shutil.copytree(folder, copy, copy_function=shutil.copyfile)
        for place, _, _ in os.walk(copy):
            Path(place).chmod(0o700)
        (copy / program.package).mkdir(parents=True)
        for path in program.sources:
            shutil.copyfile(path, copy / program.package / path.name)
    return copy


def _cache(program: ModuleProgram) -> Cache:
    digest = hashlib.sha256(
        repr((golang.FLAGS, platform.machine(), program.module, program.package)).encode()
    )
    for path in program.sources:
        with disk_errors(path):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    key = digest.hexdigest()[:_DIGITS]
    version = program.module.version.removeprefix("v")
    return Cache(cache_root() / "programs" / f"{program.name}-{version}-{key}")
