"""The tables of a run for which values were varied, and those of folders with the reports of earlier runs."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from harness.model.report import DrillReport, RunReport
from harness.report.matrix import Absent, Told, matrix
from harness.report.matrix_model import FORMAT
from harness.report.read_back import ReportError, read_report
from harness.run.artefacts import MATRIX_JSON, REPORT, REPORT_JSON

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.report.matrix_model import Matrix
    from harness.run.plan import Plan

INTERRUPTED: Final = "the run was interrupted before it began"


def of_run(
    plans: Sequence[Plan], finished: Mapping[str, DrillReport], errors: Mapping[str, Exception]
) -> Matrix | None:
    """Return the tables of a run, None if nothing was varied; `finished` and `errors` go by the drills' titles."""
    drills: list[Told | Absent] = []
    for plan in plans:
        name, drill = plan.name, plan.resolved
        report = finished.get(name.title)
        if report is not None:
            drills.append(Told(report, f"{name.folder}/{REPORT}"))
            continue
        reason = errors.get(name.title) or INTERRUPTED
        drills.append(Absent(drill.name, drill.variant, drill.values, str(reason)))
    return matrix(drills)


def gather(folders: Sequence[Path], beside: Path) -> list[Told | Absent]:
    """Return the drills whose reports are somewhere below `folders`, with paths relative to `beside`.

    They come in the order of the folders, in each in the order of its runs, and within a run in its own. Raises ReportError, with the file's name, for a report that
    cannot be read.
    """
    places: dict[tuple[str, ...], Path] = {}
    reports: dict[tuple[str, ...], DrillReport] = {}
    for folder in folders:
        found = [(file, _read(file)) for file in sorted(folder.rglob(REPORT_JSON))]
        alone = [(file, one) for file, one in found if isinstance(one, DrillReport)]
        places |= {_key(one): file for file, one in alone}
        runs = [one for _, one in found if isinstance(one, RunReport)]
        runs.sort(key=lambda run: run.run_id)
        ordered = sorted((one for _, one in alone), key=lambda one: one.started_at)
        for report in [*(drill for run in runs for drill in run.drills), *ordered]:
            # A run's report holds those of its drills.
            reports.setdefault(_key(report), report)
    told: list[Told | Absent] = [
        Told(report, _path(places.get(key), beside)) for key, report in reports.items()
    ]
    return told + _absent(folders)


def _key(report: DrillReport) -> tuple[str, ...]:
    return report.run_id, report.drill_id, report.namespace


def _path(file: Path | None, beside: Path) -> str:
    if file is None or not file.with_name(REPORT).exists():
        return ""
    return os.path.relpath(file.with_name(REPORT), beside).replace(os.sep, "/")


def _read(file: Path) -> DrillReport | RunReport:
    try:
        return read_report(file.read_text(encoding="utf-8"))
    except (ReportError, UnicodeDecodeError) as error:
        msg = f"{file}: {error}"
        raise ReportError(msg) from error


def _absent(folders: Sequence[Path]) -> list[Absent]:
    """Return the drills that never began, which only the runs' own tables know of."""
    found: list[Absent] = []
    for file in sorted({file for folder in folders for file in folder.rglob(MATRIX_JSON)}):
        try:
            body = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            msg = f"{file}: is not JSON: {error}"
            raise ReportError(msg) from error
        if isinstance(body, dict) and body.get("format") == FORMAT:
            found += [
                _absent_cell(table, cell)
                for table in body["tables"]
                for cell in table["cells"]
                if cell["outcome"] is None and cell["label"]
            ]
    return found


def _absent_cell(table: Mapping[str, Any], cell: Mapping[str, Any]) -> Absent:
    values = {**table["fixed"], **cell["values"]}
    return Absent(table["scenario"], cell["label"], values, cell["sentence"])
