"""Configuration and credentials, from a kubeconfig file and a context that were both named.

Neither `KUBECONFIG` nor the file's current context is ever looked at: a drill must not land on a
cluster that nobody named. A file with a single context needs no name. The file is never written.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOGIN_SECONDS: Final = 60.0
"""Longest wait for an exec plugin or an identity provider."""
REFRESH_SECONDS: Final = 60.0
"""How often credentials that may expire are looked at: they are renewed five minutes early."""


class Credentials:
    """Where the API server is, and how to prove who is asking.

    `configuration` is the Kubernetes library's own; `origin` names file and context for messages.
    """

    def __init__(self, configuration: Any, loader: Any, origin: str) -> None:
        self.configuration = configuration
        self.origin = origin
        self._loader = loader
        self._looked = time.monotonic()
        self._lock = asyncio.Lock()
        user = loader._user or {}  # noqa: SLF001 - the library shows it nowhere else
        self._exec = "exec" in user
        self._renewable = self._exec or "tokenFile" in user or "auth-provider" in user

    def headers(self) -> Mapping[str, str]:
        """Return the headers that authenticate a request; none where certificates do."""
        token = self.configuration.api_key.get("BearerToken")
        return {"Authorization": token} if token else {}

    def certificate(self) -> tuple[str, str] | None:
        """Return the files of the client certificate and its key."""
        pair = (self.configuration.cert_file, self.configuration.key_file)
        return pair if all(pair) else None

    async def refresh(self) -> bool:
        """Renew credentials that are about to expire; most calls do nothing and return False."""
        if not self._renewable or not self._stale():
            return False
        # Without an expiry the plugin would run each time; then only a 401 makes it run again.
        if self._exec and not hasattr(self._loader, "exec_plugin_expiry"):
            return False
        async with self._lock:
            stale = self._stale()
            if stale:
                await self._load()
        return stale

    async def renew(self) -> bool:
        """Get new credentials because the present ones were refused; False if that is no use."""
        if not self._renewable:
            return False
        async with self._lock:
            self._loader.__dict__.pop("exec_plugin_expiry", None)
            self._loader.__dict__.pop("cert_file", None)
            await self._load()
        return True

    def _stale(self) -> bool:
        return time.monotonic() - self._looked >= REFRESH_SECONDS

    async def _load(self) -> None:
        self._looked = time.monotonic()
        await authenticate(self._loader, self.configuration, self.origin)


async def load(kubeconfig: Path, context: str | None = None) -> Credentials:
    """Read a kubeconfig and log in.

    `context` may only be left out when the file has exactly one. Raises ConfigError, in one
    sentence, for a file that is missing or no kubeconfig, a context that is unknown or not
    named (with those there are), a context without cluster or user, and credentials that fail.
    """
    from kubernetes.aio.client.configuration import Configuration
    from kubernetes.aio.config.config_exception import ConfigException

    document = _read(kubeconfig)
    name = _context(document, kubeconfig, context)
    origin = f"kubeconfig {kubeconfig}, context {name!r}"
    _complete(document, name, origin)
    configuration = Configuration()
    try:
        loader = _loader()(
            config_dict=document, active_context=name, config_base_path=str(kubeconfig.parent)
        )
    except ConfigException as error:
        msg = f"{origin}: {error}"
        raise ConfigError(msg) from error
    await authenticate(loader, configuration, origin)
    if configuration.proxy and not configuration.proxy.startswith(("http://", "https://")):
        msg = f"{origin}: proxy-url {configuration.proxy!r} is not supported, only http and https"
        raise ConfigError(msg)
    return Credentials(configuration, loader, origin)


def read_context(kubeconfig: Path, context: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return cluster and user of a context as the file has them, without logging in. Raises ConfigError as `load`."""
    document = _read(kubeconfig)
    name = _context(document, kubeconfig, context)
    _complete(document, name, f"kubeconfig {kubeconfig}, context {name!r}")
    entry = next(c for c in document["contexts"] if c.get("name") == name)["context"]
    cluster = next(c for c in document["clusters"] if c.get("name") == entry["cluster"])
    user = next(u for u in document["users"] if u.get("name") == entry["user"])
    return dict(cluster["cluster"]), dict(user.get("user") or {})


def preload() -> None:
    """Import the Kubernetes library now: half a second that is better spent while something else is waited for."""
    import kubernetes.aio.config.kube_config  # noqa: F401


