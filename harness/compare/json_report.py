"""compare.json: the comparison as data, and its schema (harness/compare/compare-v1.json), made from the types.

`python -m harness.compare.json_report` writes the schema again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from harness.compare.model import FORMAT, Comparison
from harness.report.json_schema import close, document

SCHEMA: Final = Path(__file__).with_name("compare-v1.json")
"""Where the schema is."""


def json_comparison(comparison: Comparison) -> str:
    """Return the comparison as the text of compare.json."""
    return json.dumps(comparison.to_json(), indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON schema of compare.json. Unknown keys are refused."""
    from pydantic import TypeAdapter

    body = TypeAdapter(Comparison).json_schema(ref_template="#/$defs/{model}")
    definitions = body.pop("$defs")
    body["properties"]["format"] = {"const": FORMAT}
    body["properties"]["exit_code"] = {"$ref": "#/$defs/ExitCode"}
    close([*definitions.values(), body])
    return document("Comparison of rollout-drill", body, definitions)


def schema_text() -> str:
    """Return the schema as its file's text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
