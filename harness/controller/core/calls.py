"""Questions that a pass asks the world outside the cluster: webhooks and metrics (spec canary-api 5 and 6).

The core never waits. A pass that needs an answer asks for it and decides nothing else; the shell makes the call beside the watches,
and the next pass finds the answer in its World. A call that no pass asks for any more is given up. An answer is dropped with the
first status write after it, so that what was counted once is never counted again; a call whose status write was cut off is made
again (at least once).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

Kind = Literal["webhook", "metric"]
Undecided = Literal["", "TooManyRequests", "TimedOut"]
"""Why a metrics provider gives no verdict, as reason of condition Unmeasured; empty: it gives one."""


@dataclass(frozen=True, slots=True)
class Call:
    """One question. Two calls with the same key are the same question."""

    key: str
    """Names the occasion: hook or metric, phase, counters, and when the status was last written."""
    kind: Kind
    name: str
    """The entry's name, for messages."""
    entry: JSON
    """The raw entry of spec.analysis.webhooks or spec.analysis.metrics."""
    payload: JSON = field(default_factory=dict)
    """webhook: the body to post. metric: what a query may ask for, by the function's name."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    at: float
    """Seconds since the epoch."""
    ok: bool
    """webhook: it answered with success. metric: there is a number."""
    value: float | None = None
    """metric: the number."""
    message: str = ""
    """Why not, in words for people; never a credential."""
    undecided: Undecided = ""
    """metric: it was neither measured nor is it a failed check, because its provider has too much to do. `ok` is False then."""
    retry_after: float | None = None
    """Undecided: seconds from `at` until the provider wants to be asked again; None when it does not say."""
