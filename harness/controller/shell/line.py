"""The line as this process keeps it: who has a slot, who is about to get one, and who is next (deviation D4).

It is fed with every state of every Canary that is seen, so it starts from their conditions and comes to the same order in every process. Each
state costs a look-up in a sorted list, whatever the number of Canaries; nobody polls: whoever is next is called when a slot is free.

Between a turn and the status write that shows it there is a reservation, so that two workers that ask in the same moment cannot both get the last
slot. It is given back when the pass ends without a start, or its write is refused; not when nobody knows whether a write arrived.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.controller.core import line
from harness.controller.core.decision import Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.controller.core.decision import JSON
    from harness.controller.core.line import Key


@dataclass(frozen=True, slots=True)
class View:
    """The line at one moment, for whoever shows it."""

    limit: int
    used: int
    """Slots in use, reservations included."""
    waiting: tuple[str, ...]
    """Names of those that wait for a turn, the next one first."""


class Line:
    """One namespace's line. `call` wakes a Canary's worker; it returns False where none can be woken, and then the next one is called."""

    def __init__(self, limit: int, words: str, call: Callable[[str], bool]) -> None:
        self._limit = limit
        self._words = words
        self._call = call
        self._order: list[Key] = []
        self._keys: dict[str, Key] = {}
        """Of each one in the order. Whoever cannot take a turn now is left out until it asks, or is seen to have changed."""
        self._holders: set[str] = set()
        self._reserved: set[str] = set()
        self._asking: set[str] = set()
        """Those in the middle of a pass that has asked: their place is settled at its end."""

    @property
    def view(self) -> View:
        """What there is to show. Costs a pass over those that wait."""
        waiting = tuple(key[3] for key in self._order)
        return View(self._limit, self._used, waiting)

    # -- what is seen ------------------------------------------------------------------------------------------------

    def load(self, canaries: Iterable[JSON]) -> None:
        """Take in a complete list."""
        known = {str(canary["metadata"]["name"]): canary for canary in canaries}
        for name in {*self._holders, *self._reserved, *self._keys} - set(known):
            self._forget(name)
        for canary in known.values():
            self._take(canary)
        self._pump()

    def saw(self, canary: JSON) -> None:
        """Take in a state of a Canary."""
        self._take(canary)
        self._pump()

    def gone(self, name: str) -> None:
        """A Canary was deleted."""
        self._forget(name)
        self._pump()

    # -- a pass ------------------------------------------------------------------------------------------------------

    def ask(self, canary: JSON, now: float) -> Turn:
        """Return a Canary's turn: granted when a slot is free for it and nobody before it waits for one (a reservation then).

        `now`: seconds since the epoch, the same that the pass decides with.
        """
        name = str(canary["metadata"]["name"])
        self._asking.add(name)
        if name in self._reserved or name in self._holders:
            return Turn(granted=True)
        key = line.entrant(canary, now).key
        self._join(name, key)
        before = bisect.bisect_left(self._order, key)
        free = self._free
        if before < free:
            self._leave(name)
            self._reserved.add(name)
            return Turn(granted=True)
        return Turn(
            granted=False,
            position=before + 1 - free,
            waiting=len(self._order) - free,
            limit=self._words,
        )

    def passed(
        self, name: str, canary: JSON | None, *, asked: bool, keeps: bool, sure: bool = True
    ) -> None:
        """Take note of the end of a pass. `canary`: as it is known now. `asked`: it came as far as to ask for a turn.

        `keeps`: it goes on with its turn in a later pass. Not `sure`: a write may have arrived or not; all stays until the next pass.
        """
        self._asking.discard(name)
        if canary is None:
            self.gone(name)
            return
        if sure and not keeps:
            self._reserved.discard(name)
        if line.holds(canary):
            self._holds(name)
        elif sure:
            self._holders.discard(name)
            if not (asked and name in self._keys and line.waits(canary)):
                # It did not want a turn, or made nothing of it: it holds nobody up until it asks again.
                self._leave(name)
        self._pump()

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _used(self) -> int:
        return len(self._holders | self._reserved)

    @property
    def _free(self) -> int:
        return max(self._limit - self._used, 0)

    def _take(self, canary: JSON) -> None:
        name = str(canary["metadata"]["name"])
        if line.holds(canary):
            self._holds(name)
            return
        self._holders.discard(name)
        if name in self._asking or name in self._reserved:
            return
        if line.waits(canary):
            self._join(name, line.entrant(canary, 0.0).key)
        else:
            self._leave(name)

    def _holds(self, name: str) -> None:
        self._holders.add(name)
        self._reserved.discard(name)
        self._leave(name)

    def _join(self, name: str, key: Key) -> None:
        if self._keys.get(name) != key:
            self._leave(name)
            self._keys[name] = key
            bisect.insort(self._order, key)

    def _leave(self, name: str) -> None:
        key = self._keys.pop(name, None)
        if key is not None:
            del self._order[bisect.bisect_left(self._order, key)]

    def _forget(self, name: str) -> None:
        self._holders.discard(name)
        self._reserved.discard(name)
        self._leave(name)

    def _pump(self) -> None:
        """Call those that may go."""
        while called := [key[3] for key in self._order[: self._free] if key[3] not in self._asking]:
            lost = [name for name in called if not self._call(name)]
            if not lost:
                return
            for name in lost:
                self._leave(name)
