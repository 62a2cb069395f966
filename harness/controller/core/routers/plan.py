"""What every mesh is to do for a split, before it is put into the words of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from harness.controller.core.routers import affinity
from harness.controller.core.routers.matches import analysis_matches, product, service_matches

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.routers.base import Wish

FULL: Final = 100
Role = Literal["canary cookie", "primary cookie", "expired cookie", "split", "rest"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a route. The first rule that matches decides."""

    role: Role
    """Only `split` has both backends; the others send everything to one."""
    matches: tuple[JSON, ...]
    """As Istio writes them; none means every request."""
    canary: int
    """The canary's share in percent; the primary gets the rest."""
    mirror: bool = False
    canary_cookie: str = ""
    """Set-Cookie header for the canary's answers."""
    primary_cookie: str = ""
    """The same for the primary's."""

    @property
    def primary(self) -> int:
        """The primary's share."""
        return FULL - self.canary


def rules(wish: Wish, cookie_header: str) -> tuple[Rule, ...]:
    """Return the rules for a split, most particular first.

    `cookie_header`: how the mesh wants the header's name written. In an A/B test the split holds for those that are in it, and a last
    rule gives everybody else the primary; but when the canary is the only healthy copy, outside a test, everybody gets it (case C10).
    """
    canary, share = wish.canary, wish.split
    own = service_matches(canary)
    alone = share.canary == FULL and not wish.running
    tested = () if alone else analysis_matches(canary)
    now = affinity.cookies(canary, share)

    def holding(cookie: str) -> tuple[JSON, ...]:
        sent: JSON = {"headers": {cookie_header: {"regex": affinity.pattern(cookie)}}}
        return product((sent,), own)

    found: list[Rule] = []
    if now.canary:
        found.append(Rule("canary cookie", holding(now.canary), FULL))
    if now.primary:
        found.append(Rule("primary cookie", holding(now.primary), 0))
    if now.previous and not now.canary:
        forget = affinity.expire(canary, now.previous)
        found.append(Rule("expired cookie", holding(now.previous), 0, primary_cookie=forget))
    found.append(
        Rule(
            "split",
            product(tested, own) if tested else own,
            share.canary,
            mirror=share.mirror,
            canary_cookie=affinity.set_canary(canary, now.canary) if now.canary else "",
            primary_cookie=affinity.set_primary(canary, now.primary) if now.primary else "",
        )
    )
    if tested:
        found.append(Rule("rest", own, 0))
    return tuple(found)


def mirror_percent(canary: JSON) -> int:
    """Return the share of requests that is copied to the canary while mirroring, in percent; all of them by default."""
    return int((canary["spec"].get("analysis") or {}).get("mirrorWeight") or FULL)


def problem(canary: JSON) -> str:
    """Return what no mesh can do; empty for nothing."""
    share = (canary["spec"].get("analysis") or {}).get("mirrorWeight")
    if share is not None and not 0 <= share <= FULL:
        return f"spec.analysis.mirrorWeight: {share}; allowed: 0 to {FULL} (0 means {FULL})"
    return affinity.problem(canary)
