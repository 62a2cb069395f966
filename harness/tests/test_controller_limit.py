"""A limit on analyses through the whole controller: many Canaries change at once, and it is killed in between (deviation D4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.controller.core.line import PRIORITY
from harness.kube.testing import run_virtual
from harness.tests.controller_mortal import Life
from harness.tests.controller_rush import Rush

JSON = dict[str, Any]
MANY, LIMIT = 30, 5


async def rushed(many: int = MANY, limit: int | None = LIMIT, **options: Any) -> Rush:
    rush = Rush(many, limit)
    async with rush.controller(**options):
        await rush.settled()
        rush.change()
        await rush.until(rush.done)
    return rush


def test_never_more_than_the_limit_and_all_arrive_in_order() -> None:
    rush = run_virtual(rushed())
    assert rush.most == LIMIT
    assert rush.began == rush.names
    assert rush.queued() == []
    waited = set(rush.names[LIMIT:])
    assert rush.events("Waiting for its turn") == dict.fromkeys(waited, 1)
    assert rush.events("The turn of") == dict.fromkeys(waited, 1)
    assert not rush.logged("pass failed")


def test_without_a_limit_all_begin_at_once() -> None:
    """The control for what is above: nothing of it shows."""
    rush = run_virtual(rushed(limit=None))
    assert rush.most == MANY
    assert not rush.events("Waiting for its turn")
    assert not any("Queued" in str(asked.body) for asked in rush.cluster.requests)


def test_a_limit_that_is_not_reached_costs_not_one_request_more() -> None:
    def writes(rush: Rush) -> list[tuple[str, str]]:
        return sorted(
            (asked.verb, asked.path)
            for asked in rush.cluster.requests
            if asked.verb not in ("watch", "list", "get")
        )

    def events(rush: Rush) -> list[str]:
        found = rush.cluster.objects("Event", "n")
        return sorted(f"{e['involvedObject']['name']} {e['message']}" for e in found)

    plain, spare = (run_virtual(rushed(4, limit)) for limit in (None, 4))
    assert writes(plain) == writes(spare)
    assert events(plain) == events(spare)


def test_a_limit_per_namespace_is_one_too_and_the_smaller_holds() -> None:
    rush = run_virtual(rushed(6, 5, max_concurrent_analyses_per_namespace=2))
    assert rush.most == 2
    texts = [event["message"] for event in rush.cluster.objects("Event", "n")]
    assert any(
        "at most 2 analyses at a time (--max-concurrent-analyses-per-namespace)" in text
        for text in texts
    )


def test_waiting_costs_one_write_and_no_polling() -> None:
    async def story() -> Rush:
        rush = Rush(8, 1)
        async with rush.controller():
            await rush.settled()
            for name in rush.names:
                rush.edit(name, {"spec": {"analysis": {"interval": "10m"}}})
            rush.change()
            await asyncio.sleep(30)
            rush.queue_writes = [  # type: ignore[attr-defined]
                asked.path.split("/")[-2]
                for asked in rush.cluster.asked("patch", "canaries/")
                if "Queued" in str(asked.body)
            ]
            rush.cluster.requests.clear()
            await asyncio.sleep(120)
        return rush

    rush = run_virtual(story())
    assert sorted(rush.queue_writes) == rush.names[1:]  # type: ignore[attr-defined]
    assert {asked.verb for asked in rush.cluster.requests} <= {"watch"}


def test_a_hotfix_overtakes_those_that_wait() -> None:
    async def story() -> Rush:
        rush = Rush(8, 2)
        async with rush.controller():
            await rush.settled()
            rush.edit("web07", {"metadata": {"annotations": {PRIORITY: "10"}}})
            rush.change(*rush.names[:7])
            await asyncio.sleep(1)
            rush.change("web07")
            await asyncio.sleep(1)
            rush.edit("web06", {"metadata": {"annotations": {PRIORITY: "5"}}})
            await rush.until(rush.done)
        return rush

    rush = run_virtual(story())
    assert rush.most == 2
    assert rush.began == ["web00", "web01", "web07", "web06", *rush.names[2:6]]


def test_suspended_missing_refused_and_deleted_ones_hold_nobody_up() -> None:
    async def story() -> Rush:
        rush = Rush(9, 2)
        async with rush.controller():
            await rush.settled()
            rush.change()
            await rush.until(lambda: rush.phases()["Progressing"] == 2)
            await asyncio.sleep(1)
            # Both that have a slot, and those that are next.
            rush.edit("web00", {"spec": {"suspend": True}})
            kept = rush.cluster.get("Deployment", "web01", "n")
            rush.cluster.remove("Deployment", "web01", "n")
            rush.edit("web02", {"spec": {"suspend": True}})
            rush.cluster.remove("Deployment", "web03", "n")
            rush.edit("web04", {"spec": {"provider": "smi"}})
            rush.cluster.remove("Canary", "web05", "n")
            rush.names.remove("web05")
            await rush.until(lambda: rush.phases()["Succeeded"] == 3)
            assert {name for name in rush.names if rush.phase(name) == "Succeeded"} == {
                "web06",
                "web07",
                "web08",
            }
            assert rush.began[2:] == ["web06", "web07", "web08"]
            # And all of them can go on later, in their order.
            assert kept is not None
            rush.cluster.add(kept)
            rush.edit("web00", {"spec": {"suspend": False}})
            await rush.until(lambda: rush.phase("web00") == rush.phase("web01") == "Succeeded")
            rush.edit("web02", {"spec": {"suspend": False}})
            rush.edit("web04", {"spec": {"provider": "kubernetes"}})
            rush.names.remove("web03")
            await rush.until(rush.done)
        return rush

    assert run_virtual(story()).most == 2


def test_a_start_that_the_server_refuses_gives_its_slot_to_the_next_one() -> None:
    async def story() -> Rush:
        rush = Rush(4, 1)
        async with rush.controller():
            await rush.settled()
            rush.cluster.fail_next(
                422,
                times=3,
                match=lambda a: a.verb == "patch" and a.path.endswith("/deployments/web00"),
            )
            rush.change()
            await rush.until(rush.done)
        return rush

    rush = run_virtual(story())
    assert rush.most == 1
    assert rush.began[0] == "web01"
    assert sorted(rush.began) == rush.names


@pytest.mark.parametrize("status", [-1, 409, 503, 422])
def test_answers_that_are_lost_and_conflicts_never_let_one_too_many_in(status: int) -> None:
    async def story() -> Rush:
        rush = Rush(8, 2)
        async with rush.controller():
            await rush.settled()
            for number in (0, 3, 5):
                rush.cluster.fail_next(
                    status,
                    match=lambda a, number=number: a.path.endswith(f"/web0{number}/status"),  # type: ignore[misc]
                )
            rush.change()
            await asyncio.sleep(3)
            rush.cluster.break_watches()
            await asyncio.sleep(3)
            rush.cluster.expire_watches()
            await rush.until(rush.done)
        return rush

    assert run_virtual(story()).most == 2


def test_killed_in_the_middle_another_process_keeps_order_and_limit() -> None:
    async def story() -> Rush:
        rush = Rush(12, 3)
        async with rush.controller():
            await rush.settled()
        async with rush.controller():
            await asyncio.sleep(1)
            rush.change()
            await asyncio.sleep(2)
        for _ in range(10):
            async with rush.controller():
                await asyncio.sleep(1.5)
        async with rush.controller():
            await rush.until(rush.done)
        return rush

    rush = run_virtual(story())
    assert rush.most == 3
    assert rush.began == rush.names
    assert max(rush.events("Waiting for its turn").values()) == 1


def test_killed_after_any_write_the_limit_holds_and_all_arrive() -> None:
    async def story(left: int | None) -> tuple[Rush, int]:
        rush = Rush(3, 1, analysis={"iterations": 1})
        life = Life()
        async with rush.controller(life):
            await rush.settled()
            life.left, life.writes = left, 0
            rush.change()
            await rush.until(lambda: life.over.is_set() or rush.done())
        async with rush.controller():
            await rush.until(rush.done)
        return rush, life.writes

    _, writes = run_virtual(story(None))
    assert writes > 30
    for left in range(1, writes + 1, 3):
        rush, _ = run_virtual(story(left))
        assert rush.most == 1, left
        assert sorted(set(rush.began)) == rush.names, left
        assert max(rush.events("Waiting for its turn").values()) == 1, left


def test_what_changed_while_nobody_watched_comes_after_those_in_the_line() -> None:
    async def story() -> Rush:
        rush = Rush(4, 1)
        async with rush.controller():
            await rush.settled()
            rush.change("web01")
            await rush.until(lambda: rush.phase("web01") == "Progressing")
            rush.change("web02", "web03")
            await rush.until(lambda: rush.queued() == ["web02", "web03"])
        rush.cluster.remove("Canary", "web01", "n")
        rush.names.remove("web01")
        rush.change("web00")
        async with rush.controller():
            await rush.until(rush.done)
        return rush

    assert run_virtual(story()).began == ["web01", "web02", "web03", "web00"]
