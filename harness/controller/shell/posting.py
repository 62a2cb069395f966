"""Posting JSON, repeated while it makes sense: webhooks and alerts (spec canary-api 6; deviations A1 and A2)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import tenacity

from harness.controller.shell.http import Ask, NoAnswerError
from harness.controller.shell.wording import cleaned, host_of, secrets_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from harness.controller.shell.http import Http, Reply

LONGEST_WAIT: Final = 30.0
"""Seconds; waits of ours grow from 1 to this."""
LONGEST_ASKED: Final = 300.0
"""Seconds; who asks by Retry-After to be left alone for longer gets no further attempt: the answer would come too late to be one."""
_OK: Final = range(200, 300)
_NOT_IMPLEMENTED: Final = 501


@dataclass(frozen=True, slots=True)
class Post:
    """What is posted where. `timeout` is that of one attempt, in seconds."""

    url: str
    body: Any
    timeout: float
    retries: int = 0
    verify: bool = True
    proxy: str = ""
    token: str = ""
    """Sent as bearer token."""
    secrets: tuple[str, ...] = ()
    """What no message may repeat, beyond the parts of the URL."""


@dataclass(frozen=True, slots=True)
class Posted:
    """How it went."""

    ok: bool
    message: str = ""
    """Why not; one clause without anything secret."""
    text: str = ""
    """Body of the answer."""


@dataclass
class _FailedError(Exception):
    """One attempt that was no success."""

    message: str
    again: bool
    retry_after: float | None = None
    name: str = field(default="failed", init=False)


class Poster:
    """Posts. `sleep` and `clock` are replaced in tests."""

    def __init__(
        self,
        http: Http,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._http = http
        self._sleep = sleep
        self._clock = clock

    async def post(self, post: Post) -> Posted:
        """Post until an answer is a success, or cannot become one, or the retries are used up. Raises nothing of its own.

        Success is any 2xx. Repeated are failures to connect, 429, and 5xx but 501.
        """
        attempts = tenacity.AsyncRetrying(
            sleep=self._sleep,
            wait=_wait,
            stop=lambda state: _stops(state, post.retries),
            retry=tenacity.retry_if_exception(lambda e: isinstance(e, _FailedError) and e.again),
            reraise=True,
        )
        try:
            reply: Reply = await attempts(self._attempt, post)
        except _FailedError as error:
            tries = attempts.statistics.get("attempt_number", 1)
            times = f" ({tries} attempts)" if tries > 1 else ""
            return Posted(ok=False, message=f"{error.message}{times}")
        return Posted(ok=True, text=reply.text)

    async def _attempt(self, post: Post) -> Reply:
        headers = {"Authorization": f"Bearer {post.token}"} if post.token else {}
        ask = Ask(
            "POST",
            post.url,
            post.timeout,
            body=post.body,
            headers=headers,
            verify=post.verify,
            proxy=post.proxy,
        )
        try:
            reply = await self._http.ask(ask)
        except NoAnswerError as error:
            raise _FailedError(str(error), again=not error.final) from error
        if reply.status in _OK:
            return reply
        hidden = (*secrets_of(post.url), post.token, *post.secrets)
        text = cleaned(reply.text, hidden) or "without a text"
        waits = retry_after(reply.headers, self._clock()) if _busy(reply.status) else None
        message = f"{host_of(post.url)} answered {reply.status}: {text}"
        if waits is not None and waits > LONGEST_ASKED:
            message += f"; it asks to be called again in {waits:g} s, which is too late"
        raise _FailedError(message, again=_repeatable(reply.status), retry_after=waits)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that a Retry-After asks for: a number, or a date that is compared with `now`; None without one."""
    given = headers.get("retry-after", "").strip()
    if given.isascii() and given.isdigit():
        return float(given)
    try:
        return max(parsedate_to_datetime(given).timestamp() - now, 0.0)
    except (TypeError, ValueError):
        return None


def _busy(status: int) -> bool:
    return status in {429, 503}


def _repeatable(status: int) -> bool:
    return status == 429 or (status >= 500 and status != _NOT_IMPLEMENTED)  # noqa: PLR2004 - statuses


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, _FailedError) else None
    if asked is not None:
        return asked
    return float(min(2 ** min(state.attempt_number - 1, 10), LONGEST_WAIT))


def _stops(state: tenacity.RetryCallState, retries: int) -> bool:
    return state.attempt_number > retries or state.upcoming_sleep > LONGEST_ASKED
