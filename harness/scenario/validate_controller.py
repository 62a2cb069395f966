"""The rules about the bundled controller's flags: there is such a flag, it can have the value, and its feature is required."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.model.features import OF_FLAGS
from harness.scenario.problem import suggest

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.scenario.validate import Rules


def _flags_are_the_controllers(rules: Rules) -> None:
    given = rules.spec.get("controller")
    if not isinstance(given, dict):
        return
    # Only few scenarios have any, and the flags come with half of the controller.
    from harness.controller.flags import names, wrong

    known = tuple(names())
    for name, value in given.items():
        path = ("spec", "controller", name)
        if name not in known:
            message = f"is no flag of the bundled controller that a scenario can set{suggest(str(name), known)}"
            rules.report(path, message, known, key=True)
        elif isinstance(value, str | int | float) and (why := wrong(name, value)):
            rules.report(path, why)


def _features_of_flags_are_required(rules: Rules) -> None:
    given, required = rules.spec.get("controller"), rules.spec.get("requires")
    named = required if isinstance(required, list) else []
    for name in given if isinstance(given, dict) else ():
        feature = OF_FLAGS.get(name)
        if feature is not None and feature not in named:
            message = (
                f"needs {feature!r} in spec.requires, for other subjects are started without it"
            )
            rules.report(("spec", "controller", name), message, key=True)


RULES: Final[tuple[Callable[[Rules], None], ...]] = (
    _flags_are_the_controllers,
    _features_of_flags_are_required,
)
"""Every rule; each looks at the whole document and reports all that breaks it."""
