"""Files and programs out of Go modules: fetched once, built in the module's own folder, and every failure one sentence."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Final

import pytest

from harness.programs.errors import CancelledError, NotServedError, ProgramError
from harness.programs.from_module import ModuleProgram, build_from_module, cached
from harness.programs.mends import apply, needed
from harness.programs.modules import (
    Module,
    fetch,
    files,
    go_version,
    required_files,
    required_version,
)
from harness.tests.fake_go import FakeGo

if TYPE_CHECKING:
    from pathlib import Path

MODULE: Final = Module("example.com/thing", "v1.2.3")
PROGRAM: Final = ModuleProgram(MODULE, "thing", "cmd/thing", 60)
GO_MOD: Final = """module example.com/thing

go 1.22.0

require (
	golang.org/x/tools v0.21.1-0.20240508182429-e35e4ccd0d2d // indirect
	k8s.io/api v0.30.3
)

replace k8s.io/api => k8s.io/api v0.30.3
"""
TOOLS_PACKAGE: Final = "golang.org/x/tools/internal/tokeninternal"


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeGo:
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'go'}:/usr/bin:/bin")
    made = FakeGo(tmp_path / "go")
    made.serve(
        MODULE.path,
        MODULE.version,
        {"go.mod": GO_MOD, "go.sum": "", "crd.yaml": "a: 1", "roles/one.yaml": "b: 2"},
    )
    return made


def _build(program: ModuleProgram = PROGRAM, said: list[str] | None = None) -> Path:
    return build_from_module(program, print if said is None else said.append, otherwise="stop")


def _files(names: list[str]) -> Path:
    return files(MODULE, names, print, otherwise="stop")


def test_files_and_folders_are_fetched_once(go: FakeGo) -> None:
    folder = _files(["crd.yaml", "roles"])
    assert (folder / "crd.yaml").read_text(encoding="utf-8") == "a: 1"
    assert (folder / "roles" / "one.yaml").read_text(encoding="utf-8") == "b: 2"
    (go.folder / "go").unlink()
    assert _files(["roles", "crd.yaml"]) == folder
    assert len(go.commands) == 1
    assert list(folder.rglob("*.draft")) == []


def test_a_file_that_the_module_has_not_is_named(go: FakeGo) -> None:
    with pytest.raises(
        ProgramError, match=r"^The Go module example.com/thing v1.2.3 has no x/y\.$"
    ):
        _files(["crd.yaml", "x/y"])
    assert go.commands


def test_files_of_a_required_module_are_those_of_the_version_that_is_locked(
    go: FakeGo, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "crd.yaml").write_text("c: 3", encoding="utf-8")
    go.write(f'case "$all" in list*) pwd >> {tmp_path}/asked; echo {tmp_path}/other; esac')

    def required(*names: str) -> Path:
        return required_files(MODULE, "example.com/other/config", names, print, otherwise="stop")

    folder = required("crd.yaml")
    assert (folder / "crd.yaml").read_text(encoding="utf-8") == "c: 3"
    # Its go.mod and go.sum say which version, and what that has to be.
    asked = (tmp_path / "asked").read_text(encoding="utf-8")
    assert asked.strip().endswith("example.com_thing@v1.2.3")
    with pytest.raises(
        ProgramError,
        match=r"^example.com/other/config, which example.com/thing v1.2.3 requires, has no x\.yaml\.$",
    ):
        required("crd.yaml", "x.yaml")
    (go.folder / "go").unlink()
    assert required("crd.yaml") == folder


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (
            "example.com/thing@v9.9.9: reading https://proxy/…/v9.9.9.info: 403 Forbidden\n\tserver response: no",
            NotServedError,
            r"has no version v9\.9\.9 where modules are fetched from \(403 Forbidden\)\.",
        ),
        (
            "example.com/thing@v9.9.9: invalid version: unknown revision v9.9.9",
            NotServedError,
            r"has no version v9\.9\.9 where modules are fetched from\.",
        ),
        (
            "example.com/thing@v9.9.9: verifying go.mod: reading https://sum/lookup: 404 Not Found",
            ProgramError,
            r"v9\.9\.9 cannot be verified: .*404 Not Found",
        ),
        ("dial tcp: lookup proxy: no such host", ProgramError, r"cannot be fetched: dial tcp"),
    ],
)
def test_a_version_that_cannot_be_had_is_one_sentence(
    go: FakeGo, error: str, kind: type[ProgramError], sentence: str
) -> None:
    go.refuse(MODULE.path, "v9.9.9", error)
    with pytest.raises(ProgramError, match=sentence) as told:
        fetch(Module(MODULE.path, "v9.9.9"), print, otherwise="stop")
    assert type(told.value) is kind
    assert "\n" not in str(told.value)


def test_without_a_network_go_is_quoted(go: FakeGo) -> None:
    assert go.builds == []
    with pytest.raises(ProgramError, match=r"v0\.0\.1 cannot be fetched: dial tcp: no route"):
        fetch(Module(MODULE.path, "v0.0.1"), print, otherwise="stop")


def test_a_program_is_built_once_in_the_folder_of_its_module(go: FakeGo) -> None:
    go.write('pwd > "$target"')
    said: list[str] = []
    assert cached(PROGRAM) is None
    program = _build(said=said)
    assert program.read_text(encoding="utf-8").strip().endswith("example.com_thing@v1.2.3")
    assert _build() == cached(PROGRAM) == program
    assert len(go.builds) == 1
    assert go.commands[-1].endswith(f"-ldflags -s -w -o {program.parent}/.thing.draft ./cmd/thing")
    assert said == ["Building thing 1.2.3, once (about 60 s)."]


def test_a_program_of_ours_is_built_among_the_modules_sources_and_anew_when_it_changes(
    go: FakeGo, tmp_path: Path
) -> None:
    source = tmp_path / "main.go"
    source.write_text("package main", encoding="utf-8")
    ours = ModuleProgram(MODULE, "ours", "cmd/ours", 5, (source,))
    # The module's own files are there, and those of the module cache stay as they are.
    go.write('cat crd.yaml cmd/ours/main.go > "$target"')
    first = _build(ours)
    assert first.read_text(encoding="utf-8") == "a: 1package main"
    assert _build(ours) == first
    source.write_text("package main // changed", encoding="utf-8")
    assert _build(ours) != first
    assert go.builds == ["ours", "ours"]
    assert list(tmp_path.rglob("cmd")) == []


def test_old_tools_are_raised_when_this_go_does_not_compile_them(go: FakeGo) -> None:
    go.write(
        f'case "$all" in list*) echo {TOOLS_PACKAGE}; exit;; esac\n'
        'cp "$(echo "$all" | sed "s/.*-modfile=\\([^ ]*\\).*/\\1/")" "$target"'
    )
    said: list[str] = []
    used = _build(said=said).read_text(encoding="utf-8")
    assert required_version(used, "golang.org/x/tools") == "v0.24.1"
    assert required_version(used, "k8s.io/api") == "v0.30.3"
    assert "-mod=mod" in go.commands[-1]
    assert said[-1] == (
        "Go 1.27.1 does not compile its golang.org/x/tools v0.21.1: "
        "building thing 1.2.3 with golang.org/x/tools v0.24.1."
    )


def test_any_other_failure_is_quoted_and_leaves_nothing(go: FakeGo) -> None:
    go.write("echo one >&2; echo main.go:1: no way >&2; exit 1")
    with pytest.raises(
        ProgramError, match=r"^thing 1\.2\.3 cannot be built: one / main\.go:1: no way$"
    ):
        _build()
    assert cached(PROGRAM) is None
    assert len(go.builds) == 1


def test_cancelling_ends_the_build(go: FakeGo) -> None:
    go.write("sleep 60")
    cancelled = threading.Event()
    with pytest.raises(CancelledError):
        build_from_module(PROGRAM, lambda _: cancelled.set(), cancelled, otherwise="stop")


@pytest.mark.parametrize(
    ("present", "raised"),
    [
        ("v0.16.1", "v0.24.1"),
        ("v0.21.1-0.20240508182429-e35e4ccd0d2d", "v0.24.1"),
        ("v0.24.1", None),
        ("v0.25.0", "v0.25.1"),
        ("v0.25.1", None),
        ("v0.45.0", None),
    ],
)
def test_tools_are_raised_as_little_as_will_do(present: str, raised: str | None) -> None:
    go_mod = re.sub(r"v0\.21\.1\S*", present, GO_MOD)
    mend = needed((1, 26, 8), go_mod, lambda: f"fmt\n{TOOLS_PACKAGE}\n")
    assert (mend and mend.version) == raised
    if mend:
        assert required_version(apply(mend, go_mod), mend.path) == raised


def test_tools_stay_when_an_older_go_builds_or_the_program_has_no_use_for_them() -> None:
    assert needed((1, 24, 9), GO_MOD, lambda: TOOLS_PACKAGE) is None
    assert needed((1, 26, 8), GO_MOD, lambda: "golang.org/x/tools/go/ast/astutil") is None
    assert needed((1, 26, 8), "module x\n", lambda: TOOLS_PACKAGE) is None


def test_what_a_go_mod_requires_is_read() -> None:
    assert go_version(GO_MOD) == (1, 22, 0)
    assert go_version("module x") == (1, 21)
    assert required_version(GO_MOD, "k8s.io/api") == "v0.30.3"
    assert required_version("require k8s.io/api v0.1.0\n", "k8s.io/api") == "v0.1.0"
    assert required_version(GO_MOD, "k8s.io/ap") is None
    assert required_version("replace (\n\tk8s.io/api => k8s.io/api v0.1.0\n)", "k8s.io/api") is None
