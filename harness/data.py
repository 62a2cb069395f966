"""Where the data folders (scenarios, fixtures, reports) are, from a checkout and from an installed wheel alike."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent
_INSTALLED: Final = _PACKAGE / "_data"
"""In a wheel the folders travel inside the package, since a distribution must not install a top-level `fixtures`."""


def data_path(*parts: str) -> Path:
    """Return the path of a data folder or file, e.g. `data_path("fixtures", "rbac.yaml")`; it need not exist."""
    root = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent
    return root.joinpath(*parts)
