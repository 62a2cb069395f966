"""report.json: the report as data, and its schema (harness/report/report-v1.json), made from the types.

`python -m harness.report.json_report` writes the schema again.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.model.report import (
    DrillReport,
    EnvironmentFacts,
    Left,
    PhaseRow,
    RolloutRow,
    RunReport,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA: Final = Path(__file__).with_name("report-v1.json")
"""Where the schema is."""


def json_report(report: DrillReport | RunReport) -> str:
    """Return the report as the text of report.json."""
    return json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON schema of report.json: one drill's report or that of a run. Unknown keys are refused."""
    from pydantic import TypeAdapter

    drill = TypeAdapter(DrillReport).json_schema(ref_template="#/$defs/{model}")
    definitions = drill.pop("$defs")
    run = {
        "type": "object",
        "properties": {
            "format": {"const": "drill-run/1"},
            "run_id": {"type": "string"},
            "drills": {"type": "array", "items": {"$ref": "#/$defs/DrillReport"}},
            "exit_code": {"$ref": "#/$defs/ExitCode"},
        },
        "description": str(RunReport.__doc__),
    }
    drill["properties"]["format"] = {"const": "drill-report/1"}
    definitions.update(DrillReport=drill, RunReport=run)
    sparse = {
        (cls.__name__, item.name)
        for cls in (DrillReport, EnvironmentFacts, Left, PhaseRow, RolloutRow)
        for item in dataclasses.fields(cls)
        if item.metadata.get("sparse")
    }
    for name, definition in _objects(definitions):
        definition["additionalProperties"] = False
        definition["required"] = sorted(
            key for key in definition["properties"] if (name, key) not in sparse
        )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Report of rollout-drill",
        "anyOf": [{"$ref": "#/$defs/DrillReport"}, {"$ref": "#/$defs/RunReport"}],
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """Return the schema as its file's text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _objects(definitions: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, d) for name, d in definitions.items() if "properties" in d)


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
