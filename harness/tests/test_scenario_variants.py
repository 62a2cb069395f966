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


BOTH = "spec: {values: {a: 1, b: x}, variants: {p: {}, q: {values: {b: y}}}, matrix: {a: [1, 2]}}"


def _across(
    text: str, across: dict[str, list[Any]], only: str | None = None, **sets: Any
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    combinations, problems = expand(read_yaml(text, "f")[0], "f", sets, across, only)
    return {one.label: dict(one.values) for one in combinations}, [str(p) for p in problems]


def test_a_matrix_of_the_user_is_like_one_of_the_file_and_replaces_it() -> None:
    by_file = "spec: {values: {a: 1, b: x}, matrix: {b: [x, z], a: [3]}}"
    by_user = "spec: {values: {a: 1, b: x}, matrix: {a: [1, 2]}}"
    found, problems = _across(by_user, {"b": ["x", "z"], "a": [3]})
    assert problems == []
    assert found == _labels(by_file)
    assert list(_across(by_user, {"b": ["x", "z"]})[0]) == [
        f"default,b={b},a={a}" for b in "xz" for a in (1, 2)
    ]


def test_what_the_user_varies_no_variant_overrules_in_silence() -> None:
    message = "--across: b: variant q has a value of its own for it; choose others with --variant (allowed: p)"
    assert _across(BOTH, {"b": ["x", "z"]})[1] == [message]
    assert _across(BOTH, {"b": ["x", "z"]}, only="q")[1] == [message]
    found, problems = _across(BOTH, {"b": ["x", "z"]}, only="p")
    assert problems == []
    assert list(found) == [f"p,b={b},a={a}" for b in "xz" for a in (1, 2)]


@pytest.mark.parametrize(
    ("across", "told"),
    [
        ({"c": [1]}, "--across: c: the scenario declares no such value (allowed: a, b)"),
        (
            {"a": [1, "x"]},
            "--across: a: must be a whole number, as declared in spec.values, not a text",
        ),
        (
            {"b": [1.37]},
            "--across: b: must be a text, as declared in spec.values, not a number; for a text write b='\"1.37\"'",
        ),
        (
            {"b": ["x y", "x/y"]},
            "--across: b: x-y is there twice, so that two drills would have one name",
        ),
        ({"a": list(range(201))}, "--across: a: gives more than 200 drills"),
    ],
)
def test_a_mistake_in_what_the_user_varies_is_one_sentence(
    across: dict[str, list[Any]], told: str
) -> None:
    found, problems = _across(BOTH, across, only="p")
    assert problems == [told]
    assert found


def test_a_value_is_set_or_varied_but_not_both() -> None:
    found, problems = _across(BOTH, {"a": [1, 2]}, only="p", a="2")
    assert problems == ["--across: a: has one value by --set; leave out one of the two"]
    assert found


def test_drills_of_other_variants_do_not_count() -> None:
    names = ", ".join(f"v{n}: {{}}" for n in range(5))
    text = f"spec: {{values: {{a: 1}}, variants: {{{names}}}}}"
    found, problems = _across(text, {"a": list(range(50))}, only="v3")
    assert problems == []
    assert len(found) == 50


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


def test_what_follows_from_the_cluster_replaces_only_what_nobody_states() -> None:
    text = "spec: {values: {a: 1}, variants: {p: {}, q: {values: {a: 5}}}}"

    def values(sets: dict[str, Any] | None = None, derived: dict[str, Any] | None = None) -> Any:
        combinations, problems = expand(read_yaml(text, "f")[0], "f", sets, derived=derived)
        assert problems == []
        return {one.label: one.values["a"] for one in combinations}

    assert values() == {"p": 1, "q": 5}
    assert values(derived={"a": 3}) == {"p": 3, "q": 5}
    assert values({"a": "7"}, {"a": 3}) == {"p": 7, "q": 7}
