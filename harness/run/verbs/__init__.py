"""What a step can do: one file per verb, found through `VERBS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.run.verbs import (
    apply,
    apply_as,
    delete,
    gate,
    handback,
    node,
    patch,
    process,
    scale,
    upgrade,
    wait,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.run.verbs.context import Context

VERBS: Final[dict[str, Callable[[Context, Any], Awaitable[str | None]]]] = {
    "apply": apply.act,
    "applyAs": apply_as.act,
    "delete": delete.act,
    "gate": gate.gate,
    "handback": handback.act,
    "kill": process.kill,
    "metric": gate.metric,
    "node": node.act,
    "patch": patch.act,
    "scale": scale.act,
    "start": process.start,
    "stop": process.stop,
    "upgrade": upgrade.act,
    "wait": wait.act,
}
"""Verb -> the coroutine that carries out its action, and may return what came of it, for the timeline."""
