"""A part of the world that checks see: views of objects by name, with a version for every field.

A check looks again only when a field that it uses has changed, which is what keeps drills with hundreds of rollouts quick: most of
what happens there concerns one object and one field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

View = dict[str, Any]
_MISSING: Final = object()


@dataclass(slots=True)
class Section:
    """Views by key, in the order in which they came, or in that of `order`."""

    order: Callable[[Any], Any] | None = None
    """Sorts the keys, to which it must give the same place as long as their views are there; None: as they came."""
    members: int = 0
    """Grows when a view comes or goes."""
    changes: int = 0
    """Grows when any view changes."""
    _fields: dict[str, int] = field(default_factory=dict)
    _views: dict[Any, View] = field(default_factory=dict)
    _rows: list[View] | None = None
    _keys: list[Any] | None = None
    """In their order; None: to be sorted again."""

    def put(self, key: Hashable, view: View) -> bool:
        """Set a view, which must not be changed any more; return whether it is another than before."""
        before = self._views.get(key)
        if before == view:
            return False
        self._views[key] = view
        self._rows = None
        if before is None:
            self.members += 1
            self._keys = None
            return True
        self.changes += 1
        for name in before.keys() | view.keys():
            if before.get(name, _MISSING) != view.get(name, _MISSING):
                self._fields[name] = self._fields.get(name, 0) + 1
        return True

    def keys(self) -> frozenset[Any]:
        """Return the keys of the views."""
        return frozenset(self._views)

    def drop(self, key: Hashable) -> bool:
        """Remove a view; return whether there was one."""
        if self._views.pop(key, None) is None:
            return False
        self._rows = self._keys = None
        self.members += 1
        return True

    def get(self, key: Hashable) -> View | None:
        """Return a view."""
        return self._views.get(key)

    @property
    def rows(self) -> list[View]:
        """All views; shared and cached, not to be changed."""
        if self._rows is None:
            if self.order is None:
                self._rows = list(self._views.values())
            else:
                if self._keys is None:
                    self._keys = sorted(self._views, key=self.order)
                self._rows = [self._views[key] for key in self._keys]
        return self._rows

    def stamp(self, fields: frozenset[str] | None) -> int:
        """Return a number that is the same only as long as none of some fields (None: any) has changed in any view."""
        if fields is None:
            return self.members + self.changes
        return self.members + sum(self._fields.get(name, 0) for name in fields)
