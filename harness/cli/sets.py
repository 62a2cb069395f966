"""`--set KEY=VALUE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.cli.errors import UsageProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence


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
