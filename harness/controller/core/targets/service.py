"""Core Services as targets: what is released is the Service itself, selector and ports, and a mesh splits the traffic (spec objects 9).

From T come `T-canary`, which follows it at all times, and `T-primary`, which follows at promotion; `spec.service.name` plays no part. T is
never written. Copies are raw, without what belongs to one Service alone: addresses, ports of nodes and of health checks (O15). An
existing copy is compared first (O16) and patched in what differs, with its own allocations kept.

Labels and annotations are copied too, but none is ever taken from an existing copy: load balancers and meshes write their own there, and
to remove those in every pass would be a fight without end.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final, Literal

from harness.controller.core.canonical import PREFIX, same
from harness.controller.core.decision import JSON, Plural, Write
from harness.controller.core.names import CANARY_SUFFIX
from harness.controller.core.ownership import (
    controller_of,
    foreign,
    owner_reference,
    without_toolkit,
)
from harness.controller.core.patches import difference
from harness.controller.core.readiness import Readiness
from harness.controller.core.snapshots import service_snapshot
from harness.controller.core.targets.base import Apart
from harness.controller.core.targets.workload import primary_of
from harness.controller.core.templates import REVISION, Difference

if TYPE_CHECKING:
    from harness.controller.core.snapshots import Snapshot
    from harness.controller.core.targets.base import Pair

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ALLOCATED: Final = ("clusterIPs", "healthCheckNodePort")
_HEADLESS: Final = "None"

_Role = Literal["primary", "canary"]


class ServiceTarget(Apart):
    """`v1` Service."""

    kind = "Service"
    plural: Plural = "services"
    pods = False
    scales = False
    copies = True

    def problem(self, _target: JSON) -> str:
        """Every Service can be handled."""
        return ""

    def snapshot(self, target: JSON) -> Snapshot:
        """Return hash of the spec, and resourceVersion as fence."""
        return service_snapshot(target)

    def rolled_out(self, _obj: JSON, _percent: int) -> Readiness:
        """A Service is always ready."""
        return Readiness()

    def expected(self, _obj: JSON) -> int:
        """It has no pods of its own."""
        return 0

    def canary_ready(self, _pair: Pair, _percent: int) -> Readiness:
        """A Service is always ready."""
        return Readiness()

    def primary_ready(self, _pair: Pair, _percent: int) -> Readiness:
        """A Service is always ready."""
        return Readiness()

    def idle(self, _pair: Pair) -> bool:
        """Nothing can be put to zero."""
        return True

    def empty(self, _pair: Pair) -> bool:
        """Pods behind a Service are nobody's business here."""
        return False

    def to_zero(self, _pair: Pair) -> tuple[Write, ...]:
        """Nothing can be put to zero."""
        return ()

    def to_run(self, _pair: Pair) -> tuple[Write, ...]:
        """Nothing can be put to zero."""
        return ()

    def exists(self, pair: Pair) -> bool:
        """Whether the primary was read."""
        return pair.primary is not None

    def create(self, pair: Pair) -> tuple[Write, ...]:
        """Make `T-primary`."""
        return (_create(pair, "primary"),)

    def keep(self, pair: Pair) -> tuple[Write, ...]:
        """Let `T-canary`, looked for in `Pair.objects`, be as the target is; one of another controller is left alone."""
        existing = (pair.objects.get("services") or {}).get(_name(pair, "canary"))
        return (_create(pair, "canary"),) if existing is None else _update(pair, existing, "canary")

    def promote(self, pair: Pair) -> tuple[Write, ...]:
        """Let `T-primary` be as the target is."""
        return _update(pair, primary_of(pair), "primary")

    def revision_of(self, pair: Pair) -> str:
        """Return the annotation of `T-primary`."""
        meta = (pair.primary or {}).get("metadata") or {}
        value = str((meta.get("annotations") or {}).get(REVISION) or "")
        return value if value.startswith(PREFIX) else ""

    def holds(self, pair: Pair) -> bool:
        """Whether `T-primary` has the target's spec, allocations aside."""
        return pair.primary is not None and not self.differences(pair)

    def differences(self, pair: Pair) -> tuple[Difference, ...]:
        """Compare the specs, allocations aside, field by field of the first level."""
        wanted, held = _spec(pair.target), _spec(primary_of(pair))
        return tuple(
            Difference(("spec", key), lost=held.get(key) is None)
            for key in sorted({*wanted, *held})
            if not same(wanted.get(key), held.get(key))
        )

    def revert(self, _pair: Pair) -> tuple[Write, ...]:
        """The target was never touched."""
        return ()


