"""The three Services of provider kubernetes (spec objects 7).

Apex and `-primary` select the primary's pods, `-canary` the target's. An existing Service is patched in the fields
that differ and in no other (O2): ports and selector always, metadata and traffic distribution only when it is ours.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.decision import JSON, Write
from harness.controller.core.names import KIND, MAX_LABEL, Names
from harness.controller.core.ownership import controller_of, owner_reference, without_toolkit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.targets.base import Pair, Role

REVISION_LABEL: Final = "pod-template-hash"
"""What tells the pods of one ReplicaSet from those of another."""
ORIGINAL: Final = "rollout-drill/original-selector"
"""Annotation of a Service that was there before its Canary: the selector that it had, as JSON."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SIDECARS: Final = frozenset({"istio-proxy", "envoy"})
_FLUX_OFF: Final = {
    "kustomize.toolkit.fluxcd.io/reconcile": "disabled",
    "helm.toolkit.fluxcd.io/driftDetection": "disabled",
}
_PORT_FIELDS: Final = ("name", "protocol", "port", "targetPort", "appProtocol")


def service_name(names: Names, role: Role) -> str:
    """Return the name of the Service in that role."""
    return {
        "apex": names.apex,
        "primary": names.primary_service,
        "canary": names.canary_service,
    }[role]


def reconcile(pair: Pair, existing: JSON | None, role: Role, selector: JSON) -> tuple[Write, ...]:
    """Return the write that makes one Service what it should be; nothing when it is. `selector`: what it is to select."""
    canary = pair.canary
    wanted = _desired(pair, role, selector)
    if existing is None:
        return (Write("create", "services", wanted["metadata"]["name"], wanted),)
    patch = _difference(canary, existing, wanted)
    if not patch:
        return ()
    meta = existing["metadata"]
    return (Write("patch", "services", meta["name"], patch, meta["resourceVersion"]),)


