"""The canonical text of any JSON value, against the rule in a few other words, and against how values may be spelled."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.controller.core.canonical import canonical, digest, same, template_hash
from harness.kube.decode import Written, decode

JSON = dict[str, Any]

# Every character but halves of surrogate pairs, which UTF-8 cannot hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=5)
NUMBERS = st.from_regex(r"\A-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?\Z")


def rule(value: Any) -> str:
    """The rule as the specification words it: the standard encoder and five replacements, over a value without nulls."""

    def bare(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: bare(inner) for key, inner in item.items() if inner is not None}
        return [bare(inner) for inner in item] if isinstance(item, list) else item

    text = json.dumps(bare(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def turned(value: Any) -> Any:
    """The same value with all keys in the opposite order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(list(value))}
    return [turned(item) for item in value] if isinstance(value, list) else value


def with_nulls(value: Any) -> Any:
    """The same value with a null more in every object."""
    if isinstance(value, dict):
        return {key: with_nulls(item) for key, item in value.items()} | {"\u0000null": None}
    return [with_nulls(item) for item in value] if isinstance(value, list) else value


@given(VALUES)
def test_it_is_the_rule(value: Any) -> None:
    assert canonical(value) == rule(value)


@given(OBJECTS)
def test_order_of_keys_and_nulls_do_not_count(value: JSON) -> None:
    assert canonical(turned(value)) == canonical(value)
    assert canonical(with_nulls(value)) == canonical(value)
    assert same(with_nulls(value), value)


@given(VALUES)
def test_it_says_everything_else(value: Any) -> None:
    """Read back it is the same value: nothing but nulls is lost, so different values differ."""
    assert same(json.loads(canonical(value)), value)


@given(OBJECTS, st.booleans())
def test_however_the_server_spells_it(value: JSON, ascii_only: bool) -> None:  # noqa: FBT001
    spelled = json.dumps(value, ensure_ascii=ascii_only, indent=1)
    assert canonical(decode(spelled)) == canonical(value)
    assert canonical(decode(spelled.encode())) == canonical(value)


@given(NUMBERS)
def test_numbers_stay_as_written(text: str) -> None:
    found = decode(f'{{"n": {text}}}')
    # A whole number has one spelling only, apart from a minus before zero.
    written = "0" if text == "-0" else text
    assert canonical(found) == f'{{"n":{written}}}'
    assert canonical(copy.deepcopy(found)) == f'{{"n":{written}}}'
    assert math.isclose(float(found["n"]), float(text), rel_tol=1e-9)
    assert json.loads(json.dumps(found)) == found


def test_one_and_one_point_zero_are_two_values() -> None:
    hashes = {
        template_hash(decode(f'{{"spec": {{"n": {n}}}}}')) for n in ("1", "1.0", "1e0", "1.00")
    }
    assert len(hashes) == 4


def test_a_number_of_ours_is_a_number() -> None:
    assert canonical(0.5) == "0.5"
    assert Written("1e3") == 1000.0
    assert canonical(Written("1e3")) == "1e3"


QUANTITIES = st.sampled_from(["100m", "0.1", "1", "1000m", "64Mi", "67108864", "1Gi", "1e3", "1k"])


@given(QUANTITIES, QUANTITIES)
def test_quantities_count_as_served(one: str, other: str) -> None:
    """The server writes each quantity in one way; two spellings come from two different inputs to it."""

    def hashed(cpu: str) -> str:
        requests = {"requests": {"cpu": cpu}}
        return template_hash({"spec": {"containers": [{"name": "c", "resources": requests}]}})

    assert (hashed(one) == hashed(other)) is (one == other)


@given(st.text(max_size=8))
def test_any_text_has_a_digest(text: str) -> None:
    """Half a surrogate pair can be spelled in JSON; Go reads it as the replacement character."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    half = any("\ud800" <= char <= "\udfff" for char in text)
    assert len(digest(canonical(text))) == 19
    if not half:
        assert canonical(text) == canonical(whole)
    assert canonical("a\ud800b") == canonical("a\ufffdb")
