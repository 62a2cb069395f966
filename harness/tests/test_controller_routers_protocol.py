"""What holds for every router: idempotent, complete, and careful with what is not its own."""

from __future__ import annotations

import copy
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.controller.core.decision import Plural
from harness.controller.core.routers.registry import PROVIDERS, router_for
from harness.tests.routers_kit import (
    APEX,
    CANARY,
    EVERY,
    MESHES,
    PRIMARY,
    SPLITTING,
    Server,
    canary,
)

JSON = dict[str, Any]
OBJECTS = {"gatewayapi:v1": "httproutes", "istio": "virtualservices", "knative": "kservices"}


def test_every_provider_that_is_implemented_is_here() -> None:
    assert set(PROVIDERS) == set(EVERY)


@pytest.mark.parametrize("name", ["nginx", "linkerd", "smi:v1alpha2", "appmesh", "gloo", "osm"])
def test_another_provider_has_no_router(name: str) -> None:
    assert router_for(canary(name)) is None


def test_an_omitted_provider_means_istio() -> None:
    router = router_for(canary(None))
    assert router is not None
    assert router.name == "istio"


@pytest.mark.parametrize("name", EVERY)
def test_the_simplest_canary_is_no_problem_and_needs_known_kinds(name: str) -> None:
    router = router_for(canary(name))
    assert router is not None
    assert router.name == name
    assert router.problem(canary(name)) == ""
    assert set(router.needs) <= set(get_args(Plural))


@pytest.mark.parametrize("name", sorted(set(EVERY) - {"knative"}))
def test_only_knative_routes_a_knative_service(name: str) -> None:
    router, foreign = router_for(canary(name)), canary(name)
    foreign["spec"]["targetRef"] = canary("knative")["spec"]["targetRef"]
    assert router is not None
    assert "allowed: knative" in router.problem(foreign)


def test_knative_routes_nothing_else() -> None:
    router, foreign = router_for(canary("knative")), canary("knative")
    foreign["spec"]["targetRef"] = canary("istio")["spec"]["targetRef"]
    assert router is not None
    assert "spec.targetRef" in router.problem(foreign)


def test_provider_kubernetes_writes_nothing_whatever_is_asked() -> None:
    server = Server(canary("kubernetes", analysis={"mirror": True, "match": [{"headers": {}}]}))
    for share in (0, 50, 100):
        assert server.route(share, mirror=True) == ()
        assert server.router.waiting(server.wish(share)) == ""
    assert server.revert() == ()
    assert not server.router.splits


@pytest.mark.parametrize("name", SPLITTING)
@given(shares=st.lists(st.integers(0, 100), min_size=1, max_size=6))
def test_every_split_sums_to_100_and_is_written_once(name: str, shares: list[int]) -> None:
    server = Server(canary(name))
    for share in shares:
        server.route(share)
        (rule,) = server.rules()
        weights = [weight for _, weight in rule]
        assert sum(weights) == 100
        newest = "newest" if name == "knative" else CANARY
        assert dict(rule)[newest] == share


@pytest.mark.parametrize("name", MESHES)
@given(share=st.integers(0, 100), cookies=st.booleans(), test=st.booleans(), mirror=st.booleans())
def test_every_rule_of_every_strategy_sums_to_100(
    name: str, share: int, *, cookies: bool, test: bool, mirror: bool
) -> None:
    analysis: JSON = {"mirror": mirror}
    if cookies:
        analysis["sessionAffinity"] = {"cookieName": "c", "primaryCookieName": "p"}
    if test:
        analysis["match"] = [{"headers": {"x": {"exact": "1"}}}]
    server = Server(canary(name, analysis=analysis))
    server.route(share, mirror=mirror and share == 0)
    assert server.router.problem(server.canary) == ""
    rules = server.rules()
    assert all(sum(weight for _, weight in rule) == 100 for rule in rules)
    both = [rule for rule in rules if len(rule) == 2]
    assert both == [[(PRIMARY, 100 - share), (CANARY, share)]], "exactly one rule has the split"
    if test:
        assert rules[-1] == [(PRIMARY, 100)]


@pytest.mark.parametrize("name", SPLITTING)
def test_a_drifted_route_is_mended_with_its_weights(name: str) -> None:
    server = Server(canary(name))
    server.route(30)
    before, plural = server.rules(), OBJECTS[name]
    broken: JSON = {"rules": [], "http": [], "traffic": []}
    kept = {key: broken[key] for key in server.objects[plural][APEX]["spec"] if key in broken}
    server.edit(plural, APEX, {"spec": kept})
    assert len(server.route(30)) == 1
    assert server.rules() == before


