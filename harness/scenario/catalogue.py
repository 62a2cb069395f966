"""Finding scenarios: the shipped ones, those of the current directory, those of other folders, or one by its path."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.data import data_path
from harness.scenario.loaded import SCENARIO_FILE, Loaded, load, read, shown
from harness.scenario.problem import Problem, ScenarioError, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LOCAL: Final = "scenarios"
"""Folder below the current directory whose scenarios are found by name."""
_PLAIN_NAME: Final = re.compile(
    r"^metadata:(?:\s*\{\s*|\n +)name: *([a-z0-9-]+) *(?:[},].*)?$", re.MULTILINE
)
"""The name as nearly every file writes it; any other way of writing is read in full."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A scenario that was found, not loaded yet."""

    name: str
    file: Path


def split(name: str) -> tuple[str, str | None]:
    """Return scenario and variant of `name[variant]`; a name alone has no variant."""
    if name.endswith("]") and "[" in name:
        scenario, _, variant = name[:-1].partition("[")
        return scenario, variant
    return name, None


def find(
    names: Sequence[str] = (), dirs: Sequence[Path | str] = (), *, cwd: Path | None = None
) -> list[Loaded]:
    """Load the named scenarios, in that order; without names all that can be found.

    A name is that of a scenario, or the path of a scenario's file or folder. Of several scenarios of one name the first wins: those
    of `dirs`, then those of ./scenarios, then the shipped ones. Raises ScenarioError with every problem of all of them; other
    broken scenarios do not matter to one that is named.
    """
    problems: list[Problem] = []
    loaded: list[Loaded] = []
    known = entries(dirs, cwd=cwd)
    by_name = {entry.name: entry for entry in reversed(known)}
    files: list[Path] = []
    for name in names or dict.fromkeys(entry.name for entry in known):
        if name in by_name:
            files.append(by_name[name].file)
        elif _is_path(name):
            files.append(Path(name))
        else:
            everything = tuple(by_name)
            message = f"there is no such scenario{suggest(name, everything)}"
            problems.append(Problem(name, None, None, "", message, everything))
    for file in dict.fromkeys(files):
        try:
            loaded.append(load(file))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return loaded


def entries(dirs: Sequence[Path | str] = (), *, cwd: Path | None = None) -> list[Entry]:
    """Return everything that can be found, in order of precedence, by name within a folder; files are not checked.

    Raises ScenarioError when one of `dirs` is no folder.
    """
    here = cwd or Path()
    given = [Path(item) for item in dirs]
    missing = [Problem(shown(d), None, None, "", "is no folder") for d in given if not d.is_dir()]
    if missing:
        raise ScenarioError(missing)
    found: dict[Path, Entry] = {}
    for folder in (*given, here / LOCAL, data_path("scenarios")):
        for file in _files(folder):
            found.setdefault(file.resolve(), Entry(_name_of(file), file))
    return list(found.values())


def _files(folder: Path) -> Iterable[Path]:
    """Return the scenario file of a folder itself, or those of the folders in it."""
    own = folder / SCENARIO_FILE
    if own.is_file():
        return [own]
    return sorted(folder.glob(f"*/{SCENARIO_FILE}")) if folder.is_dir() else []


def _name_of(file: Path) -> str:
    """Return the name that a scenario gives itself, or that of its folder when it cannot be read."""
    # Dozens of scenarios would take seconds to parse, only to find one by its name.
    with contextlib.suppress(OSError, UnicodeDecodeError):
        plain = _PLAIN_NAME.findall(file.read_text(encoding="utf-8"))
        if len(plain) == 1:
            return str(plain[0])
    try:
        name = read(file).data["metadata"]["name"]
    except (ScenarioError, KeyError, TypeError):
        name = None
    return name if isinstance(name, str) and name else file.parent.name


def _is_path(name: str) -> bool:
    return (
        "/" in name
        or name.endswith((".yaml", ".yml"))
        or name in {".", ".."}
        or Path(name).is_dir()
    )
