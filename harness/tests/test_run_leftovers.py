"""What counts as left behind, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from harness.run.leftovers import Key, Listing, Mine, left_behind

DRILL = "node-spread-with-key"


def _listing(*rows: tuple[Key, dict[str, str]]) -> Listing:
    objects: dict[Key, dict[str, Any]] = {
        key: {"kind": key[1], "name": key[3], "labels": labels} for key, labels in rows
    }
    return Listing(objects, 60, ())


def _mine(*, exclusive: bool = False, **more: Any) -> Mine:
    return Mine(run="run-1", drill=DRILL, namespace="drill-a", exclusive=exclusive, **more)


LABEL = {"rollout-drill/drill": DRILL, "rollout-drill/run": "run-1"}
SAME_DRILL_OF_ANOTHER_RUN = {"rollout-drill/drill": DRILL, "rollout-drill/run": "run-2"}
OTHER = {"rollout-drill/drill": "another"}


@pytest.mark.parametrize(
    ("key", "labels", "exclusive", "why"),
    [
        (("", "configmaps", "drill-a", "x"), {}, False, "in the drill's namespace"),
        (("", "namespaces", "", "drill-a"), {}, False, "the drill's namespace"),
        (("rbac", "clusterroles", "", "x"), LABEL, False, "carries the drill's labels"),
        (("", "configmaps", "default", "x"), LABEL, False, "carries the drill's labels"),
        (("rbac", "clusterroles", "", "x"), {}, True, "was not there before"),
        (("", "configmaps", "default", "x"), {}, True, "was not there before"),
    ],
)
def test_is_left_behind(key: Key, labels: dict[str, str], exclusive: bool, why: str) -> None:  # noqa: FBT001
    left = left_behind(_listing(), _listing((key, labels)), _mine(exclusive=exclusive))
    assert [(item["name"], item["why"]) for item in left] == [(key[3], why)]


@pytest.mark.parametrize(
    ("key", "labels", "exclusive"),
    [
        # Somebody else's new object on a shared cluster, without a label of ours.
        (("rbac", "clusterroles", "", "x"), {}, False),
        (("", "configmaps", "default", "x"), {}, False),
        (("", "namespaces", "", "drill-c"), SAME_DRILL_OF_ANOTHER_RUN, False),
        (("", "configmaps", "drill-c", "x"), SAME_DRILL_OF_ANOTHER_RUN, False),
        # Another drill's, even on an exclusive cluster.
        (("rbac", "clusterroles", "", "x"), OTHER, True),
        (("", "pods", "drill-b", "x"), {}, True),
        (("", "namespaces", "", "drill-b"), OTHER, True),
        # What the control plane makes by itself.
        (("", "events", "default", "x"), {}, True),
        (("", "configmaps", "default", "kube-root-ca.crt"), {}, True),
        (("rbac", "clusterroles", "", "x"), {"kubernetes.io/bootstrapping": "rbac-defaults"}, True),
        (("networking.k8s.io", "ipaddresses", "", "10.96.0.7"), {}, True),
        # The run's CRD, which its last drill removes.
        (("apiextensions.k8s.io", "customresourcedefinitions", "", "crd"), {}, True),
    ],
)
def test_is_not_left_behind(key: Key, labels: dict[str, str], exclusive: bool) -> None:  # noqa: FBT001
    accounted = {("apiextensions.k8s.io", "customresourcedefinitions", "", "crd")}
    mine = _mine(exclusive=exclusive, others={"drill-b"}, accounted=accounted)
    assert left_behind(_listing(), _listing((key, labels)), mine) == []


def test_of_a_stuck_namespace_events_are_not_listed_but_what_holds_it_is() -> None:
    pod: Key = ("", "pods", "drill-a", "x")
    rows: list[tuple[Key, dict[str, str]]] = [
        (("", "namespaces", "", "drill-a"), {}),
        (pod, {}),
        (("", "events", "drill-a", "x.1"), {}),
        (("events.k8s.io", "events", "drill-a", "x.1"), {}),
        (("", "configmaps", "drill-a", "kube-root-ca.crt"), {}),
    ]
    left = left_behind(_listing(), _listing(*rows), _mine())
    assert [item["name"] for item in left] == ["drill-a", "x"]


def test_what_was_there_before_is_nobodys_fault() -> None:
    old: tuple[Key, dict[str, str]] = (("rbac", "clusterroles", "", "x"), {})
    assert left_behind(_listing(old), _listing(old), _mine(exclusive=True)) == []
