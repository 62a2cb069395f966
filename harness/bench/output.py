"""The files that a benchmark leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.bench.json_report import json_report
from harness.bench.markdown import markdown
from harness.bench.profile_page import profile_page
from harness.run.identity import slug

if TYPE_CHECKING:
    from pathlib import Path

    from harness.bench.model import BenchReport

REPORT: Final = "bench.md"
REPORT_JSON: Final = "bench.json"
PROFILE: Final = "profile.md"


def write(folder: Path, report: BenchReport) -> None:
    """Write the report in every form."""
    _write(folder / REPORT, markdown(report))
    _write(folder / REPORT_JSON, json_report(report))
    if any(subject.profiles for subject in report.subjects):
        _write(folder / PROFILE, profile_page(report))


def write_log(folder: Path, subject: str, text: str) -> None:
    """Write a subject's log, from which secrets are gone."""
    _write(folder / f"{slug(subject)}.log", text)


def _write(path: Path, text: str) -> None:
    # Through a second file, so that whoever reads meanwhile sees the old or the new report, never half of one.
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
