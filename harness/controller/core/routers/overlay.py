"""How a route of ours is laid over what is there, so that nothing is lost that is not ours.

A list is replaced as a whole by a merge patch, and by most CRDs as well. So whatever we know nothing of inside it (a rule's name,
a retry policy, the field of a newer version, a default of the server) must be carried over from what is there. A shape names the
fields that are ours at every level; a field that it does not name is never compared and never dropped.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.controller.core.decision import JSON

Shape: TypeAlias = "Mapping[str, Shape | None]"
"""Fields of ours by name. None: ours with all that is in it. Lists are looked through."""


def project(value: Any, shape: Shape | None) -> Any:
    """Return what of a value is ours. Empty fields are left out: they mean the same as none."""
    if shape is None:
        return value
    if isinstance(value, list):
        return [project(item, shape) for item in value]
    if isinstance(value, Mapping):
        found = {key: project(value[key], shape[key]) for key in shape if key in value}
        return {key: item for key, item in found.items() if item not in (None, [], {})}
    return value


def carry(held: Any, wanted: Any, shape: Shape | None) -> Any:
    """Return `wanted` with what is not ours of `held`. Items of lists belong together by name, else by place."""
    if shape is None:
        return wanted
    if isinstance(wanted, list):
        if not isinstance(held, list):
            return wanted
        return [
            carry(_partner(held, wanted, place), one, shape) for place, one in enumerate(wanted)
        ]
    if isinstance(wanted, Mapping) and isinstance(held, Mapping):
        foreign = {key: value for key, value in held.items() if key not in shape}
        return foreign | {key: carry(held.get(key), wanted[key], shape.get(key)) for key in wanted}
    return wanted


def carry_rules(
    held: Sequence[JSON], wanted: Sequence[JSON], shape: Shape, key: str, *, ours: bool
) -> list[JSON]:
    """Return the rules of a route with what is not ours of those that are there.

    `key` is the field with a rule's matches. The last rule is for everybody (or for whom no other rule matches); rules that are added
    for cookies or a test get what it carries, but its name. `ours`: the route is already one of this Canary's; otherwise a rule with
    other matches is somebody's own and gives nothing.
    """
    last = held[-1] if held else {}
    if not ours and project(last, shape).get(key) != project(wanted[-1], shape).get(key):
        last = {}
    result: list[JSON] = []
    for place, rule in enumerate(wanted):
        same = _with_matches(held, rule, shape, key)
        if same is None and place == len(wanted) - 1:
            same = last
        if same is None:
            same = {field: value for field, value in last.items() if field not in {*shape, "name"}}
        result.append(carry(same, rule, shape))
    return copy.deepcopy(result)


def difference(held: Any, wanted: Any) -> Any:
    """Return the JSON merge patch from one value to another."""
    if not isinstance(held, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    patch: dict[str, Any] = {key: None for key in held if key not in wanted}
    for key, value in wanted.items():
        if key not in held:
            patch[key] = value
        elif held[key] != value:
            patch[key] = difference(held[key], value)
    return patch


def _partner(held: list[Any], wanted: list[Any], place: int) -> Any:
    name = _name(wanted[place])
    named = [one for one in held if _name(one) == name]
    if name and len(named) == 1 and sum(_name(one) == name for one in wanted) == 1:
        return named[0]
    return held[place] if len(held) == len(wanted) and _name(held[place]) == name else None


def _name(item: Any) -> str:
    """What a list item goes by: its name, a filter's type, a destination's host."""
    if not isinstance(item, Mapping):
        return ""
    host = (item.get("destination") or {}).get("host", "")
    return str(item.get("name") or host or item.get("type") or "")


def _with_matches(held: Sequence[JSON], rule: JSON, shape: Shape, key: str) -> JSON | None:
    matches = project(rule, shape).get(key)
    return next((one for one in held if project(one, shape).get(key) == matches), None)
