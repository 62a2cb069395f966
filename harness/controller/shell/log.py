"""The log: one JSON object per line, with the name of what happened under `event`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

if TYPE_CHECKING:
    from typing import TextIO


LEVELS: Final = ("debug", "info", "warning", "error")


def to(stream: TextIO, level: str = "debug") -> Any:
    """Return a logger that writes JSON lines to `stream`, each flushed at once, so that a killed process leaves them all.

    Lines below `level` (one of LEVELS) are left out.
    """
    return structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
