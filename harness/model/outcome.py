"""Outcomes of checks and drills, and the exit codes that the `drill` command derives from them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Outcome(enum.StrEnum):
    """What became of a check, a step or a drill. Members are listed worst first."""

    ERROR = "error"
    """The harness or the cluster broke; nothing can be said about the subject."""
    FAIL = "fail"
    """The statement was seen not to hold."""
    UNKNOWN = "unknown"
    """Nothing was seen, or a part of it was missed, so neither pass nor fail can be claimed."""
    UNSUPPORTED = "unsupported"
    """Subject or cluster lacks a feature that the scenario requires."""
    PASS = "pass"  # noqa: S105 - an outcome, not a password
    """The statement was seen to hold."""


_RANK = {outcome: rank for rank, outcome in enumerate(Outcome)}


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst of `outcomes`; nothing at all is `unknown`, never `pass`."""
    return min(outcomes, key=_RANK.__getitem__, default=Outcome.UNKNOWN)


class ExitCode(enum.IntEnum):
    """Exit codes of the `drill` command (design: exit codes)."""

    OK = 0
    """Everything went as expected, failing control variants included."""
    FAILED = 1
    """At least one verdict is not what its scenario expects."""
    INTERRUPTED = 2
    """A signal ended the run; what it had made was removed."""
    ERROR = 3
    """The harness or the cluster failed."""
    USAGE = 4
    """Wrong options, or an invalid scenario."""
    NOTHING_SELECTED = 5
    """No scenario or variant matches."""
    LEFT_BEHIND = 10
    """Something that the run created still exists."""
    UNDECIDED = 11
    """Nothing failed, but at least one drill is unknown or unsupported."""


_SEVERITY = (
    ExitCode.INTERRUPTED,
    ExitCode.ERROR,
    ExitCode.USAGE,
    ExitCode.LEFT_BEHIND,
    ExitCode.FAILED,
    ExitCode.UNDECIDED,
    ExitCode.OK,
)


def combine(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the one exit code of a run of several drills; without any, nothing was selected."""
    return min(codes, key=_SEVERITY.index, default=ExitCode.NOTHING_SELECTED)
