"""What of a namespace that others use is recorded, in whatever order the watches deliver it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from harness.run.belonging import Belonging
from harness.run.identity import labels


def obj(kind: str, uid: str, owner: str = "", **more: Any) -> dict[str, Any]:
    references = [{"kind": "X", "name": owner, "uid": owner}] if owner else []
    metadata = {"namespace": "team", "name": uid, "uid": uid, "ownerReferences": references}
    return {"kind": kind, "metadata": metadata | more.pop("metadata", {}), **more}


def event(uid: str, about: str) -> dict[str, Any]:
    return obj("Event", uid, involvedObject={"kind": "Pod", "name": about, "uid": about})


CANARY = obj("Canary", "web", metadata={"labels": labels("run-1", "drill-1")})
CHAIN = [
    CANARY,
    obj("Deployment", "primary", "web"),
    obj("ReplicaSet", "set", "primary"),
    obj("Pod", "pod", "set"),
    event("event", "pod"),
]


def recorded(*seen: Any) -> list[str]:
    belonging = Belonging("run-1", "drill-1")
    return [one["metadata"]["uid"] for each in seen for _, one in belonging.sort("ADDED", each)]


@pytest.mark.parametrize("order", [*itertools.permutations(range(len(CHAIN)))])
def test_all_of_the_drill_is_recorded_once_whatever_comes_first(order: tuple[int, ...]) -> None:
    got = recorded(*(CHAIN[index] for index in order))
    assert sorted(got) == sorted(one["metadata"]["uid"] for one in CHAIN)


def test_nothing_of_others_is_recorded() -> None:
    other = labels("run-2", "drill-1")
    theirs = [
        obj("Canary", "shop", metadata={"labels": other}),
        obj("Deployment", "shop-primary", "shop"),
        obj("Pod", "alike", metadata={"labels": {"app": "web"}}),
        event("about", "alike"),
        obj("Secret", "password"),
    ]
    assert recorded(CANARY, *theirs) == ["web"]


def test_what_has_no_namespace_is_everybodys() -> None:
    assert recorded({"kind": "Node", "metadata": {"name": "n", "uid": "n"}}) == ["n"]


def test_what_a_deleted_object_owned_is_still_the_drills() -> None:
    belonging = Belonging("run-1", "drill-1")
    belonging.sort("ADDED", CANARY)
    assert belonging.sort("DELETED", CANARY) == [("DELETED", CANARY)]
    primary = CHAIN[1]
    assert belonging.sort("DELETED", primary) == [("DELETED", primary)]


def test_of_what_waits_the_last_state_is_kept_and_nothing_when_it_is_gone() -> None:
    belonging = Belonging("run-1", "drill-1")
    pod, other = obj("Pod", "pod", "set"), obj("Pod", "other", "set")
    later = {**pod, "status": {"phase": "Running"}}
    assert belonging.sort("ADDED", pod) == []
    assert belonging.sort("MODIFIED", later) == []
    assert belonging.sort("ADDED", other) == []
    assert belonging.sort("DELETED", other) == []
    owner = obj("ReplicaSet", "set", metadata={"labels": labels("run-1", "drill-1")})
    assert belonging.sort("ADDED", owner) == [("ADDED", owner), ("ADDED", later)]
