"""Downloading the official programs, each checked against the SHA-256 that its project publishes.

Kubernetes publishes a .sha256 file beside each program, etcd a SHA256SUMS file per release; kwok publishes none, but its
releases' listing states a digest of each file. A program whose checksum cannot be had is not taken: it is built instead.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import http.client
import json
import platform
import re
import tarfile
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.programs.cache import check_cancelled, disk_errors
from harness.programs.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.clusters.embedded.components import Component
    from harness.programs.cache import Cache, Progress

PROBE_SECONDS: Final = 4.0
"""How soon the official address must answer; a build is the better choice otherwise."""
STALL_SECONDS: Final = 30.0
"""Longest silence in the middle of a file."""
_CHUNK: Final = 1 << 20
_SHA256: Final = re.compile(r"\b[0-9a-f]{64}\b")
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Mirrors:
    """The official addresses; tests give others."""

    kubernetes: str = "https://dl.k8s.io"
    etcd: str = "https://github.com/etcd-io/etcd/releases/download"
    kwok: str = "https://github.com/kubernetes-sigs/kwok/releases/download"
    kwok_releases: str = "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags"


OFFICIAL: Final = Mirrors()


class NoChecksumError(ProgramError):
    """A project publishes no checksum for a program."""


class UnreachableError(ProgramError):
    """An official address does not answer."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a program is, and where its checksum is."""

    url: str
    checksum_url: str
    file: str
    """The name that the checksum is listed under."""
    member: str = ""
    """The path inside the archive, where it is one."""


def source_of(component: Component, mirrors: Mirrors = OFFICIAL) -> Source:
    """Return where a component is published. Raises ProgramError on a machine that nothing is published for."""
    machine = platform.machine()
    if machine not in _MACHINES:
        msg = f"No official programs are known for {machine}; use --binaries build."
        raise ProgramError(msg)
    arch, version = _MACHINES[machine], component.version
    if component.name == "etcd":
        folder = f"etcd-{version}-linux-{arch}"
        base = f"{mirrors.etcd}/{version}"
        return Source(
            f"{base}/{folder}.tar.gz", f"{base}/SHA256SUMS", f"{folder}.tar.gz", f"{folder}/etcd"
        )
    if component.lock == "kwok":
        file = f"{component.name}-linux-{arch}"
        return Source(
            f"{mirrors.kwok}/{version}/{file}", f"{mirrors.kwok_releases}/{version}", file
        )
    url = f"{mirrors.kubernetes}/{version}/bin/linux/{arch}/{component.name}"
    return Source(url, f"{url}.sha256", component.name)


def reachable(component: Component, mirrors: Mirrors = OFFICIAL) -> bool:
    """Whether the address of a component's checksum answers within a few seconds."""
    pool = concurrent.futures.Future[bool]()

    def probe() -> None:
        try:
            _get(source_of(component, mirrors).checksum_url, PROBE_SECONDS)
            pool.set_result(True)
        except ProgramError:
            pool.set_result(False)

    # Looking up a name has no time-out of its own, so it may take as long as it likes, elsewhere.
    threading.Thread(target=probe, name="official-address", daemon=True).start()
    try:
        return pool.result(PROBE_SECONDS)
    except concurrent.futures.TimeoutError:
        return False


def download(
    cache: Cache,
    wanted: Sequence[Component],
    progress: Progress,
    cancelled: threading.Event | None = None,
    mirrors: Mirrors = OFFICIAL,
) -> list[Component]:
    """Download those of the wanted programs that the cache lacks; return those without a published checksum.

    Raises ProgramError: unreachable, not found, wrong checksum, broken archive, full disk. Each program that arrived is kept.
    """
    unchecked: list[Component] = []
    with cache.lock(progress, "is downloading the control plane", cancelled):
        for component in wanted:
            if cache.find(component.name):
                continue
            check_cancelled(cancelled)
            try:
                _download_one(cache, component, progress, cancelled, mirrors)
            except NoChecksumError as error:
                progress(str(error))
                unchecked.append(component)
    return unchecked


