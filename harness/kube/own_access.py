"""A user's own way to a cluster, in a file of its own: one context of a kubeconfig, for a process that gets no other identity."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from harness.kube.config import read_context

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def write_own(kubeconfig: Path, context: str | None, namespace: str, target: Path) -> list[str]:
    """Write to `target` (mode 0600) a kubeconfig with that one context, in `namespace`; return the secrets in it.

    Paths in it are made absolute, since they count from where the user's file is; that one is only read. Raises ConfigError.
    """
    cluster, user = read_context(kubeconfig, context)
    folder = kubeconfig.absolute().parent
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "drill", "cluster": _absolute(cluster, folder)}],
        "users": [{"name": "user", "user": _absolute(user, folder)}],
        "contexts": [
            {
                "name": "drill",
                "context": {"cluster": "drill", "user": "user", "namespace": namespace},
            }
        ],
        "current-context": "drill",
    }
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return list(_secrets(user))


def _absolute(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    changed: dict[str, Any] = {
        key: str(folder / str(entry[key])) for key in _FILES if entry.get(key)
    }
    plugin = entry.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command", "")):
        # Without a separator it is looked for in PATH.
        changed["exec"] = {**plugin, "command": str(folder / str(plugin["command"]))}
    return {**entry, **changed}


def _secrets(user: dict[str, Any]) -> Iterator[str]:
    for key in ("token", "password", "client-key-data"):
        if user.get(key):
            yield str(user[key])
