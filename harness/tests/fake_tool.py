"""Programs on PATH that note how they were called, for tests of what calls them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPT = """#!/usr/bin/env bash
printf '%s\\n' "$(basename "$0") $*" >> {calls}
printf '%s' "$KUBECONFIG" > {kubeconfig}
{body}
"""


@dataclass(frozen=True, slots=True)
class FakeTool:
    """A folder of such programs."""

    folder: Path

    def write(self, name: str, body: str = "") -> None:
        """Put a program there; `body` is what it does, in bash."""
        self.folder.mkdir(exist_ok=True)
        path = self.folder / name
        script = _SCRIPT.format(
            calls=self.folder / "calls", kubeconfig=self.folder / "kubeconfig", body=body
        )
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """Every call, as `name argument …`."""
        path = self.folder / "calls"
        return path.read_text("utf-8").splitlines() if path.exists() else []

    @property
    def kubeconfig(self) -> str:
        """What the last one was given as KUBECONFIG."""
        return (self.folder / "kubeconfig").read_text("utf-8")


def listed(*names: str) -> str:
    """Return a list of clusters as k3d prints it."""
    return json.dumps([{"name": name} for name in names])
