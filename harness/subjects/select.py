"""From the name after `--subject` to a subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.subjects.base import SubjectError
from harness.subjects.bundled import Bundled

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.subjects.base import Subject

SUBJECTS: Final[dict[str, Callable[[], Subject]]] = {"bundled": Bundled}


def make_subject(name: str) -> Subject:
    """Return a new subject; every drill has its own.

    Raises SubjectError for an unknown name.
    """
    try:
        return SUBJECTS[name]()
    except KeyError:
        allowed = ", ".join(sorted(SUBJECTS))
        msg = f"unknown subject {name!r} (allowed: {allowed})"
        raise SubjectError(msg) from None