@pytest.mark.parametrize("name", SPLITTING)
def test_what_we_do_not_know_survives_weights_drift_and_the_revert(name: str) -> None:
    server = Server(canary(name))
    server.route(0)
    plural = OBJECTS[name]
    foreign: JSON = {
        "metadata": {"labels": {"team": "a"}, "annotations": {"example.com/x": "y"}},
        "spec": {"invented": {"deep": [1, {"x": None}]}},
    }
    server.edit(plural, APEX, foreign)
    kept = copy.deepcopy(server.objects[plural][APEX])
    for share in (10, 100, 0):
        server.route(share)
    server.revert()
    now = server.objects[plural][APEX]
    assert now["spec"]["invented"] == kept["spec"]["invented"]
    assert now["metadata"]["labels"]["team"] == "a"
    assert now["metadata"]["annotations"]["example.com/x"] == "y"


@pytest.mark.parametrize(("name", "field"), [("gatewayapi:v1", "rules"), ("istio", "http")])
def test_unknown_fields_inside_a_rule_survive(name: str, field: str) -> None:
    server = Server(canary(name, analysis={"sessionAffinity": {"cookieName": "c"}}))
    server.route(0)
    rules = copy.deepcopy(server.objects[OBJECTS[name]][APEX]["spec"][field])
    backends = "backendRefs" if name == "gatewayapi:v1" else "route"
    rules[0] |= {"name": "main", "invented": {"attempts": 3}}
    rules[0][backends][1]["alsoInvented"] = "x"
    server.edit(OBJECTS[name], APEX, {"spec": {field: rules}})
    assert server.route(0) == (), "a field that we do not know is no drift"
    server.route(20)
    sticky, main = server.objects[OBJECTS[name]][APEX]["spec"][field]
    assert main["name"] == "main"
    assert main["invented"] == sticky["invented"] == {"attempts": 3}
    assert "name" not in sticky, "names of rules are unique"
    assert main[backends][1]["alsoInvented"] == "x"
    assert "alsoInvented" not in main[backends][0]
    server.route(0)
    assert server.objects[OBJECTS[name]][APEX]["spec"][field][-1]["name"] == "main"


@pytest.mark.parametrize("name", SPLITTING)
def test_the_wished_split_is_waited_for(name: str) -> None:
    server = Server(canary(name))
    assert server.router.waiting(server.wish(10)) != ""
    server.route(10)
    if name == "gatewayapi:v1":
        server.accept()
    if name == "knative":
        held = server.objects["kservices"]["web"]
        held["status"] |= {
            "observedGeneration": held["metadata"]["generation"],
            "traffic": held["spec"]["traffic"],
        }
    assert server.router.waiting(server.wish(10)) == ""
    assert server.router.waiting(server.wish(20)) != ""


@pytest.mark.parametrize("name", MESHES)
def test_a_route_of_ours_names_the_apex_before_it_goes(name: str) -> None:
    server = Server(canary(name, analysis={"sessionAffinity": {"cookieName": "c"}}))
    server.route(40)
    server.revert()
    assert server.rules() == [[(APEX, 100)]] or server.rules() == [[(APEX, 1)]]


@pytest.mark.parametrize("name", MESHES)
def test_what_somebody_else_controls_is_left_alone_and_said(name: str) -> None:
    server = Server(canary(name))
    plural = OBJECTS[name]
    owner = {"apiVersion": "v1", "kind": "Canary", "name": "old", "uid": "x", "controller": True}
    made = {"metadata": {"name": APEX, "namespace": "n", "ownerReferences": [owner]}, "spec": {}}
    server.put(plural, made)
    before = copy.deepcopy(server.objects[plural])
    server.route(10)
    server.revert()
    assert server.objects[plural] == before
    said = server.router.waiting(server.wish(10))
    assert "Canary/old" in said
    assert APEX in said


@pytest.mark.parametrize("name", MESHES)
def test_labels_and_annotations_of_the_apex(name: str) -> None:
    apex = {
        "labels": {"a": "1", "x.toolkit.fluxcd.io/name": "no"},
        "annotations": {"b": "2", "mine": "m"},
    }
    free = {"labels": ["free"], "annotations": ["mine"]}
    server = Server(canary(name, apex=apex, unmanagedMetadata=free))
    server.route(0)
    plural = OBJECTS[name]
    meta = server.objects[plural][APEX]["metadata"]
    assert meta["labels"] == {"a": "1"}
    assert meta["annotations"]["b"] == "2"
    assert meta["annotations"]["kustomize.toolkit.fluxcd.io/reconcile"] == "disabled"
    assert meta["ownerReferences"][0]["uid"] == "uid-1"
    server.edit(plural, APEX, {"metadata": {"labels": {"a": "0"}, "annotations": {"mine": "o"}}})
    server.route(0)
    meta = server.objects[plural][APEX]["metadata"]
    assert meta["labels"]["a"] == "1"
    assert meta["annotations"]["mine"] == "o", "unmanaged"
