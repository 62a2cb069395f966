"""Query templates: the part of Go's text/template that metric queries use (spec canary-api 5).

Supported, between double braces:

    name namespace target service ingress route interval     the functions, without arguments
    variables.KEY    index variables "KEY"                    a value of templateVariables
    "text"  `text`                                            a literal, e.g. for braces in the output
    /* comment */                                             nothing
    {{- …  … -}}                                              spaces beside it are dropped

Everything else (if, range, with, define, pipes, printf, nested calls) is refused with a sentence that says so: a query that is rendered
almost right measures something else. No library reads this language, and Jinja2 is a different one that looks alike: it would take
`{#` and `{%` of a query for its own and accept expressions that a Canary could not use elsewhere.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from harness.controller.core.names import target_name

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

FUNCTIONS: Final = ("name", "namespace", "target", "service", "ingress", "route", "interval")
DEFAULT_INTERVAL: Final = "1m"
"""For every entry, those with a template too (A4)."""

_ACTION: Final = re.compile(
    r"""\{\{ (?P<left>-(?=\s))?
        (?P<inner> (?: "(?:\\.|[^"\\\n])*" | `[^`]*` | (?!\}\}). )*? )
        (?P<right>(?<=\s)-)? \}\}""",
    re.VERBOSE | re.DOTALL,
)
_VARIABLE: Final = re.compile(
    r"""variables\.(?P<plain>\w+) | index\s+variables\s+(?P<quoted>"(?:\\.|[^"\\\n])*"|`[^`]*`)""",
    re.VERBOSE,
)
_LITERAL: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`]*`')
_QUOTED: Final = 60
"""Characters of a template that a message quotes."""


class QueryError(Exception):
    """A query cannot be rendered; the message is one sentence without the query's name."""


def values(canary: JSON, entry: JSON, revision: str = "") -> JSON:
    """Return what the query of an entry of spec.analysis.metrics may ask for.

    `revision`: the Knative revision that is analysed, which is the route there.
    """
    spec: JSON = canary["spec"]
    target = target_name(canary)
    return {
        "name": canary["metadata"]["name"],
        "namespace": canary["metadata"]["namespace"],
        "target": target,
        "service": (spec.get("service") or {}).get("name") or target,
        "ingress": (spec.get("ingressRef") or {}).get("name") or target,
        "route": revision or (spec.get("routeRef") or {}).get("name") or target,
        "interval": entry.get("interval") or DEFAULT_INTERVAL,
        "variables": dict(entry.get("templateVariables") or {}),
    }


def render(template: str, known: JSON) -> str:
    """Return the query. Raises QueryError for what is not supported, and for a variable that the Canary does not give."""
    out: list[str] = []
    end = 0
    trims = False
    for action in _ACTION.finditer(template):
        text = template[end : action.start()]
        out.append(_between(text, before=trims, after=bool(action["left"])))
        out.append(_value(action["inner"].strip(), known))
        end, trims = action.end(), bool(action["right"])
    out.append(_between(template[end:], before=trims, after=False))
    return "".join(out)


def _between(text: str, *, before: bool, after: bool) -> str:
    if "{{" in text:
        msg = f"{_shown(text[text.index('{{') :])} is not closed with }}}}"
        raise QueryError(msg)
    text = text.lstrip() if before else text
    return text.rstrip() if after else text


def _value(inner: str, known: JSON) -> str:
    if inner in FUNCTIONS:
        return str(known[inner])
    if inner.startswith("/*") and inner.endswith("*/"):
        return ""
    if _LITERAL.fullmatch(inner):
        return _literal(inner)
    found = _VARIABLE.fullmatch(inner)
    if found:
        return _variable(found["plain"] or _literal(found["quoted"]), known["variables"])
    possible = ", ".join((*FUNCTIONS, "variables.KEY", 'index variables "KEY"'))
    msg = f"{{{{ {_shown(inner)} }}}} is not supported; possible: {possible}"
    raise QueryError(msg)


def _variable(key: str, given: JSON) -> str:
    if key not in given:
        names = ", ".join(sorted(given)) or "none"
        msg = f"the query needs the variable {key!r}, and templateVariables has {names}"
        raise QueryError(msg)
    return str(given[key])


def _literal(text: str) -> str:
    if text.startswith("`"):
        return text[1:-1]
    try:
        return str(json.loads(text))
    except ValueError:
        msg = f"the text {_shown(text)} holds an escape that is not supported"
        raise QueryError(msg) from None


def _shown(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _QUOTED else flat[:_QUOTED] + "…"
