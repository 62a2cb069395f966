"""Reads Flagger's log: when it is ready, and what the API server refuses to it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from harness.subjects.base import SubjectEvent

READY: Final = "Started operator workers"
"""What it says once its caches are filled and its workers run."""
_FORBIDDEN: Final = re.compile(
    r'cannot (?P<verb>\w+) resource \\?"(?P<resource>[\w./-]+)\\?" in API group \\?"(?P<group>[\w.-]*)\\?"'
)
_FORBIDDEN_PATH: Final = re.compile(r'cannot (?P<verb>\w+) path \\?"(?P<path>[^"\\]+)\\?"')


def refusals(line: str) -> list[str]:
    """Return what the API server refused, as a log line quotes it: e.g. `list deployments.apps`; each once."""
    found = [
        f"{match['verb']} {match['resource']}{'.' if match['group'] else ''}{match['group']}"
        for match in _FORBIDDEN.finditer(line)
    ]
    found += [f"{match['verb']} {match['path']}" for match in _FORBIDDEN_PATH.finditer(line)]
    return list(dict.fromkeys(found))


class FlaggerLog:
    """Takes the lines of one process."""

    def __init__(self, ready: asyncio.Event, notify: Callable[[SubjectEvent, str], None]) -> None:
        self._ready = ready
        self._notify = notify
        self._told: set[str] = set()
        self.last = ""
        """What it said last, for an error; its message where the line is one of its own."""

    def read(self, line: bytes) -> None:
        """Take a line."""
        text = line.decode(errors="replace").strip()
        message = _message(text)
        self.last = message or self.last
        if message == READY:
            self._ready.set()
        for refusal in refusals(text):
            # It asks again every few seconds, and for every canary.
            if refusal not in self._told:
                self._told.add(refusal)
                self._notify("forbidden", refusal)


def _message(text: str) -> str:
    try:
        row = json.loads(text)
    except ValueError:
        return text
    message = row.get("msg") if isinstance(row, dict) else None
    return str(message).strip() if message else text
