"""Schema and reference page are in step with the types."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import jsonschema
import pytest

from harness.checks.vocabulary import OBJECTS, VARIABLES
from harness.data import data_path
from harness.model.features import FEATURES
from harness.model.scenario_steps import VERBS
from harness.scenario.catalogue import entries
from harness.scenario.loaded import load
from harness.scenario.reader import read_text, read_yaml
from harness.scenario.reference import fields
from harness.scenario.schema import SCHEMA, page, schema, text

if TYPE_CHECKING:
    from pathlib import Path

_PAGE = data_path("scenarios", "README.md").read_text(encoding="utf-8")


def test_the_published_schema_is_the_one_of_the_types() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == text(), "run python -m harness.scenario.schema"


def test_the_tables_of_the_page_are_those_of_the_types() -> None:
    assert page() == _PAGE, "run python -m harness.scenario.schema"


def test_the_page_names_every_field_verb_word_and_feature() -> None:
    words = [path for path, _, _ in fields()] + list(VERBS)
    words += [*VARIABLES, *(name for row in OBJECTS.values() for name in row), *FEATURES]
    assert [word for word in words if f"`{word}`" not in _PAGE] == []


def test_every_field_has_a_meaning_and_an_example() -> None:
    assert [path for path, _, info in fields() if not info.description or not info.examples] == []


def test_the_example_of_the_page_is_a_valid_scenario(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", _PAGE, re.DOTALL)
    whole = next(example for example in examples if "kind: Scenario" in example)
    (tmp_path / "scenario.yaml").write_text(whole)
    for name in ("web", "canary"):
        body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
        (tmp_path / f"{name}.yaml").write_text(body)
    assert load(tmp_path).drills[0].id == "image-change[default]"


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_shipped_scenarios_fit_the_schema_as_they_stand(entry: object) -> None:
    file = getattr(entry, "file")  # noqa: B009 - the type of a parameter of pytest
    document = read_yaml(read_text(file), str(file))[0].data
    jsonschema.Draft202012Validator(schema()).validate(document)


@pytest.mark.parametrize(
    "change",
    [
        '"settle": 5',
        '"settle": "soon"',
        '"steps": []',
        '"nodes": {"count": 0}',
        '"nodes": {"count": 1, "min": 1}',
        '"checks": [{"id": "a", "never": "x", "always": "y"}]',
        '"colour": "blue"',
    ],
)
def test_the_schema_refuses_what_loading_refuses(change: str) -> None:
    file = data_path("scenarios", "node-spread-blue-green", "scenario.yaml")
    document = read_yaml(read_text(file), str(file))[0].data
    document["spec"] |= json.loads(f"{{{change}}}")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(document)
