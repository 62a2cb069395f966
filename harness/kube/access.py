"""An identity of its own for a process: a kubeconfig with a token of its service account, and no other right."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.kube.config import discard_temporary_files, load
from harness.kube.resource import SERVICEACCOUNT

if TYPE_CHECKING:
    from harness.kube.client import KubeClient

TOKEN_SECONDS: Final = 6 * 3600
"""Longer than any drill; the token dies with its service account, that is with the drill's namespace."""


async def write_kubeconfig(
    client: KubeClient,
    *,
    admin: Path,
    context: str | None,
    namespace: str,
    service_account: str,
    target: Path,
    seconds: int = TOKEN_SECONDS,
) -> str:
    """Write to `target` (mode 0600) a kubeconfig for `service_account`, at the server that `admin` names; return its token.

    The token is good for `seconds`, or for what the server allows.
    Raises KubeError when the token is refused.
    """
    path = SERVICEACCOUNT.path(namespace, service_account, "token")
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    answer = await client.raw("POST", path, None, request)
    token = str(answer["status"]["token"])
    cluster = await _cluster(admin, context)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "drill", "cluster": cluster}],
        "users": [{"name": "subject", "user": {"token": token}}],
        "contexts": [
            {
                "name": "drill",
                "context": {"cluster": "drill", "user": "subject", "namespace": namespace},
            }
        ],
        "current-context": "drill",
    }
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(config, file)  # JSON is YAML, and every client reads it
    return token


async def _cluster(admin: Path, context: str | None) -> dict[str, object]:
    try:
        return _entry((await load(admin, context)).configuration)
    finally:
        discard_temporary_files()


def _entry(configuration: Any) -> dict[str, object]:
    cluster: dict[str, object] = {"server": configuration.host}
    if configuration.ssl_ca_cert:
        # Embedded, since the file may be one that the library wrote for itself and removes.
        authority = Path(configuration.ssl_ca_cert).read_bytes()
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    if not configuration.verify_ssl:
        cluster["insecure-skip-tls-verify"] = True
    if configuration.tls_server_name:
        cluster["tls-server-name"] = configuration.tls_server_name
    return cluster
