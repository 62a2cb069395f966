"""`--set KEY=VALUE` and `--across KEY=V1,V2`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness.cli.errors import UsageProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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


def parse_across(options: Sequence[str]) -> dict[str, list[Any]]:
    """Return `KEY=V1,V2` options as lists of values in their order; what stands behind the equals sign is read as a YAML list.

    Raises UsageProblemError for one without a key, an equals sign or a value, for one that is not YAML, and for a key that is
    given twice.
    """
    given: dict[str, list[Any]] = {}
    for item in options:
        key, equals, text = item.partition("=")
        if not key or not equals or not text.strip(" ,"):
            msg = f"--across {item!r}: expected KEY=VALUE,VALUE"
            raise UsageProblemError(msg)
        if key in given:
            msg = f"--across {key}: given twice; put all of its values behind one equals sign"
            raise UsageProblemError(msg)
        values = _listed(text)
        if values is None:
            msg = f"--across {item!r}: {text!r} is not a list of YAML values"
            raise UsageProblemError(msg)
        given[key] = values
    return given


def across_options(across: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return options that `parse_across` reads as the same lists."""
    return [
        part
        for key, values in across.items()
        for part in ("--across", f"{key}={','.join(_written(value) for value in values)}")
    ]


def _listed(text: str) -> list[Any] | None:
    """Return what a text means within the brackets of a YAML list, or None."""
    from harness.scenario.problem import ScenarioError
    from harness.scenario.reader import read_scalar

    try:
        found = read_scalar(f"[{text}]")
    except ScenarioError:
        return None
    # A bracket or a comment sign in the text can make something else of it.
    return found if isinstance(found, list) and found else None


def _written(value: Any) -> str:
    plain = isinstance(value, str) and _listed(value) == [value]
    return str(value) if plain else json.dumps(value, ensure_ascii=False)
