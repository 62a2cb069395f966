"""Whether the controller under test can reach what its rollouts name: stand-ins on this machine's loopback, and Services in the cluster.

Pure functions. Each of the two is on one side: out of the cluster no Service name is known (and the controller's requests are fenced to
loopback besides), in the cluster nobody's loopback can be reached.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from harness.model.names import IN_CLUSTER
from harness.model.timeline import Precondition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from harness.model.resolved import Resolved
    from harness.model.timeline import JSON

KINDS: Final = frozenset({"Canary", "MetricTemplate", "AlertProvider", ""})
"""Whose addresses the controller calls; a patch has no kind."""
_ALWAYS: Final = frozenset({"default", "kube-system"})
_SHOWN: Final = 3


def reachable(
    resolved: Resolved,
    objects: Iterable[JSON],
    *,
    subject: str,
    in_cluster: bool,
    namespaces: Collection[str],
    now: float,
) -> Precondition | None:
    """Return why the subject cannot reach what the scenario has it call; None when it can.

    Args:
        resolved: The drill.
        objects: What the drill applies, and what it patches into that.
        subject: Name of the controller under test.
        in_cluster: Whether that runs as a pod.
        namespaces: Those that the cluster has, as far as they are known: `x.NAMESPACE` is a Service's name.
        now: Seconds since time zero.
    """
    if in_cluster:
        if not resolved.placeholders:
            return None
        reason = (
            f"{subject} runs in the cluster, and what the scenario declares as receiver or metrics listens on the loopback "
            "of this machine only"
        )
        return Precondition(now, holds=False, reason=reason)
    # Addresses are secrets to a report, so whose they are is told instead.
    found = (one for obj in objects for one in called(obj))
    names = list(dict.fromkeys(whose for whose, url in found if is_service(url, namespaces)))
    if not names:
        return None
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    reason = (
        f"the address of {', '.join(names[:_SHOWN])}{more} is the name of a Service, which only pods know, and {subject} runs outside of "
        f"the cluster; use --subject {IN_CLUSTER} (on kind, k3s or a cluster of your own)"
    )
    return Precondition(now, holds=False, reason=reason)


def called(obj: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the addresses that a controller calls for a rollout, a MetricTemplate or an AlertProvider, or that a patch puts into one.

    Each behind the words that say whose it is.
    """
    kind = str(obj.get("kind", ""))
    if kind not in KINDS:
        return
    name = _dict(obj.get("metadata")).get("name", "?")
    label = f"{kind} {name}" if kind else "a step's patch"
    spec = _dict(obj.get("spec"))
    for analysis in (_dict(spec.get("analysis")), _dict(spec.get("canaryAnalysis"))):
        hooks = analysis.get("webhooks")
        for hook in hooks if isinstance(hooks, list) else ():
            whose = f"webhook {_dict(hook).get('name', '?')!r} of {label}"
            yield from _text(whose, _dict(hook).get("url"))
    for place in (spec.get("metricsServer"), _dict(spec.get("provider")).get("address")):
        yield from _text(label, place)
    yield from _text(label, spec.get("address"))


def is_service(url: str, namespaces: Collection[str]) -> bool:
    """Return whether an address has the name of a Service: one label, `NAME.NAMESPACE`, `*.svc` or `*.svc.cluster.local`."""
    try:
        host = urlsplit(url if "//" in url else f"//{url}").hostname or ""
    except ValueError:
        return False
    labels = host.removesuffix(".").split(".")
    if not labels[0] or host == "localhost" or _is_address(host):
        return False
    if len(labels) == 1 or labels[-1] == "svc" or labels[-2:] == ["cluster", "local"]:
        return True
    return len(labels) == 2 and labels[1] in {*namespaces, *_ALWAYS}  # noqa: PLR2004 - name and namespace


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(whose: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and value:
        yield whose, value
