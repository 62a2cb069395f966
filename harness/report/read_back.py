"""Reports read back from report.json."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from harness.model.report import FORMAT, RUN_FORMAT, DrillReport, RunReport

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class ReportError(ValueError):
    """A text that is no report of a drill or a run; the message is a clause for the user."""


def read_report(text: str) -> DrillReport | RunReport:
    """Return the report that `text` holds; fields of later versions are left out. Raises ReportError."""
    try:
        body = json.loads(text)
    except ValueError as error:
        msg = f"is not JSON: {error}"
        raise ReportError(msg) from error
    found = body.get("format") if isinstance(body, dict) else None
    if found == FORMAT:
        return _drill(body)
    drills = body.get("drills") if isinstance(body, dict) else None
    if found == RUN_FORMAT and isinstance(drills, list):
        return RunReport(str(body.get("run_id", "")), tuple(_drill(drill) for drill in drills))
    msg = f"is no report of format {FORMAT} or {RUN_FORMAT}"
    raise ReportError(msg)


def _drill(body: Any) -> DrillReport:
    from pydantic import ValidationError

    try:
        return _adapter().validate_python(body)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(part) for part in first["loc"])
        msg = f"is no report of format {FORMAT}: {at}: {first['msg']}"
        raise ReportError(msg) from error


@functools.cache
def _adapter() -> TypeAdapter[DrillReport]:
    from pydantic import TypeAdapter

    return TypeAdapter(DrillReport)
