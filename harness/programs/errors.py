"""What can go wrong while a program is obtained."""

from __future__ import annotations


class ProgramError(Exception):
    """A program, or a file of a Go module, cannot be had; the message is one sentence for the user.

    Clusters turn it into ClusterError, subjects into SubjectError.
    """


class CancelledError(ProgramError):
    """Whoever wanted the program does not want it any more."""


class NotServedError(ProgramError):
    """There is no such version of a Go module where modules are fetched from."""
