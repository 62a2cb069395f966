"""A user's own way to a cluster in a file of its own: that one context, with paths that hold anywhere, and the user's file untouched."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.errors import ConfigError
from harness.kube.own_access import write_own

if TYPE_CHECKING:
    from pathlib import Path


def config(folder: Path, user: dict[str, Any]) -> Path:
    document = {
        "current-context": "other",
        "clusters": [
            {"name": "c", "cluster": {"server": "https://c", "certificate-authority": "pki/ca"}},
            {"name": "o", "cluster": {"server": "https://o"}},
        ],
        "users": [{"name": "u", "user": user}, {"name": "o", "user": {"token": "theirs"}}],
        "contexts": [
            {"name": "mine", "context": {"cluster": "c", "user": "u"}},
            {"name": "other", "context": {"cluster": "o", "user": "o"}},
        ],
    }
    file = folder / "config"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def test_one_context_is_taken_over_and_nothing_else(tmp_path: Path) -> None:
    user = {"client-key": "pki/key", "token": "secret", "exec": {"command": "./login"}}
    file = config(tmp_path, user)
    before = file.read_bytes()
    target = tmp_path / "private" / "own"
    target.parent.mkdir()
    assert write_own(file, "mine", "team", target) == ["secret"]
    written = json.loads(target.read_text("utf-8"))
    assert [one["name"] for one in written["contexts"]] == [written["current-context"]]
    assert written["contexts"][0]["context"]["namespace"] == "team"
    (cluster,) = written["clusters"]
    assert cluster["cluster"] == {
        "server": "https://c",
        "certificate-authority": str(tmp_path / "pki/ca"),
    }
    (own,) = written["users"]
    assert own["user"]["client-key"] == str(tmp_path / "pki/key")
    assert own["user"]["exec"]["command"] == str(tmp_path / "login")
    assert "theirs" not in target.read_text("utf-8")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert file.read_bytes() == before


def test_a_plugin_in_the_path_stays_where_it_is(tmp_path: Path) -> None:
    file = config(tmp_path, {"exec": {"command": "aws"}})
    write_own(file, "mine", "team", tmp_path / "own")
    (own,) = json.loads((tmp_path / "own").read_text("utf-8"))["users"]
    assert own["user"]["exec"]["command"] == "aws"


def test_an_unknown_context_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no context 'nosuch'"):
        write_own(config(tmp_path, {}), "nosuch", "team", tmp_path / "own")
