"""The files that a drill and a run leave for people and machines. Everything in them is redacted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import kind_of
from harness.model.report import RunReport
from harness.model.timeline import ObjectSeen
from harness.report.json_report import json_report
from harness.report.junit import junit
from harness.report.markdown import markdown
from harness.report.markdown_run import markdown_run
from harness.report.matrix_json import json_matrix
from harness.report.matrix_markdown import matrix_markdown
from harness.report.svg import svg
from harness.run.subjects import suffix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from harness.model.report import DrillReport
    from harness.model.timeline import Observation
    from harness.report.matrix_model import Matrix

TIMELINE: Final = "timeline.jsonl"
REPORT: Final = "report.md"
REPORT_JSON: Final = "report.json"
MATRIX: Final = "matrix.md"
MATRIX_JSON: Final = "matrix.json"
JUNIT: Final = "junit.xml"
SVG: Final = "timeline.svg"
LOG: Final = "controller.log"
"""Of the first subject; those of later ones are `controller-2.log` and so on."""
EVENTS: Final = "events.txt"
OBJECTS: Final = "objects.json"


def write_drill(folder: Path, report: DrillReport) -> None:
    """Write one drill's report in every form; `timeline.jsonl` is there already."""
    _write(folder / REPORT, markdown(report))
    _write(folder / REPORT_JSON, json_report(report))
    _write(folder / JUNIT, junit(RunReport(report.run_id, (report,))))
    _write(folder / SVG, svg(report))


def write_run(folder: Path, report: RunReport) -> None:
    """Write the report of a whole run."""
    _write(folder / REPORT, markdown_run(report))
    _write(folder / REPORT_JSON, json_report(report))
    _write(folder / JUNIT, junit(report))


def write_matrix(folder: Path, matrix: Matrix) -> None:
    """Write the tables of drills for which values were varied."""
    _write(folder / MATRIX, matrix_markdown(matrix))
    _write(folder / MATRIX_JSON, json_matrix(matrix))


def write_evidence(
    folder: Path,
    observations: Iterable[Observation],
    logs: Iterable[Path],
    publishable: Callable[[str], str],
) -> None:
    """Write what a person needs to find out why: each controller's log, the events and the objects as they were last seen.

    `publishable` takes the secrets out of the logs, which are raw.
    """
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for seen in observations:
        if isinstance(seen, ObjectSeen):
            key = (kind_of(seen.object), seen.object["metadata"]["name"])
            last[key] = {"t": round(seen.t, 3), "change": seen.change, "object": seen.object}
    events = [row["object"] for (kind, _), row in last.items() if kind == "Event"]
    _write(folder / EVENTS, "".join(f"{_event(event)}\n" for event in events))
    others = [row for (kind, _), row in sorted(last.items()) if kind != "Event"]
    _write(folder / OBJECTS, json.dumps(others, indent=1) + "\n")
    for number, log in enumerate(logs):
        if log.exists():
            stem, _, ending = LOG.partition(".")
            name = f"{stem}{suffix(number)}.{ending}"
            _write(folder / name, publishable(log.read_text(encoding="utf-8", errors="replace")))


def _event(event: dict[str, Any]) -> str:
    about = event.get("involvedObject") or {}
    who = (event.get("source") or {}).get("component") or event.get("reportingComponent") or "?"
    when = (
        event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
    )
    what = f"{about.get('kind', '?')}/{about.get('name', '?')}"
    return f"{when} {event.get('type', '?'):7} {what} {event.get('reason', '')} ({who}): {event.get('message', '')}"


def _write(path: Path, text: str) -> None:
    # Through a second file, so that whoever reads meanwhile sees the old or the new report, never half of one.
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
