"""Which controllers act on Canaries, by what is there to be seen of them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from harness.kube.resource import CANARY, DEPLOYMENT, LEASE
from harness.kube.testing import FakeCluster
from harness.run.identity import MANAGED_BY
from harness.subjects.detect import (
    LOOP,
    SELECTOR_LABELS,
    Controller,
    Traces,
    detected,
    of_canaries,
    of_deployment,
    of_lease,
)
from harness.subjects.detect_reader import look_around
from harness.tests.others import SYSTEM, flagger_deployment

JSON = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WHERE = f"Deployment {SYSTEM}/flagger"


def with_container(**fields: Any) -> JSON:
    made = flagger_deployment()
    made["spec"]["template"]["spec"]["containers"] = [
        {"name": "sidecar", "image": "envoy:1"},
        fields,
    ]
    return made


def lease(name: str, age: float, holder: str = "pod-1") -> JSON:
    renewed = (NOW - timedelta(seconds=age)).isoformat().replace("+00:00", "Z")
    spec = {"holderIdentity": holder, "renewTime": renewed}
    return {"kind": "Lease", "metadata": {"name": name, "namespace": "kube-system"}, "spec": spec}


def written(manager: str, subresource: str = "status", **labels: str) -> JSON:
    fields = [
        {"manager": "kubectl", "operation": "Apply"},
        {"manager": manager, "subresource": subresource},
    ]
    meta = {"name": "web", "namespace": "shop", "labels": labels, "managedFields": fields}
    return {"kind": "Canary", "metadata": meta}


def test_a_deployment_says_version_fence_and_flags() -> None:
    plain = of_deployment(flagger_deployment())
    assert plain is not None
    assert plain == Controller("flagger", WHERE, "1.44.0", replicas=0)
    assert (plain.namespace, plain.selector_labels, plain.provider, plain.loop) == (
        "",
        SELECTOR_LABELS,
        "istio",
        LOOP,
    )
    told = of_deployment(
        flagger_deployment(
            namespace="team-a",
            selector_labels="app.kubernetes.io/instance,app",
            mesh_provider="kubernetes",
            control_loop_interval="1m30s",
            enable_leader_election="true",
        )
    )
    assert told is not None
    assert told.namespace == "team-a"
    assert told.selector_labels == ("app.kubernetes.io/instance", "app")
    assert (told.provider, told.loop, told.leader_election) == ("kubernetes", 90.0, True)
    assert told.text == f"Flagger 1.44.0 ({WHERE}, fenced to namespace team-a, scaled to zero)"
    # A report is read by others: names of namespaces are not theirs to know.
    assert told.public == "Flagger 1.44.0"


@pytest.mark.parametrize(
    ("container", "kind", "version"),
    [
        ({"image": "registry:5000/mirror/flagger:v1.37.0@sha256:abc"}, "flagger", "1.37.0"),
        ({"image": "ghcr.io/fluxcd/flagger:latest"}, "flagger", ""),
        ({"image": "acme/delivery:7", "command": ["./flagger"]}, "flagger", ""),
        (
            {"image": "acme/x", "args": ["-mesh-provider", "nginx", "--metrics-server=http://p"]},
            "flagger",
            "",
        ),
        ({"image": "acme/c", "command": ["python", "-m", "harness.controller"]}, "bundled", ""),
        ({"image": "ghcr.io/fluxcd/flagger-loadtester:0.34.0"}, None, ""),
        ({"image": "acme/shop:1", "args": ["-namespace=x"]}, None, ""),
        ({"image": "c", "args": ["-m", "harness.controller", "--api-group=a.b"]}, None, ""),
    ],
)
def test_a_controller_is_known_by_its_image_its_program_or_its_flags(
    container: JSON, kind: str | None, version: str
) -> None:
    found = of_deployment(with_container(**container))
    assert (found and found.kind, found.version if found else "") == (kind, version)


def test_ours_drives_its_own_namespace_unless_it_is_told_another() -> None:
    command = ["python", "-m", "harness.controller"]
    own = of_deployment(with_container(image="c", command=command))
    assert own is not None
    assert own.namespace == SYSTEM
    other = of_deployment(
        with_container(
            image="c",
            command=command,
            args=["-n", "$(WHERE)", "--leader-elect"],
            env=[{"name": "WHERE", "value": "shop"}],
        )
    )
    assert other is not None
    here = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    env = [{"name": "HERE", "valueFrom": here}]
    fenced = of_deployment(with_container(image="flagger", args=["-namespace=$(HERE)"], env=env))
    assert fenced is not None
    assert fenced.namespace == SYSTEM
    assert (other.namespace, other.leader_election) == ("shop", True)


def test_a_fence_keeps_out_what_is_not_inside() -> None:
    everywhere, fenced = Controller("flagger", "a"), Controller("flagger", "b", namespace="team-a")
    for namespace, acting in (("", False), ("drill-x", False), ("team-a", True)):
        assert everywhere.acts_in(namespace)
        assert fenced.acts_in(namespace) is acting


@pytest.mark.parametrize(
    ("obj", "found"),
    [
        (lease("flagger-leader-election", 30), True),
        (lease("flagger-leader-election", 86400), False),
        (lease("flagger-leader-election", 30, holder=""), False),
        (lease("kube-scheduler", 1), False),
        ({"metadata": {"name": "flagger-leader-election"}, "spec": {"holderIdentity": "x"}}, False),
    ],
)
def test_a_lease_tells_as_long_as_somebody_renews_it(obj: JSON, *, found: bool) -> None:
    assert (of_lease(obj, NOW) is not None) is found


def test_who_wrote_statuses_acts_on_canaries_except_for_drills() -> None:
    rows = [
        written("flagger"),
        written("helm", subresource=""),
        written("rollout-drill"),
        written("someone-else"),
        written("rollout-drill-controller", **MANAGED_BY),
    ]
    found = of_canaries(rows)
    assert [(one.kind, one.where) for one in found] == [
        ("flagger", "field manager flagger of Canary shop/web"),
        ("unknown", "field manager someone-else of Canary shop/web"),
    ]
    assert all(one.acts_in("") for one in found)


def test_the_best_trace_of_a_kind_tells_alone() -> None:
    traces = Traces(
        [flagger_deployment(namespace="team-a")],
        [lease("flagger-leader-election", 1)],
        [written("flagger"), written("other")],
    )
    found = detected(traces, NOW).controllers
    assert [one.where for one in found] == [WHERE, "field manager other of Canary shop/web"]
    assert detected(Traces(), NOW).controllers == ()


def seen(cluster: FakeCluster, namespace: str = "") -> tuple[list[str], tuple[str, ...]]:
    found = asyncio.run(look_around(cluster.client(), namespace))
    return [one.where for one in found.controllers], found.unseen


def test_what_may_not_be_listed_everywhere_is_looked_for_where_it_usually_is() -> None:
    cluster = FakeCluster()
    for obj in (flagger_deployment(), written("flagger")):
        cluster.add(obj)
    assert seen(cluster) == ([WHERE], ())
    # A whole list is one request, whatever there is in the cluster.
    assert len(cluster.asked("list", "deployments")) == 1
    for resource in (DEPLOYMENT, LEASE, CANARY):
        cluster.forbid("list", resource.plural)
    assert seen(cluster, "shop") == ([], ("Deployments of all namespaces",))
    asked = {one.path for one in cluster.asked("list", "deployments")}
    assert DEPLOYMENT.path(SYSTEM) in asked
    assert DEPLOYMENT.path("shop") in asked
