"""Why something does not go: which finalizer and whose, which node, and what the namespace says itself."""

from __future__ import annotations

from typing import Any

import pytest

from harness.kube.resource import CANARY
from harness.kube.testing import FakeCluster, run_virtual
from harness.run.stuck import conditions, explained, finalizers
from harness.run.stuck_look import why_stuck

DELETED = "2026-01-01T10:00:00Z"


def obj(kind: str, name: str = "web", *names: str, **metadata: Any) -> dict[str, Any]:
    own = {"namespace": "n", "name": name, "deletionTimestamp": DELETED, "finalizers": list(names)}
    return {"kind": kind, "metadata": {**own, **metadata}}


def pod(node: str | None, **metadata: Any) -> dict[str, Any]:
    spec = {"nodeName": node} if node else {}
    return {**obj("Pod", "web-1", deletionGracePeriodSeconds=30, **metadata), "spec": spec}


def node(name: str, ready: str) -> dict[str, Any]:
    row = {
        "type": "Ready",
        "status": ready,
        "reason": "NodeStatusUnknown",
        "lastTransitionTime": "2026-01-01T09:58:00Z",
    }
    return {"metadata": {"name": name}, "status": {"conditions": [row]}}


def test_a_finalizer_is_named_with_who_set_it() -> None:
    fields: dict[str, Any] = {"f:metadata": {"f:finalizers": {".": {}, 'v:"example.com/hold"': {}}}}
    others = {"manager": "kubectl", "fieldsV1": {"f:spec": {}}}
    entry = {"manager": "acme-operator", "time": "2026-01-01T09:00:00Z", "fieldsV1": fields}
    canary = obj("Canary", "web", "example.com/hold", managedFields=[others, entry])
    (sentence,) = finalizers(canary)
    assert sentence == (
        "Canary n/web waits for finalizer example.com/hold (set by acme-operator at 2026-01-01T09:00:00Z); "
        "deleted at 2026-01-01T10:00:00Z."
    )


@pytest.mark.parametrize(
    ("finalizer", "whose"),
    [
        ("finalizer.flagger.app", "(Flagger's, which removes it while it runs)"),
        ("kubernetes.io/pvc-protection", "until no pod uses the claim"),
        ("acme.io/cleanup", "(of acme.io by its name)"),
    ],
)
def test_whose_a_finalizer_is_without_a_field_manager(finalizer: str, whose: str) -> None:
    (sentence,) = finalizers(obj("Thing", "web", finalizer))
    assert whose in sentence


def test_a_finalizer_of_what_nobody_deleted_is_no_reason() -> None:
    assert finalizers(obj("Canary", "web", "x/y", deletionTimestamp=None)) == []


def test_a_pod_on_a_node_that_does_not_answer() -> None:
    nodes = [node("worker-1", "True"), node("worker-2", "Unknown")]
    remains, why = explained(None, [pod("worker-2")], nodes)
    assert remains == "What remains: 1 Pod."
    assert why == (
        "Pod n/web-1 is terminating since 2026-01-01T10:00:00Z with a grace of 30 s, on node worker-2, which is not ready since "
        "2026-01-01T09:58:00Z (NodeStatusUnknown): it goes when the node answers again, or when the Node object is deleted."
    )


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([node("worker-2", "True")], "on node worker-2."),
        ([], "which does not exist any more"),
        (None, "nodes may not be listed here"),
    ],
)
def test_a_pod_on_another_sort_of_node(nodes: list[Any] | None, says: str) -> None:
    assert says in explained(None, [pod("worker-2")], nodes)[1]


def test_what_the_namespace_says_comes_with_the_reason_behind_it_first() -> None:
    rows = [
        {
            "type": "NamespaceContentRemaining",
            "status": "True",
            "message": "canaries has 1 instance",
        },
        {"type": "NamespaceFinalizersRemaining", "status": "False", "message": "none"},
        {
            "type": "NamespaceDeletionDiscoveryFailure",
            "status": "True",
            "message": "unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1.",
        },
    ]
    namespace = {**obj("Namespace", "n", namespace=""), "status": {"conditions": rows}}
    first, second = conditions(namespace)
    assert first.startswith("Namespace n says NamespaceDeletionDiscoveryFailure")
    assert "metrics.k8s.io/v1beta1." in first
    assert second.endswith("something is in it still: canaries has 1 instance.")


def test_many_are_counted_and_few_explained() -> None:
    told = explained(None, [obj("Canary", f"web-{n}", "x/y") for n in range(20)])
    assert told[0] == "What remains: 20 Canary."
    assert len(told) == 10
    assert told[-1] == "12 more are like that."


def test_a_cluster_is_asked_and_a_type_that_may_not_be_listed_is_left_out() -> None:
    cluster = FakeCluster()
    canary = {
        "apiVersion": CANARY.api_version,
        "kind": "Canary",
        "metadata": {
            "name": "web",
            "namespace": "n",
            "finalizers": ["example.com/never"],
            "deletionTimestamp": DELETED,
        },
    }
    cluster.add(canary)
    cluster.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}})
    cluster.forbid("list", "secrets")

    async def ask() -> tuple[str, ...]:
        async with cluster.client() as client:
            return await why_stuck(client, "n")

    told = run_virtual(ask())
    assert told[0] == "What remains: 1 Canary."
    assert "waits for finalizer example.com/never" in told[1]
