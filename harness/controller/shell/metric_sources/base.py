"""What a source of metrics is: one coroutine that takes a rendered query and returns a number, or says why not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.controller.shell.http import Http


class QueryFailedError(Exception):
    """The source could not be asked, or refused; the message is one clause without anything secret."""


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


Source = Callable[[Http, Query], Awaitable[float | None]]
"""Returns the number, which may be NaN; None when the query found nothing. Raises QueryFailedError."""
