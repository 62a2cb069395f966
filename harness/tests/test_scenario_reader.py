"""YAML as plain JSON types, with positions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scenario.dump import to_yaml
from harness.scenario.locate import Position, dotted
from harness.scenario.problem import ScenarioError
from harness.scenario.reader import read_scalar, read_yaml

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(categories=("L", "N", "P", "S", "Zs"))),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(categories=("L", "N")), min_size=1), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("1.10", 1.1),
        ("'1.10'", "1.10"),
        ("0o17", 15),
        ("0x1f", 31),
        ("1_000", "1_000"),
        ("2026-01-01", "2026-01-01"),
        ("1:30", "1:30"),
        ("~", None),
        ("", None),
        ("true", True),
        ("!!str 1", "1"),
        ("1e3", 1000.0),
        ("[1, a]", [1, "a"]),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: Any) -> None:
    read = read_scalar(text)
    assert read == value
    assert type(read) is type(value)


def test_a_leading_zero_is_octal_in_manifests_and_refused_elsewhere() -> None:
    assert read_yaml("mode: 0644", "m", octal=True)[0].data == {"mode": 420}
    assert read_yaml("mode: 0888", "m", octal=True)[0].data == {"mode": "0888"}
    with pytest.raises(ScenarioError, match="leading zero"):
        read_yaml("mode: 0644", "s")


def test_anchors_and_merges_give_copies() -> None:
    text = "a: &a {x: 1, y: [2]}\nb: {<<: *a, x: 3}\nc: *a\n"
    data = read_yaml(text, "f")[0].data
    assert data == {"a": {"x": 1, "y": [2]}, "b": {"x": 3, "y": [2]}, "c": {"x": 1, "y": [2]}}
    assert data["a"]["y"] is not data["c"]["y"]


def test_aliases_that_multiply_are_refused() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(ScenarioError, match="holds too much"):
        read_yaml("\n".join(rows), "f")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(ScenarioError, match="nested too deeply"):
        read_yaml("[" * 5000, "f")


def test_every_problem_of_a_file_is_given_at_once() -> None:
    with pytest.raises(ScenarioError) as caught:
        read_yaml("a: 1\na: 2\nb: .nan\nc: *nowhere\nd: !tag 1\n", "f")
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4, 5]


def test_positions_lead_to_lines() -> None:
    document = read_yaml("spec:\n  steps:\n    - name: a\n      until: x\n", "f")[0]
    assert document.positions.of(("spec", "steps", 0, "until")) == Position(4, 14)
    assert document.positions.of_key(("spec", "steps", 0, "until")) == Position(4, 7)
    assert document.positions.of(("spec", "steps", 0, "within")) == Position(3, 7)
    assert document.positions.of(("spec", "checks")) == Position(1, 1)


def test_paths_are_written_the_way_people_write_them() -> None:
    assert dotted(("spec", "steps", 0, "until")) == "spec.steps[0].until"
    assert dotted(("spec", "variants", "with-key")) == "spec.variants.with-key"
    assert dotted(("metadata", "a/b")) == 'metadata["a/b"]'


@given(_JSON)
def test_what_is_written_is_read_back_the_same(value: Any) -> None:
    documents = read_yaml(to_yaml({"value": value}), "f")
    assert json.dumps(documents[0].data) == json.dumps({"value": value})


@pytest.mark.parametrize("text", ["on", "y", "0644", "1.10", "12:30", "2026-01-01", "~", "", "1_0"])
def test_texts_that_old_readers_take_for_something_else_are_quoted(text: str) -> None:
    assert to_yaml({"a": text}) == f'a: "{text}"\n'


@given(st.text())
def test_no_text_gives_anything_but_documents_or_a_scenario_error(text: str) -> None:
    try:
        read_yaml(text, "f")
    except ScenarioError as error:
        assert error.problems  # noqa: PT017 - both ways out are fine
