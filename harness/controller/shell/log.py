"""The log: one JSON object per line, with the name of what happened under `event`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from typing import TextIO


def to(stream: TextIO) -> Any:
    """Return a logger that writes JSON lines to `stream`, each flushed at once, so that a killed process leaves them all."""
    return structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    )
