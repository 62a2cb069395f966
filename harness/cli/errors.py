"""Errors of the command line itself."""

from __future__ import annotations


class UsageProblemError(Exception):
    """Options that do not go together, or name something that does not exist; the message is for the user."""
