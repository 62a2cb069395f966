"""From names and options to loaded scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.errors import UsageProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.scenario.load import Loaded


def select(names: Sequence[str], folders: Sequence[Path]) -> list[Loaded]:
    """Return the scenarios called `names` (all, when there are none), from the known folders and `folders`.

    Raises ScenarioError for a scenario that is unknown or broken.
    """
    from harness.scenario.catalogue import find

    return find(list(names), [Path(folder) for folder in folders])


def parse_sets(sets: Sequence[str]) -> dict[str, str]:
    """Return `KEY=VALUE` options as a mapping.

    Raises UsageProblemError for one without a key or an equals sign.
    """
    given: dict[str, str] = {}
    for item in sets:
        key, equals, value = item.partition("=")
        if not key or not equals:
            msg = f"--set {item!r}: expected KEY=VALUE"
            raise UsageProblemError(msg)
        given[key] = value
    return given
