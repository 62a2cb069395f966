"""Variants and matrix."""

from __future__ import annotations

from typing import Any

import pytest

from harness.scenario.reader import read_yaml
from harness.scenario.variants import expand, misfit


def _labels(text: str, sets: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    combinations, problems = expand(read_yaml(text, "f")[0], "f", sets)
    assert problems == []
    return {item.label: dict(item.values) for item in combinations}


def test_without_variants_there_is_one_called_default() -> None:
    assert _labels("spec: {values: {a: 1}}") == {"default": {"a": 1}}


def test_a_matrix_multiplies_every_variant() -> None:
    text = (
        "spec: {values: {a: 1, b: x}, variants: {p: {}, q: {values: {b: y}}}, matrix: {a: [1, 2]}}"
    )
    assert _labels(text) == {
        "p,a=1": {"a": 1, "b": "x"},
        "p,a=2": {"a": 2, "b": "x"},
        "q,a=1": {"a": 1, "b": "y"},
        "q,a=2": {"a": 2, "b": "y"},
    }


def test_a_value_that_is_fixed_is_not_varied() -> None:
    text = "spec: {values: {a: 1}, variants: {p: {}, q: {values: {a: 5}}}, matrix: {a: [1, 2]}}"
    assert list(_labels(text)) == ["p,a=1", "p,a=2", "q"]
    assert _labels(text, {"a": "7"}) == {"p": {"a": 7}, "q": {"a": 7}}


def test_labels_hold_nothing_that_a_shell_takes_for_something_else() -> None:
    text = "spec: {values: {a: x}, matrix: {a: ['a b/c', '$x']}}"
    assert list(_labels(text)) == ["default,a=a-b-c", "default,a=x"]


def test_a_matrix_that_explodes_is_refused() -> None:
    numbers = list(range(20))
    text = f"spec: {{values: {{a: 1, b: 1, c: 1}}, matrix: {{a: {numbers}, b: {numbers}, c: {numbers}}}}}"
    combinations, problems = expand(read_yaml(text, "f")[0], "f")
    assert len(combinations) == 1
    assert "more than 200 drills" in str(problems[0])


@pytest.mark.parametrize(
    ("declared", "value", "fits"),
    [
        (1, 2, True),
        (1, True, False),
        (1, 1.5, False),
        (1.5, 1, True),
        (True, 1, False),
        ("a", "b", True),
        ("a", None, False),
        (None, "anything", True),
        ([1], [2], True),
        ({"a": 1}, [], False),
    ],
)
def test_a_value_must_have_the_type_of_the_declared_one(
    declared: Any, value: Any, *, fits: bool
) -> None:
    assert (misfit(declared, value) == "") is fits
