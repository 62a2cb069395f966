"""The line as a process keeps it: never more than the limit, nobody starves, the same order in every process (deviation D4)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.controller.core.line import (
    PRIORITY,
    entrant,
    position,
    turns,
    waits,
)
from harness.controller.core.policy import Policy
from harness.tests.controller_town import AT, Town, condition, one

JSON = dict[str, Any]


def test_the_first_come_start_and_the_others_follow_in_order() -> None:
    town = Town(2)
    for name in "abcde":
        town.change(name)
    town.work()
    assert town.busy == {"a", "b"}
    assert town.queue == ["c", "d", "e"]
    town.set("b", "Promoting")
    assert town.woken == ["c"], "just the one that is next is woken"
    town.work()
    town.set("a", "Failed")
    town.set("c", "Succeeded")
    town.work()
    assert town.started == list("abcde")
    assert town.busy == {"d", "e"}


def test_a_hotfix_goes_first_and_never_takes_a_slot_away() -> None:
    town = Town(1)
    for name in "abc":
        town.change(name)
        town.work()
    town.change("hotfix", priority=1)
    town.work()
    assert town.busy == {"a"}
    assert town.queue == ["hotfix", "b", "c"]
    # A priority that is raised later counts, too.
    town.objects["c"]["metadata"]["annotations"] = {PRIORITY: "2"}
    town.line.saw(town.objects["c"])
    assert town.queue == ["c", "hotfix", "b"]


def test_those_in_one_moment_cannot_both_have_the_last_slot() -> None:
    town = Town(1)
    for name in "ab":
        town.change(name)
    first = town.line.ask(town.objects["a"], town.now)
    second = town.line.ask(town.objects["b"], town.now)
    assert (first.granted, second.granted) == (True, False)
    assert (second.position, second.waiting, second.limit) == (1, 1, "at most some")
    assert town.line.ask(town.objects["a"], town.now).granted, "asked again, it still has it"


def test_a_write_that_is_refused_gives_the_slot_to_the_next_one() -> None:
    town = Town(1)
    for name in "ab":
        town.change(name)
    town.woken.clear()
    town.line.ask(town.objects["a"], town.now)
    town.one_pass("b")
    town.line.passed("a", town.objects["a"], asked=True, keeps=False)
    assert town.woken == ["b"]
    town.work()
    assert town.busy == {"b"}
    assert not town.one_pass("a").granted  # type: ignore[union-attr]


def test_a_write_whose_fate_is_unknown_keeps_the_slot() -> None:
    town = Town(1)
    for name in "ab":
        town.change(name)
    town.woken.clear()
    town.line.ask(town.objects["a"], town.now)
    town.one_pass("b")
    town.line.passed("a", town.objects["a"], asked=True, keeps=False, sure=False)
    assert town.woken == []
    assert not town.one_pass("b").granted  # type: ignore[union-attr]
    # The watch brings what was written.
    town.set("a", "Progressing")
    assert town.line.view.used == 1
    assert town.busy == {"a"}


def test_a_pass_that_only_asks_a_hook_keeps_its_turn_for_the_answer() -> None:
    town = Town(1)
    for name in "ab":
        town.change(name)
    town.line.ask(town.objects["a"], town.now)
    town.line.passed("a", town.objects["a"], asked=True, keeps=True)
    assert not town.one_pass("b").granted  # type: ignore[union-attr]
    town.line.ask(town.objects["a"], town.now)
    # The gate is closed: it goes to phase Waiting, and its turn to the next one.
    town.woken.clear()
    town.objects["a"]["status"] = {"phase": "Waiting"}
    town.line.passed("a", town.objects["a"], asked=True, keeps=False)
    assert town.woken == ["b"]


def test_who_cannot_take_its_turn_holds_nobody_up() -> None:
    town = Town(1)
    for name in "abcdef":
        town.change(name)
    town.work()
    town.unable.add("b")
    town.objects["c"]["spec"]["suspend"] = True
    town.line.saw(town.objects["c"])
    town.line.gone(town.objects.pop("d")["metadata"]["name"])
    town.set("a", "Promoting")
    town.work()
    assert town.busy == {"e"}
    assert town.queue == ["f"]
    # Once it can, it is before those that came later.
    town.unable.clear()
    town.woken.append("b")
    town.work()
    assert town.queue == ["b", "f"]
    town.objects["c"]["spec"]["suspend"] = False
    town.line.saw(town.objects["c"])
    assert town.queue == ["b", "c", "f"]


def test_one_that_nothing_can_be_decided_about_is_passed_over() -> None:
    town = Town(1)
    for name in "abc":
        town.change(name)
    town.work()
    del town.objects["b"]  # its worker cannot be woken, and no deletion was seen yet
    town.set("a", "Succeeded")
    town.work()
    assert town.busy == {"c"}


def test_who_regains_a_slot_goes_before_new_starts() -> None:
    town = Town(1)
    for name in "abc":
        town.change(name)
    town.work()
    town.set("a", "Progressing", condition("Held", reason="ConfirmTrafficIncrease"))
    town.work()
    assert town.busy == {"b"}
    town.set("a", "Progressing", condition("Queued", AT + 50, reason="StartLimit"))
    assert town.queue == ["a", "c"]
    town.set("b", "Succeeded")
    town.work()
    assert town.busy == {"a"}


def test_another_process_comes_to_the_same_order_and_respects_who_runs() -> None:
    town = Town(2)
    for name in "dcbae":
        town.change(name, priority=int(name == "e"))
        town.work()
    before = town.line.view
    assert town.queue == ["e", "b", "a"]
    town.restart()
    assert town.line.view == before
    town.objects["f"] = one("f", "Succeeded") | {"wants": True}
    town.woken = ["f", *"dcbae"]
    town.work()
    assert town.queue == ["e", "b", "a", "f"]
    assert len(town.busy) == 2


def test_more_than_the_limit_is_waited_out() -> None:
    """As after a restart with a smaller one, or over what another controller left."""
    town = Town(1)
    for name in "abc":
        town.objects[name] = one(name, "Progressing")
    town.restart()
    town.change("d")
    town.work()
    assert town.busy == set("abc")
    for name in "ab":
        town.set(name, "Succeeded")
        town.work()
    assert town.busy == {"c"}
    town.set("c", "Failed")
    town.work()
    assert town.busy == {"d"}


def test_a_thousand_starts_cost_a_few_calls_each() -> None:
    town = Town(5)
    names = [f"web{number:04d}" for number in range(1000)]
    for name in names:
        town.change(name)
    town.work()
    town.calls = 0
    while town.busy:
        for name in sorted(town.busy):
            town.set(name, "Succeeded")
        town.work()
    assert town.started == names
    assert town.calls < 10 * len(names)


KINDS = (
    *("change", "finish", "hold", "open", "suspend", "resume"),
    *("break", "cure", "delete", "restart", "refuse", "unsure"),
)
STEP = st.tuples(st.sampled_from(KINDS), st.sampled_from("abcdefg"), st.integers(0, 2))


@given(st.integers(1, 3), st.lists(STEP, max_size=60), st.lists(st.integers(0, 6), max_size=60))
@settings(deadline=None, max_examples=150)
def test_whatever_happens_the_limit_holds_and_all_get_their_turn(
    limit: int, steps: list[tuple[str, str, int]], order: list[int]
) -> None:
    town = Town(limit)
    for what, name, number in steps:
        town.happens(what, name, number)
        town.work(order)
        assert len(town.busy) <= limit
    town.unable.clear()
    for name, found in town.objects.items():
        found["spec"]["suspend"] = False
        town.line.saw(found)
        town.woken.append(name)
    for _ in range(100):
        town.work(order)
        assert len(town.busy) <= limit
        if not town.busy:
            break
        for name in town.busy:
            town.set(name, "Succeeded")
    assert not any(waits(obj) for obj in town.objects.values()), "nobody is left in the line"
    assert not any(obj.get("wants") for obj in town.objects.values())


def test_the_process_and_the_pure_function_agree() -> None:
    town = Town(2)
    for index, name in enumerate("fbdaec"):
        town.change(name, priority=index % 3)
    town.work()
    policy = Policy(most_analyses=2)
    line = [entrant(obj, AT) for obj in town.objects.values() if waits(obj)]
    pure = turns(line, {"n": len(town.busy)}, policy)
    view = town.line.view
    assert (view.limit, view.used) == (2, 2)
    assert list(view.waiting) == sorted(
        (each.name for each in line), key=lambda name: pure["n", name].position
    )
    for name in view.waiting:
        told = position(town.objects[name], town.objects.values(), AT)
        assert (told.position, told.waiting) == (pure["n", name].position, 4)
