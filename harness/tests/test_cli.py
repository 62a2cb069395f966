"""The `drill` command without a cluster: exit codes, one clear sentence for each mistake, no traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from harness.cli import options  # noqa: TC001 - Typer reads annotations at run time
from harness.cli.given import is_given
from harness.cli.main import main
from harness.data import data_path
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

RECORDED = data_path("fixtures", "timelines", "recorded")
SPREAD = "node-spread-blue-green"


def drill(*arguments: str) -> int:
    """Run the command in this process and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["run", "--nope"], "No such option"),
        (["run"], "name at least one scenario"),
        (["run", SPREAD, "-f", "."], "not both"),
        (["run", "nosuch"], "there is no such scenario (allowed: "),
        (["run", SPREAD, "--variant", "with"], "did you mean 'with-key'?"),
        (["run", SPREAD, "--set", "interval"], "--set 'interval': expected KEY=VALUE"),
        (["run", SPREAD, "--set", "intervall=2s"], "intervall"),
        (["run", SPREAD, "--set", "replicas=two"], "replicas"),
        (
            ["run", SPREAD, "--cluster", "cloud"],
            "allowed: embedded, embedded:NAME, kind, kind:NAME",
        ),
        (["run", SPREAD, "--cluster", "context:"], "name a context"),
        (
            ["run", SPREAD, "--subject", "nobody"],
            "unknown subject 'nobody' (allowed: bundled, bundled@in-cluster, ",
        ),
        (
            ["run", "flagger-upgrade[bundled-to-bundled]", "--subject", "bundled"],
            "names its subject itself (bundled, then bundled), so none can be chosen for it",
        ),
        (
            ["run", "flagger-upgrade[bundled-to-bundled]", "--cluster", "embedded:dev"],
            "on a cluster of its own only: --cluster embedded, not embedded:dev",
        ),
        (
            ["run", "flagger-upgrade[any]", "--set", "to=flagger@latest"],
            "flagger@latest",
        ),
        (["cluster", "up", "--kubernetes", "v1.20"], "Kubernetes v1.20 is not available"),
        (["judge", "/nowhere/timeline.jsonl"], "/nowhere/timeline.jsonl: No such file"),
        (["sweep", "--cluster", "embedded"], "name one cluster"),
        (["sweep", "--older-than", "2"], "--older-than '2'"),
        (["cluster", "down"], "name a cluster"),
        (["cluster", "down", "nosuch"], "there is no cluster 'embedded:nosuch'"),
        (["render", "nosuch"], "there is no such scenario"),
        (["init", "-f", "/nowhere"], "/nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence_and_exit_code_4(
    arguments: list[str],
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    assert drill(*arguments) == ExitCode.USAGE
    output = capsys.readouterr()
    assert told in output.out + output.err
    assert "Traceback" not in output.err


def test_list_lint_and_render_need_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert drill("list") == ExitCode.OK
    listed = capsys.readouterr().out
    assert f"{SPREAD}: Does a blue-green promotion complete" in listed
    assert "without-key  control" in listed
    assert drill("lint") == ExitCode.OK
    assert "no error" in capsys.readouterr().out
    assert drill("render", SPREAD, "--variant", "with-key", "--set", "replicas=3") == ExitCode.OK
    rendered = capsys.readouterr().out
    assert "replicas: 3" in rendered
    assert "pod-template-hash" in rendered


def test_lint_of_a_broken_scenario_names_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    broken = data_path("fixtures", "broken-scenarios", "duplicate-key.yaml")
    assert drill("lint", str(broken)) == ExitCode.USAGE
    assert "duplicate-key.yaml:" in capsys.readouterr().err


@pytest.mark.parametrize("file", sorted(RECORDED.glob("*.jsonl")), ids=lambda file: file.stem)
def test_judging_a_recording_gives_its_exit_code_and_every_file(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    # Controls among them failed as they should.
    assert drill("judge", str(file), "--out", str(out)) == ExitCode.OK
    assert "1 of 1 as expected (exit code 0)" in capsys.readouterr().out
    written = {path.name for path in out.iterdir()}
    assert written == {"report.md", "report.json", "junit.xml", "timeline.svg"}


def test_a_file_that_is_no_recording_is_told_by_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "timeline.jsonl"
    file.write_text('{"type": "header"}\n')
    assert drill("judge", str(file)) == ExitCode.USAGE
    assert "line 1: not a timeline header of format drill-timeline/1" in capsys.readouterr().err


def test_help_of_every_command_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "list", "lint", "render", "init", "judge", "matrix", "sweep", "cluster"):
        assert drill(command, "--help") == ExitCode.OK
        assert "Usage:" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from harness import __version__

    assert drill("--version") == ExitCode.OK
    assert capsys.readouterr().out == f"rollout-drill {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (["--subject", "bundled"], {}, "bundled given"),
        ([], {"DRILL_SUBJECT": "installed"}, "installed preferred"),
        ([], {}, "bundled preferred"),
    ],
)
def test_a_subject_from_the_environment_is_a_preference_not_a_demand(
    arguments: list[str], environment: dict[str, str], told: str
) -> None:
    app = typer.Typer()

    @app.command()
    def show(context: typer.Context, subject: options.Subject = "bundled") -> None:
        typer.echo(f"{subject} {'given' if is_given(context, 'subject') else 'preferred'}")

    result = CliRunner().invoke(app, arguments, env=environment)
    assert result.output.strip() == told
