"""Handback: what is written and when, what a running controller or a faster writer does to it, and what people read."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.canonical import template_hash
from harness.handback.carry_out import TRIES, WATCHED_SECONDS, Handback, hand_back
from harness.handback.plan import Fate, Return
from harness.handback.text import summary, to_json, to_text
from harness.handback.told import HandbackError
from harness.kube.testing import FakeCluster, run_virtual
from harness.tests.controller_sim import image, running
from harness.tests.test_handback_reading import Oracle, saved

if TYPE_CHECKING:
    from collections.abc import Coroutine

JSON = dict[str, Any]
TO = "flagger@1.44.0"


def cluster_of(*names: str, **fields: JSON) -> FakeCluster:
    """A namespace of settled canaries; `fields` are the statuses, by name, that differ."""
    cluster = FakeCluster()
    settled = saved(running())
    for name in names:
        text = json.dumps(settled).replace('"web', f'"{name}').replace('"uid-', f'"uid-{name}-')
        objects = json.loads(text)
        target = next(
            obj
            for obj in objects
            if obj["metadata"]["name"] == name and obj["kind"] == "Deployment"
        )
        hash_ = template_hash(target["spec"]["template"])
        for obj in objects:
            if obj["kind"] == "Canary":
                obj["status"] |= {"lastAppliedSpec": hash_, "lastPromotedSpec": hash_} | fields.get(
                    name, {}
                )
            cluster.add(obj)
    cluster.requests.clear()
    return cluster


def walk(cluster: FakeCluster, *, apply: bool = True) -> Coroutine[Any, Any, Handback]:
    return hand_back(cluster.client(), "n", TO, Oracle(), apply=apply)


def status(cluster: FakeCluster, name: str) -> JSON:
    canary = cluster.get("Canary", name, "n")
    assert canary is not None
    found: JSON = canary["status"]
    return found


def is_status_write(asked: Any) -> bool:
    return bool(asked.verb == "patch")


def test_without_apply_nothing_is_written() -> None:
    cluster = cluster_of("a", "b")
    result = run_virtual(walk(cluster, apply=False))
    assert {asked.verb for asked in cluster.requests} == {"list"}
    assert not result.applied
    assert [one.name for one in result.pending] == ["a", "b"]
    assert "Nothing was written" in to_text(result)


def writes_of(cluster: FakeCluster) -> list[tuple[str, JSON]]:
    """What was written: Canary and subresource, and the body."""
    writes = [asked for asked in cluster.requests if asked.verb not in ("get", "list")]
    return [(asked.path.rpartition("/canaries/")[2], asked.body) for asked in writes]


def test_only_statuses_are_written_and_each_on_the_version_that_was_read() -> None:
    cluster = cluster_of("a", "b")
    version = (cluster.get("Canary", "b", "n") or {})["metadata"]["resourceVersion"]
    result = run_virtual(walk(cluster))
    (asked, question), *writes = writes_of(cluster)
    assert (asked, question["status"]) == ("a/status", {"lastTrackedRevision": None})
    assert [path for path, _ in writes] == ["a/status", "b/status"]
    assert writes[1][1]["metadata"] == {"resourceVersion": version}
    assert (result.written, result.pending) == (("a", "b"), [])
    for name in "ab":
        after = status(cluster, name)
        assert after["lastAppliedSpec"] == after["lastPromotedSpec"] == "hash-app:1"
        assert "lastTrackedRevision" not in after
        assert after["phase"] == "Initialized"
    assert "2 statuses were written" in to_text(result)


def test_a_second_walk_writes_nothing() -> None:
    cluster = cluster_of("a")
    run_virtual(walk(cluster))
    cluster.requests.clear()
    result = run_virtual(walk(cluster))
    assert {asked.verb for asked in cluster.requests} == {"list"}
    assert (result.written, result.of(Fate.RESTS)[0].patch) == ((), {})


# -- whoever still runs ------------------------------------------------------------------------------------------------------


async def disturbed(cluster: FakeCluster, name: str, after: float, back: JSON, match: str) -> None:
    """Walk while a bundled controller puts something back."""

    async def bundled() -> None:
        await asyncio.sleep(after)
        cluster.update("Canary", name, "n", {"status": back})

    rewriting = asyncio.create_task(bundled())
    with pytest.raises(HandbackError, match=match):
        await walk(cluster)
    await rewriting


def test_a_controller_that_still_runs_is_found_before_anything_is_written() -> None:
    cluster = cluster_of("a", "b")
    before = {name: status(cluster, name) for name in "ab"}
    fence = {"lastTrackedRevision": before["a"]["lastTrackedRevision"]}
    match = "Stop the bundled controller first; nothing was changed"
    run_virtual(disturbed(cluster, "a", WATCHED_SECONDS / 2, fence, match))
    assert {name: status(cluster, name) for name in "ab"} == before


def test_a_controller_that_starts_meanwhile_is_found_at_the_end() -> None:
    match = "Canary b was written.*was started in namespace n meanwhile"
    hash_ = {"lastAppliedSpec": "v2:0"}
    run_virtual(disturbed(cluster_of("a", "b"), "b", WATCHED_SECONDS * 1.5, hash_, match))


@pytest.mark.parametrize(
    ("first", "asked"),
    [
        ({}, "a"),
        # A settled one answers at once, and one without its own fence not at all.
        ({"phase": "Progressing"}, "b"),
        ({"phase": "Promoting"}, "b"),
        ({"lastTrackedRevision": None}, "b"),
        # Without its fence it would be taken for a change.
        ({"lastAppliedSpec": "v2:0", "lastPromotedSpec": "v2:0"}, "b"),
    ],
)
def test_the_question_harms_nobody(first: JSON, asked: str) -> None:
    cluster = cluster_of("a", "b", a=first)
    run_virtual(walk(cluster))
    path, body = writes_of(cluster)[0]
    assert (path, body["status"]) == (f"{asked}/status", {"lastTrackedRevision": None})


def test_a_suspended_canary_is_not_asked() -> None:
    cluster = cluster_of("a", "b")
    cluster.update("Canary", "a", "n", {"spec": {"suspend": True}})
    run_virtual(walk(cluster))
    assert writes_of(cluster)[0][0] == "b/status"


def test_one_that_moves_under_the_question_is_left_for_another() -> None:
    cluster = cluster_of("a", "b")
    cluster.fail_next(409, "Conflict", match=is_status_write)
    run_virtual(walk(cluster))
    asked = [
        path
        for path, body in writes_of(cluster)
        if body["status"].keys() == {"lastTrackedRevision"}
    ]
    assert asked == ["a/status", "b/status"]


def test_a_flagger_that_needs_the_fence_keeps_it() -> None:
    cluster = cluster_of("a")
    result = run_virtual(hand_back(cluster.client(), "n", TO, Oracle(fenced=True), apply=True))
    assert (writes_of(cluster), result.written) == ([], ())
    assert status(cluster, "a")["lastTrackedRevision"]


# -- writers that are faster -------------------------------------------------------------------------------------------------


def test_a_canary_that_moved_meanwhile_is_planned_anew() -> None:
    cluster = cluster_of("a")
    cluster.fail_next(409, "Conflict", times=2, match=is_status_write)
    result = run_virtual(walk(cluster))
    assert (result.written, result.pending) == (("a",), [])


def test_a_change_between_reading_and_writing_is_not_hidden() -> None:
    """The refused write is planned anew, and then the target is another one."""
    cluster = cluster_of("a")

    class Late(Oracle):
        async def __call__(self, questions: Any) -> Any:
            if not self.questions:
                cluster.update("Deployment", "a", "n", image("app:2"))
                meta = {"generation": 9, "annotations": {"deployment.kubernetes.io/revision": "9"}}
                cluster.update(
                    "Deployment", "a", "n", {"metadata": meta, "status": {"observedGeneration": 9}}
                )
                cluster.update("Canary", "a", "n", {"metadata": {"labels": {"moved": "yes"}}})
            return await super().__call__(questions)

    result = run_virtual(hand_back(cluster.client(), "n", TO, Late(), apply=True))
    assert (result.written, [one.fate for one in result.returns]) == ((), [Fate.STARTS])
    assert status(cluster, "a")["lastAppliedSpec"].startswith("v2:")


def test_a_canary_that_never_holds_still_is_given_up() -> None:
    cluster = cluster_of("a", "b")
    cluster.fail_next(409, "Conflict", times=99, match=lambda asked: "/canaries/b/" in asked.path)
    with pytest.raises(HandbackError, match=rf"^b: the status changed {TRIES} times"):
        run_virtual(walk(cluster))


def test_a_canary_that_goes_meanwhile_is_no_matter() -> None:
    cluster = cluster_of("a", "b")
    cluster.fail_next(404, "NotFound", match=lambda asked: "/canaries/b/" in asked.path)
    result = run_virtual(walk(cluster))
    assert result.written == ("a", "b")


# -- what people and machines read -------------------------------------------------------------------------------------------


def result_of(*fates: Fate, applied: bool = False) -> Handback:
    returns = [
        Return(f"c{index}", "Succeeded", fate, f"Why {index}.") for index, fate in enumerate(fates)
    ]
    return Handback(TO, "shop", "v0.36.2", returns, applied=applied)


def test_those_that_start_come_first() -> None:
    text = to_text(result_of(Fate.RESTS, Fate.STARTS, Fate.TROUBLE))
    order = [line.split()[0] for line in text.splitlines()[1:4]]
    assert order == ["c1", "c2", "c0"]


@pytest.mark.parametrize(
    ("fates", "sentence"),
    [
        ((Fate.RESTS,), "Under flagger@1.44.0, 1 rests."),
        ((Fate.RESTS, Fate.RESTS), "Under flagger@1.44.0, 2 rest."),
        (
            (Fate.RESTS, Fate.STARTS, Fate.GOES_ON),
            "Under flagger@1.44.0, 1 starts an analysis, 1 goes on with what is under way, 1 rests.",
        ),
    ],
)
def test_the_count_is_one_sentence(fates: tuple[Fate, ...], sentence: str) -> None:
    assert summary(result_of(*fates)) == sentence


def test_an_empty_namespace_is_said() -> None:
    assert to_text(result_of()) == "There is no Canary in namespace shop: nothing to hand back."


def test_what_is_in_place_needs_no_apply() -> None:
    assert to_text(result_of(Fate.RESTS)).endswith("No status has to be written.")


def test_json_counts_every_fate() -> None:
    shown = to_json(result_of(Fate.STARTS, Fate.RESTS))
    assert shown["counts"] == {"rests": 1, "goes on": 0, "starts": 1, "trouble": 0, "left alone": 0}
    assert [row["written"] for row in shown["canaries"]] == [False, False]
    assert (shown["to"], shown["kubernetesApi"], shown["namespace"]) == (TO, "v0.36.2", "shop")