def _name(pair: Pair, role: _Role) -> str:
    return pair.names.primary if role == "primary" else pair.names.target + CANARY_SUFFIX


def _create(pair: Pair, role: _Role) -> Write:
    name = _name(pair, role)
    body: JSON = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": pair.names.namespace,
            **_metadata(pair, role),
            "ownerReferences": [owner_reference(pair.canary)],
        },
        "spec": _spec(pair.target),
    }
    return Write("create", "services", name, body)


def _update(pair: Pair, existing: JSON, role: _Role) -> tuple[Write, ...]:
    if foreign(existing, pair.canary):
        return ()
    meta = existing["metadata"]
    wanted, held = _spec(pair.target), _spec(existing)
    if _cannot_become(held, wanted):
        gone = Write("delete", "services", meta["name"], {}, meta["resourceVersion"])
        return (gone, _create(pair, role))
    spec = difference(held, wanted)
    if "ports" in spec:
        spec["ports"] = _with_node_ports(wanted.get("ports"), existing["spec"].get("ports"))
    change: JSON = {}
    for field, values in _metadata(pair, role).items():
        present = meta.get(field) or {}
        added = {key: value for key, value in values.items() if present.get(key) != value}
        if added:
            change[field] = added
    if controller_of(existing) is None:
        # What another controller made carries the target's owners (O15), and would outlive its Canary.
        others = meta.get("ownerReferences") or []
        change["ownerReferences"] = [*others, owner_reference(pair.canary)]
    patch = ({"metadata": change} if change else {}) | ({"spec": spec} if spec else {})
    if not patch:
        return ()
    return (Write("patch", "services", meta["name"], patch, meta["resourceVersion"]),)


def _metadata(pair: Pair, role: _Role) -> JSON:
    """Return labels and annotations that a copy has from the target."""
    meta = pair.target["metadata"]
    notes = without_toolkit(meta.get("annotations"))
    notes.pop(LAST_APPLIED, None)
    if role == "primary":
        notes[REVISION] = pair.revision
    return {"labels": without_toolkit(meta.get("labels")), "annotations": notes}


def _spec(service: JSON) -> JSON:
    """Return a copy of a Service's spec without what is allocated to it alone; that it is headless is no allocation."""
    spec: JSON = {
        key: copy.deepcopy(value)
        for key, value in service["spec"].items()
        if key not in _ALLOCATED and (key != "clusterIP" or value == _HEADLESS)
    }
    for port in spec.get("ports") or []:
        port.pop("nodePort", None)
    return spec


def _cannot_become(held: JSON, wanted: JSON) -> bool:
    """Whether only a new Service will do: a cluster address is for life, and so is having none."""
    external = "ExternalName" in (held.get("type"), wanted.get("type"))
    return not external and held.get("clusterIP") != wanted.get("clusterIP")


def _with_node_ports(wanted: list[JSON] | None, held: list[JSON] | None) -> list[JSON] | None:
    """Return ports with the node ports that ports of the same name have already."""
    numbers = {port.get("name"): port["nodePort"] for port in held or [] if port.get("nodePort")}
    if wanted is None:
        return None
    return [
        port | {"nodePort": numbers[port.get("name")]} if port.get("name") in numbers else port
        for port in wanted
    ]
