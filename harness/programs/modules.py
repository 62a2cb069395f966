"""Go modules at a version: fetched by `go`, which checks them against the checksum database, and read as files."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.programs import golang, toolchain
from harness.programs.cache import Cache, disk_errors, full_disk
from harness.programs.errors import NotServedError, ProgramError
from harness.programs.paths import cache_root, make_folder

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from harness.programs.cache import Progress

_FETCH_SECONDS: Final = 20
"""What fetching a module takes usually."""
_NOT_SERVED: Final = re.compile(
    r"\b(40[34]|410) |unknown revision|invalid version|no matching versions|not a known dependency"
)
_STATUS: Final = re.compile(r"\b((?:40[34]|410) [A-Z][a-z]+(?: [A-Z][a-z]+)*)")
_GO_LINE: Final = re.compile(r"^go (\d+(?:\.\d+)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Module:
    """One Go module at a version, e.g. `github.com/fluxcd/flagger` and `v1.44.0`."""

    path: str
    version: str
    """With its `v`."""

    @property
    def label(self) -> str:
        """The module as progress and errors name it."""
        return f"{self.path} {self.version}"


def fetch(
    module: Module,
    progress: Progress,
    cancelled: threading.Event | None = None,
    *,
    otherwise: str,
) -> Path:
    """Return the folder of a module's sources in Go's module cache; nobody may write there.

    `otherwise`: see `toolchain.find`. Raises NotServedError when there is no such version where modules are fetched from,
    ProgramError when it cannot be fetched.
    """
    go = toolchain.find(toolchain.ANY_GO, progress, cancelled, otherwise=otherwise)
    with tempfile.TemporaryDirectory() as nowhere:
        said = golang.run(
            go,
            # Without a go.mod around it the checksum database decides, not some go.sum.
            ["mod", "download", "-json", f"{module.path}@{module.version}"],
            folder=Path(nowhere),
            label=f"Fetching the Go module {module.label}",
            seconds=_FETCH_SECONDS,
            progress=progress,
            cancelled=cancelled,
        )
    with contextlib.suppress(ValueError):
        answer = json.loads(said.output)
        folder = answer.get("Dir")
        if said.code == 0 and isinstance(folder, str):
            return Path(folder)
        raise _refusal(module, str(answer.get("Error", "")))
    if said.disk_was_full:
        raise full_disk(cache_root())
    msg = f"The Go module {module.label} cannot be fetched: {said.last_words}"
    raise ProgramError(msg)


def files(
    module: Module,
    names: Sequence[str],
    progress: Progress,
    cancelled: threading.Event | None = None,
    *,
    otherwise: str,
) -> Path:
    """Return a folder that holds the named files and folders of a module, under their paths in it; cached.

    E.g. `files(Module("github.com/fluxcd/flagger", "v1.44.0"), ["artifacts/flagger/crd.yaml"], print, otherwise="…")`. What is
    there already needs neither Go nor a network. Raises NotServedError, and ProgramError also for a name that the module
    does not have.
    """
    folder = cache_root() / "modules" / f"{module.path}@{module.version}"
    if all((folder / name).exists() for name in names):
        return folder
    with Cache(folder).lock(progress, f"fetches {module.label}", cancelled):
        missing = [name for name in names if not (folder / name).exists()]
        if missing:
            source = fetch(module, progress, cancelled, otherwise=otherwise)
            for name in missing:
                _take(source / name, folder / name, f"The Go module {module.label} has no {name}")
    return folder


def required_files(
    module: Module,
    package: str,
    names: Sequence[str],
    progress: Progress,
    cancelled: threading.Event | None = None,
    *,
    otherwise: str,
) -> Path:
    """Return a folder that holds the named files of a package of *another* module, at the version that `module` requires; cached.

    E.g. of `knative.dev/networking/config`, as knative.dev/serving locks it in go.mod and go.sum. Raises as `files` does.
    """
    folder = cache_root() / "modules" / f"{module.path}@{module.version}-requires" / package
    if all((folder / name).exists() for name in names):
        return folder
    with Cache(folder).lock(progress, f"fetches {package}", cancelled):
        missing = [name for name in names if not (folder / name).exists()]
        if missing:
            source = _package(module, package, progress, cancelled, otherwise=otherwise)
            for name in missing:
                lacking = f"{package}, which {module.label} requires, has no {name}"
                _take(source / name, folder / name, lacking)
    return folder


def _package(
    module: Module,
    package: str,
    progress: Progress,
    cancelled: threading.Event | None,
    *,
    otherwise: str,
) -> Path:
    folder = fetch(module, progress, cancelled, otherwise=otherwise)
    lowest = go_version((folder / "go.mod").read_text(encoding="utf-8"))
    go = toolchain.find(lowest, progress, cancelled, otherwise=otherwise)
    said = golang.run(
        go,
        # The package, not its module: a mirror may have the sources of a version without telling about the version.
        ["list", "-f", "{{.Dir}}", package],
        folder=folder,
        label=f"Fetching {package}, which {module.label} requires",
        seconds=_FETCH_SECONDS,
        progress=progress,
        cancelled=cancelled,
    )
    found = said.output.strip()
    if said.code == 0 and found:
        return Path(found)
    msg = f"{package}, which {module.label} requires, cannot be fetched: {said.last_words}"
    raise ProgramError(msg)


def go_version(text: str) -> tuple[int, ...]:
    """Return the lowest Go version that a go.mod accepts, e.g. `(1, 26, 0)`."""
    found = _GO_LINE.search(text)
    return tuple(int(part) for part in found[1].split(".")) if found else toolchain.ANY_GO


def required_version(text: str, path: str) -> str | None:
    """Return the version that a go.mod requires of another module, e.g. `v0.36.2`; None when it does not require it."""
    found = re.search(
        rf"^(?:\s+|require )\"?{re.escape(path)}\"? (v\S+)(?!.*=>)", text, re.MULTILINE
    )
    return found[1] if found else None


def _refusal(module: Module, said: str) -> ProgramError:
    words = " / ".join(line.strip() for line in said.splitlines() if line.strip())
    if "verifying" in said:
        return ProgramError(f"The Go module {module.label} cannot be verified: {words}")
    if _NOT_SERVED.search(said):
        status = _STATUS.search(said)
        why = f" ({status[1]})" if status else ""
        return NotServedError(
            f"The Go module {module.path} has no version {module.version} where modules are fetched from{why}."
        )
    return ProgramError(
        f"The Go module {module.label} cannot be fetched: {words or 'go said nothing'}"
    )


def _take(source: Path, target: Path, lacking: str) -> None:
    if not source.exists():
        msg = f"{lacking}."
        raise ProgramError(msg)
    make_folder(target.parent)
    draft = target.with_name(f".{target.name}.draft")
    with disk_errors(target):
        if source.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
            # Contents alone: Go takes the right to write from everything in its module cache, folders too.
            for path in source.rglob("*"):
                if path.is_file():
                    copy = draft / path.relative_to(source)
                    make_folder(copy.parent)
                    shutil.copyfile(path, copy)
        else:
            shutil.copyfile(source, draft)
        draft.replace(target)
