"""The one HTTP client for everything outside the cluster: webhooks, metrics, alerts.

Each request has its own connection, so that none is sent into one that the other side has just closed, and none is left when it is over.
There is no limit on how many are under way: one that hangs must not hold up those of other Canaries.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from harness.controller.shell.wording import host_of
from harness.kube.sockets import Sockets
from harness.kube.transport import environment_proxy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import aiohttp
    from aiohttp.abc import AbstractResolver

BODY: Final = 2**16
"""Bytes of an answer that are read unless more is asked for."""
REDIRECTS: Final = 10
_MOVED: Final = frozenset({301, 302, 303})
_MOVED_AS_IT_IS: Final = frozenset({307, 308})


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whatever its status. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body, as far as it is text."""
        return self.body.decode("utf-8", "replace")


class NoAnswerError(Exception):
    """There was no answer. The message is one clause that names host and cause, and nothing else of the address.

    `final`: asking again is pointless. `timed_out`: the time was over, so that nobody knows whether there would have been one.
    """

    def __init__(self, message: str, *, final: bool = False, timed_out: bool = False) -> None:
        super().__init__(message)
        self.final = final
        self.timed_out = timed_out


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. `timeout` (seconds) bounds all of it, redirects and body included."""

    method: str
    url: str
    timeout: float
    body: Any = None
    """Sent as JSON."""
    headers: Mapping[str, str] | None = None
    """Sent to the host of `url` only, not to where it may redirect."""
    verify: bool = True
    """Whether a certificate must be trusted."""
    proxy: str = ""
    """Proxy to go through, instead of the environment's."""
    limit: int = BODY
    once: bool = False
    """A GET whose connection breaks off is not repeated by the HTTP library."""


class Http:
    """Sends requests until it is closed. Use it inside one event loop."""

    def __init__(self, *, user_agent: str, resolver: AbstractResolver | None = None) -> None:
        self._user_agent = user_agent
        self._resolver = resolver
        self._sockets = Sockets()
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, ask: Ask) -> Reply:
        """Send a request, following redirects as a Go client does. Raises NoAnswerError."""
        with _explained(ask.url, ask.timeout):
            async with asyncio.timeout(ask.timeout):
                return await self._follow(ask)

    async def close(self) -> None:
        """Close every connection, those of requests under way too."""
        if self._session is not None:
            await self._session.close()
        await self._sockets.close()

    async def _follow(self, ask: Ask) -> Reply:
        method, url, body = ask.method, ask.url, ask.body
        headers = dict(ask.headers or {})
        for _ in range(REDIRECTS + 1):
            reply = await self._send(ask, method, url, body, headers)
            target = reply.headers.get("location", "")
            if not target or reply.status not in _MOVED | _MOVED_AS_IT_IS:
                return reply
            if reply.status in _MOVED and method != "HEAD":
                method, body = "GET", None
            before, url = url, urljoin(url, target)
            if urlsplit(before)[:2] != urlsplit(url)[:2]:
                headers = {}
        msg = f"{host_of(ask.url)} redirects more than {REDIRECTS} times"
        raise NoAnswerError(msg, final=True)

    async def _send(
        self, ask: Ask, method: str, url: str, body: Any, headers: Mapping[str, str]
    ) -> Reply:
        if not is_http(url):
            msg = f"{host_of(url)}: not an http or https address"
            raise NoAnswerError(msg, final=True)
        # Not aiohttp's own way to heed the environment: it knows no exception for loopback, and adds credentials from ~/.netrc.
        proxy = ask.proxy or environment_proxy(url)
        async with self._open().request(
            method,
            url,
            json=body,
            headers=headers,
            proxy=proxy,
            ssl=True if ask.verify else False,  # noqa: SIM210 - aiohttp takes both literally
            allow_redirects=False,
            middlewares=(_once,) if ask.once else (),
        ) as response:
            found = bytearray()
            async for chunk in response.content.iter_any():
                found += chunk
                if len(found) >= ask.limit:
                    break
            names = {key.lower(): value for key, value in response.headers.items()}
            return Reply(response.status, names, bytes(found[: ask.limit]))

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            from harness.controller.shell.resolver import Resolver

            connector = aiohttp.TCPConnector(
                limit=0,
                force_close=True,
                use_dns_cache=False,
                resolver=self._resolver or Resolver(),
                socket_factory=self._sockets.make,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                # Bounded as a whole, for each request.
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                headers={"User-Agent": self._user_agent},
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session


def is_http(url: str) -> bool:
    """Whether this is an http or https address with a host."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


async def _once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Make of a connection that broke off what the library does not repeat."""
    import aiohttp

    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise  # there was none
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError(type(error).__name__) from error


@contextlib.contextmanager
def _explained(url: str, timeout: float) -> Iterator[None]:
    """Turn every failure of the HTTP library into one clause. Library texts are not used: they may hold the whole address."""
    import aiohttp

    host = host_of(url)
    try:
        yield
    except TimeoutError as error:
        msg = f"no answer from {host} within {timeout:g} s"
        raise NoAnswerError(msg, timed_out=True) from error
    except aiohttp.ClientConnectorDNSError as error:
        msg = f"the name of {host} cannot be resolved"
        raise NoAnswerError(msg) from error
    except aiohttp.ClientSSLError as error:
        cause = getattr(error, "certificate_error", None)
        reason = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else ""
        msg = f"no trusted connection to {host}" + (f": {reason}" if reason else "")
        raise NoAnswerError(msg, final=True) from error
    except aiohttp.ClientProxyConnectionError as error:
        msg = f"the proxy for {host} cannot be reached ({_reason(error.os_error)})"
        raise NoAnswerError(msg) from error
    except aiohttp.ClientHttpProxyError as error:
        msg = f"the proxy for {host} answered {error.status}"
        raise NoAnswerError(msg) from error
    except aiohttp.ClientConnectorError as error:
        msg = f"no connection to {host} ({_reason(error.os_error)})"
        late = isinstance(error.os_error, TimeoutError)
        raise NoAnswerError(msg, timed_out=late) from error
    except aiohttp.InvalidURL as error:
        msg = "the address is not an http or https URL"
        raise NoAnswerError(msg, final=True) from error
    except (aiohttp.ClientError, OSError) as error:
        msg = f"the connection to {host} broke off ({type(error).__name__})"
        raise NoAnswerError(msg) from error
    except ValueError as error:
        msg = f"the request to {host} cannot be made: a bad address or header"
        raise NoAnswerError(msg, final=True) from error


def _reason(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved"
    import os

    return os.strerror(error.errno).lower() if error.errno else type(error).__name__
