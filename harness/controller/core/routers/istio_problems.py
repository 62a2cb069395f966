"""What of a Canary Istio cannot do. One sentence with the field and what is allowed; then nothing is written (G1)."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from harness.controller.core.routers import plan
from harness.controller.core.routers.istio_rules import is_tcp
from harness.controller.core.routers.matches import condition_problem, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.controller.core.decision import JSON

_CONDITIONS: Final = ("uri", "scheme", "method", "authority")
_NAMED: Final = ("headers", "queryParams", "withoutHeaders")
_HTTP_ONLY: Final = ("match", "mirror", "sessionAffinity")


def problem(canary: JSON) -> str:
    """Return the first thing that cannot be done; empty when all can."""
    found = chain(_delegation(canary), _conditions(canary), _connections(canary))
    return next((one for one in found if one), "") or plan.problem(canary)


def _delegation(canary: JSON) -> Iterator[str]:
    service: JSON = canary["spec"].get("service") or {}
    if not service.get("delegation"):
        return
    for field in ("hosts", "gateways"):
        if service.get(field):
            yield (
                f"spec.service.{field} cannot be used with spec.service.delegation: they belong to the"
                " VirtualService that delegates"
            )


def _conditions(canary: JSON) -> Iterator[str]:
    for where, entry in numbered(canary):
        for field in _CONDITIONS:
            if entry.get(field):
                yield condition_problem(f"{where}.{field}", entry[field])
        for field in _NAMED:
            for name, condition in (entry.get(field) or {}).items():
                # A header with nothing to compare means that it must be there (or must not).
                if condition or field == "queryParams":
                    yield condition_problem(f"{where}.{field}.{name}", condition)


def _connections(canary: JSON) -> Iterator[str]:
    analysis: JSON = canary["spec"].get("analysis") or {}
    if is_tcp(canary):
        for field in _HTTP_ONLY:
            if analysis.get(field):
                yield f"spec.analysis.{field} needs HTTP, but spec.service.appProtocol is tcp"
