"""HTTPRoutes: what a Canary becomes, when it is in force, what is refused, and that the server's defaults are no drift."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from harness.controller.core.routers.registry import router_for
from harness.tests.routers_kit import APEX, CANARY, GATEWAY, PRIMARY, Server, canary

JSON = dict[str, Any]
ORIGINAL = "flagger.kubernetes.io/original-configuration"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
FLUX = "kustomize.toolkit.fluxcd.io/reconcile"
EVERY_PATH = {"path": {"type": "PathPrefix", "value": "/"}}
CANARY_REF = {"group": "", "kind": "Service", "name": CANARY, "port": 80}


def problem(**service: Any) -> str:
    owner = canary(GATEWAY, **service)
    router = router_for(owner)
    assert router is not None
    return router.problem(owner)


def test_the_plainest_route() -> None:
    server = Server(canary(GATEWAY))
    (write,) = server.route(0)
    assert (write.verb, write.resource, write.name) == ("create", "httproutes", APEX)
    assert write.body["apiVersion"] == "gateway.networking.k8s.io/v1"
    assert write.body["spec"] == {
        "parentRefs": [
            {
                "group": "gateway.networking.k8s.io",
                "kind": "Gateway",
                "name": "gw",
                "namespace": "infra",
            }
        ],
        "rules": [
            {
                "matches": [EVERY_PATH],
                "backendRefs": [
                    {"group": "", "kind": "Service", "name": PRIMARY, "port": 80, "weight": 100},
                    {**CANARY_REF, "weight": 0},
                ],
            }
        ],
    }


def full() -> JSON:
    return canary(
        GATEWAY,
        hosts=["example.com", "*.example.org"],
        gatewayRefs=[{"group": "", "kind": "Service", "name": "web", "port": 80}],
        match=[
            {
                "name": "only for statistics",
                "uri": {"prefix": "/api"},
                "method": {"exact": "GET"},
                "headers": {"b": {"regex": "^x"}, "a": {"exact": "1"}},
                "queryParams": {"q": {"exact": "2"}},
            }
        ],
        rewrite={"uri": "/", "authority": "inner.example.com", "type": "ReplacePrefixMatch"},
        headers={
            "request": {"add": {"z": "1", "y": "2"}, "set": {"s": "3"}, "remove": ["r"]},
            "response": {"set": {"t": "4"}},
        },
        mirror=[{"backendRef": {"name": "audit", "port": 9}}],
        corsPolicy={
            "allowOrigin": ["https://a.example"],
            "allowOrigins": [{"exact": "https://b.example"}],
            "allowMethods": ["GET"],
            "allowHeaders": ["x"],
            "exposeHeaders": ["y"],
            "allowCredentials": True,
            "maxAge": "24h",
        },
        timeout="15s",
        backendTimeout="5s",
        retries={"attempts": 3},
    )


def test_everything_a_service_can_ask_for() -> None:
    server = Server(full())
    assert server.router.problem(server.canary) == ""
    server.route(25, mirror=True)
    spec = server.http_route["spec"]
    assert spec["hostnames"] == ["example.com", "*.example.org"]
    assert spec["parentRefs"] == [{"group": "", "kind": "Service", "name": "web", "port": 80}]
    (rule,) = spec["rules"]
    assert rule["matches"] == [
        {
            "path": {"type": "PathPrefix", "value": "/api"},
            "method": "GET",
            "headers": [
                {"name": "a", "type": "Exact", "value": "1"},
                {"name": "b", "type": "RegularExpression", "value": "^x"},
            ],
            "queryParams": [{"name": "q", "type": "Exact", "value": "2"}],
        }
    ]
    assert rule["timeouts"] == {"request": "15s", "backendRequest": "5s"}
    assert rule["filters"] == [
        {
            "type": "RequestHeaderModifier",
            "requestHeaderModifier": {
                "set": [{"name": "s", "value": "3"}],
                "add": [{"name": "y", "value": "2"}, {"name": "z", "value": "1"}],
                "remove": ["r"],
            },
        },
        {
            "type": "ResponseHeaderModifier",
            "responseHeaderModifier": {"set": [{"name": "t", "value": "4"}]},
        },
        {
            "type": "URLRewrite",
            "urlRewrite": {
                "hostname": "inner.example.com",
                "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"},
            },
        },
        {
            "type": "RequestMirror",
            "requestMirror": {
                "backendRef": {"group": "", "kind": "Service", "name": "audit", "port": 9}
            },
        },
        {
            "type": "CORS",
            "cors": {
                "allowOrigins": ["https://a.example", "https://b.example"],
                "allowMethods": ["GET"],
                "allowHeaders": ["x"],
                "exposeHeaders": ["y"],
                "allowCredentials": True,
                "maxAge": 86400,
            },
        },
        {"type": "RequestMirror", "requestMirror": {"backendRef": CANARY_REF}},
    ]


def test_what_is_no_longer_asked_for_goes() -> None:
    server = Server(full())
    server.route(0)
    server.canary["spec"] = canary(GATEWAY)["spec"]
    server.route(0)
    spec = server.http_route["spec"]
    assert "hostnames" not in spec
    assert set(spec["rules"][0]) == {"matches", "backendRefs"}


def test_a_rewrite_of_another_type_replaces_the_full_path() -> None:
    server = Server(canary(GATEWAY, rewrite={"uri": "/x", "type": "whatever"}))
    server.route(0)
    (one,) = server.http_route["spec"]["rules"][0]["filters"]
    assert one["urlRewrite"] == {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/x"}}


def test_a_cors_filter_without_an_age_has_the_servers_and_is_no_drift() -> None:
    server = Server(canary(GATEWAY, corsPolicy={"allowOrigin": ["*"]}))
    server.route(0)
    (one,) = server.http_route["spec"]["rules"][0]["filters"]
    assert one == {"type": "CORS", "cors": {"allowOrigins": ["*"], "maxAge": 5}}


@pytest.mark.parametrize(
    ("asked", "percent"), [(None, None), (0, None), (100, None), (1, 1), (99, 99)]
)
def test_mirror_weight(asked: int | None, percent: int | None) -> None:
    analysis: JSON = {"mirror": True} | ({} if asked is None else {"mirrorWeight": asked})
    server = Server(canary(GATEWAY, analysis=analysis))
    server.route(0, mirror=True)
    (one,) = server.http_route["spec"]["rules"][0]["filters"]
    assert one["requestMirror"].get("percent") == percent
    assert server.router.waiting(server.wish(0)) != "", "still mirrored"
    server.route(0)
    assert "filters" not in server.http_route["spec"]["rules"][0]


def test_a_crd_that_drops_the_percentage_is_no_mirroring_by_percentage() -> None:
    server = Server(canary(GATEWAY, analysis={"mirror": True, "mirrorWeight": 10}))
    server.route(0, mirror=True)
    server.accept()
    assert server.router.waiting(server.wish(0, mirror=True)) == ""
    del server.http_route["spec"]["rules"][0]["filters"][0]["requestMirror"]["percent"]
    assert "mirrored" in server.router.waiting(server.wish(0, mirror=True))


def test_a_b_is_the_product_and_a_rule_for_everybody_else() -> None:
    analysis: JSON = {
        "iterations": 2,
        "match": [
            {"headers": {"cookie": {"regex": "^(.*?;)?(canary=always)(;.*)?$"}}},
            {"queryParams": {"canary": {"exact": "1"}}},
        ],
    }
    own = [{"uri": {"prefix": "/a"}, "headers": {"v": {"exact": "1"}}}, {"uri": {"exact": "/b"}}]
    server = Server(canary(GATEWAY, analysis=analysis, match=own))
    server.route(100)
    first, rest = server.http_route["spec"]["rules"]
    assert server.rules() == [[(PRIMARY, 0), (CANARY, 100)], [(PRIMARY, 100)]]
    assert [match["path"]["value"] for match in rest["matches"]] == ["/a", "/b"]
    assert [
        (
            match["path"]["value"],
            [one["name"] for one in match.get("headers", []) + match.get("queryParams", [])],
        )
        for match in first["matches"]
    ] == [
        ("/a", ["cookie", "v"]),
        ("/b", ["cookie"]),
        ("/a", ["v", "canary"]),
        ("/b", ["canary"]),
    ]


def test_a_route_as_the_server_returns_it_is_as_wished() -> None:
    """Defaults written out, list maps in another order, and fields of a newer version."""
    server = Server(full())
    server.route(10)
    spec = copy.deepcopy(server.http_route["spec"])
    (rule,) = spec["rules"]
    rule["matches"][0]["headers"].reverse()
    rule["filters"][0]["requestHeaderModifier"]["add"].reverse()
    rule["backendRefs"][0]["newDefault"] = "x"
    rule["matches"][0]["newDefault"] = {"a": 1}
    spec["useDefaultGateways"] = "None"
    server.http_route["spec"] = spec
    assert server.router.route(server.wish(10)) == ()


def test_a_route_without_the_defaults_is_as_wished_too() -> None:
    server = Server(canary(GATEWAY))
    server.route(0)
    server.http_route["spec"] = {
        "parentRefs": [{"name": "gw", "namespace": "infra"}],
        "rules": [
            {
                "backendRefs": [
                    {"name": PRIMARY, "port": 80, "weight": 100},
                    {"name": CANARY, "port": 80, "weight": 0},
                ]
            }
        ],
    }
    assert server.router.route(server.wish(0)) == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": "False", "reason": "NotAllowedByListeners"}, "NotAllowedByListeners"),
        ({"status": "Unknown", "reason": "Pending"}, "Accepted is Unknown (Pending)"),
        ({"observedGeneration": 1}, "generation 1, the route is at 2"),
        ({"observedGeneration": None}, "generation 0"),
        ({"type": "Programmed"}, "no condition Accepted"),
    ],
)
def test_a_route_that_is_not_accepted_is_waited_for(change: JSON, said: str) -> None:
    server = Server(canary(GATEWAY))
    server.route(0)
    server.route(10)
    server.accept()
    assert server.router.waiting(server.wish(10)) == ""
    server.accept(**change)
    waiting = server.router.waiting(server.wish(10))
    assert said in waiting
    assert "infra/gw" in waiting


def test_every_parent_must_accept_and_a_missing_backend_counts() -> None:
    refs = [{"name": "gw"}, {"name": "gw", "namespace": "n", "sectionName": "https"}]
    server = Server(canary(GATEWAY, gatewayRefs=refs))
    server.route(0)
    server.accept()
    assert server.router.waiting(server.wish(0)) == ""
    parents = server.http_route["status"]["parents"]
    last = parents.pop()
    assert "not answered for by Gateway n/gw" in server.router.waiting(server.wish(0))
    last["parentRef"] = {"name": "gw", "namespace": "n", "sectionName": "https"}
    parents.append(last)
    assert server.router.waiting(server.wish(0)) == "", "defaults of a parentRef may be left out"
    unresolved = {"type": "ResolvedRefs", "status": "False", "reason": "BackendNotFound"}
    last["conditions"].append({**unresolved, "observedGeneration": 1})
    assert "BackendNotFound" in server.router.waiting(server.wish(0))


USERS: JSON = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {
        "name": APEX,
        "namespace": "n",
        "labels": {"team": "a"},
        "annotations": {"x": "y"},
    },
    "spec": {
        "parentRefs": [{"name": "theirs"}],
        "hostnames": ["own.example"],
        "rules": [
            {"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}]},
            {"name": "api", "retry": {"attempts": 9}, "backendRefs": [{"name": APEX, "port": 80}]},
        ],
    },
}


def test_a_users_route_is_taken_over_and_given_back() -> None:
    server = Server(canary(GATEWAY, match=[{"uri": {"prefix": "/api"}}]))
    before = copy.deepcopy(server.put("httproutes", copy.deepcopy(USERS)))
    server.route(0)
    meta = server.http_route["metadata"]
    assert "ownerReferences" not in meta, "it outlives the Canary"
    assert meta["labels"] == {"team": "a"}
    assert json.loads(meta["annotations"][ORIGINAL]) == before["spec"]
    assert meta["annotations"][FLUX] == "disabled"
    assert server.http_route["spec"]["rules"][0].keys() == {"matches", "backendRefs"}
    for share in (50, 100, 0):
        server.route(share)
    assert json.loads(server.http_route["metadata"]["annotations"][ORIGINAL]) == before["spec"]
    server.revert()
    after = server.http_route
    assert after["spec"] == before["spec"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]


def test_what_a_user_applied_last_is_given_back() -> None:
    users = copy.deepcopy(USERS)
    users["metadata"]["annotations"][APPLIED] = json.dumps(USERS)
    server = Server(canary(GATEWAY))
    server.put("httproutes", users)
    server.route(30)
    assert ORIGINAL not in server.http_route["metadata"]["annotations"]
    later = copy.deepcopy(USERS)
    later["spec"]["hostnames"] = ["moved.example"]
    server.edit("httproutes", APEX, {"metadata": {"annotations": {APPLIED: json.dumps(later)}}})
    server.revert()
    assert server.http_route["spec"]["hostnames"] == ["moved.example"]
    assert FLUX not in server.http_route["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("service", "field"),
    [
        ({"gatewayRefs": []}, "spec.service.gatewayRefs"),
        ({"gatewayRefs": [{"namespace": "x"}]}, "spec.service.gatewayRefs[0].name"),
        ({"hosts": ["a", "*"]}, "spec.service.hosts[1]: '*'"),
        ({"hosts": ["a:80"]}, "spec.service.hosts[0]"),
        ({"timeout": "1.5s"}, "spec.service.timeout"),
        ({"backendTimeout": "1 s"}, "spec.service.backendTimeout"),
        ({"timeout": "1s", "backendTimeout": "2s"}, "spec.service.backendTimeout: 2s"),
        ({"match": [{"uri": {"suffix": "x"}}]}, "spec.service.match[0].uri: found suffix"),
        ({"match": [{"uri": {"prefix": ""}}]}, "spec.service.match[0].uri: found nothing"),
        ({"match": [{"uri": {"prefix": "x"}}]}, "spec.service.match[0].uri.prefix: 'x'"),
        ({"match": [{"method": {"prefix": "G"}}]}, "match[0].method: found prefix"),
        ({"match": [{"method": {"exact": "get"}}]}, "match[0].method.exact: 'get'"),
        ({"match": [{}, {"headers": {"x": {"prefix": "a"}}}]}, "match[1].headers.x: found prefix"),
        ({"match": [{"queryParams": {"x": {"prefix": "a"}}}]}, "match[0].queryParams.x"),
        ({"match": [{"scheme": {"exact": "https"}}]}, "match[0].scheme is not supported"),
        ({"match": [{"ignoreUriCase": True}]}, "match[0].ignoreUriCase"),
        ({"match": [{"withoutHeaders": {"x": {}}}]}, "match[0].withoutHeaders"),
        ({"match": [{"port": 80}]}, "match[0].port"),
        ({"mirror": [{"backendRef": {"port": 80}}]}, "spec.service.mirror[0].backendRef.name"),
        ({"mirror": [{"backendRef": {"name": "x"}}]}, "spec.service.mirror[0].backendRef.port"),
        ({"corsPolicy": {"allowOrigins": [{"regex": "x"}]}}, "allowOrigins[0]: found regex"),
        ({"corsPolicy": {"maxAge": "1d"}}, "spec.service.corsPolicy.maxAge"),
        ({"corsPolicy": {"maxAge": "0s"}}, "spec.service.corsPolicy.maxAge"),
        (
            {
                "rewrite": {"uri": "/", "type": "ReplacePrefixMatch"},
                "match": [{"uri": {"exact": "/a"}}],
            },
            "spec.service.rewrite.type",
        ),
        ({"match": [{"uri": {"prefix": "/"}}] * 65}, "64 in a rule"),
    ],
)
def test_what_cannot_be_routed_names_its_field(service: JSON, field: str) -> None:
    assert field in problem(**service)


def test_conditions_of_the_analysis_are_judged_too() -> None:
    owner = canary(GATEWAY, analysis={"match": [{"sourceLabels": {"a": "b"}}]})
    router = router_for(owner)
    assert router is not None
    assert "spec.analysis.match[0].sourceLabels is not supported" in router.problem(owner)
    owner = canary(GATEWAY, analysis={"mirrorWeight": 101})
    assert "spec.analysis.mirrorWeight: 101" in router.problem(owner)


@pytest.mark.parametrize(
    "field", ["retries", "trafficPolicy", "gateways", "delegation", "meshName", "backends"]
)
def test_fields_of_other_meshes_are_not_looked_at(field: str) -> None:
    assert problem(**{field: {"a": "b"}}) == ""
