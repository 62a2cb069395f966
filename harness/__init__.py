"""rollout-drill: drills a progressive delivery controller and says where every pod ran meanwhile."""

from __future__ import annotations

from typing import Final

__version__: Final = "0.1.0"
