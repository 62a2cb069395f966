"""matrix.json: the tables as data, and their schema (harness/report/matrix-v1.json), made from the types.

`python -m harness.report.matrix_json` writes the schema again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from harness.report.json_schema import close, document
from harness.report.matrix_model import FORMAT, Matrix

SCHEMA: Final = Path(__file__).with_name("matrix-v1.json")
"""Where the schema is."""


def json_matrix(matrix: Matrix) -> str:
    """Return the tables as the text of matrix.json."""
    return json.dumps(matrix.to_json(), indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON schema of matrix.json. Unknown keys are refused."""
    from pydantic import TypeAdapter

    body = TypeAdapter(Matrix).json_schema(ref_template="#/$defs/{model}")
    definitions = body.pop("$defs")
    body["properties"]["format"] = {"const": FORMAT}
    close([*definitions.values(), body])
    return document("Matrix of rollout-drill", body, definitions)


def schema_text() -> str:
    """Return the schema as its file's text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
