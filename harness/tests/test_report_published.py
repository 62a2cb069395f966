"""Published reports: each must come out of its recording again, byte for byte, and say nothing of whose machine it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.checks.judge import judge
from harness.data import data_path
from harness.model.timeline import parse
from harness.report.json_report import json_report
from harness.report.markdown import markdown

PUBLISHED = sorted(path.parent for path in data_path("reports").glob("*/*/timeline.jsonl"))


def test_there_is_a_published_report_and_its_control() -> None:
    names = {folder.name for folder in PUBLISHED}
    assert {"node-spread-blue-green[with-key]", "node-spread-blue-green[without-key]"} <= names


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_judging_the_recording_gives_the_published_report(folder: Path) -> None:
    report = judge(parse((folder / "timeline.jsonl").read_text(encoding="utf-8").splitlines()))
    assert markdown(report) == (folder / "report.md").read_text(encoding="utf-8")
    assert json_report(report) == (folder / "report.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_it_names_no_folder_of_the_machine_that_it_was_made_on(folder: Path) -> None:
    for file in folder.iterdir():
        text = file.read_text(encoding="utf-8")
        for place in (*(f"/{top}/" for top in ("home", "root", "tmp", "work")), str(Path.cwd())):
            assert place not in text, f"{place} in {file.name}"
