"""Old modules that a newer Go refuses to compile, and the smallest change of their go.mod that mends it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.programs.modules import required_version

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Mend:
    """A module that is raised to a version."""

    path: str
    version: str
    why: str


_TOOLS: Final = "golang.org/x/tools"
_TOOLS_PACKAGE: Final = f"{_TOOLS}/internal/tokeninternal"
"""Checks the size of a structure of Go's own at compile time, and Go 1.25 changed that size."""
_TOOLS_SINCE: Final = (1, 25)
_TOOLS_MENDED: Final = ("v0.24.1", "v0.25.1")
"""The oldest release that knows the new size, and the one for who is past it."""


def needed(go: tuple[int, ...], go_mod: str, packages: Callable[[], str]) -> Mend | None:
    """Return what has to be raised so that this version of Go compiles a program, or None.

    `packages` lists the packages that the program is made of, one a line; it takes seconds, so it is asked only if that decides.
    """
    present = required_version(go_mod, _TOOLS)
    if present is None or go < _TOOLS_SINCE:
        return None
    wanted = next((one for one in _TOOLS_MENDED if _broken(present, one)), None)
    if wanted is None or _TOOLS_PACKAGE not in packages().splitlines():
        return None
    why = f"Go {'.'.join(map(str, go))} does not compile its {_TOOLS} {present.split('-')[0]}"
    return Mend(_TOOLS, wanted, why)


def apply(mend: Mend, go_mod: str) -> str:
    """Return the go.mod with the module raised."""
    pattern = rf"^((?:\s+|require ){re.escape(mend.path)}) v\S+"
    return re.sub(pattern, rf"\1 {mend.version}", go_mod, flags=re.MULTILINE)


def _broken(present: str, mended: str) -> bool:
    """Whether a version is older than the one that mends it, and past every earlier one that does."""
    number, wanted = _key(present), _key(mended)
    return number < wanted and (number < _key(_TOOLS_MENDED[0]) or number[:2] == wanted[:2])


def _key(version: str) -> tuple[int, ...]:
    # The part after a hyphen makes it an earlier one of the same number, which is all the same here.
    return tuple(int(part) for part in version.removeprefix("v").split("-")[0].split("."))
