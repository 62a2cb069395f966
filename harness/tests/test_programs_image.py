"""Images without a registry and without a container engine, and the running Python as one."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import harness
from harness.programs import python_files
from harness.programs.errors import CancelledError, ProgramError
from harness.programs.image_archive import Image, write
from harness.subjects import controller_image

if TYPE_CHECKING:
    from collections.abc import Mapping


def image(tmp_path: Path) -> Image:
    program = tmp_path / "program"
    program.write_bytes(b"#!x")
    program.chmod(0o700)
    files: dict[str, Path | bytes] = {"bin/program": program, "etc/a": b"b"}
    return Image("example/x:1", files, entrypoint=["/bin/program"], environment={"A": "1"})


def unpacked(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        found = {member.name: tar.extractfile(member) for member in tar}
        return {name: file.read() for name, file in found.items() if file is not None}


def test_the_archive_has_what_a_runtime_looks_for(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    write(image(tmp_path), path)
    files = unpacked(path)
    (manifest,) = json.loads(files["manifest.json"])
    assert manifest["RepoTags"] == ["example/x:1"]
    (layer,) = manifest["Layers"]
    config: Any = json.loads(files[manifest["Config"]])
    assert hashlib.sha256(files[manifest["Config"]]).hexdigest() in manifest["Config"]
    digest = hashlib.sha256(files[layer]).hexdigest()
    assert config["rootfs"]["diff_ids"] == [f"sha256:{digest}"]
    assert config["config"]["Env"] == ["A=1"]
    assert config["config"]["User"] == "65532:65532"
    inner = tmp_path / "layer.tar"
    inner.write_bytes(files[layer])
    with tarfile.open(inner) as tar:
        modes = {member.name: member.mode for member in tar}
    # Whatever the umask of this machine is, another user than the owner runs it.
    assert modes == {"bin/program": 0o755, "etc/a": 0o644}
    assert [one.name for one in tmp_path.glob(".*")] == []


def test_one_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(CancelledError):
        write(image(tmp_path), tmp_path / "x.tar", cancelled)
    assert [one.name for one in tmp_path.iterdir()] == ["program"]


@pytest.fixture(scope="module")
def contents() -> Mapping[str, Path | bytes]:
    return controller_image.contents()


def test_the_image_of_the_controller_has_what_it_needs_and_no_tests(
    contents: Mapping[str, Path | bytes],
) -> None:
    names = set(contents)
    assert "opt/python/bin/python" in names
    assert "opt/site/harness/controller/__main__.py" in names
    assert "opt/site/certifi/cacert.pem" in names
    assert any(name.startswith("opt/site/aiohttp/") for name in names)
    assert any("/ld-" in name for name in names), "a program that is linked needs its loader"
    assert not any(name.startswith("opt/site/harness/tests") for name in names)
    assert not any("/site-packages/" in name for name in names)
    assert all(not name.startswith("/") and ".." not in name for name in names)


def test_whatever_the_controller_imports_is_in_it(contents: Mapping[str, Path | bytes]) -> None:
    """Also what is imported only when a metric is bounded, say; the image of an old installation would lack that."""
    there = {
        name.split("/")[2].removesuffix(".py") for name in contents if name.startswith("opt/site/")
    }
    wanted = {
        module.partition(".")[0]
        for folder in ("controller", "kube")
        for path in (Path(harness.__file__).parent / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for module in _imported(node)
    }
    others = {module for module in wanted - set(sys.stdlib_module_names) if module != "lupa"}
    assert {"aiohttp", "aiolimiter", "prometheus_client"} <= others
    assert others <= there


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [one.name for one in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def test_python_runs_from_these_files_alone(
    contents: Mapping[str, Path | bytes], tmp_path: Path
) -> None:
    """Links in the place of files, so that nothing is copied; `-I` would ignore where they are."""
    for name, source in contents.items():
        if "/kubernetes/" in name and "/models/" in name and "__init__" not in name:
            continue  # thousands of files that nobody of us imports
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, bytes):
            path.write_bytes(source)
        elif name.endswith("bin/python"):
            path.write_bytes(source.read_bytes())  # through a link it would find its own home
            path.chmod(0o755)
        else:
            path.symlink_to(source)
    environment = {
        key: value.replace("/opt/", f"{tmp_path}/opt/")
        for key, value in python_files.environment().items()
    }
    # The loader of this machine has its own C library; only what belongs to Python is looked for here.
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for one in (tmp_path / "opt/python/shared").glob("libpython*"):
        (libraries / one.name).symlink_to(one)
    environment["LD_LIBRARY_PATH"] = str(libraries)
    done = subprocess.run(
        [str(tmp_path / "opt/python/bin/python"), "-m", "harness.controller", "--help"],
        capture_output=True,
        text=True,
        env=environment,
        cwd="/",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "--leader-elect" in done.stdout


def test_elsewhere_than_on_linux_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ProgramError, match="on Linux only"):
        python_files.interpreter()


def test_it_is_made_once_and_old_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(controller_image, "_made", {})
    files: dict[str, Path | bytes] = {"opt/site/harness/x.py": tmp_path / "x.py"}
    monkeypatch.setattr(controller_image, "contents", lambda: files)
    (tmp_path / "x.py").write_text("1")
    said: list[str] = []
    first = controller_image.made(said.append)
    assert controller_image.made(said.append) == first
    assert len(said) == 2
    os.utime(first, (0, 0))
    (tmp_path / "x.py").write_text("2")
    monkeypatch.setattr(controller_image, "_made", {})
    second = controller_image.made(said.append)
    assert second != first
    assert list(second.parent.iterdir()) == [second]
