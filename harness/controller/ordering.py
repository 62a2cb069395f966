"""An order for a frozen canary, given from outside (spec freeze-and-adopt 3.2): who gives it sees what it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.controller.core import conditions as cond
from harness.controller.core import frozen
from harness.kube.errors import Conflict, NotFound
from harness.kube.resource import CANARY

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.kube.client import KubeClient

Verb = Literal["promote", "rollback"]
MANAGER = "rollout-drill-cli"


class OrderError(Exception):
    """No order can be given; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Order:
    """What would be asked, and of what."""

    canary: str
    verb: Verb
    revision: str
    since: str
    why: str
    """Why it is frozen, as its condition says."""

    @property
    def annotation(self) -> str:
        """The annotation's value."""
        return f"{self.verb} {self.revision}"

    def text(self, *, given: bool) -> str:
        """Return lines for people."""
        does = {
            "promote": "the primary gets the frozen revision, and then all traffic",
            "rollback": "the traffic goes back to the primary, and the frozen revision to zero",
        }[self.verb]
        last = (
            "Given: the controller carries it out in its next pass, and removes the annotation."
            if given
            else "Nothing was written; --apply gives the order."
        )
        return "\n".join(
            (
                f"Canary {self.canary}: frozen since {self.since}",
                f"  why       {self.why}",
                f"  revision  {self.revision}",
                f"  order     {self.verb}: {does}",
                f"  written   annotation {frozen.ORDER}: {self.annotation}",
                last,
            )
        )


def order_for(canary: JSON, verb: Verb) -> Order:
    """Return the order for what a Canary has frozen. Raises OrderError when nothing is."""
    status: JSON = canary.get("status") or {}
    name, phase = canary["metadata"]["name"], str(status.get("phase") or "none")
    if phase != frozen.PHASE:
        msg = f"Canary {name} is not frozen: its phase is {phase}"
        raise OrderError(msg)
    promoted = cond.find(status, cond.PROMOTED) or {}
    return Order(
        name,
        verb,
        str(status.get("lastAppliedSpec") or ""),
        str(promoted.get("lastUpdateTime") or "an unknown time"),
        str(promoted.get("message") or ""),
    )


async def give(client: KubeClient, namespace: str, name: str, verb: Verb, *, apply: bool) -> Order:
    """Give an order; without `apply` only work it out. Raises OrderError, and KubeError for everything unexpected.

    The Canary must be the one that was looked at: an order never reaches a revision that came in between.
    """
    try:
        canary = await client.get(CANARY, name, namespace)
    except NotFound as error:
        msg = f"there is no Canary {name} in namespace {namespace}"
        raise OrderError(msg) from error
    found = order_for(canary, verb)
    if apply:
        version = canary["metadata"]["resourceVersion"]
        meta = {"resourceVersion": version, "annotations": {frozen.ORDER: found.annotation}}
        try:
            await client.patch(CANARY, name, namespace, {"metadata": meta}, field_manager=MANAGER)
        except Conflict as error:
            msg = f"Canary {name} has changed meanwhile: look at it again"
            raise OrderError(msg) from error
    return found
