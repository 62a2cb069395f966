"""What a step can do: one file per verb, found through `VERBS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.run.verbs import apply, delete, patch, process, scale, wait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.run.verbs.context import Context

VERBS: Final[dict[str, Callable[[Context, Any], Awaitable[None]]]] = {
    "apply": apply.act,
    "delete": delete.act,
    "kill": process.kill,
    "patch": patch.act,
    "scale": scale.act,
    "start": process.start,
    "stop": process.stop,
    "wait": wait.act,
}
"""Verb -> the coroutine that carries out its action."""
