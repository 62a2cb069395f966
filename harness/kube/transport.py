"""How requests reach an API server: a small protocol, and its one implementation over HTTP.

Everything above it speaks in `Request` and `Response`, so that tests inject a transport that never
opens a socket (`harness.kube.testing.FakeCluster`).
"""

from __future__ import annotations

import contextlib
import ipaddress
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from harness.kube.config import discard_temporary_files
from harness.kube.errors import ConfigError, Unreachable
from harness.kube.sockets import Sockets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from harness.kube.config import Credentials

CONNECT_SECONDS: Final = 10.0
"""Longest wait for a connection, TLS included."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `path` begins with `/` and holds the encoded query.

    `limit` bounds the whole exchange and `silence` the time between two reads, both in seconds;
    None is no bound, which only a watch may ask for, and only for `limit`.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    limit: float | None = 60.0
    silence: float = 60.0


class Response(Protocol):
    """An answer whose body may still be coming. Header names are lower case."""

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers by lower-case name."""
        ...

    async def read(self) -> bytes:
        """Return the whole body. Raises Unreachable."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes, cut anywhere. Raises Unreachable when it breaks off."""
        ...


class Transport(Protocol):
    """A way to one API server."""

    def open(self, request: Request) -> AbstractAsyncContextManager[Response]:
        """Send `request`; leaving the context closes an unfinished exchange at once.

        Raises Unreachable (also from within the context). An answer of 400 and above is an answer.
        """
        ...

    async def renew(self) -> bool:
        """Renew the credentials after a 401; False when there is nothing that could be renewed."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class HttpTransport:
    """The transport over HTTP(S): credentials and TLS as `harness.kube.config` loaded them."""

    def __init__(self, credentials: Credentials) -> None:
        self._sockets = Sockets()
        self._credentials = credentials
        configuration = credentials.configuration
        # Every watch holds a connection: any limit would let some of them starve the rest.
        configuration.connection_pool_maxsize = 0
        # The environment's proxies are looked up below instead, where loopback can be left out,
        # and where ~/.netrc cannot add credentials that nobody asked for.
        configuration.client_session_kwargs = {"trust_env": False}
        if configuration.proxy is None:
            configuration.proxy = environment_proxy(configuration.host)
        try:
            self._rest: Any = _rest_client(configuration, self._sockets)
        except OSError as error:  # ssl.SSLError is one
            msg = f"{credentials.origin}: its certificates cannot be used ({error})"
            raise ConfigError(msg) from error
        finally:
            discard_temporary_files()

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Response]:
        """Send one request (see `Transport.open`)."""
        import aiohttp

        if await self._credentials.refresh():
            self._take_certificate()
        headers = {**self._credentials.headers(), **request.headers}
        timeout = aiohttp.ClientTimeout(
            total=request.limit, connect=CONNECT_SECONDS, sock_read=request.silence
        )
        url = self._credentials.configuration.host + request.path
        with _translated(url):
            answer = await self._rest.request(
                request.method, url, headers, request.body, _request_timeout=timeout
            )
        try:
            yield _HttpResponse(answer.response, url)
        finally:
            # close(), not release(): a watch that is left must not linger in the pool. A body that
            # was read to its end has given its connection back already.
            answer.response.close()

    async def renew(self) -> bool:
        """Ask for new credentials; an exec plugin's new certificate is taken up as well."""
        renewed = await self._credentials.renew()
        if renewed:
            self._take_certificate()
        return renewed

    async def close(self) -> None:
        """Close every connection."""
        await self._rest.close()
        await self._sockets.close()

    def _take_certificate(self) -> None:
        if pair := self._credentials.certificate():
            self._rest.ssl_context.load_cert_chain(*pair)
        discard_temporary_files()


def _rest_client(configuration: Any, sockets: Sockets) -> Any:
    """Return the library's HTTP client, with sockets that are ours to close."""
    import aiohttp
    from kubernetes.aio.client.rest import RESTClientObject

    class Rest(RESTClientObject):
        def _create_connector(self) -> aiohttp.TCPConnector:
            return aiohttp.TCPConnector(
                limit=self.maxsize, ssl=self.ssl_context, socket_factory=sockets.make
            )

    return Rest(configuration)


class _HttpResponse:
    def __init__(self, response: Any, url: str) -> None:
        self._response = response
        self._url = url
        self.status: int = response.status
        self.headers: Mapping[str, str] = {k.lower(): v for k, v in response.headers.items()}

    async def read(self) -> bytes:
        with _translated(self._url):
            body: bytes = await self._response.read()
            return body

    async def chunks(self) -> AsyncIterator[bytes]:
        # Not by lines: aiohttp refuses lines beyond its buffer, and objects may be that long.
        with _translated(self._url):
            async for chunk in self._response.content.iter_any():
                yield chunk


@contextlib.contextmanager
def _translated(url: str) -> Any:
    """Turn every failure of the HTTP library into `Unreachable`, with what it means for a retry."""
    import aiohttp

    server = "{0.scheme}://{0.netloc}".format(urlsplit(url))
    try:
        yield
    except (aiohttp.ClientSSLError, aiohttp.InvalidURL) as error:
        msg = f"no trusted connection to {server}: {error}"
        raise Unreachable(msg, sent=False, final=True) from error
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        msg = f"no connection to {server}: {error or 'timed out'}"
        raise Unreachable(msg, sent=False) from error
    except TimeoutError as error:
        msg = f"no answer from {server} in time: {error or 'timed out'}"
        raise Unreachable(msg) from error
    except (aiohttp.ClientError, OSError) as error:
        msg = f"the connection to {server} broke: {error or type(error).__name__}"
        raise Unreachable(msg) from error


def environment_proxy(host: str) -> str | None:
    """Return the proxy that the environment names for `host` (a URL), never one for loopback.

    A proxy cannot reach this machine's own loopback, where local clusters listen; and many
    environments that set HTTPS_PROXY forget NO_PROXY.
    """
    url = urlsplit(host)
    name = url.hostname or ""
    if is_loopback(name) or urllib.request.proxy_bypass(url.netloc):
        return None
    return urllib.request.getproxies().get(url.scheme)


def is_loopback(host: str) -> bool:
    """Return whether `host` (a name or an address) means this machine itself."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