def unchangeable(canary: JSON, names: Names, existing: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return what is asked of Services that exist and cannot have it: a cluster address is for life, and so is having none (O10)."""
    wanted = bool(canary["spec"]["service"].get("headless"))
    roles: tuple[Role, ...] = ("apex", "primary", "canary")
    found = [existing.get(service_name(names, role)) for role in roles]
    other = [
        service["metadata"]["name"]
        for service in found
        if service
        and (service["spec"].get("clusterIP") == "None") != wanted
        # That a user's own Service is headless is nobody's mistake while nothing else is asked for.
        and (wanted or _ours(canary, service))
    ]
    if not other:
        return ()
    asked, are = ("true", "have an address") if wanted else ("unset or false", "are headless")
    text = (
        f"spec.service.headless is {asked}, but Services {', '.join(other)} {are}, which cannot be changed: delete them to have"
        " them made again, at a moment when nobody calls them."
    )
    return (text,)


def give_back(names: Names, apex: JSON) -> tuple[Write, ...]:
    """Return the write that lets the apex Service select what it selected before its Canary (O8); nothing when it does.

    A Service that was there before has the original in an annotation of ours, or in kubectl's; any other gets the target's label.
    """
    meta, held = apex["metadata"], (apex.get("spec") or {}).get("selector") or {}
    kept = ORIGINAL in (meta.get("annotations") or {})
    led = held.get(names.label) == names.primary_value or REVISION_LABEL in held
    if not kept and not led:
        return ()  # given back already: the annotation, which told what to give back, has gone with it
    wanted = _original(meta.get("annotations") or {}) or {names.label: names.value}
    selector = _map_patch(held, wanted)
    patch: JSON = {"spec": {"selector": selector}} if selector else {}
    if kept:
        patch["metadata"] = {"annotations": {ORIGINAL: None}}
    return (
        (Write("patch", "services", meta["name"], patch, meta["resourceVersion"]),) if patch else ()
    )


def _original(annotations: JSON) -> JSON:
    for key, path in ((ORIGINAL, ()), (_LAST_APPLIED, ("spec", "selector"))):
        try:
            found = json.loads(annotations.get(key) or "{}")
        except ValueError:
            continue
        for part in path:
            found = found.get(part) or {} if isinstance(found, dict) else {}
        if isinstance(found, dict) and found:
            return found
    return {}


def _desired(pair: Pair, role: Role, selector: JSON) -> JSON:
    canary, names = pair.canary, pair.names
    service: JSON = canary["spec"]["service"]
    name = service_name(names, role)
    extra: JSON = service.get(role) or {}
    spec: JSON = {
        "type": "ClusterIP",
        "selector": selector,
        "ports": _ports(service, pair.target),
    }
    if service.get("headless"):
        spec["clusterIP"] = "None"
    if service.get("trafficDistribution"):
        spec["trafficDistribution"] = service["trafficDistribution"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": names.namespace,
            "labels": without_toolkit(extra.get("labels")) | {names.label: name},
            "annotations": (extra.get("annotations") or {}) | _FLUX_OFF,
            "ownerReferences": [owner_reference(canary)],
        },
        "spec": spec,
    }


def _ports(service: JSON, target: JSON) -> list[JSON]:
    port = int(service["port"])
    destination = service.get("targetPort")
    if destination in (None, "", 0, "0"):
        destination = port
    if isinstance(destination, str) and destination.isdigit():
        destination = int(destination)
    first: JSON = {
        "name": service.get("portName") or "http",
        "protocol": "TCP",
        "port": port,
        "targetPort": destination,
    }
    if service.get("appProtocol"):
        first["appProtocol"] = service["appProtocol"]
    ports = [first]
    if service.get("portDiscovery"):
        ports += _discovered(target, first)
    return ports


def _discovered(target: JSON, first: JSON) -> list[JSON]:
    """Every other container port, each with its own protocol and a name of its own (O9)."""
    found: list[JSON] = []
    names = {first["name"]}
    taken = {(first["protocol"], first["port"])}
    for container in target["spec"]["template"]["spec"].get("containers") or []:
        if container["name"] in _SIDECARS:
            continue
        for index, entry in enumerate(container.get("ports") or []):
            number, protocol = int(entry["containerPort"]), entry.get("protocol") or "TCP"
            if first["targetPort"] in (number, entry.get("name")) or (protocol, number) in taken:
                continue
            name = entry.get("name") or f"{protocol.lower()}-{container['name']}-{index}"
            if name in names:
                name = f"{name}-{number}"
            name = name[-MAX_LABEL:].lstrip("-")
            names.add(name)
            taken.add((protocol, number))
            found.append({"name": name, "protocol": protocol, "port": number, "targetPort": number})
    return found


def _difference(canary: JSON, existing: JSON, wanted: JSON) -> JSON:
    """Return the merge patch from `existing` to `wanted`; empty for none."""
    spec: JSON = {}
    held: JSON = existing.get("spec") or {}
    if [_shape(port) for port in held.get("ports") or []] != wanted["spec"]["ports"]:
        spec["ports"] = _keep_node_ports(held.get("ports") or [], wanted["spec"]["ports"])
    selector = _map_patch(held.get("selector"), wanted["spec"]["selector"])
    if selector:
        spec["selector"] = selector
    meta: JSON = {}
    if selector and not _ours(canary, existing) and controller_of(existing) is None:
        notes = existing["metadata"].get("annotations") or {}
        if ORIGINAL not in notes and held.get("selector"):
            # It was there before the Canary, and is to be as before when the Canary goes (O8).
            kept = json.dumps(held["selector"], sort_keys=True, separators=(",", ":"))
            meta["annotations"] = {ORIGINAL: kept}
    if _ours(canary, existing):
        distribution = wanted["spec"].get("trafficDistribution")
        if distribution != held.get("trafficDistribution"):
            spec["trafficDistribution"] = distribution  # O10; null removes it
        free = (canary["spec"]["service"].get("unmanagedMetadata")) or {}
        for field in ("labels", "annotations"):
            change = _map_patch(existing["metadata"].get(field), wanted["metadata"][field])
            for key in free.get(field) or []:
                change.pop(key, None)
            if change:
                meta[field] = change
    return ({"spec": spec} if spec else {}) | ({"metadata": meta} if meta else {})


def _shape(port: JSON) -> JSON:
    """A port without what the API server adds."""
    shape = {key: port[key] for key in _PORT_FIELDS if port.get(key) is not None}
    return {"protocol": "TCP"} | shape


def _keep_node_ports(held: list[JSON], wanted: list[JSON]) -> list[JSON]:
    numbers = {port.get("name"): port["nodePort"] for port in held if port.get("nodePort")}
    return [
        port | {"nodePort": numbers[port["name"]]} if port["name"] in numbers else port
        for port in wanted
    ]


def _map_patch(held: JSON | None, wanted: JSON) -> JSON:
    """Return the merge patch between two flat maps; a null removes a key."""
    held = held or {}
    patch: dict[str, Any] = {key: None for key in held if key not in wanted}
    patch |= {key: value for key, value in wanted.items() if held.get(key) != value}
    return patch


def _ours(canary: JSON, service: JSON) -> bool:
    owner = controller_of(service) or {}
    return owner.get("kind") == KIND and owner.get("name") == canary["metadata"]["name"]
