"""What the controller makes: the primary, field for field, and the three Services."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.controller.core import services
from harness.controller.core.names import names_of
from harness.controller.core.targets.base import Pair
from harness.controller.core.targets.deployment import DeploymentTarget
from harness.tests.controller_sim import canary, deployment, image, image_of, merge, running

JSON = dict[str, Any]
DEPLOYMENTS = DeploymentTarget()
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def stored(obj: JSON, **metadata: Any) -> JSON:
    served = {"uid": "u", "resourceVersion": "1", "generation": 1, **metadata}
    result: JSON = merge(obj, {"metadata": served})
    return result


def pair(owner: JSON, target: JSON, revision: str, primary: JSON | None = None) -> Pair:
    return Pair(owner, names_of(owner, target), target, primary, revision=revision)


def made(target: JSON, **spec: Any) -> JSON:
    owner = stored(canary(**spec))
    (write,) = DEPLOYMENTS.create(pair(owner, target, "v2:00"))
    assert (write.verb, write.resource) == ("create", "deployments")
    return write.body


def test_every_field_arrives_in_the_primary_whether_known_or_not() -> None:
    pod: JSON = {
        "containers": [
            {
                "name": "c",
                "image": "app:1",
                "resources": {"claims": [{"name": "gpu", "request": "one"}]},
                "restartPolicyRules": [{"action": "Restart", "exitCodes": {"values": [42]}}],
                "inventedForContainers": {"deep": [{"er": None}, 1.5, True]},
            }
        ],
        "initContainers": [{"name": "i", "image": "i:1", "restartPolicy": "Always"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "hostnameOverride": "x",
        "schedulingGates": [{"name": "example.com/gate"}],
        "inventedSchedulingField": {"x": 1, "empty": {}},
        "affinity": {
            "podAntiAffinity": {
                REQUIRED: [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app": "web"}, "invented": "kept"},
                        "matchLabelKeys": ["pod-template-hash"],
                        "mismatchLabelKeys": ["tenant"],
                        "namespaceSelector": {"matchLabels": {"app": "web"}},
                        "inventedTermField": ["y"],
                    }
                ]
            },
            "inventedAffinity": {"app": "web"},
        },
    }
    target = deployment(minReadySeconds=3, inventedSpecField={"a": "web"})
    target["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}
    target["spec"]["template"]["spec"] = pod
    target["spec"]["template"]["metadata"]["inventedMeta"] = "m"
    before = copy.deepcopy(target)
    body = made(target)
    assert target == before, "the target was touched"
    expected = copy.deepcopy(target["spec"])
    expected["selector"] = {"matchLabels": {"app": "web-primary"}}
    expected["template"]["metadata"]["labels"] = {"app": "web-primary"}
    expected["template"]["metadata"]["annotations"] = {"flagger-id": "v2:00"}
    term = expected["template"]["spec"]["affinity"]["podAntiAffinity"][REQUIRED][0]
    term["labelSelector"]["matchLabels"]["app"] = "web-primary"
    assert body["spec"] == expected


def rewritten(pod: JSON, target: JSON | None = None) -> JSON:
    target = target or deployment()
    target["spec"]["template"]["spec"] |= copy.deepcopy(pod)
    result: JSON = made(target)["spec"]["template"]["spec"]
    return result


@pytest.mark.parametrize("strength", [REQUIRED, PREFERRED])
def test_only_the_value_that_names_the_workload_is_rewritten(strength: str) -> None:
    def term(selector: JSON) -> JSON:
        bare = {"topologyKey": "zone", "labelSelector": selector}
        return bare if strength == REQUIRED else {"weight": 5, "podAffinityTerm": bare}

    terms = [
        term({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "other"]}]}),
        term({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["web"]}]}),
        term({"matchLabels": {"app": "web", "tier": "web"}}),
        term({"matchLabels": {"app": "other"}}),
        term({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
    ]
    result = rewritten({"affinity": {"podAntiAffinity": {strength: terms}}})
    expected = copy.deepcopy(terms)

    def selector(index: int) -> Any:
        entry = expected[index]
        return entry.get("podAffinityTerm", entry)["labelSelector"]

    selector(0)["matchExpressions"][0]["values"] = ["web-primary", "other"]
    selector(2)["matchLabels"]["app"] = "web-primary"
    assert result["affinity"]["podAntiAffinity"][strength] == expected


def test_spread_constraints_are_rewritten_in_both_forms_and_keep_their_fields() -> None:
    constraints: list[JSON] = [
        {
            "maxSkew": 1,
            "minDomains": 2,
            "nodeTaintsPolicy": "Honor",
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "matchLabelKeys": ["pod-template-hash"],
            "labelSelector": {"matchLabels": {"app": "web"}},
        },
        {
            "maxSkew": 2,
            "labelSelector": {
                "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web", "web"]}]
            },
        },
        {"maxSkew": 3, "topologyKey": "zone"},
    ]
    result = rewritten({"topologySpreadConstraints": constraints})["topologySpreadConstraints"]
    expected = copy.deepcopy(constraints)
    expected[0]["labelSelector"]["matchLabels"]["app"] = "web-primary"
    expected[1]["labelSelector"]["matchExpressions"][0]["values"] = ["web-primary", "web-primary"]
    assert result == expected


def test_a_label_value_other_than_the_name_is_rewritten_too() -> None:
    target = deployment("web-api")
    pod: JSON = {
        "affinity": {
            "podAntiAffinity": {REQUIRED: [{"labelSelector": {"matchLabels": {"app": "web"}}}]},
            "podAffinity": {REQUIRED: [{"labelSelector": {"matchLabels": {"app": "web-api"}}}]},
        }
    }
    owner = stored(canary(targetRef={"kind": "Deployment", "name": "web-api"}))
    target["spec"]["template"]["spec"] |= pod
    (write,) = DEPLOYMENTS.create(pair(owner, target, "v2:00"))
    body = write.body
    affinity = body["spec"]["template"]["spec"]["affinity"]
    anti = affinity["podAntiAffinity"][REQUIRED][0]["labelSelector"]
    assert anti == {"matchLabels": {"app": "web-primary"}}
    near = affinity["podAffinity"][REQUIRED][0]["labelSelector"]
    assert near == {"matchLabels": {"app": "web-api-primary"}}


def test_every_selector_key_is_kept() -> None:
    target = deployment()
    target["spec"]["selector"] = {
        "matchLabels": {"app": "web", "tenant": "a", "kustomize.toolkit.fluxcd.io/name": "k"},
        "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}],
    }
    labels = {"app": "web", "tenant": "a", "x": "y", "kustomize.toolkit.fluxcd.io/name": "k"}
    target["spec"]["template"]["metadata"]["labels"] = labels
    spec = made(target)["spec"]
    assert spec["selector"] == {
        "matchLabels": {
            "app": "web-primary",
            "tenant": "a",
            "kustomize.toolkit.fluxcd.io/name": "k",
        },
        "matchExpressions": [{"key": "app", "operator": "In", "values": ["web-primary"]}],
    }
    assert spec["template"]["metadata"]["labels"] == labels | {"app": "web-primary"}


def test_metadata_of_other_tools_is_not_carried_along() -> None:
    target = stored(deployment(), labels={"team": "a"})
    target["metadata"]["annotations"] = {
        "deployment.kubernetes.io/revision": "7",
        "kustomize.toolkit.fluxcd.io/checksum": "c",
        "note": "n",
    }
    target["spec"]["paused"] = True
    target["spec"]["template"]["metadata"]["annotations"] = {"flagger-id": "old", "a": "b"}
    body = made(target)
    assert body["metadata"]["annotations"] == {"note": "n"}
    assert body["metadata"]["labels"] == {"app": "web-primary"}
    assert body["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert "paused" not in body["spec"]
    annotations = body["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"flagger-id": "v2:00", "a": "b"}


def test_a_promotion_removes_what_the_target_no_longer_has() -> None:
    target = deployment()
    target["spec"]["template"]["spec"]["invented"] = {"a": 1}
    sim = running(target=target)
    assert sim.primary["spec"]["template"]["spec"]["invented"] == {"a": 1}
    sim.edit("deployments", "web", merge(image("app:2"), {"spec": {}}))
    del sim.target["spec"]["template"]["spec"]["invented"]
    sim.run(until="Succeeded")
    assert "invented" not in sim.primary["spec"]["template"]["spec"]
    assert image_of(sim.primary) == "app:2"
    assert sim.primary["spec"]["selector"] == {"matchLabels": {"app": "web-primary"}}


def test_a_second_promotion_does_not_add_a_second_suffix() -> None:
    target = deployment()
    term = {"topologyKey": "h", "labelSelector": {"matchLabels": {"app": "web"}}}
    target["spec"]["template"]["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
    sim = running(target=target)
    for name in ("app:2", "app:3"):
        sim.edit("deployments", "web", image(name))
        sim.run(until="Progressing")
        sim.run(until="Succeeded")
    for obj, value in ((sim.primary, "web-primary"), (sim.target, "web")):
        terms = obj["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
        assert terms[0]["labelSelector"] == {"matchLabels": {"app": value}}


def test_promoting_what_is_there_writes_nothing() -> None:
    target = stored(deployment())
    owner = stored(canary())
    (made_first,) = DEPLOYMENTS.create(pair(owner, target, "v2:00"))
    held = stored(made_first.body)
    assert DEPLOYMENTS.promote(pair(owner, target, "v2:00", held)) == ()
    assert DEPLOYMENTS.holds(pair(owner, target, "v2:00", held))
    (write,) = DEPLOYMENTS.promote(pair(owner, target, "v2:01", held))
    assert (write.verb, write.precondition) == ("replace", "1")


# -- Services ----------------------------------------------------------------------------------------------------------------


def service(existing: JSON | None = None, target: JSON | None = None, **spec: Any) -> Any:
    owner = stored(canary(service={"port": 80, **spec}))
    target = target or deployment()
    both = Pair(owner, names_of(owner, target), target)
    return services.reconcile(both, existing, "apex", DEPLOYMENTS.selector(both, "apex", {}))


def test_a_service_has_one_port_and_the_flux_switches() -> None:
    (write,) = service(targetPort="web", portName="grpc", appProtocol="h2c", headless=True)
    spec = write.body["spec"]
    assert spec["ports"] == [
        {"name": "grpc", "protocol": "TCP", "port": 80, "targetPort": "web", "appProtocol": "h2c"}
    ]
    assert spec["clusterIP"] == "None"
    assert write.body["metadata"]["labels"] == {"app": "web"}
    assert set(write.body["metadata"]["annotations"].values()) == {"disabled"}


@pytest.mark.parametrize(("given", "served"), [("0", 80), (0, 80), ("8080", 8080), (9, 9)])
def test_a_target_port_may_be_a_number_in_any_form(given: object, served: int) -> None:
    (write,) = service(targetPort=given)
    assert write.body["spec"]["ports"][0]["targetPort"] == served


def test_discovered_ports_keep_their_protocol_and_get_names_of_their_own() -> None:
    target = deployment()
    target["spec"]["template"]["spec"]["containers"] = [
        {"name": "envoy", "ports": [{"containerPort": 15000}]},
        {
            "name": "c",
            "ports": [
                {"containerPort": 8080, "name": "web"},
                {"containerPort": 53, "protocol": "UDP"},
                {"containerPort": 53},
                {"containerPort": 9090, "name": "http"},
            ],
        },
    ]
    (write,) = service(target=target, portDiscovery=True, targetPort="web")
    assert [(p["name"], p["protocol"], p["port"]) for p in write.body["spec"]["ports"]] == [
        ("http", "TCP", 80),
        ("udp-c-1", "UDP", 53),
        ("tcp-c-2", "TCP", 53),
        ("http-9090", "TCP", 9090),
    ]


def test_a_users_own_service_is_taken_over_in_ports_and_selector_only() -> None:
    existing = stored(
        {
            "metadata": {"name": "web", "labels": {"mine": "yes"}},
            "spec": {
                "type": "NodePort",
                "selector": {"app": "web", "extra": "e"},
                "ports": [{"name": "http", "port": 81, "nodePort": 30001, "protocol": "TCP"}],
                "sessionAffinity": "ClientIP",
            },
        }
    )
    (write,) = service(existing)
    assert (write.verb, write.precondition) == ("patch", "1")
    port = {"name": "http", "protocol": "TCP", "port": 80, "targetPort": 80, "nodePort": 30001}
    original = '{"app":"web","extra":"e"}'
    assert write.body == {
        "metadata": {"annotations": {"rollout-drill/original-selector": original}},
        "spec": {"ports": [port], "selector": {"app": "web-primary", "extra": None}},
    }


def test_our_own_service_loses_foreign_metadata_except_what_is_unmanaged() -> None:
    (create,) = service()
    held = stored(create.body)
    assert service(held) == ()
    held["metadata"]["annotations"] |= {"foreign": "f", "kept": "k"}
    (write,) = service(held, unmanagedMetadata={"annotations": ["kept"]})
    assert write.body == {"metadata": {"annotations": {"foreign": None}}}
