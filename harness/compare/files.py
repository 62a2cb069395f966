"""The files of a comparison: recordings read, the report written, the shipped table found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.compare.json_report import json_comparison
from harness.compare.markdown import markdown
from harness.compare.table import load
from harness.data import data_path
from harness.model.timeline import TimelineError, parse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.compare.model import Comparison
    from harness.compare.table import Table
    from harness.model.timeline import Timeline

TIMELINE: Final = "timeline.jsonl"
REPORT: Final = "compare.md"
REPORT_JSON: Final = "compare.json"
SHIPPED: Final = ("fixtures", "differences.yaml")


def tables(more: Sequence[Path] = ()) -> Table:
    """Return the shipped table, and behind it the user's own. Raises ScenarioError."""
    found = list(load(data_path(*SHIPPED), "/".join(SHIPPED)))
    for path in more:
        found += load(path)
    return tuple(found)


def recordings(path: Path) -> list[Timeline]:
    """Return the recording at a path, or all of those in a folder and the folders in it.

    Raises TimelineError, with the file's name, when there is none or one cannot be read.
    """
    if not path.is_dir():
        return [_read(path)]
    files = sorted([*path.glob(TIMELINE), *path.glob(f"*/{TIMELINE}")])
    if not files:
        msg = f"{path}: holds no {TIMELINE}, and none of its folders does"
        raise TimelineError(msg)
    return [_read(file) for file in files]


def _read(path: Path) -> Timeline:
    try:
        return parse(path.read_text(encoding="utf-8").splitlines())
    except (TimelineError, UnicodeDecodeError) as error:
        msg = f"{path}: {error}"
        raise TimelineError(msg) from error
    except OSError as error:
        msg = f"{path}: {error.strerror}"
        raise TimelineError(msg) from error


def write(folder: Path, comparison: Comparison) -> None:
    """Write compare.md and compare.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (
        (REPORT, markdown(comparison)),
        (REPORT_JSON, json_comparison(comparison)),
    ):
        # Through a second file, so that nobody ever reads half of one.
        draft = folder / f".{name}.tmp"
        draft.write_text(text, encoding="utf-8")
        draft.replace(folder / name)
