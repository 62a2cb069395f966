"""`drill bench storm` without a cluster: its options, and what becomes of a benchmark whose subjects fail."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness.bench import session as sessions
from harness.bench.model import SubjectFigures
from harness.bench.plan import StormPlan
from harness.cli.main import main
from harness.clusters.base import ClusterError
from harness.model.outcome import ExitCode
from harness.model.timeline import ClusterFacts
from harness.run.signals import Stop
from harness.tests.bench_reports import storm

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


TOKEN = "eyJhbGciOiJSUzI1NiJ9.very-secret-part.of-the-subject"


def drill(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--canaries", "0"], "--canaries"),
        (["--canaries", "3001"], "--canaries"),
        (["--idle", "60"], "--idle '60'"),
        (["--restarts", "-1"], "--restarts"),
        (["--subject", "nobody"], "unknown subject 'nobody'"),
        (["--subject", "installed"], "starts and stops its subjects itself (allowed: bundled"),
        (["--subject", "bundled", "--subject", "bundled"], "--subject bundled: named twice"),
        (
            ["--profile", "--subject", "flagger@1.44.0"],
            "only the bundled controller can be profiled",
        ),
        (["--out", "taken"], "holds the report of another run"),
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
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "bench.md").touch()
    assert drill("bench", "storm", *arguments) == ExitCode.USAGE
    assert told in capsys.readouterr().err


# ---- what becomes of it

PLAYED: dict[str, SubjectFigures | Exception | None] = {}
"""What each subject does: its figures, what it raises, or None: it goes on until it is interrupted."""


class Played:
    """A storm that is over at once."""

    def __init__(self, _scene: object, subject: Any, *_: object) -> None:
        self._name = subject.facts.name

    async def run(self) -> None:
        result = PLAYED[self._name]
        if isinstance(result, Exception):
            raise result
        if result is None or len(result.stages) < len(storm("", "", 1.0).stages):
            await asyncio.sleep(3600)

    @property
    def figures(self) -> SubjectFigures:
        result = PLAYED[self._name]
        if result is None or isinstance(result, Exception):
            return SubjectFigures(self._name, "", ())
        return result


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run a benchmark of subjects that behave as told, with clusters that are not there; return the session."""
    closed: list[str] = []

    async def obtain(_say: object) -> None: ...

    def make_subject(name: str) -> Any:
        return SimpleNamespace(facts=SimpleNamespace(name=name), obtain=obtain)

    @contextlib.asynccontextmanager
    async def scene(subject: Any, *_: object) -> AsyncIterator[Any]:
        log = tmp_path / f"{subject.facts.name}.raw"
        log.write_text(f"started with {TOKEN}\n", encoding="utf-8")
        facts = ClusterFacts("embedded", "run-1", "v1.35.4", ("node-1",), "kwok v0.8.0", 1)
        cluster = SimpleNamespace(facts=facts)
        try:
            yield SimpleNamespace(cluster=cluster, log=log, token=TOKEN, private=tmp_path)
        finally:
            closed.append(subject.facts.name)

    monkeypatch.setattr(sessions, "make_subject", make_subject)
    monkeypatch.setattr(sessions, "scene", scene)
    monkeypatch.setattr(sessions, "Storm", Played)

    def carry_out(stop_after: float | None = None, **played: Any) -> Any:
        PLAYED.clear()
        PLAYED.update(played)
        plan = StormPlan(100, tuple(played), tmp_path / "out", reproduce="drill bench storm")

        async def go() -> Any:
            stop = Stop()
            if stop_after is not None:
                asyncio.get_running_loop().call_later(stop_after, stop.event.set)
            return await sessions.run_session(plan, "r-1", stop=stop, say=lambda _line: None)

        session = asyncio.run(go())
        assert closed == list(played)[: len(closed)]
        return session

    return carry_out


def test_the_report_has_all_subjects_in_their_order(run: Any, tmp_path: Path) -> None:
    session = run(one=storm("one", "1", 1.0), two=storm("two", "2", 0.5))
    assert session.exit_code is ExitCode.OK
    data = json.loads((tmp_path / "out" / "bench.json").read_text(encoding="utf-8"))
    assert [subject["name"] for subject in data["subjects"]] == ["one", "two"]
    assert data["setup"]["nodes"] == 1
    assert not list((tmp_path / "out").glob("*.log"))


def test_a_subject_without_a_cluster_is_an_error_and_the_next_is_measured(
    run: Any, tmp_path: Path
) -> None:
    session = run(one=ClusterError("The disk is full."), two=storm("two", "2", 1.0))
    assert session.errors == ["one: The disk is full."]
    assert session.exit_code is ExitCode.ERROR
    assert "# Storm of 100 rollouts: two" in (tmp_path / "out" / "bench.md").read_text("utf-8")


def test_where_nothing_was_measured_there_is_no_report(run: Any, tmp_path: Path) -> None:
    session = run(one=ClusterError("The disk is full."))
    assert session.report is None
    assert session.exit_code is ExitCode.ERROR
    assert not (tmp_path / "out" / "bench.md").exists()


def test_the_log_of_a_subject_with_problems_is_kept_without_its_token(
    run: Any, tmp_path: Path
) -> None:
    run(one=storm("one", "1", 1.0, problems=("idle: something",)))
    text = (tmp_path / "out" / "one.log").read_text(encoding="utf-8")
    assert text.startswith("started with ")
    assert "very-secret-part" not in text


def test_a_signal_keeps_what_was_measured_and_gives_exit_code_2(run: Any, tmp_path: Path) -> None:
    session = run(0.1, one=storm("one", "1", 1.0), two=None, three=storm("three", "1", 1.0))
    assert session.exit_code is ExitCode.INTERRUPTED
    text = (tmp_path / "out" / "bench.md").read_text(encoding="utf-8")
    assert "**Interrupted: what was measured by then is below.**" in text
    assert [subject.name for subject in session.report.subjects] == ["one"]


def test_what_an_interrupted_subject_had_measured_is_in_the_report(
    run: Any, tmp_path: Path
) -> None:
    begun = storm("two", "2", 1.0)
    begun = dataclasses.replace(begun, stages=begun.stages[:2])
    session = run(0.1, one=storm("one", "1", 1.0), two=begun)
    assert session.exit_code is ExitCode.INTERRUPTED
    data = json.loads((tmp_path / "out" / "bench.json").read_text(encoding="utf-8"))
    assert [len(subject["stages"]) for subject in data["subjects"]] == [4, 2]


def test_a_signal_before_the_first_figures_leaves_no_report(run: Any, tmp_path: Path) -> None:
    session = run(0.1, one=None)
    assert (session.report, session.exit_code) == (None, ExitCode.INTERRUPTED)
    assert not (tmp_path / "out").exists()
