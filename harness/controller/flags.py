"""The controller's flags as others write them down: by name and value instead of on a command line.

Which there are and what they take is said once, in `options`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from harness.controller.options import OptionsError, flags, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

GIVEN: Final = frozenset(
    {"kubeconfig", "context", "namespace", "api_group", "metrics_server", "log"}
)
"""Flags that whoever starts the controller for a drill gives itself."""
NO_PROXY: Final = "no_proxy"
"""No flag, but told like one to a controller that is started early: the host that it reaches past the proxies of its environment."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def names() -> dict[str, str]:
    """Return the flags that may be chosen: `maxConcurrentAnalyses` -> `max_concurrent_analyses`."""
    own = (flag.replace("-", "_") for flag in flags())
    return {_camel(flag): flag for flag in own if flag not in GIVEN}


def written(name: str, value: str | float | bool) -> tuple[str, str | bool]:  # noqa: FBT001 - one of the values there are
    """Return a flag with its value as `arguments` takes them, from how a scenario has them."""
    key = _HUMP.sub(lambda found: f"_{found[1].lower()}", name)
    if isinstance(value, bool | str):
        return key, value
    return key, f"{value:.15g}"


def arguments(given: Mapping[str, str | bool]) -> list[str]:
    """Return the command line: `max_concurrent_analyses: "5"` is --max-concurrent-analyses=5; false is --no-…."""
    found: list[str] = []
    for key, value in given.items():
        flag = key.replace("_", "-")
        if value is True:
            found.append(f"--{flag}")
        elif value is False:
            # What is only there to turn something off has no opposite.
            found += [] if flag.startswith("no-") else [f"--no-{flag}"]
        else:
            # With "=", since a value may begin with a dash.
            found.append(f"--{flag}={value}")
    return found


def wrong(name: str, value: str | float | bool) -> str:  # noqa: FBT001 - the same
    """Return why a flag cannot have a value, or nothing when it can."""
    switch = flags()[written(name, value)[0].replace("_", "-")]
    if switch != isinstance(value, bool):
        return "must be true or false" if switch else "needs a value, not true or false"
    least = {"kubeconfig": "file", "namespace": "drill"}
    try:
        parse(
            arguments({**least, **dict([written(name, value)])}),
            prog="the controller",
            environment={},
        )
    except OptionsError as error:
        return str(error).split(": ", 1)[-1]
    return ""


def _camel(flag: str) -> str:
    first, *rest = flag.split("_")
    return first + "".join(part.capitalize() for part in rest)
