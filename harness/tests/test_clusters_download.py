"""Official programs are taken only with the checksum that is published for them."""

from __future__ import annotations

import errno
import hashlib
import http.server
import io
import json
import platform
import tarfile
import threading
from typing import TYPE_CHECKING, Any, BinaryIO

import pytest

from harness.clusters.base import ClusterError
from harness.clusters.embedded import binaries, build, cache, download
from harness.clusters.embedded.components import COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.programs.cache import Cache


class Site:
    """All official addresses, on loopback."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                body = site.files.get(self.path)
                self.send_response(404 if body is None else 200)
                # One byte more than there is, where a file is to break off.
                more = int(body is not None and body.startswith(b"broken"))
                self.send_header("Content-Length", str(len(body or b"") + more))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        base = f"http://127.0.0.1:{self.server.server_port}"
        self.mirrors = download.Mirrors(f"{base}/k", f"{base}/e", f"{base}/w", f"{base}/r")
        self._publish()

    def path_of(self, name: str) -> str:
        component = next(one for one in COMPONENTS if one.name == name)
        return "/" + download.source_of(component, self.mirrors).url.split("/", 3)[3]

    def _publish(self) -> None:
        assets = []
        for component in COMPONENTS:
            source = download.source_of(component, self.mirrors)
            path, check = ("/" + url.split("/", 3)[3] for url in (source.url, source.checksum_url))
            body = f"program {component.name}".encode()
            if source.member:
                body = _archive(source.member, body)
            digest = hashlib.sha256(body).hexdigest()
            self.files[path] = body
            if component.lock == "kwok":
                assets.append({"name": source.file, "digest": f"sha256:{digest}"})
                self.files[check] = json.dumps({"assets": assets}).encode()
            elif component.name == "etcd":
                self.files[check] = f"{'0' * 64}  other.zip\n{digest}  {source.file}\n".encode()
            else:
                self.files[check] = digest.encode()


def _archive(member: str, body: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        info = tarfile.TarInfo(member)
        info.size = len(body)
        tar.addfile(info, io.BytesIO(body))
    return file.getvalue()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Site]:
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("DRILL_BINARIES", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    found = Site()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.02,))
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


def test_all_programs_are_downloaded_checked_and_executable(site: Site) -> None:
    made = binaries.ensure_binaries("auto", print, mirrors=site.mirrors)
    for name, path in made.by_name().items():
        assert path.read_text(encoding="utf-8") == f"program {name}"
        assert path.stat().st_mode & 0o111
    asked = len(site.asked)
    assert binaries.ensure_binaries("download", print, mirrors=site.mirrors) == made
    assert len(site.asked) == asked
    assert list(cache.official().folder.glob(".*.draft")) == []


@pytest.mark.parametrize("name", ["kwok", "etcd", "kube-apiserver"])
def test_a_wrong_checksum_is_refused_and_nothing_is_kept(site: Site, name: str) -> None:
    site.files[site.path_of(name)] += b" and more"
    with pytest.raises(ClusterError, match=rf"{name} v.* has the SHA-256 .* is published"):
        binaries.ensure_binaries("download", print, mirrors=site.mirrors)
    assert cache.official().find(name) is None
    assert list(cache.official().folder.glob(".*.draft")) == []


def test_auto_builds_what_a_failed_download_left_open(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files[site.path_of("kube-scheduler")] += b"!"
    wanted: list[str] = []

    def fake(folder: Cache, components: Any, *_: Any) -> None:
        for component in components:
            wanted.append(component.name)
            folder.draft(component.name).write_text("built", encoding="utf-8")
            folder.keep(component.name)

    monkeypatch.setattr(build, "build", fake)
    said: list[str] = []
    made = binaries.ensure_binaries("auto", said.append, mirrors=site.mirrors)
    assert wanted == ["kube-scheduler"]
    assert made.kube_scheduler.read_text(encoding="utf-8") == "built"
    assert any(line.endswith("Building from source instead.") for line in said)


def test_a_program_without_a_published_checksum_is_built(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = next(path for path in site.files if path.startswith("/r/"))
    site.files[release] = json.dumps({"assets": [{"name": "kwok-linux-amd64"}]}).encode()
    built: list[str] = []

    def fake(folder: Cache, components: Any, *_: Any) -> None:
        for component in components:
            built.append(component.name)
            folder.draft(component.name).write_text("built", encoding="utf-8")
            folder.keep(component.name)

    monkeypatch.setattr(build, "build", fake)
    said: list[str] = []
    binaries.ensure_binaries("download", said.append, mirrors=site.mirrors)
    assert built == ["kwokctl", "kwok"]
    assert any(line.startswith("No checksum is published for kwok v0.8.0") for line in said)


def test_a_file_that_breaks_off_is_no_program(site: Site) -> None:
    path = site.path_of("kube-apiserver")
    site.files[path] = b"broken"
    site.files[f"{path}.sha256"] = hashlib.sha256(b"broken").hexdigest().encode()
    with pytest.raises(ClusterError, match=r"broke off after"):
        binaries.ensure_binaries("download", print, mirrors=site.mirrors)
    assert cache.official().find("kube-apiserver") is None


def test_a_missing_file_is_named_with_the_answer(site: Site) -> None:
    del site.files[site.path_of("kube-apiserver")]
    with pytest.raises(ClusterError, match=r"kube-apiserver answered 404"):
        binaries.ensure_binaries("download", print, mirrors=site.mirrors)


def test_a_full_disk_is_said_as_such(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: BinaryIO) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ClusterError, match=r"disk of .* is full"):
        binaries.ensure_binaries("download", print, mirrors=site.mirrors)


def test_an_address_that_does_not_answer_is_not_reachable(site: Site) -> None:
    assert download.reachable(COMPONENTS[-1], site.mirrors)
    nowhere = download.Mirrors(*["http://127.0.0.1:9"] * 4)
    assert not download.reachable(COMPONENTS[-1], nowhere)
    with pytest.raises(ClusterError, match=r"cannot be reached"):
        binaries.ensure_binaries("download", print, mirrors=nowhere)


def test_a_machine_that_nothing_is_published_for_must_build(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(ClusterError, match=r"No official programs are known for riscv64"):
        binaries.ensure_binaries("download", print, mirrors=site.mirrors)
