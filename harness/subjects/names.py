"""What a subject's name means: which kind of controller, and which version or file of it. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from harness.model.names import BUNDLED, IN_CLUSTER, INSTALLED, SUBJECT_FORMS
from harness.subjects.base import SubjectError

_FLAGGER: Final = "flagger@"
_PATH: Final = "path:"
_VERSION: Final = re.compile(r"v?(\d+\.\d+\.\d+(?:[-+][0-9A-Za-z][0-9A-Za-z.+-]*)?)")


@dataclass(frozen=True, slots=True)
class SubjectName:
    """A subject's name, understood."""

    kind: Literal["bundled", "in-cluster", "flagger", "installed"]
    """`in-cluster`: the bundled one, as a Deployment."""
    version: str = ""
    """Of Flagger, without a `v`, e.g. `1.44.0`; empty for a given binary."""
    path: Path | None = None
    """Of a given binary; absolute."""

    def __str__(self) -> str:
        """Return the name as it is reported: without a `v`, and of a path the last part only; a report is for others to read."""
        if self.kind == "in-cluster":
            return IN_CLUSTER
        if self.kind != "flagger":
            return self.kind
        return _FLAGGER + (self.version if self.path is None else f"{_PATH}{self.path.name}")


def parse(name: str) -> SubjectName:
    """Return what a name means. Raises SubjectError with the allowed forms."""
    if name == BUNDLED:
        return SubjectName("bundled")
    if name == IN_CLUSTER:
        return SubjectName("in-cluster")
    if name == INSTALLED:
        return SubjectName("installed")
    if name.startswith(_FLAGGER):
        rest = name.removeprefix(_FLAGGER)
        if rest.startswith(_PATH) and rest != _PATH:
            return SubjectName(
                "flagger", path=Path(rest.removeprefix(_PATH)).expanduser().absolute()
            )
        if found := _VERSION.fullmatch(rest):
            return SubjectName("flagger", found[1])
    msg = f"unknown subject {name!r} (allowed: {', '.join(SUBJECT_FORMS)})"
    raise SubjectError(msg)
