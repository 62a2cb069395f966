"""What can go wrong between the harness and an API server.

KubeError
 ├─ ConfigError          the kubeconfig, its context or its credentials cannot be used
 ├─ Unreachable          no answer: refused, reset, silent for too long
 └─ ApiError             an answer, and it is no
     ├─ Unauthorized     401
     ├─ Forbidden        403
     ├─ NotFound         404
     ├─ Conflict         409, e.g. a precondition (uid, resourceVersion) does not hold
     │   └─ AlreadyExists
     ├─ Gone             410, the version asked for is no longer kept
     ├─ Invalid          400, 413, 415, 422
     ├─ TooManyRequests  429
     └─ ServerError      500 and above
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT_LIMIT: Final = 300
"""Characters of a body that is no Status (a proxy's page, say) that an error quotes."""


class KubeError(Exception):
    """Base of everything that this package raises on purpose."""


class ConfigError(KubeError):
    """The kubeconfig cannot be used; the message is one sentence that names file and entry."""


class Unreachable(KubeError):  # noqa: N818 - reads as the state it reports
    """The API server gave no answer, or stopped in the middle of one.

    `sent`: whether it may have seen the request, so that only idempotent ones may be repeated.
    `final`: whether repeating is pointless (a certificate that does not verify).
    """

    def __init__(self, message: str, *, sent: bool = True, final: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.final = final


class ApiError(KubeError):
    """An answer of the API server with a status of 400 or above.

    `reason` is the Status' machine-readable reason (`AlreadyExists`, `Expired`, …), `message` its
    text, `details` its raw details, `retry_after` the seconds the server asks to wait.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        *,
        request: str = "",
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.details = dict(details or {})
        self.request = request
        self.retry_after = retry_after
        prefix = f"{request}: " if request else ""
        super().__init__(f"{prefix}{status} {reason}: {message}")


class Unauthorized(ApiError):  # noqa: N818 - named as the API names it
    """401: the credentials are missing or have expired."""


class Forbidden(ApiError):  # noqa: N818 - named as the API names it
    """403: the credentials do not allow it."""


class NotFound(ApiError):  # noqa: N818 - named as the API names it
    """404: no such object, or no such resource type."""


class Conflict(ApiError):  # noqa: N818 - named as the API names it
    """409: a precondition does not hold, or another field manager owns the field."""


class AlreadyExists(Conflict):
    """409 on creation: an object of that name exists."""


class Gone(ApiError):  # noqa: N818 - named as the API names it
    """410: the resource version asked for is no longer kept."""


class Invalid(ApiError):  # noqa: N818 - named as the API names it
    """400, 413, 415 or 422: the request can never succeed as it is."""


class TooManyRequests(ApiError):  # noqa: N818 - named as the API names it
    """429: the server wants to be asked later, and has done nothing."""


class ServerError(ApiError):
    """500 and above."""


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooManyRequests,
}
_SERVER_ERRORS: Final = 500


def from_status(
    status: Mapping[str, Any], *, code: int = 0, request: str = "", retry_after: float | None = None
) -> ApiError:
    """Return the error for a raw `Status` object (`{kind: Status, code, reason, message, …}`)."""
    code = int(status.get("code") or code)
    reason = str(status.get("reason") or "Unknown")
    details = status.get("details")
    details = details if isinstance(details, dict) else {}
    if retry_after is None and details.get("retryAfterSeconds"):
        retry_after = float(details["retryAfterSeconds"])
    cls = _BY_STATUS.get(code, ServerError if code >= _SERVER_ERRORS else ApiError)
    if cls is Conflict and reason == "AlreadyExists":
        cls = AlreadyExists
    message = str(status.get("message") or "no message")
    return cls(code, reason, message, details, request=request, retry_after=retry_after)


def from_answer(
    code: int, body: bytes, headers: Mapping[str, str], *, request: str = ""
) -> ApiError:
    """Return the error for an HTTP answer; a body that is no Status is quoted, shortened."""
    retry_after = _seconds(headers.get("retry-after", ""))
    try:
        status = json.loads(body)
    except ValueError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = " ".join(body.decode("utf-8", "replace").split())[:_TEXT_LIMIT]
        status = {"message": text or "an answer without a body"}
    return from_status({**status, "code": code}, request=request, retry_after=retry_after)


def _seconds(value: str) -> float | None:
    return float(value) if value.strip().isdigit() else None
