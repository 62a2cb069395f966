"""`drill doctor`: what it prints, and its exit code, whatever it is told about a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.cli import doctor
from harness.cli.main import main
from harness.clusters.health import Row
from harness.clusters.kind.provider import Kind
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

OK, NOTE = Row("nodes", "ok", "2 take pods"), Row("admission", "note", "a webhook")
MISSING, UNKNOWN = Row("rights", "missing", "create pods"), Row("autoscaler", "unknown", "?")


def drill(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("DRILL_BINARIES", raising=False)


def finds(monkeypatch: pytest.MonkeyPatch, *rows: Row) -> None:
    async def examined(*_: Any) -> list[Row]:
        return list(rows)

    monkeypatch.setattr(doctor, "_examined", examined)


@pytest.mark.parametrize(
    ("rows", "status", "end"),
    [
        ((OK, NOTE, UNKNOWN), ExitCode.OK, "Drills can run on context:dev."),
        ((OK, MISSING), ExitCode.UNDECIDED, "Drills cannot run on context:dev: 1 missing."),
    ],
)
def test_only_what_is_missing_keeps_drills_from_running(
    rows: tuple[Row, ...],
    status: ExitCode,
    end: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    finds(monkeypatch, *rows)
    assert drill("doctor", "--cluster", "context:dev") == status
    printed = capsys.readouterr().out
    assert printed.rstrip().endswith(end)
    assert all(row.text in printed for row in rows)
    assert drill("doctor", "--cluster", "context:dev", "--json") == status
    body = json.loads(capsys.readouterr().out)
    assert body["able"] is (status == ExitCode.OK)
    assert [row["state"] for row in body["rows"]] == [row.state for row in rows]


def test_of_clusters_that_the_harness_makes_the_programs_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Kind, "missing", lambda _self: "There is no kind on PATH.")
    assert drill("doctor", "--cluster", "kind") == ExitCode.UNDECIDED
    assert "There is no kind on PATH." in capsys.readouterr().out
    monkeypatch.setattr(Kind, "missing", lambda _self: "")
    monkeypatch.setattr(Kind, "names", lambda _self: ["a"])
    assert drill("doctor", "--cluster", "kind:a") == ExitCode.OK
    assert drill("doctor", "--cluster", "kind:b") == ExitCode.UNDECIDED
    assert "there is no kind:b" in capsys.readouterr().out


def test_programs_that_will_be_got_are_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path / "cache"))
    assert drill("doctor") == ExitCode.OK
    assert "programs" in capsys.readouterr().out
    assert drill("doctor", "--cluster", "embedded:none") == ExitCode.UNDECIDED
    assert "there is no embedded:none" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--cluster cloud", "unknown kind of cluster"),
        ("--namespace x", "--namespace is for a cluster of your own"),
        ("--cluster context:", "name a context"),
        ("--cluster context:dev --subject nobody", "unknown subject"),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "{apiVersion: v1, kind: Config, contexts: [{name: dev, context: {}}]}", encoding="utf-8"
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    assert drill("doctor", *arguments.split()) in {ExitCode.USAGE, ExitCode.ERROR}
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error


def test_a_protected_context_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('protected_contexts = ["d*"]', encoding="utf-8")
    monkeypatch.setenv("DRILL_CONFIG", str(file))
    (row,) = doctor._protection("dev")
    assert (row.state, str(file) in row.text) == ("missing", True)
    assert doctor._protection("stage") == []
