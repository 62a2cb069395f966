"""Credentials of a process that runs in a pod: its service account, as the kubelet mounts it.

The token expires within hours and its file is replaced long before. It is read again once a minute and after a 401; while the
file cannot be read, the last token is kept.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.kube.config import Credentials, authenticate
from harness.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where every pod finds token, ca.crt and namespace of its service account."""
HOST: Final = "KUBERNETES_SERVICE_HOST"
PORT: Final = "KUBERNETES_SERVICE_PORT"
_ORIGIN: Final = "the pod's service account"


def in_cluster(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process runs in a pod that may be told where the API server is."""
    return bool(environment.get(HOST))


def own_namespace(folder: Path = FOLDER) -> str | None:
    """Return the namespace of this pod, or None where no service account is mounted."""
    try:
        return (folder / "namespace").read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


async def load(environment: Mapping[str, str] = os.environ, folder: Path = FOLDER) -> Credentials:
    """Return the credentials of this pod. Raises ConfigError, in one sentence, when something of them is missing."""
    from kubernetes.aio.client.configuration import Configuration

    host, port = environment.get(HOST, ""), environment.get(PORT, "")
    if not host or not port:
        msg = f"{_ORIGIN}: {HOST} and {PORT} are not both set, so this is no pod of a cluster"
        raise ConfigError(msg)
    authority = folder / "ca.crt"
    if not authority.is_file():
        msg = f"{_ORIGIN}: there is no file {authority}"
        raise ConfigError(msg)
    configuration = Configuration()
    configuration.host = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    configuration.ssl_ca_cert = str(authority)
    loader = _ServiceAccount(folder / "token")
    await authenticate(loader, configuration, _ORIGIN)
    return Credentials(configuration, loader, _ORIGIN)


class _ServiceAccount:
    """What `Credentials` needs of a loader of the library: who the user is, and how to log in again."""

    def __init__(self, token: Path) -> None:
        self._token = token
        self._user = {"tokenFile": str(token)}

    async def load_and_set(self, configuration: Any) -> None:
        """Read the token. Raises OSError and ValueError only while there is no earlier one."""
        try:
            text = self._token.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            if not configuration.api_key.get("BearerToken"):
                raise
            return
        if text:
            configuration.api_key["BearerToken"] = f"Bearer {text}"
        elif not configuration.api_key.get("BearerToken"):
            msg = f"{self._token} is empty"
            raise ValueError(msg)
