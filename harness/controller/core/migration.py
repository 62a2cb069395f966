"""A status that another controller or version wrote: was its target changed while nobody watched? (B4 with decision D11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.controller.core.change import Migration
from harness.controller.core.evidence import after, created, not_before, template_changed
from harness.controller.core.templates import differences, images_differ, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.controller.core.decision import JSON
    from harness.controller.core.names import Names
    from harness.controller.core.templates import Difference


@dataclass(frozen=True, slots=True)
class Review:
    """What an independent check found."""

    migration: Migration
    unproven: tuple[Difference, ...] = ()
    """Differences that are taken over, because nothing shows that they are new."""


def review(
    names: Names,
    target: JSON,
    primary: JSON,
    since: float | None,
    revisions: Sequence[JSON],
    *,
    copied: bool = False,
) -> Review:
    """Judge whether the target was changed at or after `since` (seconds since the epoch).

    Equal templates need no evidence. Different ones are a change only with evidence; a target that itself is younger than `since`
    has new times throughout, so there the kind of difference decides: a field that the primary merely lacks proves nothing.

    `copied` says that `since` is when the primary was copied from the target, which may be as young, to the second.
    """
    found = differences(names, target, primary)
    if not found:
        return Review(Migration.EQUAL)
    younger = not_before if copied else after
    if younger(created(target), since):
        changed = any(not difference.lost for difference in found)
    else:
        changed = template_changed(target, since, revisions)
    return Review(Migration.DIFFERENT) if changed else Review(Migration.EQUAL, found)


def adopted(names: Names, target: JSON, primary: JSON, unproven: tuple[Difference, ...]) -> str:
    """Return the sentence that says what was taken over although the primary does not have it."""
    pods = [workload["spec"]["template"]["spec"] for workload in (target, primary)]
    what = "other images" if images_differ(pods[0], pods[1]) else "other fields"
    return (
        f"Taken over without analysis: Deployment {names.target} has {what} than {names.primary}"
        f" ({summary(unproven)}), and nothing shows that they are newer than the last status;"
        " any change of the template starts an analysis"
    )
