"""The pure half of the controller: no I/O, no clock, no randomness, no state between two calls.

Start reading in `phases.py`, where the transition table is; `decide()` is the only way in.
"""

from __future__ import annotations

from harness.controller.core.decision import Decision, Note, World, Write
from harness.controller.core.phases import decide

__all__ = ["Decision", "Note", "World", "Write", "decide"]
