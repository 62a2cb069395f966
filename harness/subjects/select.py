"""From the name after `--subject` to a subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.subjects.bundled import Bundled
from harness.subjects.flagger import Flagger
from harness.subjects.in_cluster import InCluster
from harness.subjects.installed import Installed
from harness.subjects.names import parse

if TYPE_CHECKING:
    from harness.subjects.base import Subject


def make_subject(name: str, image: str = "") -> Subject:
    """Return a new subject; every drill has its own. No I/O: whether there is such a version is found out by `obtain`.

    `image` is for one that runs as a pod; empty: one is made. Raises SubjectError with the allowed forms.
    """
    meant = parse(name)
    match meant.kind:
        case "bundled":
            return Bundled()
        case "in-cluster":
            return InCluster(image)
        case "flagger":
            return Flagger(meant)
        case "installed":
            return Installed()


def check_subject(name: str) -> None:
    """Raise SubjectError with the allowed forms unless a name has one of them. No I/O."""
    parse(name)
