"""What the bundled controller's log lines become for the runner."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from harness.subjects.bundled import _Lines


def _read(*rows: dict[str, Any] | str) -> tuple[bool, list[tuple[str, str]]]:
    told: list[tuple[str, str]] = []
    ready = asyncio.Event()
    lines = _Lines(ready, lambda event, detail: told.append((event, detail)))
    for row in rows:
        lines.read((row if isinstance(row, str) else json.dumps(row)).encode())
    return ready.is_set(), told


def test_a_look_names_the_canary_and_the_row_that_decided() -> None:
    assert _read({"event": "looked", "canary": "web", "row": "same-hash"}) == (
        False,
        [("looked", "web same-hash")],
    )


def test_a_look_without_a_row_names_the_canary_alone() -> None:
    told = _read(*({"event": "looked", "canary": "web", **row} for row in ({}, {"row": None})))[1]
    assert told == [("looked", "web")] * 2


def test_ready_and_refusals_are_told_and_the_rest_is_left() -> None:
    rows = [{"event": "ready"}, {"event": "forbidden", "verb": "GET", "path": "/x"}]
    assert _read(*rows, {"event": "other"}, "no JSON", "[1]") == (True, [("forbidden", "GET /x")])
