"""The line of those that want to analyse: who has a slot, who waits, and in which order (deviation D4). Pure.

All of it follows from the Canaries themselves, so a controller that is started anew comes to the same order. What holds a slot is read from
the status alone, never from what a user may edit: nobody gets a slot, or gets one back, but by a status write that a turn was granted for.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core.decision import JSON, Turn
from harness.controller.core.moments import seconds, stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.controller.core.policy import Policy

PHASE: Final = "Progressing"
"""The phase in which an analysis is under way."""
PRIORITY: Final = "rollout-drill/priority"
"""Annotation of a Canary: a whole number; a higher one goes first."""
HUMAN: Final = frozenset({"ConfirmTrafficIncrease", "ConfirmPromotion"})
"""Reasons of condition Held for which a person is waited for."""
ALL: Final = "--max-concurrent-analyses"
EACH: Final = "--max-concurrent-analyses-per-namespace"
MOST_JITTER: Final = 0.1
"""Part of an interval."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,9}")

Key = tuple[bool, int, float, str, str]


@dataclass(frozen=True, slots=True)
class Entrant:
    """One that waits, or would."""

    name: str
    namespace: str
    seen: float
    """When its change was seen, or its slot given up: seconds since the epoch, as stamped in the status."""
    priority: int = 0
    regaining: bool = False
    """Its analysis had begun: it had a slot before."""

    @property
    def key(self) -> Key:
        """What sorts the line: regaining first, then by priority, then by time, ties by name."""
        return (not self.regaining, -self.priority, self.seen, self.name, self.namespace)


def holds(canary: JSON) -> bool:
    """Whether a Canary has a slot: its analysis is under way, and neither waits for a person nor for a slot."""
    status: JSON = canary.get("status") or {}
    if status.get("phase") != PHASE or canary["metadata"].get("deletionTimestamp"):
        return False
    return not (in_line(status) or at_gate(status))


def in_line(status: JSON) -> bool:
    """Whether a status says that its Canary waits for its turn, or will once it can go on."""
    return (cond.find(status, cond.QUEUED) or {}).get("status") == "True"


def at_gate(status: JSON) -> bool:
    """Whether a person has to open a gate of this run first."""
    return (cond.find(status, cond.HELD) or {}).get("reason") in HUMAN


def waits(canary: JSON) -> bool:
    """Whether a Canary is in the line and nothing that is seen on it keeps it from taking its turn."""
    status: JSON = canary.get("status") or {}
    refused = cond.find(status, cond.ACCEPTED) is not None
    suspended = bool(canary["spec"].get("suspend"))
    gone = bool(canary["metadata"].get("deletionTimestamp"))
    return in_line(status) and not (refused or suspended or gone)


def entrant(canary: JSON, now: float) -> Entrant:
    """Return a Canary's place in the order; one that is not in the line yet joins it at `now` (seconds since the epoch)."""
    meta = canary["metadata"]
    return Entrant(
        str(meta["name"]),
        str(meta.get("namespace") or ""),
        _seen(canary, now),
        priority(canary),
        (canary.get("status") or {}).get("phase") == PHASE,
    )


def _seen(canary: JSON, now: float) -> float:
    status: JSON = canary.get("status") or {}
    known = cond.since(status, cond.QUEUED) if in_line(status) else None
    if known is None and status.get("phase") == "Waiting":
        # A gate held it back before its start; its change was seen when the wait began.
        known = cond.since(status, cond.PROMOTED, "lastUpdateTime")
    elif known is None and (cond.find(status, cond.HELD) or {}).get("reason") == "ConfirmRollout":
        known = cond.since(status, cond.HELD)
    if known is not None:
        return known
    return seconds(stamp(now)) or now


def priority(canary: JSON) -> int:
    """Return the priority that a Canary asks for; 0 when it asks for none, or for what is no number."""
    text = _asked(canary)
    return int(text) if text is not None and _NUMBER.fullmatch(text) else 0


def problem(canary: JSON) -> str:
    """Return why the priority that a Canary asks for is ignored; empty when it is not."""
    text = _asked(canary)
    if text is None or _NUMBER.fullmatch(text):
        return ""
    return f"Annotation {PRIORITY} is {text!r}, which is no whole number such as 0 or 10: it is ignored."


def _asked(canary: JSON) -> str | None:
    value = (canary["metadata"].get("annotations") or {}).get(PRIORITY)
    return None if value is None else str(value).strip()


def limit_of(policy: Policy) -> tuple[int, str] | None:
    """Return the limit for a controller of one namespace, and in words: the smaller one; None when there is none."""
    given = ((policy.most_analyses, ALL), (policy.most_analyses_per_namespace, EACH))
    known = [(number, flag) for number, flag in given if number is not None]
    if not known:
        return None
    number, flag = min(known)
    return number, worded(number, flag)


def worded(number: int, flag: str) -> str:
    """Return a limit in words."""
    many = "1 analysis" if number == 1 else f"{number} analyses"
    return f"at most {many} at a time ({flag})"


def turns(
    entrants: Iterable[Entrant], held: Mapping[str, int], policy: Policy
) -> dict[tuple[str, str], Turn]:
    """Return whose turn it is, and where the others stand: by (namespace, name).

    `held`: slots in use by namespace. A namespace at its own limit holds nobody else up. Positions count those who wait, whatever for.
    """
    used, total = dict(held), sum(held.values())
    granted: dict[tuple[str, str], Turn] = {}
    waiting: list[tuple[Entrant, str]] = []
    for one in sorted(entrants, key=lambda each: each.key):
        here = used.get(one.namespace, 0)
        if policy.most_analyses is not None and total >= policy.most_analyses:
            waiting.append((one, worded(policy.most_analyses, ALL)))
        elif (each := policy.most_analyses_per_namespace) is not None and here >= each:
            waiting.append((one, worded(each, EACH)))
        else:
            granted[one.namespace, one.name] = Turn(granted=True)
            used[one.namespace] = here + 1
            total += 1
    many = len(waiting)
    return granted | {
        (one.namespace, one.name): Turn(False, index, many, why)  # noqa: FBT003 - what the first field is called says it
        for index, (one, why) in enumerate(waiting, start=1)
    }


def position(canary: JSON, canaries: Iterable[JSON], now: float) -> Turn:
    """Return where a Canary stands among those of its namespace that wait, whatever the limit is (`drill explain`)."""
    name = canary["metadata"]["name"]
    others = (one for one in canaries if one["metadata"]["name"] != name and waits(one))
    own = entrant(canary, now)
    keys = [entrant(one, now).key for one in others]
    return Turn(
        granted=False, position=1 + sum(key < own.key for key in keys), waiting=1 + len(keys)
    )


def jitter(canary: JSON, revision: str) -> float:
    """Return by which part of its interval the first check of a run is delayed: 0 to a tenth, always the same for Canary and revision.

    Runs that get their slots in the same moment would ask their metrics in the same moment for ever after.
    """
    digest = hashlib.sha256(f"{canary['metadata'].get('uid')}|{revision}".encode()).digest()
    return MOST_JITTER * int.from_bytes(digest[:4], "big") / 2**32
