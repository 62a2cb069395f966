"""What a person reads of a handback, and what a machine reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabulate import tabulate

from harness.handback.plan import Fate

if TYPE_CHECKING:
    from harness.handback.carry_out import Handback
    from harness.model.timeline import JSON

_COUNTED = {
    Fate.STARTS: ("starts an analysis", "start an analysis"),
    Fate.TROUBLE: ("needs mending first", "need mending first"),
    Fate.GOES_ON: ("goes on with what is under way", "go on with what is under way"),
    Fate.RESTS: ("rests", "rest"),
    Fate.LEFT: ("is left alone", "are left alone"),
}
"""In the order in which people need to know them."""


def to_json(result: Handback) -> JSON:
    """Return all of it."""
    return {
        "to": result.to,
        "kubernetesApi": result.kubernetes_api,
        "namespace": result.namespace,
        "applied": result.applied,
        "counts": {fate.value: len(result.of(fate)) for fate in Fate},
        "canaries": [
            {**one.to_json(), "written": one.name in result.written} for one in result.returns
        ],
    }


def to_text(result: Handback) -> str:
    """Return a table with a line per Canary, the count, and what to do next."""
    if not result.returns:
        return f"There is no Canary in namespace {result.namespace}: nothing to hand back."
    order = list(_COUNTED)
    ordered = sorted(result.returns, key=lambda one: (order.index(one.fate), one.name))
    rows = [(one.name, one.phase or "none", one.fate.value, one.why) for one in ordered]
    table = tabulate(rows, ("canary", "phase", f"under {result.to}", "why"), tablefmt="plain")
    return f"{table}\n\n{summary(result)}\n{_next(result)}"


def summary(result: Handback) -> str:
    """Return the count in one sentence, e.g. `Under flagger@1.44.0, 1 starts an analysis, 9 rest.`."""
    counts = ((fate, len(result.of(fate))) for fate in _COUNTED)
    parts = [f"{count} {_COUNTED[fate][count != 1]}" for fate, count in counts if count]
    return f"Under {result.to}, {', '.join(parts)}."


def _next(result: Handback) -> str:
    if result.applied:
        done = f"{_statuses(len(result.written))} written."
        return f"{done} Now apply the CRDs of {result.to} and start it; the bundled controller stays stopped."
    if not result.pending:
        return "No status has to be written."
    what = _statuses(len(result.pending)).replace(" was", "").replace(" were", "")
    return (
        f"Nothing was written: stop the bundled controller, then --apply writes {what}. Without it, those Canaries start an"
        " analysis each."
    )


def _statuses(count: int) -> str:
    return "1 status was" if count == 1 else f"{count} statuses were"
