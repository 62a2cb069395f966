"""How commands speak: results on standard output, progress on standard error."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from harness.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.report import DrillReport

_MARKS = {
    Outcome.PASS: "pass",
    Outcome.FAIL: "FAIL",
    Outcome.UNKNOWN: "unknown",
    Outcome.UNSUPPORTED: "unsupported",
    Outcome.ERROR: "ERROR",
}


def progress() -> Callable[[str], None]:
    """Return a function that prints a line of progress with the seconds since now."""
    began = time.monotonic()

    def say(line: str) -> None:
        typer.echo(f"[{time.monotonic() - began:6.1f} s] {line}", err=True)

    return say


def verdict_line(report: DrillReport) -> str:
    """Return one drill's result in a line: as expected or not, its id, the verdict."""
    verdict = report.verdict
    mark = "ok" if verdict.exit_code == 0 else _MARKS[verdict.outcome]
    return f"{mark:11} {report.drill_id}: {verdict.sentence}"
