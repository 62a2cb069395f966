"""An explanation as a person reads it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.controller.explain import Explanation

_COLUMN = 12


def to_text(explanation: Explanation) -> str:
    """Return a few labelled lines; the first one is the answer."""
    return "\n".join(_lines(explanation))


def _lines(one: Explanation) -> Iterator[str]:
    answer = one.verdict if one.compared else "not compared"
    yield f"canary/{one.canary} in {one.namespace}, phase {one.phase or 'none'}: {answer}"
    if one.compared:
        yield _row("row", f"{one.row} ({one.number}): {one.because}")
    else:
        yield _row("because", one.because)
    for index, line in enumerate(one.standing):
        yield _row("" if index else "stands", line)
    for index, entry in enumerate(one.conditions):
        text = f"{entry['type']}={entry['status']} ({entry['reason']}): {entry['message']}"
        yield _row("" if index else "conditions", text)
    yield _row("on record", _pairs(one.stored) or "nothing")
    yield _row("target", f"{one.target}: {_pairs(one.found) or 'not looked at'}")
    for index, line in enumerate(one.comparisons):
        yield _row("" if index else "compared", line)
    for index, line in enumerate(one.configs):
        yield _row("" if index else "configs", line)
    for index, line in enumerate(one.evidence):
        yield _row("" if index else "evidence", line)
    yield _row("next pass", f"row {one.does}: {_does(one)}")
    for line in one.asks:
        yield _row("", f"asks: {line}")
    for line in one.says:
        yield _row("", f"event: {line}")


def _does(one: Explanation) -> str:
    parts = [*one.writes]
    if one.status:
        parts.append(f"patch status ({', '.join(sorted(one.status))})")
    done = "; ".join(parts) or ("it asks first" if one.asks else "nothing is written")
    return done if one.again_in is None else f"{done}; looks again in {one.again_in:.0f} s"


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items() if value)


def _row(label: str, text: str) -> str:
    return f"  {label:<{_COLUMN}}{text}".rstrip()
