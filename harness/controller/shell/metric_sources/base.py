"""What a source of metrics is: one coroutine that takes a rendered query and returns a number, or says why not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.controller.shell.http import Http
from harness.controller.shell.posting import retry_after

if TYPE_CHECKING:
    from harness.controller.core.calls import Undecided
    from harness.controller.shell.http import Reply

_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_TIMED_OUT: Final = 504


class QueryFailedError(Exception):
    """The source could not be asked, or refused; the message is one clause without anything secret."""


class UndecidedError(QueryFailedError):
    """The source has too much to do to answer: neither a number, nor a reason to think ill of what is measured.

    `headers`: those of its answer, with lower-case names; empty when there was none.
    """

    def __init__(
        self, message: str, reason: Undecided, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.headers = headers or {}
        self.retry_after: float | None = None
        """Seconds until it wants to be asked again, within bounds; None when it does not say."""


def no_verdict(reply: Reply) -> Undecided:
    """Return why an answer of a source is no verdict: 429, 503 that says when to come again, and a gateway's time-out; empty when it is one."""
    if reply.status == _TOO_MANY:
        return "TooManyRequests"
    if reply.status == _UNAVAILABLE and retry_after(reply.headers, 0.0) is not None:
        return "TooManyRequests"
    return "TimedOut" if reply.status == _TIMED_OUT else ""


@dataclass(frozen=True, slots=True)
class Query:
    """One question to a source."""

    text: str
    """Rendered."""
    provider: Mapping[str, Any]
    """`spec.provider` of a MetricTemplate: type, address, headers, insecureSkipVerify."""
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What its Secret holds, by key."""
    secret_name: str = ""
    """Its name; empty without a Secret."""
    timeout: float = 10.0
    """Seconds from when it is sent."""
    once: bool = False
    """A connection that breaks off is a failure at once: whoever counts queries does not want one to become two."""


Source = Callable[[Http, Query], Awaitable[float | None]]
"""Returns the number, which may be NaN; None when the query found nothing. Raises QueryFailedError, or UndecidedError when that says nothing of what is measured."""
