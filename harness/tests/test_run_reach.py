"""Whether the controller under test can reach what its rollouts name, from where it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.run.reach import called, is_service, reachable
from harness.tests.test_run_receiver import resolved

if TYPE_CHECKING:
    from harness.model.timeline import Precondition

NAMESPACES = ("drill-x", "shop")


def reach(
    *objects: dict[str, Any], in_cluster: bool, stand_ins: bool = False
) -> Precondition | None:
    return reachable(
        resolved() if stand_ins else resolved(None),
        objects,
        subject="the-subject",
        in_cluster=in_cluster,
        namespaces=NAMESPACES,
        now=1.0,
    )


def canary(*urls: str) -> dict[str, Any]:
    hooks = [{"name": f"h{number}", "url": url} for number, url in enumerate(urls)]
    return {
        "kind": "Canary",
        "metadata": {"name": "web"},
        "spec": {"analysis": {"webhooks": hooks}},
    }


def test_a_subject_in_the_cluster_cannot_reach_this_machines_loopback() -> None:
    assert reach(in_cluster=False, stand_ins=True) is None
    assert reach(in_cluster=True) is None
    found = reach(in_cluster=True, stand_ins=True)
    assert found is not None
    assert not found.holds
    assert found.reason.startswith("the-subject runs in the cluster, and what the scenario")


def test_outside_of_the_cluster_the_name_of_a_service_is_a_precondition_that_does_not_hold() -> (
    None
):
    hooks = canary("http://loadtester.shop/", "http://127.0.0.1:80/", "https://ci.example.com/x")
    assert reach(hooks, in_cluster=True) is None
    found = reach(hooks, in_cluster=False)
    assert found is not None
    assert not found.holds
    assert found.reason == (
        "the address of webhook 'h0' of Canary web is the name of a Service, which only pods know, and the-subject runs outside of "
        "the cluster; use --subject bundled@in-cluster (on kind, k3s or a cluster of your own)"
    )


def test_many_names_are_told_as_some_and_how_many_more() -> None:
    found = reach(canary(*(f"http://s{number}/" for number in range(5))), in_cluster=False)
    assert found is not None
    names = ", ".join(f"webhook 'h{number}' of Canary web" for number in range(3))
    assert found.reason.startswith(f"the address of {names} and 2 more is the name of a Service")


@pytest.mark.parametrize(
    "url",
    [
        "http://receiver/",
        "http://receiver:8080/gate",
        "http://loadtester.shop/",
        "loadtester.shop:80",
        "http://a.b.svc/",
        "http://a.b.svc.cluster.local.:9090",
        "http://x.default",
    ],
)
def test_names_that_only_pods_know(url: str) -> None:
    assert is_service(url, NAMESPACES)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/",
        "http://[::1]/",
        "http://localhost/",
        "https://example.com/",
        "https://hooks.slack.com/x",
        "http://receiver.drill.invalid/gate",
        "http://x.elsewhere/",
        "",
        "http:///x",
        "http://[broken",
    ],
)
def test_names_that_others_know_too(url: str) -> None:
    assert not is_service(url, NAMESPACES)


def test_addresses_are_read_where_a_controller_reads_them() -> None:
    metric = {
        "kind": "MetricTemplate",
        "metadata": {"name": "m"},
        "spec": {"provider": {"address": "http://p:9090"}},
    }
    alert = {"kind": "AlertProvider", "spec": {"address": "http://a/"}}
    old = {"kind": "Canary", "spec": {"canaryAnalysis": {"webhooks": [{"url": "http://o/"}]}}}
    server = {"kind": "Canary", "spec": {"metricsServer": "http://m:9090"}}
    patch = {"spec": {"analysis": {"webhooks": [{"url": "http://w/"}]}}}
    found = [one for obj in (metric, alert, old, server, patch) for one in called(obj)]
    assert found == [
        ("MetricTemplate m", "http://p:9090"),
        ("AlertProvider ?", "http://a/"),
        ("webhook '?' of Canary ?", "http://o/"),
        ("Canary ?", "http://m:9090"),
        ("webhook '?' of a step's patch", "http://w/"),
    ]


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "Secret", "spec": {"address": "http://a/"}},
        {"kind": "Canary"},
        {"kind": "Canary", "spec": {"analysis": {"webhooks": "none"}}},
        {"kind": "Canary", "spec": {"analysis": {"webhooks": [{"url": 1}, "x"]}}},
    ],
)
def test_whatever_else_an_object_holds_is_no_address(obj: dict[str, Any]) -> None:
    assert list(called(obj)) == []