def _download_one(
    cache: Cache,
    component: Component,
    progress: Progress,
    cancelled: threading.Event | None,
    mirrors: Mirrors,
) -> None:
    source = source_of(component, mirrors)
    expected = _published(component, source)
    progress(f"Downloading {component.name} {component.version} from {source.url}.")
    draft = cache.draft(f"{component.name}.download" if source.member else component.name)
    try:
        _compare(component, source, _fetch(source.url, draft, cancelled), expected)
        if source.member:
            _extract(draft, source.member, cache.draft(component.name))
            draft.unlink()
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    cache.keep(component.name)


def _compare(component: Component, source: Source, actual: str, published: str) -> None:
    if actual != published:
        msg = (
            f"{component.name} {component.version} from {source.url} has the SHA-256 {actual}, but {published} is published; "
            "it was thrown away."
        )
        raise ProgramError(msg)


def _published(component: Component, source: Source) -> str:
    text = _get(source.checksum_url, STALL_SECONDS).decode("utf-8", "replace")
    if component.lock == "kwok":
        found = _digest_of_asset(text, source.file)
    elif component.name == "etcd":
        lines = (line.split() for line in text.splitlines())
        found = next((f[0] for f in lines if len(f) > 1 and f[1].lstrip("*") == source.file), "")
    else:
        found = text.strip()
    match = _SHA256.search(found.lower())
    if match is None:
        msg = f"No checksum is published for {component.name} {component.version}; it will be built instead."
        raise NoChecksumError(msg)
    return match[0]


def _digest_of_asset(text: str, file: str) -> str:
    try:
        release: Any = json.loads(text)
        assets = release["assets"]
        return next(str(one.get("digest") or "") for one in assets if one["name"] == file)
    except (ValueError, KeyError, TypeError, StopIteration):
        return ""


def _fetch(url: str, target: Path, cancelled: threading.Event | None) -> str:
    """Write a file and return its SHA-256."""
    digest = hashlib.sha256()
    with _open(url, STALL_SECONDS) as answer, disk_errors(target), target.open("wb") as file:
        expected = answer.headers.get("Content-Length")
        size = 0
        while True:
            check_cancelled(cancelled)
            try:
                chunk = answer.read(_CHUNK)
            except (TimeoutError, http.client.HTTPException, ConnectionError) as error:
                msg = f"The download of {url} broke off after {size} bytes: {error or type(error).__name__}."
                raise UnreachableError(msg) from error
            if not chunk:
                break
            size += len(chunk)
            digest.update(chunk)
            file.write(chunk)
    if expected is not None and size != int(expected):
        msg = f"The download of {url} broke off after {size} of {expected} bytes."
        raise UnreachableError(msg)
    return digest.hexdigest()


def _extract(archive: Path, member: str, target: Path) -> None:
    try:
        with disk_errors(target), tarfile.open(archive) as tar, target.open("wb") as out:
            file = tar.extractfile(member)
            while file is not None and (chunk := file.read(_CHUNK)):
                out.write(chunk)
    except (tarfile.TarError, KeyError, EOFError) as error:
        msg = f"The archive of {member} cannot be read: {error}."
        raise ProgramError(msg) from error


def _get(url: str, seconds: float) -> bytes:
    try:
        with _open(url, seconds) as answer:
            return bytes(answer.read())
    except (TimeoutError, http.client.HTTPException, ConnectionError) as error:
        msg = f"{url} did not answer in full: {error or type(error).__name__}."
        raise UnreachableError(msg) from error


def _open(url: str, seconds: float) -> Any:
    request = urllib.request.Request(url, headers={"User-Agent": "rollout-drill"})  # noqa: S310 - our own addresses
    try:
        return urllib.request.urlopen(request, timeout=seconds)  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()
        msg = f"{url} answered {error.code} {error.reason}."
        raise UnreachableError(msg) from error
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        msg = f"{url} cannot be reached: {reason}."
        raise UnreachableError(msg) from error
