"""What a survey of a cluster means, topic by topic, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from harness.clusters.admission import gates, selects
from harness.clusters.eligible import eligible
from harness.clusters.health import autoscalers, lacking_fields, rows
from harness.clusters.rights import Need, Right
from harness.clusters.survey import Survey

JSON = dict[str, Any]
LABELS = {"app.kubernetes.io/managed-by": "rollout-drill"}
CRD = {
    "metadata": {"name": "canaries.flagger.app"},
    "spec": {
        "group": "flagger.app",
        "versions": [
            {
                "name": "v1beta1",
                "schema": {
                    "openAPIV3Schema": {
                        "properties": {
                            "spec": {
                                "properties": {
                                    "a": {"properties": {"x": {}}},
                                    "list": {"items": {"properties": {"y": {}}}},
                                }
                            }
                        }
                    }
                },
            }
        ],
    },
}


def survey(
    *refused: str, namespace: str = "", served: tuple[str, ...] = (), **objects: Any
) -> Survey:
    return Survey("v1.35.4", namespace, frozenset(served), objects, refused)


def topics(
    found: Survey, needed: tuple[Need, ...] = (), priority: str = ""
) -> dict[str, list[str]]:
    got: dict[str, list[str]] = {}
    nodes = eligible(found.seen("nodes"))
    for row in rows(found, nodes, needed, crds=[CRD], labels=LABELS, priority=priority):
        got.setdefault(row.topic, []).append(f"{row.state}: {row.text}")
    return got


def node(**labels: str) -> JSON:
    return {
        "metadata": {"name": "n", "labels": labels},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def test_a_cluster_where_all_is_well() -> None:
    got = topics(survey(nodes=[node()], customresourcedefinitions=[CRD]))
    assert {state.split(":")[0] for states in got.values() for state in states} == {"ok"}


def test_missing_rights_stop_drills_and_lesser_ones_are_noted() -> None:
    fatal, lesser = Right("", "", "pods", "list"), Right("", "", "nodes", "list")
    needed = (Need(fatal, "recorded"), Need(lesser, "counted", "name them"))
    found = Survey("v1", "", frozenset(), {}, (), {fatal: False, lesser: False})
    assert topics(found, needed)["rights"] == [
        "missing: list pods (recorded)",
        "note: no right to list nodes: name them",
    ]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (survey(), "ok: not there; drills make it"),
        (survey(namespace="x"), "missing: not there, and drills in one namespace make none"),
        (survey("customresourcedefinitions"), "missing: group flagger.app is not served"),
        (
            survey("customresourcedefinitions", served=("flagger.app",)),
            "unknown: group flagger.app is served",
        ),
    ],
)
def test_the_crd(found: Survey, text: str) -> None:
    (got,) = topics(found)["CRD canaries"]
    assert got.startswith(text)


def test_a_crd_of_another_version_is_told_by_what_it_lacks() -> None:
    spec: JSON = {"properties": {"a": {"properties": {}}}}
    there = {**CRD, "spec": {**CRD["spec"], "versions": [_version(spec)]}}  # type: ignore[dict-item]
    assert lacking_fields(there, CRD) == ["spec.a.x", "spec.list"]
    (got,) = topics(survey(customresourcedefinitions=[there]))["CRD canaries"]
    assert got.startswith("note: there, but another version: without spec.a.x, spec.list;")
    keeps = {"x-kubernetes-preserve-unknown-fields": True}
    open_ = {**CRD, "spec": {**CRD["spec"], "versions": [_version(keeps)]}}  # type: ignore[dict-item]
    assert lacking_fields(open_, CRD) == []


def _version(spec: JSON) -> JSON:
    return {"name": "v1beta1", "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}}


def test_nodes_that_may_not_be_listed_have_to_be_named() -> None:
    (got,) = topics(survey("nodes"))["nodes"]
    assert got == "unknown: may not be listed: name those that drills may use with --nodes"
    (got,) = topics(survey(nodes=[{"metadata": {"name": "x"}, "spec": {"unschedulable": True}}]))[
        "nodes"
    ]
    assert got == "missing: none takes pods; left out: x is cordoned"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            survey(nodes=[node(**{"karpenter.sh/nodepool": "a"})]),
            ["Karpenter (by a label of its nodes)"],
        ),
        (survey(served=("karpenter.sh",)), ["Karpenter (by its types)"]),
        (
            survey(
                deployments=[{"metadata": {"name": "aws-cluster-autoscaler", "namespace": "ks"}}]
            ),
            ["a cluster autoscaler (by Deployment ks/aws-cluster-autoscaler)"],
        ),
        (survey(configmaps=[{}]), ["a cluster autoscaler (by its status in kube-system)"]),
        (survey(deployments=[{"metadata": {"name": "web", "namespace": "x"}}]), []),
    ],
)
def test_what_adds_nodes_is_found(found: Survey, text: list[str]) -> None:
    assert autoscalers(found) == text
    (row,) = topics(found)["autoscaler"]
    assert row.startswith("note" if text else "ok")


def test_priority() -> None:
    needed = (Need(Right("", "scheduling.k8s.io", "priorityclasses", "create"), "", "w"),)
    assert topics(survey(), needed)["priority"][0].startswith("ok")
    assert topics(survey(), (), "wrong")["priority"][0].startswith(
        "note: a PriorityClass of our name"
    )
    assert topics(survey(namespace="x"))["priority"][0].startswith("note: drills in one namespace")
    assert topics(survey(namespace="x"), (), "ok")["priority"][0].startswith("ok")


def hook(name: str = "h", resources: tuple[str, ...] = ("pods",), **fields: Any) -> JSON:
    rule = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": resources,
    }
    return {"webhooks": [{"name": name, "rules": [rule], **fields}]}


@pytest.mark.parametrize(
    ("configuration", "texts"),
    [
        (hook(), ["webhook h may change pods; without an answer of it nothing is made"]),
        (hook(failurePolicy="Ignore"), ["webhook h may change pods"]),
        (hook(resources=("nodes", "secrets")), []),
        (
            hook(resources=("*/*",), failurePolicy="Ignore"),
            ["webhook h may change pods, deployments, replicasets, daemonsets, services, canaries"],
        ),
        (hook(namespaceSelector={"matchLabels": {"inject": "yes"}}), []),
        (hook(objectSelector={"matchExpressions": [{"key": "inject", "operator": "Exists"}]}), []),
        (
            hook(
                namespaceSelector={
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["kube-system"],
                        }
                    ]
                },
                failurePolicy="Ignore",
            ),
            ["webhook h may change pods"],
        ),
    ],
)
def test_webhooks_that_look_at_drills(configuration: JSON, texts: list[str]) -> None:
    found = gates({"mutatingwebhookconfigurations": [configuration]}, LABELS)
    assert [gate.text for gate in found] == texts
    validating = gates({"validatingwebhookconfigurations": [configuration]}, LABELS)
    assert [gate.mutates for gate in validating] == [False] * len(texts)


def policy(kind: str, **spec: Any) -> dict[str, Any]:
    rule = {"apiGroups": ["apps"], "operations": ["*"], "resources": ["deployments"]}
    return {
        f"{kind}policies": [
            {"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]}}}
        ],
        f"{kind}policybindings": [{"metadata": {"name": "b"}, "spec": {"policyName": "p", **spec}}],
    }


def test_policies_that_are_bound() -> None:
    denying = policy("validatingadmission", validationActions=["Deny"])
    assert [gate.text for gate in gates(denying, LABELS)] == ["policy p may refuse deployments"]
    assert gates(policy("validatingadmission", validationActions=["Audit"]), LABELS) == []
    assert gates(policy("validatingadmission", policyName="other"), LABELS) == []
    elsewhere = {"namespaceSelector": {"matchLabels": {"a": "b"}}}
    assert gates(policy("validatingadmission", matchResources=elsewhere), LABELS) == []
    changing = gates(policy("mutatingadmission"), LABELS)
    assert [gate.text for gate in changing] == ["policy p may change deployments"]


def test_selectors() -> None:
    assert selects(None, {})
    assert selects({}, {"a": "b"})
    for operator, values, holds in (
        ("In", ["b"], True),
        ("In", ["c"], False),
        ("NotIn", ["b"], False),
        ("Exists", None, True),
        ("DoesNotExist", None, False),
        ("Gt", ["1"], False),
    ):
        row = {"key": "a", "operator": operator, "values": values}
        assert selects({"matchExpressions": [row]}, {"a": "b"}) is holds
    assert not selects({"matchLabels": {"a": "c"}}, {"a": "b"})


def test_admission_in_the_table() -> None:
    got = topics(survey(validatingwebhookconfigurations=[hook()]))["admission"]
    assert got == ["note: webhook h may refuse pods; without an answer of it nothing is made"]
    (got_,) = topics(survey("mutatingwebhookconfigurations"))["admission"]
    assert got_ == "unknown: mutatingwebhookconfigurations may not be listed"
    # The labels of a namespace that was named count, not those of one that would be made.
    named = survey(
        namespace="x",
        namespaces=[{"metadata": {"name": "x", "labels": {"inject": "yes"}}}],
        validatingwebhookconfigurations=[
            hook(namespaceSelector={"matchLabels": {"inject": "yes"}})
        ],
    )
    assert topics(named)["admission"][0].startswith("note: webhook h")


def in_namespace(**objects: Any) -> dict[str, list[str]]:
    labels = objects.pop("labels", {})
    there = [{"metadata": {"name": "x", "labels": labels}}]
    return topics(survey(namespace="x", namespaces=there, **objects))


def test_the_namespace_itself() -> None:
    assert in_namespace()["namespace"] == ["ok: x is there, and stays"]
    assert topics(survey(namespace="x"))["namespace"] == ["missing: there is no namespace x"]
    gone = [{"metadata": {"name": "x", "deletionTimestamp": "now"}}]
    assert topics(survey(namespace="x", namespaces=gone))["namespace"] == [
        "missing: x is being deleted"
    ]
    assert topics(survey("namespaces", namespace="x"))["namespace"][0].startswith("unknown")


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("restricted", "note: restricted is enforced"),
        ("baseline", "ok: baseline"),
        ("", "ok: the namespace enforces nothing"),
    ],
)
def test_pod_security(level: str, text: str) -> None:
    labels = {"pod-security.kubernetes.io/enforce": level} if level else {}
    assert in_namespace(labels=labels)["Pod Security"][0].startswith(text)


def quota(**hard: str) -> JSON:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"used": {"pods": "3"}}}


def limits(**row: Any) -> JSON:
    return {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", **row}]}}


def test_quotas_and_limits() -> None:
    assert in_namespace(resourcequotas=[quota(pods="4")])["ResourceQuota"] == [
        "note: q: pods 3 of 4 used"
    ]
    (got,) = in_namespace(resourcequotas=[quota(memory="1Gi")])["ResourceQuota"]
    assert got.startswith("note: q refuses pods whose containers do not state requests.memory")
    both = in_namespace(
        resourcequotas=[quota(memory="1Gi")], limitranges=[limits(default={"memory": "1Mi"})]
    )
    assert both["ResourceQuota"] == ["note: q: memory ? of 1Gi used"]
    assert both["LimitRange"] == ["note: l: default memory 1Mi"]
    assert in_namespace()["ResourceQuota"] == ["ok: none"]


@pytest.mark.parametrize(
    ("spec", "ways"),
    [
        ({"podSelector": {}, "policyTypes": ["Ingress"]}, ["ingress"]),
        ({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}, ["ingress", "egress"]),
        ({"podSelector": {}}, ["ingress"]),
        ({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]}, []),
        ({"podSelector": {"matchLabels": {"a": "b"}}, "policyTypes": ["Ingress"]}, []),
    ],
)
def test_network_policies_that_deny_by_default(spec: JSON, ways: list[str]) -> None:
    got = in_namespace(networkpolicies=[{"metadata": {"name": "deny"}, "spec": spec}])[
        "NetworkPolicy"
    ]
    assert [row.split(" all ")[1].split(" ")[0] for row in got if "denies all" in row] == ways
