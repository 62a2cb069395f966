"""What is changed in manifests for a cluster that others use: each sort, and what it leaves alone."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from harness.run.adapt import Adaptation, adapted
from harness.run.adapt.priority import PRIORITY_VALUE, is_ours, priority_class
from harness.run.adapt.roles import without_groups

JSON = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODES = Adaptation(nodes=("b", "a"))
PRIORITY = Adaptation(priority_class="rollout-drill")
SECURE = Adaptation(images=("agnhost",))
WANTED = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a", "b"]}


def workload(kind: str = "Deployment", api: str = "apps/v1", **spec: Any) -> JSON:
    pod = {"containers": [{"name": "web", "image": "agnhost"}], **spec}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": pod}},
    }


def pod_of(obj: JSON) -> JSON:
    found: JSON = obj["spec"]["template"]["spec"]
    return found


def changed(obj: JSON, adaptation: Adaptation) -> JSON:
    (one,), _ = adapted([obj], adaptation)
    return one


def terms(obj: JSON) -> Any:
    return pod_of(obj)["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def test_on_a_cluster_of_ours_every_byte_stays() -> None:
    objects = [workload(), workload("DaemonSet"), {"kind": "ConfigMap", "data": {"a": "b"}}]
    got, sentences = adapted(objects, Adaptation())
    assert json.dumps(got) == json.dumps(objects)
    assert sentences == []
    assert got[0] is not objects[0]


@pytest.mark.parametrize(
    ("kind", "api"),
    [
        ("Deployment", "apps/v1"),
        ("StatefulSet", "apps/v1"),
        ("DaemonSet", "apps/v1"),
        ("ReplicaSet", "apps/v1"),
        ("Job", "batch/v1"),
    ],
)
def test_pods_of_every_workload_are_bound_to_the_nodes(kind: str, api: str) -> None:
    given = workload(kind, api)
    before = copy.deepcopy(given)
    (got,), sentences = adapted([given], NODES)
    assert terms(got) == [{"matchExpressions": [WANTED]}]
    assert given == before
    (sentence,) = sentences
    assert sentence == (
        f"The pods of {kind} web may only use the 2 nodes that the drill counts (a and b): a required node affinity to "
        "kubernetes.io/hostname was added, so that neither a cordoned node nor one that an autoscaler adds can change the result."
    )


def test_pods_of_pods_and_cron_jobs_are_found_too() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    cron = workload("CronJob", "batch/v1")
    cron["spec"] = {"jobTemplate": {"spec": cron["spec"]}}
    (one, two), _ = adapted([pod, cron], PRIORITY)
    assert one["spec"]["priorityClassName"] == "rollout-drill"
    inner = two["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert inner["priorityClassName"] == "rollout-drill"


def test_a_kind_of_another_project_with_such_a_name_is_left_alone() -> None:
    given = workload("Job", "batch.volcano.sh/v1alpha1")
    assert adapted([given], NODES) == ([given], [])


def test_what_a_pod_asks_of_its_node_still_holds() -> None:
    ssd = {"key": "disk", "operator": "In", "values": ["ssd"]}
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    anti = {REQUIRED: [{"topologyKey": "kubernetes.io/hostname"}]}
    affinity = {
        "podAntiAffinity": anti,
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": ["x"],
            REQUIRED: {
                "nodeSelectorTerms": [{"matchExpressions": [ssd]}, {"matchFields": [field]}, {}]
            },
        },
    }
    got = changed(workload(affinity=affinity, nodeSelector={"zone": "1"}), NODES)
    assert terms(got) == [
        {"matchExpressions": [ssd, WANTED]},
        {"matchFields": [field], "matchExpressions": [WANTED]},
        {},  # matches no node, and must not begin to
    ]
    pod = pod_of(got)
    assert pod["nodeSelector"] == {"zone": "1"}
    assert pod["affinity"]["podAntiAffinity"] == anti
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    assert pod["affinity"]["nodeAffinity"][preferred] == ["x"]


def test_an_affinity_that_is_null_counts_as_none() -> None:
    assert terms(changed(workload(affinity=None), NODES)) == [{"matchExpressions": [WANTED]}]


def test_a_pod_that_names_its_node_keeps_it() -> None:
    given = workload(nodeName="c")
    (got,), sentences = adapted([given], NODES)
    assert got == given
    assert sentences == ["Deployment web names its node itself and was left as it is."]


def test_a_knative_service_is_left_alone_and_said_to_be() -> None:
    given = workload("Service", "serving.knative.dev/v1")
    (got,), sentences = adapted([given], Adaptation(nodes=("a",), priority_class="rollout-drill"))
    assert got == given
    (sentence,) = sentences
    assert sentence == (
        "Knative Service web was left as it is: Knative admits a node affinity only where a flag of its own allows it, so its pods may "
        "use any node."
    )


def test_of_many_workloads_few_are_named() -> None:
    many = [workload() for _ in range(9)]
    for number, obj in enumerate(many):
        obj["metadata"]["name"] = f"web-{number}"
    _, (sentence,) = adapted(many, PRIORITY)
    assert "Deployment web-0, Deployment web-1, Deployment web-2 and 6 more have" in sentence


def test_pods_get_a_priority_unless_they_have_one() -> None:
    (plain, classed, numbered), sentences = adapted(
        [workload(), workload(priorityClassName="high"), workload(priority=7)], PRIORITY
    )
    assert pod_of(plain)["priorityClassName"] == "rollout-drill"
    assert pod_of(classed)["priorityClassName"] == "high"
    assert "priorityClassName" not in pod_of(numbered)
    assert len(sentences) == 2
    assert "states a priority of its own, which was kept" in sentences[1]


def test_the_class_never_preempts_and_is_expendable_to_an_autoscaler() -> None:
    ours = priority_class()
    assert ours["preemptionPolicy"] == "Never"
    assert ours["value"] == PRIORITY_VALUE < -10
    assert is_ours({**ours, "metadata": {"name": "rollout-drill", "uid": "1"}})
    assert not is_ours({**ours, "value": 0})
    assert not is_ours({**ours, "preemptionPolicy": "PreemptLowerPriority"})
    assert not is_ours({**ours, "globalDefault": True})


def test_a_container_without_a_security_context_gets_one_that_restricted_admits() -> None:
    given = workload(initContainers=[{"name": "init", "image": "agnhost"}])
    (got,), (sentence,) = adapted([given], SECURE)
    for container in (pod_of(got)["containers"][0], pod_of(got)["initContainers"][0]):
        assert container["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    assert "securityContext" not in pod_of(got)
    assert sentence.startswith("Containers of Deployment web that state no security context")


def test_a_container_of_an_image_that_may_need_root_is_left_alone() -> None:
    given = workload(containers=[{"name": "web", "image": "nginx"}])
    assert adapted([given], SECURE) == ([given], [])
    # Where nothing else is admitted, there is nothing to lose.
    got = changed(given, Adaptation(restricted=True))
    assert pod_of(got)["containers"][0]["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "web", "image": "agnhost", "securityContext": {"runAsUser": 7}}]},
        {"securityContext": {"runAsUser": 0}},
        {"securityContext": {"runAsNonRoot": False}},
        {"os": {"name": "windows"}},
    ],
)
def test_what_is_stated_is_never_changed(spec: JSON) -> None:
    given = workload(**spec)
    assert adapted([given], Adaptation(restricted=True)) == ([given], [])


def test_what_the_pod_states_for_all_containers_is_not_overruled() -> None:
    stated = {"runAsUser": 1000, "seccompProfile": {"type": "Localhost"}}
    got = changed(workload(securityContext=stated), SECURE)
    context = pod_of(got)["containers"][0]["securityContext"]
    assert set(context) == {"runAsNonRoot", "allowPrivilegeEscalation", "capabilities"}
    image = changed(workload(securityContext={"runAsNonRoot": True}), SECURE)
    assert "runAsUser" not in pod_of(image)["containers"][0]["securityContext"]


def test_a_role_loses_rules_about_groups_that_cannot_be_given() -> None:
    role = {
        "kind": "Role",
        "rules": [
            {"apiGroups": ["apps", "keda.sh"], "resources": ["x"], "verbs": ["get"]},
            {"apiGroups": ["keda.sh"], "resources": ["y"], "verbs": ["get"]},
        ],
    }
    (got,) = without_groups([role], ("keda.sh",))
    assert got["rules"] == [{"apiGroups": ["apps"], "resources": ["x"], "verbs": ["get"]}]
    assert without_groups([role], ()) == [role]
