"""The order of the line, and who has a slot: a pure function of the Canaries (deviation D4)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.controller.core.line import (
    ALL,
    EACH,
    Entrant,
    entrant,
    limit_of,
    turns,
)
from harness.controller.core.policy import Policy
from harness.tests.controller_town import AT, condition, one, queued

JSON = dict[str, Any]


# -- the order ---------------------------------------------------------------------------------------------------------------


def test_the_order_is_regaining_then_priority_then_time_then_name() -> None:
    found = [
        queued("late", 9),
        queued("b", 3),
        queued("a", 3),
        queued("hotfix", 8, priority=10),
        queued("later", 1, priority=-5),
        queued("goes-on", 20, phase="Progressing"),
        queued("goes-on-first", 20, phase="Progressing", priority=1),
    ]
    order = sorted((entrant(obj, AT) for obj in found), key=lambda each: each.key)
    expected = ["goes-on-first", "goes-on", "hotfix", "a", "b", "late", "later"]
    assert [each.name for each in order] == expected


@pytest.mark.parametrize(
    ("obj", "seen"),
    [
        (queued("a", 3.25), 3.25),
        (one("a", "Succeeded"), 100.0),
        (one("a", "Waiting", condition("Promoted", AT + 7)), 7.0),
        (one("a", "Frozen", condition("Held", AT + 5, reason="ConfirmRollout")), 5.0),
    ],
    ids=["in the line", "new", "behind a gate", "frozen, behind a gate"],
)
def test_when_a_change_was_seen(obj: JSON, seen: float) -> None:
    assert entrant(obj, AT + 100.0).seen == AT + seen


def test_the_time_is_the_one_that_the_status_will_have() -> None:
    now = AT + 0.123456
    assert entrant(one("a", "Succeeded"), now) == entrant(queued("a", 0.123), now)


def test_the_smaller_limit_holds_and_is_named() -> None:
    assert limit_of(Policy()) is None
    assert limit_of(Policy(most_analyses=3)) == (3, f"at most 3 analyses at a time ({ALL})")
    both = Policy(most_analyses=3, most_analyses_per_namespace=1)
    assert limit_of(both) == (1, f"at most 1 analysis at a time ({EACH})")


ENTRANTS = st.lists(
    st.builds(
        Entrant,
        name=st.sampled_from("abcdefgh"),
        namespace=st.sampled_from("xyz"),
        seen=st.integers(0, 5).map(float),
        priority=st.integers(-1, 2),
        regaining=st.booleans(),
    ),
    max_size=20,
    unique_by=lambda each: (each.namespace, each.name),
)
HELD = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 4))
LIMITS = st.one_of(st.none(), st.integers(1, 6))


@given(ENTRANTS, HELD, LIMITS, LIMITS)
@settings(deadline=None, max_examples=200)
def test_no_limit_is_passed_and_nobody_is_kept_from_a_free_slot(
    entrants: list[Entrant], held: dict[str, int], total: int | None, each: int | None
) -> None:
    policy = Policy(most_analyses=total, most_analyses_per_namespace=each)
    found = turns(entrants, held, policy)
    assert set(found) == {(this.namespace, this.name) for this in entrants}
    begun = [this for this in entrants if found[this.namespace, this.name].granted]
    used = Counter(held) + Counter(this.namespace for this in begun)
    assert not (total is not None and begun and used.total() > total)
    for this in begun:
        assert each is None or used[this.namespace] <= each
    rest = sorted((this for this in entrants if this not in begun), key=lambda this: this.key)
    for place, this in enumerate(rest, start=1):
        turn = found[this.namespace, this.name]
        assert (turn.position, turn.waiting) == (place, len(rest))
        full = total is not None and used.total() >= total
        full_here = each is not None and used[this.namespace] >= each
        assert full or full_here, "a free slot is used"
        assert (ALL if full else EACH) in turn.limit or full_here
        ahead = [other for other in begun if other.namespace == this.namespace]
        assert all(other.key < this.key for other in ahead), "nobody is overtaken in its namespace"
