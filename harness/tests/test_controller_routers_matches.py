"""The product of two lists of conditions."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.controller.core.routers.matches import product
from harness.controller.core.routers.overlay import difference
from harness.tests.controller_sim import merge

JSON = dict[str, Any]

_CONDITION = st.sampled_from([{"exact": "1"}, {"prefix": "2"}, {"regex": "3"}])
_NAMED = st.dictionaries(st.sampled_from("abcAB"), _CONDITION, max_size=3)
_LABELS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), max_size=2)
_ENTRY = st.fixed_dictionaries(
    {}, optional={"headers": _NAMED, "queryParams": _NAMED, "sourceLabels": _LABELS}
)
_SERVICE = st.fixed_dictionaries(
    {}, optional={"uri": _CONDITION, "method": _CONDITION, "port": st.just(80), "headers": _NAMED}
)


@given(first=st.lists(_ENTRY, max_size=4), second=st.lists(_SERVICE, max_size=4))
def test_every_pair_holds_every_condition(first: list[JSON], second: list[JSON]) -> None:
    before = copy.deepcopy((first, second))
    made = product(first, second)
    assert (first, second) == before
    assert len(made) == max(len(first), 1) * max(len(second), 1) or not (first or second)
    pairs = [(one, other) for one in first or [{}] for other in second or [{}]]
    for (one, other), both in zip(pairs, made, strict=False):
        for field in ("headers", "queryParams", "sourceLabels"):
            asked, had = one.get(field, {}), other.get(field, {})
            now = both.get(field, {})
            assert asked.items() <= now.items(), "the test's conditions hold"
            taken = {name.lower() for name in asked} if field == "headers" else set(asked)
            kept = {
                name: value
                for name, value in had.items()
                if (name.lower() if field == "headers" else name) not in taken
            }
            assert now == kept | asked
        for field in ("uri", "method", "port"):
            assert both.get(field) == other.get(field)


def test_no_condition_at_all_is_none() -> None:
    assert product((), ()) == ()


_JSON = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
_MAP = st.dictionaries(st.sampled_from("abc"), _JSON, max_size=3)


@given(held=_MAP, wanted=_MAP)
def test_a_difference_leads_from_one_to_the_other(held: JSON, wanted: JSON) -> None:
    assert merge(held, difference(held, wanted)) == wanted
