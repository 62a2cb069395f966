"""Names of runs, drills and namespaces: unique, valid, and recognisable as ours."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

RUN_LABEL: Final = "rollout-drill/run"
DRILL_LABEL: Final = "rollout-drill/drill"
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "rollout-drill"}
FIELD_MANAGER: Final = "rollout-drill"
"""The one field manager of the harness, so that managedFields tell its writes from the subject's."""

_NAMESPACE_STEM: Final = 40
_LABEL_LIMIT: Final = 63
_RANDOM_BYTES: Final = 7
"""56 random bits: no clash among any number of names that a cluster holds; if there is one, it only costs another draw."""


def token(size: int = _RANDOM_BYTES) -> str:
    """Return `size` random bytes as lower-case base32, which is valid anywhere in a Kubernetes name."""
    return base64.b32encode(secrets.token_bytes(size)).decode().rstrip("=").lower()


def run_id(now: datetime | None = None) -> str:
    """Return an id for a run: UTC time first, so that folders sort by age, then a random part."""
    moment = (now or datetime.now(UTC)).strftime("%Y%m%dt%H%M%Sz")
    return f"{moment}-{token(3)}"


def namespace_name(scenario: str) -> str:
    """Return a fresh namespace name of at most 63 characters for a drill of `scenario`."""
    stem = re.sub(r"[^a-z0-9-]+", "-", scenario.lower())[:_NAMESPACE_STEM].strip("-") or "drill"
    return f"drill-{stem}-{token()}"


def slug(text: str) -> str:
    """Return `text` as a folder name that needs no quoting in a shell."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", text).strip("-")


@dataclass(frozen=True, slots=True)
class DrillName:
    """What identifies a drill within a run."""

    scenario: str
    variant: str
    """The variant, with the matrix's choices behind commas."""
    subject: str
    cluster: str

    @property
    def title(self) -> str:
        """The id that people and pytest see: `node-spread-blue-green[with-key-bundled-embedded]`."""
        return f"{self.scenario}[{self.variant}-{self.subject}-{self.cluster}]"

    @property
    def folder(self) -> str:
        """The same as a folder name."""
        return slug(self.title.replace("[", "-").replace("]", ""))

    @property
    def label(self) -> str:
        """The same as a label value: cut to what a label holds, and kept unique by a digest."""
        if len(self.folder) <= _LABEL_LIMIT:
            return self.folder.replace("=", "_")
        digest = hashlib.sha256(self.folder.encode()).hexdigest()[:8]
        return f"{self.folder[: _LABEL_LIMIT - 9].rstrip('-._=')}-{digest}".replace("=", "_")


def labels(run: str, drill: str) -> dict[str, str]:
    """Return the labels that every object made for a drill carries."""
    return {RUN_LABEL: run, DRILL_LABEL: drill, **MANAGED_BY}
