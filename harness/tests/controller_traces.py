"""The traces that writes leave on a real API server, for the simulated one: managedFields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON = dict[str, Any]
Path = tuple[str, ...]


def note_writer(
    old: JSON, new: JSON, part: Literal["spec", "status"], manager: str, time: str
) -> None:
    """Note in `new` who set which fields of its spec or status; an entry's time moves with any field that its manager changes.

    Fields are told apart down to the last map; a list is one field.
    """
    before, after = old.get(part) or {}, new.get(part) or {}
    held = dict(_leaves(after, (f"f:{part}",)))
    earlier = dict(_leaves(before, (f"f:{part}",)))
    changed = {
        path for path, value in held.items() if path not in earlier or earlier[path] != value
    }
    removed = earlier.keys() - held.keys()
    entries: list[JSON] = new["metadata"].setdefault("managedFields", [])
    if not changed and not removed:
        return
    own: JSON = {"manager": manager, "operation": "Update"}
    if part == "status":
        own["subresource"] = "status"
    mine = next(
        (e for e in entries if own.items() <= e.items() and f"f:{part}" in e["fieldsV1"]), None
    )
    if mine is None and changed:
        mine = own | {"fieldsV1": {}}
        entries.append(mine)
    for entry in entries:
        for path in changed | removed:
            _forget(entry["fieldsV1"], path)
    if mine is not None:
        mine["time"] = time
        for path in changed:
            _set(mine["fieldsV1"], path)
    new["metadata"]["managedFields"] = [entry for entry in entries if entry["fieldsV1"]]


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, f"f:{key}"))
    elif len(path) > 1:
        yield path, value


def _forget(fields: JSON, path: Path) -> None:
    inner = fields.get(path[0])
    if inner is None:
        return
    if len(path) > 1:
        _forget(inner, path[1:])
    if not inner or len(path) == 1:
        del fields[path[0]]


def _set(fields: JSON, path: Path) -> None:
    for key in path:
        fields = fields.setdefault(key, {})
