"""Tests that need real nodes are there only when drills run on clusters of kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out `test_kind*.py` unless `--drill-cluster` names kind."""
    kind = str(config.getoption("--drill-cluster")).partition(":")[0] == "kind"
    return True if collection_path.name.startswith("test_kind") and not kind else None
