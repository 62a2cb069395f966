"""The rules about traffic: it begins with a step that there is, asks somebody, and only where pods can be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.model.traffic import NETWORK

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.scenario.validate import Rules


def _begins_with_a_step(rules: Rules) -> None:
    traffic = rules.spec.get("traffic")
    if isinstance(traffic, dict):
        known = tuple(rules.step_names)
        rules.refer(("spec", "traffic", "after"), traffic.get("after"), known, "step")


def _others_need_a_port(rules: Rules) -> None:
    traffic = rules.spec.get("traffic")
    if not isinstance(traffic, dict):
        return
    service = traffic.get("service")
    if isinstance(service, str) and "." in service and traffic.get("port") is None:
        message = f"{service!r} is of another namespace, so that its port has to be said in spec.traffic.port"
        rules.report(("spec", "traffic", "service"), message)


def _feature_is_required(rules: Rules) -> None:
    required = rules.spec.get("requires")
    if rules.spec.get("traffic") is None or (isinstance(required, list) and NETWORK in required):
        return
    message = f"needs pods that can be reached, which simulated ones cannot: add {NETWORK!r} to spec.requires"
    rules.report(("spec", "traffic"), message, key=True)


RULES: Final[tuple[Callable[[Rules], None], ...]] = (
    _begins_with_a_step,
    _others_need_a_port,
    _feature_is_required,
)
"""Every rule; each looks at the whole document and reports all that breaks it."""
