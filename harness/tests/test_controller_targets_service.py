"""Core Services as targets: two copies, each with addresses of its own (deviations O15, O16)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.canonical import same
from harness.controller.core.targets.service import LAST_APPLIED
from harness.tests.controller_sim_make import merge, service
from harness.tests.controller_targets import applied, kind_of, made, pair_of, stored

if TYPE_CHECKING:
    from harness.controller.core.targets.base import Pair

JSON = dict[str, Any]
WHAT = kind_of("Service")


def served(name: str = "web", **spec: Any) -> JSON:
    """As the API server holds it, with everything allocated."""
    allocated = {
        "type": "LoadBalancer",
        "clusterIP": "10.0.0.7",
        "clusterIPs": ["10.0.0.7"],
        "healthCheckNodePort": 31000,
        "externalTrafficPolicy": "Local",
        "ipFamilies": ["IPv4"],
        "ports": [
            {"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30080},
            {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53, "nodePort": 30053},
        ],
    }
    obj = stored(service(name, **allocated | spec))
    obj["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    return obj


def copies(pair: Pair) -> tuple[JSON, JSON]:
    """`T-primary` and `T-canary`."""
    assert pair.primary is not None
    return pair.primary, pair.objects["services"]["web-canary"]


def both(target: JSON) -> Pair:
    pair = made("Service", target)
    return applied(pair, WHAT.keep(pair))


def allocate(obj: JSON, address: str, base: int) -> JSON:
    """What the API server gives to a new Service."""
    obj = merge(obj, {"spec": {"clusterIP": address, "clusterIPs": [address]}})
    for port in obj["spec"]["ports"]:
        port["nodePort"] = base + port["port"]
    obj["spec"]["healthCheckNodePort"] = base
    return obj


def running() -> Pair:
    """Both copies with addresses of their own."""
    pair = both(served())
    primary, canary = copies(pair)
    services = {
        **pair.objects["services"],
        "web-canary": allocate(canary, "10.0.0.8", 31100),
        "web-primary": allocate(primary, "10.0.0.9", 31200),
    }
    return replace(pair, primary=services["web-primary"], objects={"services": services})


def test_copies_leave_to_the_server_what_belongs_to_one_service_alone() -> None:
    """Deviation O15: with clusterIPs the API server refuses a copy without clusterIP."""
    for copy in copies(both(served())):
        assert not {"clusterIP", "clusterIPs", "healthCheckNodePort"} & set(copy["spec"])
        assert all("nodePort" not in port for port in copy["spec"]["ports"])
        assert "status" not in copy
        assert copy["spec"]["ipFamilies"] == ["IPv4"]
        assert copy["spec"]["selector"] == {"app": "web"}


def test_the_name_of_the_service_the_canary_asks_for_plays_no_part() -> None:
    pair = both(served())
    assert set(pair.objects["services"]) == {"web", "web-primary", "web-canary"}


def test_metadata_is_copied_without_what_speaks_of_the_original() -> None:
    target = served()
    target["metadata"] |= {
        "labels": {"team": "a"},
        "annotations": {LAST_APPLIED: "{}", "mesh": "on"},
        "ownerReferences": [{"kind": "App", "name": "a", "uid": "a", "controller": True}],
    }
    pair = both(target)
    primary, canary = copies(pair)
    assert primary["metadata"]["annotations"] == {"mesh": "on", "flagger-id": "v2:00"}
    assert canary["metadata"]["annotations"] == {"mesh": "on"}
    for copy in (primary, canary):
        assert copy["metadata"]["labels"] == {"team": "a"}
        assert [one["kind"] for one in copy["metadata"]["ownerReferences"]] == ["Canary"]


def test_nothing_is_written_while_nothing_differs() -> None:
    """Deviation O16."""
    pair = running()
    assert WHAT.keep(pair) == ()
    assert WHAT.promote(pair) == ()
    assert WHAT.holds(pair)


def test_the_canary_follows_at_once_and_the_primary_at_promotion() -> None:
    pair = running()
    ports = [
        {"name": "http", "port": 81, "protocol": "TCP", "targetPort": 9090, "nodePort": 30080},
        {"name": "new", "port": 82, "protocol": "TCP", "targetPort": 9091, "nodePort": 30082},
    ]
    edited = served(ports=ports, selector={"app": "web-2"}, externalTrafficPolicy="Cluster")
    del edited["spec"]["healthCheckNodePort"]
    pair = replace(pair, target=edited, revision="v2:01")
    assert not WHAT.holds(pair)
    found = [str(difference) for difference in WHAT.differences(pair)]
    assert found == ["spec.externalTrafficPolicy", "spec.ports", "spec.selector"]
    primary, canary = copies(pair)
    pair = applied(pair, WHAT.keep(pair))
    assert copies(pair)[0] == primary
    followed = copies(pair)[1]
    assert followed["spec"]["selector"] == {"app": "web-2"}
    assert followed["spec"]["clusterIP"] == canary["spec"]["clusterIP"]
    (write,) = WHAT.promote(pair)
    assert write.verb == "patch"
    assert not {"clusterIP", "clusterIPs", "healthCheckNodePort"} & set(write.body["spec"])
    pair = applied(pair, (write,))
    after = copies(pair)[0]
    assert after["spec"]["clusterIP"] == "10.0.0.9"
    kept = {port["name"]: port.get("nodePort") for port in after["spec"]["ports"]}
    assert kept == {"http": 31280, "new": None}
    assert WHAT.revision_of(pair) == "v2:01"
    assert WHAT.keep(pair) == WHAT.promote(pair) == ()
    assert pair.target == edited


def test_keys_of_a_selector_that_go_do_go() -> None:
    pair = both(stored(service(selector={"app": "web", "tier": "a"})))
    pair = replace(pair, target=stored(service(selector={"app": "web"})))
    pair = applied(pair, WHAT.keep(pair) + WHAT.promote(pair))
    for copy in copies(pair):
        assert copy["spec"]["selector"] == {"app": "web"}


def test_what_others_wrote_to_a_copy_stays_without_a_fight() -> None:
    pair = running()
    primary, canary = copies(pair)
    noted = {"metadata": {"annotations": {"lb.example.com/state": "up"}, "labels": {"x": "y"}}}
    services = {**pair.objects["services"], "web-canary": merge(canary, noted)}
    pair = replace(pair, primary=merge(primary, noted), objects={"services": services})
    assert WHAT.keep(pair) == WHAT.promote(pair) == ()
    pair = replace(pair, revision="v2:01")
    (write,) = WHAT.promote(pair)
    assert write.body == {"metadata": {"annotations": {"flagger-id": "v2:01"}}}


def test_a_primary_of_another_maker_gets_its_owner() -> None:
    """Deviation O15: it would outlive its Canary."""
    pair = running()
    assert pair.primary is not None
    bare = merge(pair.primary, {"metadata": {"ownerReferences": None, "annotations": None}})
    pair = replace(pair, primary=bare)
    assert WHAT.revision_of(pair) == ""
    assert WHAT.holds(pair)
    pair = applied(pair, WHAT.promote(pair))
    (reference,) = copies(pair)[0]["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["controller"]) == ("Canary", True)
    assert WHAT.promote(pair) == ()


def test_a_service_of_another_controller_is_left_alone() -> None:
    pair = running()
    other = {"kind": "App", "name": "a", "uid": "other", "controller": True}
    theirs = merge(copies(pair)[1], {"metadata": {"ownerReferences": [other]}})
    theirs["spec"]["selector"] = {"app": "theirs"}
    pair = replace(pair, objects={"services": {"web-canary": theirs}})
    assert WHAT.keep(pair) == ()


@pytest.mark.parametrize("headless", [True, False])
def test_a_cluster_address_cannot_be_taken_or_given_so_the_copy_is_made_anew(
    *, headless: bool
) -> None:
    none: JSON = {"clusterIP": "None", "clusterIPs": ["None"]}
    address: JSON = {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"]}
    before, after = (address, none) if headless else (none, address)
    pair = both(stored(service(**before)))
    assert ("clusterIP" in copies(pair)[0]["spec"]) is not headless
    pair = replace(pair, target=stored(service(**after)))
    assert [write.verb for write in WHAT.promote(pair)] == ["delete", "create"]
    pair = applied(pair, WHAT.keep(pair) + WHAT.promote(pair))
    for copy in copies(pair):
        assert copy["spec"].get("clusterIP") == ("None" if headless else None)
        assert "clusterIPs" not in copy["spec"]
    assert WHAT.keep(pair) == WHAT.promote(pair) == ()


def test_an_external_name_becomes_a_service_in_place() -> None:
    external: JSON = {"type": "ExternalName", "externalName": "a.example.com", "selector": None}
    pair = both(stored(service(**external)))
    pair = replace(pair, target=stored(service(clusterIP="10.0.0.7")))
    (write,) = WHAT.promote(pair)
    assert write.verb == "patch"
    assert write.body["spec"]["externalName"] is None
    pair = applied(pair, (write,))
    assert same(copies(pair)[0]["spec"], service()["spec"])


def test_a_service_is_always_ready() -> None:
    pair = pair_of("Service", served())
    assert WHAT.canary_ready(pair, 100).ready
    assert WHAT.primary_ready(pair, 100).ready
    assert WHAT.rolled_out(pair.target, 100).ready
    assert WHAT.revert(pair) == ()
    assert WHAT.problem(pair.target) == ""
