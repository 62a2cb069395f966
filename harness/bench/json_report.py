"""bench.json: the report as data, and its schema (harness/bench/bench-v1.json), made from the types.

`python -m harness.bench.json_report` writes the schema again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from harness.bench.model import FORMAT, BenchReport

SCHEMA: Final = Path(__file__).with_name("bench-v1.json")
"""Where the schema is."""


def json_report(report: BenchReport) -> str:
    """Return the report as the text of bench.json."""
    return json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON schema of bench.json. Unknown keys are refused."""
    from pydantic import TypeAdapter

    made = TypeAdapter(BenchReport).json_schema(ref_template="#/$defs/{model}")
    definitions = made.pop("$defs")
    made["properties"]["format"] = {"const": FORMAT}
    made["properties"]["exit_code"] = {"type": "integer"}
    definitions["BenchReport"] = made
    for definition in definitions.values():
        if "properties" in definition:
            definition["additionalProperties"] = False
            definition["required"] = sorted(definition["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Report of a benchmark of rollout-drill",
        "$ref": "#/$defs/BenchReport",
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """Return the schema as its file's text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
