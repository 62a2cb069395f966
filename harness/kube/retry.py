"""When a request is repeated, how long is waited before, and when it is given up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import tenacity

from harness.kube.errors import ApiError, ServerError, TooManyRequests, Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_T = TypeVar("_T")

_TRANSIENT: Final = frozenset({500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a request may be repeated; all in seconds.

    `total` bounds the waits of one request together, also those the server asks for: a longer
    Retry-After than what is left ends it at once. `longest` bounds one wait of ours. 30 s are
    enough for a server that restarts or elects a leader, and short enough that a dead one is news.
    """

    total: float = 30.0
    first: float = 0.1
    longest: float = 5.0


def repeatable(error: BaseException, *, idempotent: bool) -> bool:
    """Return whether a request that failed with `error` may be sent again.

    What surely had no effect (no connection, 429) may always be; what may have had one (an answer
    that got lost, 5xx) only when doing it twice is the same as once.
    """
    if isinstance(error, Unreachable):
        return not error.final and (idempotent or not error.sent)
    if isinstance(error, TooManyRequests):
        return True
    return isinstance(error, ServerError) and idempotent and error.status in _TRANSIENT


def _never(_: BaseException) -> bool:
    return False


async def repeated(
    send: Callable[[], Awaitable[_T]],
    *,
    idempotent: bool,
    budget: Budget,
    passing: Callable[[BaseException], bool] = _never,
) -> _T:
    """Await `send()`, again while `repeatable`, or `passing` for a reason that the caller knows, and within `budget`.

    Raises what the last attempt raised, with the number of attempts added to its message.
    """
    backoff = tenacity.wait_random_exponential(
        multiplier=budget.first, max=budget.longest, min=budget.first
    )

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, ApiError) else None
        return backoff(state) if asked is None else max(asked, budget.first)

    def stop(state: tenacity.RetryCallState) -> bool:
        spent = max(state.idle_for, state.seconds_since_start or 0.0)
        return spent + state.upcoming_sleep > budget.total

    attempts = tenacity.AsyncRetrying(
        sleep=asyncio.sleep,
        wait=wait,
        stop=stop,
        retry=tenacity.retry_if_exception(
            lambda e: repeatable(e, idempotent=idempotent) or passing(e)
        ),
        reraise=True,
    )
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        return await attempts(send)
    except (ApiError, Unreachable) as error:
        tries = attempts.statistics.get("attempt_number", 1)
        if tries > 1:
            # With the time that the attempts themselves took: a server that hangs is idle for none of it.
            spent = clock() - began
            error.args = (f"{error} (seen last; given up after {tries} attempts, {spent:.1f} s)",)
        raise
