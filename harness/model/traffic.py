"""Requests that a probe in the cluster sends while a drill is under way, as a resolved scenario has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

NETWORK: Final = "network"
"""The feature without which nothing can be asked."""
PART_LABEL: Final = "rollout-drill/part"
PROBE: Final = "traffic-probe"
"""Value of that label on the pod that asks. It is no part of what is drilled, so that checks do not see it."""
TRAFFIC: Final = "traffic"
"""What a gap in the probe's log is called, beside the kinds that have watches."""
HOSTNAME: Final = "/hostname"
"""The path that is answered with the name of the pod, by our image and by agnhost."""
RATE: Final = 20
TIMEOUT: Final = 2.0
MOST_PER_SECOND: Final = 200
FAILURES: Final = ("refused", "timeout", "reset", "unreachable", "dns", "status", "other")
"""What a request can fail by; `status`: 400 or more."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is asked, how often, and from when on."""

    after: str = ""
    """Name of the step before whose end it begins."""
    service: str = ""
    """A Service of the drill's namespace, or a name with dots of another one; empty: the rollout's apex."""
    port: int = 0
    """0: the first port of the Service."""
    path: str = HOSTNAME
    host: str = ""
    """Host header; empty: the name of the Service."""
    rate: int = RATE
    """Requests per second."""
    timeout: float = TIMEOUT
    """Seconds."""
    keep_alive: bool = False
    """Whether connections are used again."""


def told_kinds(kinds: Mapping[str, int]) -> str:
    """Return how requests failed: `refused 3, timeout 1`."""
    return ", ".join(f"{kind} {count}" for kind, count in kinds.items() if count)


def read_traffic(value: object) -> Traffic | None:
    """Read the JSON form back; None for anything that is not one."""
    if not isinstance(value, Mapping):
        return None
    default = Traffic()

    def number(key: str, otherwise: float) -> float:
        given: Any = value.get(key)
        good = isinstance(given, int | float) and not isinstance(given, bool)
        return float(given) if good else otherwise

    return Traffic(
        after=str(value.get("after", "")),
        service=str(value.get("service", "")),
        port=int(number("port", 0)),
        path=str(value.get("path", default.path)),
        host=str(value.get("host", "")),
        rate=int(number("rate", default.rate)),
        timeout=number("timeout", default.timeout),
        keep_alive=value.get("keep_alive") is True,
    )
