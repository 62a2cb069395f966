"""What the fake API server stores, and how patches and selectors work on it (simplified)."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness.model.timeline import JSON

_SET: Final = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^)]*)\)$")
_SPLIT: Final = re.compile(r",(?![^(]*\))")


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` after a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic(target: Any, patch: Any) -> Any:
    """Return `target` merged with `patch`: maps by key, lists of named objects by name."""
    if isinstance(patch, dict):
        result = dict(target) if isinstance(target, dict) else {}
        for key, value in patch.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = strategic(result.get(key), value)
        return result
    if _named(patch) and _named(target):
        rows = {row["name"]: row for row in target}
        for row in patch:
            rows[row["name"]] = strategic(rows.get(row["name"]), row)
        return list(rows.values())
    return copy.deepcopy(patch)


def json_patch(target: JSON, operations: list[JSON]) -> JSON:
    """Return `target` after add, replace, remove and test; ValueError when one does not apply."""
    result = copy.deepcopy(target)
    for operation in operations:
        *parents, last = [
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        ]
        place: Any = result
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.get(part)
            if place is None:
                msg = f"path {operation['path']!r} does not exist"
                raise ValueError(msg)
        _operate(place, last, operation)
    return result


def _operate(place: Any, key: str, operation: JSON) -> None:
    index: Any = key if isinstance(place, dict) else (len(place) if key == "-" else int(key))
    present = index in place if isinstance(place, dict) else index < len(place)
    verb = operation["op"]
    if verb != "add" and not present:
        msg = f"path {operation['path']!r} does not exist"
        raise ValueError(msg)
    if verb == "test":
        if place[index] != operation["value"]:
            msg = f"test of {operation['path']!r} failed"
            raise ValueError(msg)
    elif verb == "remove":
        del place[index]
    elif isinstance(place, list) and verb == "add":
        place.insert(index, operation["value"])
    else:
        place[index] = operation["value"]


def leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return every leaf by its path; lists of named objects are entered by name."""
    if isinstance(value, dict) and value:
        children = value.items()
    elif _named(value) and value:
        children = {f"[{row['name']}]": row for row in value}.items()
    else:
        return {path: value}
    found: dict[tuple[str, ...], Any] = {}
    for key, child in children:
        found.update(leaves(child, (*path, key)))
    return found


def without(value: Any, path: tuple[str, ...]) -> Any:
    """Return `value` without the leaf at `path`, and without maps that become empty by that."""
    head, *rest = path
    if isinstance(value, list):
        rows = []
        for row in value:
            if f"[{row.get('name')}]" != head:
                rows.append(row)
            elif rest and set(left := without(row, tuple(rest))) - {"name"}:
                rows.append(left)
        return rows
    if not isinstance(value, dict) or head not in value:
        return value
    result = dict(value)
    child = without(result[head], tuple(rest)) if rest else None
    if child in (None, {}, []):
        del result[head]
    else:
        result[head] = child
    return result


def matches_labels(obj: JSON, selector: str) -> bool:
    """Return whether the labels of `obj` satisfy a label selector."""
    labels = obj.get("metadata", {}).get("labels") or {}
    return all(_label(labels, term.strip()) for term in _SPLIT.split(selector) if term.strip())


def _label(labels: JSON, term: str) -> bool:
    if found := _SET.match(term):
        key, verb, values = found.groups()
        inside = labels.get(key) in [value.strip() for value in values.split(",")]
        return inside if verb == "in" else not inside
    if "!=" in term:
        key, _, value = term.partition("!=")
        return bool(labels.get(key) != value)
    if "=" in term:
        key, _, value = term.replace("==", "=").partition("=")
        return bool(labels.get(key) == value)
    return term[1:] not in labels if term.startswith("!") else term in labels


def matches_fields(obj: JSON, selector: str) -> bool:
    """Return whether `obj` satisfies a field selector of `path=value` and `path!=value`."""
    for term in filter(None, selector.split(",")):
        path, _, value = term.replace("==", "=").partition("=")
        place: Any = obj
        for part in path.rstrip("!").split("."):
            place = place.get(part) if isinstance(place, dict) else None
        if (str(place or "") == value) == path.endswith("!"):
            return False
    return True


def _named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(r, dict) and "name" in r for r in value)
