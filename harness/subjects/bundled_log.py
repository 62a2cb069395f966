"""What the bundled controller's log lines mean to a drill, wherever they come from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from harness.subjects.base import SubjectEvent


class Lines:
    """Reads the controller's log lines: `ready` once, each refusal of the API server, and each look at a canary."""

    def __init__(self, ready: asyncio.Event, notify: Callable[[SubjectEvent, str], None]) -> None:
        self._ready = ready
        self._notify = notify
        self.last = ""
        """The last one that is not empty."""

    def read(self, line: bytes) -> None:
        """Take in one line, with or without its end."""
        self.last = line.decode(errors="replace").strip() or self.last
        try:
            row = json.loads(line)
        except ValueError:
            return
        match row.get("event") if isinstance(row, dict) else None:
            case "ready":
                self._ready.set()
            case "forbidden":
                self._notify("forbidden", f"{row.get('verb', '?')} {row.get('path', '?')}")
            case "looked":
                # Not every pass has a row: a suspended canary is looked at, and no more.
                self._notify("looked", f"{row.get('canary', '?')} {row.get('row') or ''}".rstrip())
