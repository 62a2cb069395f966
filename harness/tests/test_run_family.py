"""What belongs to a drill in a namespace that others use: its labels, and ownerReferences from what it made."""

from __future__ import annotations

from typing import Any

from harness.run.family import family
from harness.run.identity import labels

MINE = labels("run-1", "drill-1")
NAMESPACE = "team"


def objects(*rows: dict[str, Any]) -> dict[tuple[str, str, str, str], Any]:
    return {
        (row.get("group", ""), row["plural"], NAMESPACE, row["name"]): {
            "kind": row["plural"],
            "uid": row["name"],
            "name": row["name"],
            **row,
        }
        for row in rows
    }


def row(plural: str, name: str, owner: str = "", **more: Any) -> dict[str, Any]:
    references = [{"kind": "X", "name": owner, "uid": owner}] if owner else []
    return {"plural": plural, "name": name, "ownerReferences": references, **more}


def names(found: dict[tuple[str, str, str, str], str]) -> dict[str, str]:
    return {f"{key[1]}/{key[3]}": why for key, why in found.items()}


def test_labels_and_owners_to_any_depth_and_nothing_else() -> None:
    there = objects(
        row("canaries", "web", labels=MINE),
        row("deployments", "web-primary", "web"),
        row("replicasets", "web-primary-1", "web-primary"),
        row("pods", "web-primary-1-a", "web-primary-1"),
        row("endpointslices", "web-x", "web-svc"),
        row("services", "web-svc", "web"),
        row("endpoints", "web-svc"),
        row("endpoints", "theirs"),
        # Somebody else's, alike in everything but the ownership.
        row("deployments", "shop-primary", "shop", labels={"app": "web"}),
        row("pods", "shop-primary-a", "shop-primary"),
        row("services", "theirs"),
    )
    assert names(family(there, (), "run-1", "drill-1")) == {
        "canaries/web": "carries the drill's labels",
        "deployments/web-primary": "owned by X web",
        "replicasets/web-primary-1": "owned by X web-primary",
        "pods/web-primary-1-a": "owned by X web-primary-1",
        "services/web-svc": "owned by X web",
        "endpointslices/web-x": "owned by X web-svc",
        "endpoints/web-svc": "of Service web-svc",
    }


def test_what_a_removed_object_owned_still_belongs_to_the_drill() -> None:
    there = objects(row("pods", "orphan", "gone-rs"), row("pods", "other", "gone-too"))
    assert names(family(there, {"gone-rs"}, "run-1", "drill-1")) == {
        "pods/orphan": "owned by X gone-rs"
    }


def test_another_runs_drill_of_the_same_name_is_not_ours() -> None:
    there = objects(
        row("canaries", "web", labels=labels("run-2", "drill-1")), row("pods", "p", "web")
    )
    assert family(there, (), "run-1", "drill-1") == {}


def test_owners_in_a_circle_end() -> None:
    there = objects(row("pods", "a", "b", labels=MINE), row("pods", "b", "a"))
    assert set(names(family(there, (), "run-1", "drill-1"))) == {"pods/a", "pods/b"}
