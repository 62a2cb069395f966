"""The running Python as files of an image: interpreter, standard library, distributions, and the shared libraries that they need.

So that an image with Python needs neither a registry nor a network. Linux with glibc or musl only.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.programs.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Iterable

HOME: Final = "opt/python"
"""Where interpreter, standard library and shared libraries are in the image, without the slash before it."""
SITE: Final = "opt/site"
"""Where distributions are."""
_SHARED: Final = f"{HOME}/shared"
_LEFT_OUT: Final = frozenset(
    {
        *("__pycache__", "site-packages", "dist-packages", "ensurepip", "idlelib", "lib2to3"),
        *("pydoc_data", "test", "tests", "tkinter", "turtledemo"),
    }
)
"""Folders of the standard library that no service needs; compiled files come beside their sources."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LIBRARY: Final = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x", re.MULTILINE)
_ELF: Final = b"\x7fELF"
_AT_ONCE: Final = 200
"""Files that `ldd` is asked about in one call."""
_BESIDE: Final = ("libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2")
"""What an older glibc loads by name when it looks a host up."""


def environment() -> dict[str, str]:
    """Return the environment in which Python finds all of it."""
    return {
        "LD_LIBRARY_PATH": f"/{_SHARED}",
        "PATH": f"/{HOME}/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHOME": f"/{HOME}",
        "PYTHONPATH": f"/{SITE}",
        "PYTHONUNBUFFERED": "1",
        "SSL_CERT_FILE": f"/{SITE}/certifi/cacert.pem",
    }


def interpreter() -> dict[str, Path | bytes]:
    """Return interpreter and standard library. Raises ProgramError elsewhere than on Linux."""
    if sys.platform != "linux":
        msg = "an image can be made of the running Python on Linux only"
        raise ProgramError(msg)
    binary = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = f"{HOME}/{sys.platlibdir}/{version}"
    found: dict[str, Path | bytes] = {
        f"{HOME}/bin/python": binary,
        f"{HOME}/bin/{version}": binary,
        "etc/nsswitch.conf": b"hosts: files dns\n",
    }
    standard = Path(os.__file__).resolve().parent
    found |= _tree(standard, library, _LEFT_OUT)
    # Some keep the compiled part elsewhere.
    compiled = sysconfig.get_config_var("DESTSHARED")
    if compiled and Path(compiled).is_dir() and standard not in Path(compiled).resolve().parents:
        found |= _tree(Path(compiled), f"{library}/lib-dynload", _LEFT_OUT)
    return found


def distributions(name: str, more: Iterable[str] = ()) -> dict[str, Path | bytes]:
    """Return the files of everything that an installed distribution and `more` of them require, and of its own only its metadata.

    Raises ProgramError when something is not installed, or does not say which files it has.
    """
    found: dict[str, Path | bytes] = {}
    for each in _required(name, *more):
        files = each.files
        if files is None:
            msg = f"the distribution {each.name} does not say which files it has: run it from a virtual environment"
            raise ProgramError(msg)
        root = Path(str(each.locate_file(""))).resolve()
        for file in files:
            if each.name == name and ".dist-info" not in str(file):
                continue
            path = Path(str(file.locate())).resolve()
            if file.suffix == ".pyc" or not path.is_file() or root not in path.parents:
                continue  # scripts, and files that were removed
            found |= _with_compiled(path, f"{SITE}/{path.relative_to(root)}")
    return found


def package(folder: Path, name: str, left_out: Iterable[str] = ()) -> dict[str, Path | bytes]:
    """Return the files of a package in a folder, without some of its folders."""
    return _tree(folder, f"{SITE}/{name}", frozenset({"__pycache__", *left_out}))


def shared_libraries(files: Iterable[Path | bytes]) -> dict[str, Path | bytes]:
    """Return what the programs and extensions among `files` are linked with, and the loader at its own place. Raises ProgramError."""
    programs = [file for file in files if isinstance(file, Path) and _is_elf(file)]
    found: dict[str, Path | bytes] = {}
    for at in range(0, len(programs), _AT_ONCE):
        for text in _LIBRARY.findall(_ldd(programs[at : at + _AT_ONCE])):
            path = Path(text)
            loader = path.name.startswith(("ld-linux", "ld-musl", "ld64"))
            found[text.lstrip("/") if loader else f"{_SHARED}/{path.name}"] = path.resolve()
            if path.name.startswith("libc.so"):
                beside = [path.with_name(name) for name in _BESIDE]
                found |= {f"{_SHARED}/{one.name}": one.resolve() for one in beside if one.is_file()}
    return found


def names_in(requirements: Iterable[str]) -> list[str]:
    """Return the names of the distributions that requirements (as `name>=1; marker`) are about, without those of extras."""
    needed = [each for each in requirements if "extra ==" not in each]
    return [found[0] for each in needed if (found := _NAME.match(each))]


def versions(name: str) -> list[str]:
    """Return the names and versions of everything that an installed distribution requires, itself included."""
    return sorted(f"{each.name} {each.version}" for each in _required(name))


def _required(*names: str) -> list[importlib.metadata.Distribution]:
    seen: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        wanted = waiting.pop()
        key = re.sub(r"[-_.]+", "-", wanted).lower()
        if key in seen:
            continue
        try:
            seen[key] = importlib.metadata.distribution(wanted)
        except importlib.metadata.PackageNotFoundError:
            if wanted in names:
                msg = f"the distribution {wanted} is not installed"
                raise ProgramError(msg) from None
            continue  # required on other systems or by other versions of Python
        waiting += names_in(seen[key].requires or ())
    return list(seen.values())


def _tree(folder: Path, where: str, left_out: frozenset[str]) -> dict[str, Path | bytes]:
    found: dict[str, Path | bytes] = {}
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(
            one for one in folders if one not in left_out and not one.startswith("config-")
        )
        for name in names:
            path = Path(top, name)
            if path.suffix not in {".a", ".pyc"} and path.is_file():
                found |= _with_compiled(path, f"{where}/{path.relative_to(folder)}")
    return found


def _with_compiled(path: Path, where: str) -> dict[str, Path | bytes]:
    """Return a file, and the compiled one beside it, without which a read-only file system compiles it at each start."""
    found: dict[str, Path | bytes] = {where: path}
    if path.suffix == ".py":
        compiled = Path(importlib.util.cache_from_source(str(path)))
        if compiled.is_file():
            folder = where.rpartition("/")[0]
            found[f"{folder}/__pycache__/{compiled.name}"] = compiled
    return found


def _is_elf(path: Path) -> bool:
    if path.suffix in {".py", ".pyc", ".txt"}:
        return False
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF


def _ldd(paths: Iterable[Path]) -> str:
    try:
        done = subprocess.run(
            ["ldd", *map(str, paths)],  # noqa: S607 - where it is differs from system to system
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"ldd, which tells what programs are linked with, cannot be run: {error}"
        raise ProgramError(msg) from error
    if missing := re.search(r"^\s*(\S+) => not found", done.stdout, re.MULTILINE):
        msg = f"the library {missing[1]}, with which a part of this Python is linked, is not here"
        raise ProgramError(msg)
    return done.stdout
