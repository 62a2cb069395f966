"""Putting foreign text into Markdown and XML: nothing that a cluster says may break a table, hide behind HTML or call anybody."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tabulate import tabulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SPECIAL: Final = re.compile(r"([\\|*`\[\]~]|(?<!\w)_|_(?!\w))")
_MENTION: Final = re.compile(r"(?<![\w/.`-])@(?=\w)")
_ISSUE: Final = re.compile(r"(?<!\w)#(?=\d)")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""
ELLIPSIS: Final = "…"


def esc(text: object) -> str:
    """Escape a text for Markdown, also within a table's cell: one line, no markup, no HTML, no mentions or issue links."""
    plain = _CONTROL.sub("", str(text))
    plain = " ".join(plain.split())
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    plain = _SPECIAL.sub(r"\\\1", plain)
    # GitHub links a name or a number wherever it finds one; an empty comment in between keeps it a text.
    plain = _MENTION.sub("@<!-- -->", plain)
    return _ISSUE.sub("#<!-- -->", plain)


def xml_clean(text: object) -> str:
    """Return a text with the characters that XML cannot hold replaced; escaping is left to whoever writes the XML."""
    return _NOT_XML.sub("\ufffd", str(text))


def short(text: object, limit: int) -> str:
    """Cut a text off at a number of characters."""
    plain = str(text)
    return plain if len(plain) <= limit else f"{plain[: max(limit - 1, 0)].rstrip()}{ELLIPSIS}"


def code(text: object) -> str:
    """Return a text as a code span, which is not for a table's cell: vertical bars are left as they are."""
    plain = " ".join(_CONTROL.sub("", str(text)).split())
    ticks = "`" * (_longest(plain) + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{ticks}{pad}{plain}{pad}{ticks}" if plain else "-"


def block(text: object, language: str = "") -> str:
    """Return a text as a fenced block, with a fence longer than any in it."""
    plain = _CONTROL.sub("", str(text)).rstrip("\n")
    fence = "`" * max(3, _longest(plain) + 1)
    return f"{fence}{language}\n{plain}\n{fence}"


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def code_cell(text: object) -> str:
    """Return a text as a code span in a table's cell, where even a span does not protect a vertical bar."""
    return code(text).replace("|", r"\|")


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 object`, `2 objects`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of cells that are Markdown already. Columns are not padded: padding would multiply the size."""
    text = tabulate(
        list(rows), headers=list(headers), tablefmt="github", disable_numparse=True, stralign=None
    )
    head, rule, *rest = text.split("\n")
    return "\n".join([head, re.sub("-{4,}", "---", rule), *rest])
