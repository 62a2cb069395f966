"""The JSON schema of scenario files, for editors. `python -m harness.scenario.schema` writes it and the reference page anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from harness.data import data_path
from harness.model.scenario import ScenarioFile
from harness.scenario.loaded import SCENARIO_FILE, load
from harness.scenario.reference import fill

SCHEMA: Final = Path(__file__).resolve().parent.parent / "model" / "scenario-v1.json"
"""Where the published schema is."""
PAGE: Final = data_path("scenarios", "README.md")
"""Where the reference page is."""
_TEMPLATE: Final = {"type": "string", "pattern": r"\{\{|\{%"}


def schema() -> dict[str, Any]:
    """Return the JSON schema of a scenario file as people write it: any scalar may be a template."""
    made = ScenarioFile.model_json_schema(by_alias=True)
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = "Scenario of rollout-drill (drill/v1)"
    result: dict[str, Any] = _with_templates(made)
    return result


def text() -> str:
    """Return the schema as it stands in its file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _with_templates(node: Any) -> Any:
    """Let a template stand for everything that is no text yet, or a text of a certain shape."""
    if isinstance(node, list):
        return [_with_templates(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") in {"integer", "number", "boolean"} or (
        node.get("type") == "string" and not {"pattern", "enum"}.isdisjoint(node)
    ):
        outer = {key: node[key] for key in ("description", "title", "default") if key in node}
        inner = {key: value for key, value in node.items() if key not in outer}
        return {**outer, "anyOf": [inner, dict(_TEMPLATE)]}
    return {
        # Defaults and examples are data, not schemas.
        key: value if key in {"default", "examples", "const", "enum"} else _with_templates(value)
        for key, value in node.items()
    }


def page() -> str:
    """Return the reference page with its generated blocks made anew."""
    shipped = {
        file.parent.name: load(file).question
        for file in sorted(data_path("scenarios").glob(f"*/{SCENARIO_FILE}"))
    }
    return fill(PAGE.read_text(encoding="utf-8"), shipped)


def main() -> None:
    """Write the schema and the reference page."""
    SCHEMA.write_text(text(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
