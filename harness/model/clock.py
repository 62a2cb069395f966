"""How times are written in findings and reports, so that one moment reads the same wherever it is named."""

from __future__ import annotations

from typing import Final

_MINUTE: Final = 60
_HOUR: Final = 3600


def moment(t: float) -> str:
    """Return a moment as seconds after time zero: `+6.2 s` within the first minute, then `+2:14` or `+1:02:14`.

    Tenths are dropped after a minute, rounded down, so that a row never claims to be later than it was.
    """
    if t < _MINUTE:
        return f"+{max(t, 0.0):.1f} s" if t < _MINUTE - 0.05 else f"+{_MINUTE - 0.1:.1f} s"
    whole = int(t)
    hours, rest = divmod(whole, _HOUR)
    minutes, seconds = divmod(rest, _MINUTE)
    if hours:
        return f"+{hours}:{minutes:02d}:{seconds:02d}"
    return f"+{minutes}:{seconds:02d}"


def span(seconds: float) -> str:
    """Return a length of time: `0.4 s`, `6 min 12 s` or `1 h 2 min`; from a minute on rounded down, as moments are."""
    if seconds < _MINUTE - 0.05:
        return f"{max(seconds, 0.0):.1f} s"
    whole = int(seconds + 0.05)
    hours, rest = divmod(whole, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def relative(t: float, change: float | None) -> str:
    """Return how long before or after the change a moment is, or an empty text where there was no change."""
    if change is None:
        return ""
    if t < change:
        return f"{span(change - t)} before the change"
    return f"{span(t - change)} after the change"


def moment_of(t: float, change: float | None) -> str:
    """Return a moment on both clocks: `+6.2 s (3.1 s after the change)`."""
    told = relative(t, change)
    return f"{moment(t)} ({told})" if told else moment(t)
