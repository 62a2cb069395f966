"""Prometheus, and whatever speaks its HTTP API: one instant query (spec canary-api 5)."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, urlsplit, urlunsplit

from harness.controller.shell.http import Ask, NoAnswerError
from harness.controller.shell.metric_sources.base import (
    Query,
    QueryFailedError,
    UndecidedError,
    no_verdict,
)
from harness.controller.shell.wording import cleaned, host_of, secrets_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.controller.shell.http import Http, Reply

LIMIT: Final = 2**22
"""Bytes of an answer; a query that finds more series than that is not one number."""
_OK: Final = range(200, 300)


async def ask(http: Http, query: Query) -> float | None:
    """Return the value of a scalar, or of the first element of a vector; None for an empty one.

    Credentials by Secret: the key `token` (a bearer token), or `username` and `password`. Raises QueryFailedError, and UndecidedError
    for 429, 503 with Retry-After, and time-outs, its own for a query (error type `timeout`) among them.
    """
    address = str(query.provider.get("address") or "")
    if not address:
        msg = "the provider's address is missing"
        raise QueryFailedError(msg)
    request = Ask(
        "GET",
        _url(address, query.text),
        query.timeout,
        headers=_headers(query),
        verify=not query.provider.get("insecureSkipVerify"),
        limit=LIMIT,
        once=query.once,
    )
    try:
        reply = await http.ask(request)
    except NoAnswerError as error:
        if error.timed_out:
            raise UndecidedError(str(error), "TimedOut") from error
        raise QueryFailedError(str(error)) from error
    return _value(host_of(address), reply, _hidden(address, query))


def _url(address: str, text: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError as error:
        msg = "the provider's address is not an http or https URL"
        raise QueryFailedError(msg) from error
    path = parts.path.rstrip("/") + "/api/v1/query"
    asked = "query=" + quote_plus(" ".join(text.split()))
    return urlunsplit((parts.scheme, parts.netloc, path, _joined(parts.query, asked), ""))


def _joined(*queries: str) -> str:
    return "&".join(part for part in queries if part)


def _headers(query: Query) -> dict[str, str]:
    given = query.provider.get("headers") or {}
    headers = {name: ", ".join(map(str, values)) for name, values in given.items()}
    if not query.secret_name:
        return headers
    token = query.secret.get("token")
    if token:
        return {**headers, "Authorization": f"Bearer {token}"}
    username, password = query.secret.get("username"), query.secret.get("password")
    if not username or not password:
        msg = f"Secret {query.secret_name!r} has neither the key token, nor both username and password"
        raise QueryFailedError(msg)
    login = base64.b64encode(f"{username}:{password}".encode()).decode()
    return {**headers, "Authorization": f"Basic {login}"}


def _hidden(address: str, query: Query) -> tuple[str, ...]:
    given = query.provider.get("headers") or {}
    values = (str(value) for several in given.values() for value in several)
    return (*secrets_of(address), *query.secret.values(), *values)


def _value(host: str, reply: Reply, hidden: Iterable[str]) -> float | None:
    hidden = tuple(hidden)
    try:
        document = json.loads(reply.body)
    except ValueError:
        document = None
    reason = no_verdict(reply)
    if isinstance(document, dict) and document.get("errorType") == "timeout":
        reason = reason or "TimedOut"
    if reason:
        raise UndecidedError(_refusal(host, reply, document, hidden), reason, reply.headers)
    if reply.status not in _OK or not isinstance(document, dict):
        raise QueryFailedError(_refusal(host, reply, document, hidden))
    if document.get("status") != "success":
        raise QueryFailedError(_refusal(host, reply, document, hidden))
    data = document.get("data")
    data = data if isinstance(data, dict) else {}
    kind, result = data.get("resultType"), data.get("result")
    if kind == "scalar":
        return _number(host, result)
    if kind == "vector" and isinstance(result, list):
        return _number(host, (result[0] or {}).get("value")) if result else None
    msg = f"{host} answered with {kind or 'no result'}; the query must give a vector or a scalar"
    raise QueryFailedError(msg)


def _number(host: str, sample: Any) -> float:
    """Return the number of a sample, `[time, text]`."""
    try:
        return float(sample[1])
    except (TypeError, ValueError, IndexError, KeyError) as error:
        msg = f"{host} answered with a sample that is no number"
        raise QueryFailedError(msg) from error


def _refusal(host: str, reply: Reply, document: Any, hidden: tuple[str, ...]) -> str:
    told = document.get("error") if isinstance(document, dict) else None
    text = cleaned(str(told) if told else reply.text, hidden) or "without a text"
    if told is None and reply.status in _OK:
        return f"{host} does not answer like Prometheus: {text}"
    return f"{host} answered {reply.status}: {text}"
