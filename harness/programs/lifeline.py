"""A child process that ends when its parent does, however that ends."""

from __future__ import annotations

import ctypes
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Have this process killed when the one that started it ends; for `preexec_fn`, or right after a fork. Nothing outside of Linux."""
    # Runs between fork and exec, so it does nothing but this one call; the library was loaded before.
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
