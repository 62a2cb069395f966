"""VirtualServices and DestinationRules: what a Canary becomes, and what is refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from harness.controller.core.routers.registry import router_for
from harness.tests.routers_kit import APEX, CANARY, PRIMARY, Server, canary

JSON = dict[str, Any]
ORIGINAL = "flagger.kubernetes.io/original-configuration"


def share(host: str, weight: int, **more: Any) -> JSON:
    return {"destination": {"host": host}, "weight": weight, **more}


def test_the_plainest_virtual_service_and_its_destination_rules() -> None:
    server = Server(canary(None))
    writes = server.route(0)
    assert [(write.resource, write.name) for write in writes] == [
        ("destinationrules", CANARY),
        ("destinationrules", PRIMARY),
        ("virtualservices", APEX),
    ]
    assert server.virtual_service["spec"] == {
        "hosts": [APEX],
        "gateways": ["mesh"],
        "http": [{"route": [share(PRIMARY, 100), share(CANARY, 0)]}],
    }
    rule = server.objects["destinationrules"][PRIMARY]
    assert rule["spec"] == {"host": PRIMARY}
    assert rule["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    (write,) = server.route(30)
    assert list(write.body["spec"]) == ["http"], "only what changes"


PASSED_ON: JSON = {
    "timeout": "1.5s",
    "retries": {"attempts": 3, "perTryTimeout": "1s", "retryOn": "5xx", "invented": True},
    "corsPolicy": {"allowOrigins": [{"regex": ".*"}], "maxAge": "24h"},
    "headers": {"request": {"add": {"x": "1"}}, "response": {"remove": ["y"]}},
}


def test_what_istio_defines_is_passed_on_as_it_is() -> None:
    match = [{"uri": {"prefix": "/"}, "withoutHeaders": {"x": {}}, "gateways": ["mesh"]}]
    rewrite = {"uri": "/v2", "authority": "b", "type": "ReplacePrefixMatch"}
    owner = canary("istio", match=match, rewrite=rewrite, hosts=["*"], gateways=["ns/gw"])
    owner["spec"]["service"] |= PASSED_ON
    server = Server(owner)
    assert server.router.problem(owner) == ""
    server.route(5)
    spec = server.virtual_service["spec"]
    assert (spec["hosts"], spec["gateways"]) == (["*"], ["ns/gw"])
    (rule,) = spec["http"]
    assert {field: rule[field] for field in PASSED_ON} == PASSED_ON
    assert rule["match"] == match
    assert rule["rewrite"] == {"uri": "/v2", "authority": "b"}
    server.canary["spec"]["service"] = {"port": 80}
    server.route(5)
    assert set(server.virtual_service["spec"]["http"][0]) == {"route"}


def test_the_apex_is_added_to_the_hosts() -> None:
    server = Server(canary("istio", hosts=["app.example.com"]))
    server.route(0)
    assert server.virtual_service["spec"]["hosts"] == ["app.example.com", APEX]


def test_delegation_leaves_hosts_and_gateways_to_the_other() -> None:
    server = Server(canary("istio"))
    server.route(0)
    server.canary["spec"]["service"] |= {"delegation": True, "portDiscovery": True}
    server.route(0)
    spec = server.virtual_service["spec"]
    assert set(spec) == {"http"}
    assert spec["http"][0]["route"][0]["destination"] == {"host": PRIMARY, "port": {"number": 80}}


@pytest.mark.parametrize(
    ("gateways", "discovery", "named"),
    [
        (["ns/gw"], True, True),
        (["mesh"], True, False),
        ([], True, False),
        (["ns/gw"], False, False),
    ],
)
def test_behind_a_gateway_discovered_ports_need_a_number(
    gateways: list[str], *, discovery: bool, named: bool
) -> None:
    server = Server(canary("istio", gateways=gateways, portDiscovery=discovery))
    server.route(0, mirror=True)
    (rule,) = server.virtual_service["spec"]["http"]
    places = [*(one["destination"] for one in rule["route"]), rule["mirror"]]
    assert {"port" in place for place in places} == {named}


@pytest.mark.parametrize(
    ("asked", "percent"), [(None, None), (100, None), (0, None), (25, {"value": 25})]
)
def test_mirroring(asked: int | None, percent: JSON | None) -> None:
    analysis: JSON = {"mirror": True} | ({} if asked is None else {"mirrorWeight": asked})
    server = Server(canary("istio", analysis=analysis))
    server.route(0, mirror=True)
    (rule,) = server.virtual_service["spec"]["http"]
    assert rule["mirror"] == {"host": CANARY}
    assert rule.get("mirrorPercentage") == percent
    assert server.rules() == [[(PRIMARY, 100), (CANARY, 0)]]
    server.route(10)
    assert set(server.virtual_service["spec"]["http"][0]) == {"route"}


def test_a_b_is_the_product_and_a_rule_for_everybody_else() -> None:
    tested = [{"headers": {"X-Test": {"exact": "1"}}}, {"sourceLabels": {"app": "shop"}}]
    own = [{"uri": {"prefix": "/"}, "headers": {"x-test": {"regex": ".+"}, "v": {"exact": "1"}}}]
    analysis = {"iterations": 2, "match": tested}
    server = Server(canary("istio", analysis=analysis, match=own))
    server.route(100)
    first, rest = server.virtual_service["spec"]["http"]
    assert server.rules() == [[(PRIMARY, 0), (CANARY, 100)], [(PRIMARY, 100)]]
    assert rest["match"] == own
    assert first["match"] == [
        {"uri": {"prefix": "/"}, "headers": {"v": {"exact": "1"}, "X-Test": {"exact": "1"}}},
        {**own[0], "sourceLabels": {"app": "shop"}},
    ]
    server.route(0)
    assert server.rules() == [[(PRIMARY, 100), (CANARY, 0)], [(PRIMARY, 100)]]


def test_connections_are_split_too() -> None:
    server = Server(canary("istio", appProtocol="TCP", match=[{"port": 9000}]))
    server.route(40)
    spec = server.virtual_service["spec"]
    route = [share(PRIMARY, 60), share(CANARY, 40)]
    assert spec["tcp"] == [{"match": [{"port": 9000}], "route": route}]
    server.canary["spec"]["service"].pop("appProtocol")
    server.route(40)
    assert "tcp" not in server.virtual_service["spec"]
    assert server.rules() == [[(PRIMARY, 60), (CANARY, 40)]]


def test_the_traffic_policy_comes_and_goes_as_a_whole() -> None:
    policy = {"tls": {"mode": "DISABLE"}, "connectionPool": {"http": {"maxRetries": 1}}}
    server = Server(canary("istio", trafficPolicy=policy))
    server.route(0)
    rules = server.objects["destinationrules"]
    assert {name: rule["spec"] for name, rule in rules.items()} == {
        name: {"host": name, "trafficPolicy": policy} for name in (PRIMARY, CANARY)
    }
    server.edit("destinationrules", PRIMARY, {"spec": {"subsets": [{"name": "s"}]}})
    server.canary["spec"]["service"]["trafficPolicy"] = {"tls": {"mode": "DISABLE"}}
    server.route(0)
    held = server.objects["destinationrules"][PRIMARY]["spec"]
    assert held["trafficPolicy"] == {"tls": {"mode": "DISABLE"}}
    assert held["subsets"] == [{"name": "s"}]
    del server.canary["spec"]["service"]["trafficPolicy"]
    server.route(0)
    assert "trafficPolicy" not in server.objects["destinationrules"][PRIMARY]["spec"]


def test_the_policy_of_somebody_elses_destination_rule_stays() -> None:
    server = Server(canary("istio"))
    theirs = {"host": f"{PRIMARY}.n.svc", "trafficPolicy": {"tls": {"mode": "SIMPLE"}}}
    server.put("destinationrules", {"metadata": {"name": PRIMARY}, "spec": theirs})
    server.route(0)
    held = server.objects["destinationrules"][PRIMARY]
    assert held["spec"] == {"host": PRIMARY, "trafficPolicy": {"tls": {"mode": "SIMPLE"}}}
    assert "ownerReferences" not in held["metadata"]


def test_a_policy_that_the_crd_drops_does_not_hold_up_a_run() -> None:
    server = Server(canary("istio", trafficPolicy={"gone": 1}))
    server.route(0)
    for rule in server.objects["destinationrules"].values():
        rule["spec"].pop("trafficPolicy")
    assert server.router.waiting(server.wish(0)) == ""


USERS: JSON = {
    "metadata": {"name": APEX, "namespace": "n", "labels": {"team": "a"}},
    "spec": {
        "hosts": [APEX],
        "exportTo": ["."],
        "http": [
            {"match": [{"uri": {"prefix": "/old"}}], "redirect": {"uri": "/new"}},
            {"name": "all", "fault": {"delay": {"fixedDelay": "1s"}}, "route": [share(APEX, 100)]},
        ],
    },
}


def test_a_users_virtual_service_is_taken_over_and_given_back() -> None:
    server = Server(canary("istio"))
    before = copy.deepcopy(server.put("virtualservices", copy.deepcopy(USERS)))
    server.route(0)
    held = server.virtual_service
    assert "ownerReferences" not in held["metadata"]
    assert json.loads(held["metadata"]["annotations"][ORIGINAL]) == before["spec"]
    assert held["spec"]["exportTo"] == ["."]
    (rule,) = held["spec"]["http"]
    assert rule["fault"] == {"delay": {"fixedDelay": "1s"}}, "of the rule for everybody"
    server.route(60)
    server.revert()
    assert server.virtual_service["spec"] == before["spec"]
    assert server.virtual_service["metadata"].get("annotations", {}) == {}


@pytest.mark.parametrize("field", ["delegate", "redirect", "directResponse", "mirrorPercent"])
def test_what_cannot_stand_beside_a_route_is_dropped(field: str) -> None:
    users = copy.deepcopy(USERS)
    users["spec"]["http"] = [{field: {"name": "other"}, "statPrefix": "x"}]
    server = Server(canary("istio"))
    server.put("virtualservices", users)
    server.route(0)
    (rule,) = server.virtual_service["spec"]["http"]
    assert set(rule) == {"route", "statPrefix"}


def test_weights_that_go_without_saying_are_no_drift() -> None:
    server = Server(canary("istio", analysis={"match": [{"headers": {"a": {"exact": "b"}}}]}))
    server.route(0)
    first, rest = server.virtual_service["spec"]["http"]
    del first["route"][1]["weight"]
    del rest["route"][0]["weight"]
    assert server.router.route(server.wish(0)) == ()
    assert server.router.waiting(server.wish(0)) == ""


@pytest.mark.parametrize(
    ("service", "analysis", "field"),
    [
        ({"delegation": True, "hosts": ["a"]}, {}, "spec.service.hosts"),
        ({"delegation": True, "gateways": ["a"]}, {}, "spec.service.gateways"),
        ({"match": [{"uri": {"suffix": "x"}}]}, {}, "spec.service.match[0].uri"),
        ({}, {"match": [{"headers": {"a": {"suffix": "x"}}}]}, "analysis.match[0].headers.a"),
        ({}, {"match": [{"queryParams": {"a": {}}}]}, "analysis.match[0].queryParams.a"),
        ({}, {"match": [{"headers": {"a": {"exact": "x", "regex": "y"}}}]}, "found exact, regex"),
        ({"appProtocol": "tcp"}, {"match": [{"headers": {}}]}, "spec.analysis.match needs HTTP"),
        ({"appProtocol": "tcp"}, {"mirror": True}, "spec.analysis.mirror needs HTTP"),
        (
            {"appProtocol": "tcp"},
            {"sessionAffinity": {"cookieName": "a"}},
            "spec.analysis.sessionAffinity needs HTTP",
        ),
        ({}, {"mirrorWeight": -1}, "spec.analysis.mirrorWeight"),
    ],
)
def test_what_cannot_be_routed_names_its_field(service: JSON, analysis: JSON, field: str) -> None:
    owner = canary("istio", analysis=analysis, **service)
    router = router_for(owner)
    assert router is not None
    assert field in router.problem(owner)
