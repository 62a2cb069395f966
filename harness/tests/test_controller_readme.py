"""The controller's README: every known fault of Flagger has its row, and every test that it names is there."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

README = Path(__file__).parents[1] / "controller" / "README.md"
TESTS = Path(__file__).parent
COUNTS = {"D": 11, "P": 15, "O": 20, "A": 14, "U": 1, "B": 1, "G": 1}
IDS = [f"{letter}{number}" for letter, last in COUNTS.items() for number in range(1, last + 1)]
_ROW = re.compile(r"^\| ([A-Z]\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(test_\w+)\.py::(test_\w+)`")


def rows() -> list[tuple[str, str, str]]:
    """Id, what we do, and which tests show it."""
    return _ROW.findall(README.read_text("utf-8"))


def test_every_row_is_there_once_and_in_order() -> None:
    assert [row for row, _, _ in rows()] == IDS


def test_every_row_names_a_test_that_exists() -> None:
    known = {
        (path.stem, name)
        for path in TESTS.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    for row, _, shown in rows():
        named = _TEST.findall(shown)
        assert named, row
        assert set(named) <= known, row


def test_what_is_kept_says_why() -> None:
    kept = {row: text for row, text, _ in rows() if "**kept" in text.lower()}
    assert set(kept) == {"P13", "O20", "A8"}
    assert all(len(text.split()) > 20 for text in kept.values())


def test_every_module_of_the_controller_has_its_place() -> None:
    """By its file or its folder, so that nobody looks for something in vain."""
    text = README.read_text("utf-8")
    table = text[text.index("## Where things are") : text.index("## New revision or not")]
    named = re.findall(r"[\w/*]+(?:\.py|/)", table)
    files = {part.rpartition("/")[2] for part in named if part.endswith(".py")}
    folders = tuple(part for part in named if part.endswith("/"))
    room = README.parent
    missing = [
        str(path.relative_to(room))
        for path in room.rglob("*.py")
        if not path.name.startswith("__")
        and not any(fnmatch(path.name, name) for name in files)
        and not any(f"/{folder}" in f"/{path.relative_to(room)}" for folder in folders)
    ]
    assert not missing
