"""Contexts that are never drilled, by the user's own configuration file.

    # ~/.config/rollout-drill/config.toml, or the file that DRILL_CONFIG names
    protected_contexts = ["*prod*", "customer-*"]

Patterns are those of a shell, and case does not matter. A list replaces the default one as a whole.
"""

from __future__ import annotations

import fnmatch
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.clusters.base import ChoiceError

VARIABLE: Final = "DRILL_CONFIG"
KEY: Final = "protected_contexts"
DEFAULT: Final = ("*prod*", "live", "live-*", "*-live", "*-live-*")
_LINE: Final = re.compile(r"\(at (.*)\)$")


@dataclass(frozen=True, slots=True)
class Configuration:
    """The user's configuration."""

    file: Path
    """Where it is, or would be."""
    protected: tuple[str, ...] = DEFAULT
    """Patterns of contexts on which nothing may be made or removed."""

    def pattern_of(self, context: str) -> str:
        """Return the first pattern that protects a context; empty when none does."""
        name = context.lower()
        return next((p for p in self.protected if fnmatch.fnmatchcase(name, p.lower())), "")


def configuration_file() -> Path:
    """Return where the user's configuration is: the file that DRILL_CONFIG names, or the one in his configuration folder."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return Path(named).expanduser()
    import platformdirs

    return platformdirs.user_config_path("rollout-drill") / "config.toml"


def read_configuration(file: Path | None = None) -> Configuration:
    """Return the user's configuration; without a file the default one.

    Raises ChoiceError for a file that cannot be read or is not as it should be, with the place and what is allowed.
    """
    path = file or configuration_file()
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        if file is None and not os.environ.get(VARIABLE, ""):
            return Configuration(path)
        msg = f"{path}: there is no such file ({VARIABLE} names it)."
        raise ChoiceError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not UTF-8"
        msg = f"{path}: cannot be read: {why}."
        raise ChoiceError(msg) from error
    return parse_configuration(text, path)


def parse_configuration(text: str, path: Path) -> Configuration:
    """Return the configuration in a text; `path` is named in errors. Raises ChoiceError."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = _LINE.search(str(error))
        what = _LINE.sub("", str(error)).strip()
        msg = f"{path}: {where[1] if where else 'line 1'}: this is not TOML: {what}."
        raise ChoiceError(msg) from error
    unknown = next((key for key in found if key != KEY), None)
    if unknown is not None:
        msg = f"{path}: {_line(text, unknown)}{unknown}: is not known; allowed: {KEY}."
        raise ChoiceError(msg)
    given = found.get(KEY, list(DEFAULT))
    wrong = _wrong(given)
    if wrong:
        msg = f'{path}: {_line(text, KEY)}{KEY}: {wrong}; allowed: a list of texts such as ["*prod*"], or an empty one.'
        raise ChoiceError(msg)
    return Configuration(path, tuple(given))


def _wrong(given: Any) -> str:
    if not isinstance(given, list):
        return f"must be a list, not {given!r}"
    bad = next((one for one in given if not isinstance(one, str) or not one.strip()), None)
    return "" if bad is None else f"{bad!r} is no pattern"


def _line(text: str, key: str) -> str:
    pattern = re.compile(rf"""^\s*(\[+\s*)?["']?{re.escape(key)}\b""")
    for number, line in enumerate(text.splitlines(), 1):
        if pattern.match(line):
            return f"line {number}: "
    return ""


def refuse_protected(context: str, doing: str = "drilled") -> None:
    """Raise ChoiceError when a context is protected, or the user's configuration is not as it should be."""
    configuration = read_configuration()
    pattern = configuration.pattern_of(context)
    if pattern:
        msg = (
            f"Context {context!r} is protected by the pattern {pattern!r}, so it is not {doing}; {KEY} in {configuration.file} "
            "is the list to change."
        )
        raise ChoiceError(msg)