def discard_temporary_files() -> None:
    """Remove the files into which the library wrote inline keys, once TLS has read them.

    It would only do so at a regular exit; a killed harness would leave private keys behind. Only those of this thread: another one may
    be about to read its own.
    """
    for file in _FILES.values():
        Path(file).unlink(missing_ok=True)
    _FILES.clear()


class _OfThisThread(MutableMapping[str, str]):
    """The library's note of the files that it wrote, by content: one for each thread instead of one for all."""

    def __init__(self) -> None:
        self._of = threading.local()

    @property
    def _held(self) -> dict[str, str]:
        held: dict[str, str] = self._of.__dict__.setdefault("files", {})
        return held

    def __getitem__(self, content: str) -> str:
        return self._held[content]

    def __setitem__(self, content: str, file: str) -> None:
        self._held[content] = file

    def __delitem__(self, content: str) -> None:
        del self._held[content]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


_FILES: Final = _OfThisThread()


def _loader() -> Any:
    """Return the library's loader, told to note its files there."""
    from kubernetes.aio.config import kube_config

    kube_config._temp_files = _FILES  # type: ignore[assignment] # noqa: SLF001 - the library has no other place for it
    return kube_config.KubeConfigLoader


async def authenticate(loader: Any, configuration: Any, origin: str) -> None:
    """Let a loader of the library's kind fill in `configuration`. Raises ConfigError, which begins with `origin`."""
    from kubernetes.aio.config.config_exception import ConfigException

    try:
        with _library_errors() as errors:
            async with asyncio.timeout(LOGIN_SECONDS):
                await loader.load_and_set(configuration)
    except TimeoutError as error:
        msg = f"{origin}: no credentials within {LOGIN_SECONDS:.0f} s"
        raise ConfigError(msg) from error
    except (ConfigException, ValueError, TypeError, KeyError, OSError) as error:
        msg = f"{origin}: {error}"
        raise ConfigError(msg) from error
    user = loader._user or {}  # noqa: SLF001
    if "exec" in user and not (configuration.api_key or configuration.cert_file):
        why = "; ".join(errors) or "it gave neither a token nor a certificate"
        msg = f"{origin}: the exec plugin {user['exec'].value.get('command')!r} failed: {why}"
        raise ConfigError(msg)


@contextlib.contextmanager
def _library_errors() -> Iterator[list[str]]:
    """Collect what the library only logs: why an exec plugin failed."""
    seen: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())

    logger = logging.getLogger("kubernetes.aio.config.kube_config")
    handler = Collect(logging.ERROR)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield seen
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def _read(path: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        msg = f"kubeconfig {path}: there is no such file"
        raise ConfigError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        msg = f"kubeconfig {path}: cannot be read ({error})"
        raise ConfigError(msg) from error
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        msg = f"kubeconfig {path}{line}: not valid YAML ({getattr(error, 'problem', error)})"
        raise ConfigError(msg) from error
    if not isinstance(document, dict) or not _names(document, "contexts"):
        msg = f"kubeconfig {path}: holds no contexts"
        raise ConfigError(msg)
    return document


def _context(document: Mapping[str, Any], path: Path, context: str | None) -> str:
    names = _names(document, "contexts")
    if context is None and len(names) == 1:
        return names[0]
    if context in names:
        return str(context)
    problem = "no context was named" if context is None else f"no context {context!r}"
    msg = f"kubeconfig {path}: {problem}; it has: {', '.join(sorted(names))}"
    raise ConfigError(msg)


def _complete(document: Mapping[str, Any], context: str, origin: str) -> None:
    """Refuse a context whose cluster or user is missing, where the library would only trip."""
    entry = next(c for c in document["contexts"] if c.get("name") == context).get("context") or {}
    for field, table in (("cluster", "clusters"), ("user", "users")):
        if entry.get(field) not in _names(document, table):
            msg = f"{origin}: its {field} {entry.get(field)!r} is not among the file's {table}"
            raise ConfigError(msg)
    cluster = next(c for c in document["clusters"] if c.get("name") == entry["cluster"])
    if not (cluster.get("cluster") or {}).get("server"):
        msg = f"{origin}: its cluster {entry['cluster']!r} has no server"
        raise ConfigError(msg)


def _names(document: Mapping[str, Any], table: str) -> list[str]:
    rows = document.get(table)
    return [str(r["name"]) for r in rows or () if isinstance(r, dict) and "name" in r]
