"""Comparisons on real control planes: two runs of one subject, and a real Flagger beside our own controller."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from harness.model.outcome import ExitCode
from harness.programs.from_module import cached
from harness.subjects.flagger_source import program_of
from harness.tests.drill_process import command

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(900)]

SPREAD = "node-spread-blue-green"
FLAGGER = "1.44.0"


def compared(
    request: pytest.FixtureRequest, tmp_path: Path, *arguments: str
) -> tuple[int, str, dict[str, Any]]:
    binaries = str(request.config.getoption("--drill-binaries"))
    out = tmp_path / "out"
    status, output = command(
        *("compare", SPREAD, *arguments, "--binaries", binaries, "--out", str(out)),
        state=tmp_path / "state",
        within=800,
    )
    return status, output, json.loads((out / "compare.json").read_text())


def test_two_runs_of_one_subject_do_not_differ(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    twice = ("--subject", "bundled", "--subject", "bundled")
    status, output, body = compared(request, tmp_path, *twice)
    assert status == ExitCode.OK, output
    assert "3 comparisons: no difference (exit code 0)" in output
    for drill in body["drills"]:
        clusters = {side["environment"]["cluster_name"] for side in drill["sides"]}
        assert len(clusters) == 2
        assert drill["pairs"][0]["compared"]["placements"] >= 9
    assert not list((tmp_path / "state" / "clusters").iterdir())
    folders = [str(tmp_path / "out" / name) for name in ("bundled", "bundled-2")]
    status, again = command("compare", "--timelines", *folders)
    assert status == ExitCode.OK
    # The order is that of the folders there, and that of the scenario here.
    assert sorted(again.splitlines()) == sorted(_without_progress(output))


@pytest.mark.slow
def test_flagger_and_bundled_differ_in_what_is_documented_only(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if cached(program_of(FLAGGER)) is None and not os.environ.get("CI"):
        pytest.skip(f"Flagger {FLAGGER} is not in the cache of programs; building it takes minutes")
    both = ("--subject", f"flagger@{FLAGGER}", "--subject", "bundled")
    status, output, body = compared(request, tmp_path, *both)
    assert status == ExitCode.OK, output
    assert [drill["pairs"][0]["outcome"] for drill in body["drills"]] == ["pass"] * 3
    ids = {i for d in body["drills"] for diff in d["pairs"][0]["differences"] for i in diff["ids"]}
    assert ids == {"A7", "D3", "K1", "K2", "K3", "K4", "O5", "P14", "P9"}


def _without_progress(output: str) -> list[str]:
    return [line for line in output.splitlines() if not line.startswith(("[", "report: "))]
