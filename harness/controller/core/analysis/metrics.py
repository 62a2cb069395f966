"""Metrics: which there are, in which order, what is asked, and whether the answer passes (spec canary-api 5, case C16)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.controller.core.analysis import builtin_queries, render
from harness.controller.core.analysis.entries import fingerprint, listed, outside, place
from harness.controller.core.calls import Answer, Call, Undecided
from harness.controller.core.moments import duration

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

Source = Literal["built-in", "query", "template", ""]

NO_VALUES: Final = "no values"
QUERY_FAILED: Final = "query failed"


def source(entry: JSON) -> Source:
    """Return where an entry of `entries()` gets its number from; empty when it names nothing."""
    if entry.get("templateRef"):
        return "template"
    if entry.get("query"):
        return "query"
    return "built-in" if entry.get("name") in builtin_queries.NAMES else ""


def entries(canary: JSON) -> tuple[JSON, ...]:
    """Return the checks in order: built-in and inline ones as listed, then those by template as listed.

    An entry that asks for several at once is as many checks, each a copy with only what it asks for.
    """
    first: list[JSON] = []
    later: list[JSON] = []
    for entry in listed(canary, "metrics"):
        if entry.get("name") in builtin_queries.NAMES:
            first.append(_without(entry, "query", "templateRef"))
        if entry.get("query"):
            first.append(_without(entry, "templateRef"))
        if entry.get("templateRef"):
            later.append(_without(entry, "query"))
        elif not source(entry):
            first.append(entry)
    return (*first, *later)


def call(canary: JSON, entry: JSON, occasion: str, *, revision: str = "") -> Call:
    """Return the question behind one entry of `entries()`.

    `occasion` is different each time the metric is to be asked again; `revision` is the Knative revision that is analysed.
    The call's payload is what the query may ask for (`render.values`).
    """
    name = str(entry.get("name") or "")
    key = f"metric/{name}/{source(entry)}/{fingerprint(entry)}/{occasion}"
    return Call(key, "metric", name, entry, render.values(canary, entry, revision))


def query(canary: JSON, entry: JSON, known: JSON) -> str:
    """Return the PromQL of a built-in or inline entry. Raises QueryError."""
    if source(entry) == "built-in":
        return builtin_queries.query(canary, str(entry["name"]), known)
    return render.render(str(entry.get("query") or ""), known)


def answered(value: float | None, at: float, nothing: str = "the query found nothing") -> Answer:
    """Return the answer for what a source says; no number and NaN are the same to a check (C16)."""
    if value is None:
        return Answer(at, ok=False, message=f"{NO_VALUES}: {nothing}")
    if math.isnan(value):
        return Answer(at, ok=False, message=f"{NO_VALUES}: the query's result is NaN")
    return Answer(at, ok=True, value=value)


def failed(why: str, at: float) -> Answer:
    """Return the answer for a question that could not be asked, or was refused."""
    return Answer(at, ok=False, message=f"{QUERY_FAILED}: {why}")


def undecided(why: str, at: float, reason: Undecided, retry_after: float | None = None) -> Answer:
    """Return the answer for a question that a provider did not get to: no verdict, so neither failed nor passed."""
    return Answer(
        at,
        ok=False,
        message=f"{QUERY_FAILED}: {why}",
        undecided=reason,
        retry_after=retry_after,
    )


def verdict(entry: JSON, answer: Answer) -> tuple[bool, str]:
    """Return whether an entry passes, and if not, a sentence that names the metric.

    Within thresholdRange, each bound optional. Without it the legacy threshold counts: a minimum for request-success-rate,
    a maximum for everything else; a threshold that is not set is 0.
    """
    name = str(entry.get("name") or "")
    value = answer.value
    if not answer.ok or value is None or math.isnan(value):
        return False, f"metric {name}: {answer.message or NO_VALUES}"
    least, most, how = _bounds(entry)
    unit = builtin_queries.UNITS.get(name, "") if source(entry) == "built-in" else ""
    shown = f"metric {name}: {value:.6g}{unit}"
    if least is not None and value < least:
        return False, f"{shown} is below the minimum of {least:.6g}{unit}{how}"
    if most is not None and value > most:
        return False, f"{shown} is above the maximum of {most:.6g}{unit}{how}"
    return True, ""


def _bounds(entry: JSON) -> tuple[float | None, float | None, str]:
    limits = entry.get("thresholdRange")
    if isinstance(limits, dict):
        return _number(limits.get("min")), _number(limits.get("max")), ""
    given = _number(entry.get("threshold"))
    how = "" if given is not None else " (neither threshold nor thresholdRange is set)"
    limit = given or 0.0
    if source(entry) == "built-in" and entry.get("name") == builtin_queries.SUCCESS_RATE:
        return limit, None, how
    return None, limit, how


def problem(canary: JSON, *, cross_namespace: bool = True) -> str:
    """Return what is wrong with the first entry that cannot work, with what is allowed; empty when all can.

    `cross_namespace`: whether a template may be in another namespace.
    """
    for position, entry in enumerate(listed(canary, "metrics")):
        wrong = _wrong(canary, entry, cross_namespace=cross_namespace)
        if wrong:
            return f"{place('metrics', position, entry)}: {wrong}"
    return ""


def _wrong(canary: JSON, entry: JSON, *, cross_namespace: bool) -> str:
    if not entry.get("name"):
        return "name is missing"
    if not source(entry):
        names = ", ".join(builtin_queries.NAMES)
        return f"it has neither query nor templateRef, and its name is none of {names}"
    interval = entry.get("interval")
    if interval and not duration(interval):
        return f"interval: {interval!r} is not a duration above zero; e.g. 30s, 2m or 1m30s"
    return (
        _wrong_range(entry)
        or _wrong_reference(canary, entry, cross_namespace=cross_namespace)
        or _wrong_query(canary, entry)
    )


def _wrong_range(entry: JSON) -> str:
    limits = entry.get("thresholdRange")
    if not isinstance(limits, dict):
        return ""
    least, most = _number(limits.get("min")), _number(limits.get("max"))
    if least is not None and most is not None and least > most:
        return f"thresholdRange: min {least:.6g} is above max {most:.6g}, so that no value passes"
    return ""


def _wrong_reference(canary: JSON, entry: JSON, *, cross_namespace: bool) -> str:
    reference = entry.get("templateRef")
    if not reference:
        return ""
    if not isinstance(reference, dict) or not reference.get("name"):
        return "templateRef.name is missing"
    elsewhere = outside(canary, reference)
    if elsewhere and not cross_namespace:
        return (
            f"templateRef.namespace: {elsewhere!r} is another namespace, which this controller was"
            " told not to allow; use a MetricTemplate beside the Canary"
        )
    return ""


def _wrong_query(canary: JSON, entry: JSON) -> str:
    if not entry.get("query"):
        return ""
    try:
        render.render(str(entry["query"]), render.values(canary, entry))
    except render.QueryError as error:
        return f"query: {error}"
    return ""


def _without(entry: JSON, *fields: str) -> JSON:
    if not any(field in entry for field in fields):
        return entry
    return {key: value for key, value in entry.items() if key not in fields}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
