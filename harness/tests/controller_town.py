"""Canaries that are nothing but their status, and the line of a process that serves them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from harness.controller.core.line import (
    PRIORITY,
    entrant,
    holds,
    waits,
)
from harness.controller.core.moments import stamp
from harness.controller.shell.line import Line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.controller.core.decision import Turn

JSON = dict[str, Any]
AT = 1_700_000_000.0


def condition(kind: str, at: float = AT, **more: str) -> JSON:
    times = {"lastTransitionTime": stamp(at), "lastUpdateTime": stamp(at)}
    return {"type": kind, "status": "True", **times, **more}


def one(name: str, phase: str, *conditions: JSON, priority: Any = None, **spec: Any) -> JSON:
    """A Canary in a phase."""
    meta: JSON = {"name": name, "namespace": "n"}
    if priority is not None:
        meta["annotations"] = {PRIORITY: str(priority)}
    return {
        "metadata": meta,
        "spec": spec,
        "status": {"phase": phase, "conditions": list(conditions)},
    }


def queued(name: str, at: float = 0.0, **more: Any) -> JSON:
    """One that waits for its start since so many seconds after AT."""
    phase = more.pop("phase", "Succeeded")
    return one(name, phase, condition("Queued", AT + at, reason="StartLimit"), **more)


class Town:
    """Canaries with a status each, and a worker for each that does what it is woken for."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.objects: dict[str, JSON] = {}
        self.unable: set[str] = set()
        """Whose target is missing, say: their passes never come as far as to ask."""
        self.woken: list[str] = []
        self.calls = 0
        self.started: list[str] = []
        self.now = AT
        self.restart()

    def restart(self) -> None:
        """Another process, which knows nothing but the objects."""
        self.line = Line(self.limit, "at most some", self._call)
        self.line.load(self.objects.values())
        self.woken = list(self.objects)

    def _call(self, name: str) -> bool:
        self.calls += 1
        if name not in self.woken:
            self.woken.append(name)
        return name in self.objects

    @property
    def busy(self) -> set[str]:
        return {name for name, obj in self.objects.items() if holds(obj)}

    @property
    def queue(self) -> list[str]:
        """Who waits, the next one first."""
        return list(self.line.view.waiting)

    def change(self, name: str, priority: int = 0) -> None:
        """A Canary gets another revision, at a moment of its own."""
        self.now += 1
        found = self.objects.setdefault(name, one(name, "Succeeded", priority=priority))
        if found["status"]["phase"] in ("Succeeded", "Failed"):
            found["wants"] = True
        self.line.saw(found)
        self.woken.append(name)

    def set(self, name: str, phase: str, *conditions: JSON) -> None:
        found = self.objects[name]
        self.objects[name] = {**found, "status": {"phase": phase, "conditions": list(conditions)}}
        self.line.saw(self.objects[name])

    def work(self, order: Iterable[int] = ()) -> None:
        """Let woken workers make their passes until nobody is left."""
        picks = itertools.chain(order, itertools.repeat(0))
        for _ in range(10_000):
            if not self.woken:
                return
            self.one_pass(self.woken.pop(next(picks) % len(self.woken)))
        msg = "passes without an end"
        raise AssertionError(msg)

    def happens(self, what: str, name: str, number: int) -> None:
        """One thing that may happen to one of them, where it can."""
        found = self.objects.get(name)
        if what == "restart":
            self.restart()
        elif what == "change":
            self.change(name, priority=number)
        elif what in ("break", "cure"):
            (self.unable.add if what == "break" else self.unable.discard)(name)
            self.woken.append(name)
        elif found is not None and holds(found):
            self._to_one_at_work(what, name)
        elif found is not None:
            self._to_one_at_rest(what, name, found)

    def _to_one_at_work(self, what: str, name: str) -> None:
        if what == "finish":
            self.set(name, "Succeeded")
        elif what == "hold":
            self.set(name, "Progressing", condition("Held", reason="ConfirmTrafficIncrease"))
        elif what == "delete":
            del self.objects[name]
            self.line.gone(name)

    def _to_one_at_rest(self, what: str, name: str, found: JSON) -> None:
        if what == "open" and found["status"]["phase"] == "Progressing":
            self.now += 1
            self.set(name, "Progressing", condition("Queued", self.now, reason="StartLimit"))
            self.woken.append(name)
        elif what in ("suspend", "resume"):
            found["spec"]["suspend"] = what == "suspend"
            self.line.saw(found)
            self.woken.append(name)
        elif what == "delete":
            del self.objects[name]
            self.line.gone(name)
        elif what in ("refuse", "unsure"):
            self.one_pass(name, written=False, sure=what == "refuse")
            self.woken.append(name)  # as its worker does after a while

    def one_pass(self, name: str, *, written: bool = True, sure: bool = True) -> Turn | None:
        found = self.objects.get(name)
        if found is None or name in self.unable or found["spec"].get("suspend"):
            self.line.passed(name, found, asked=False, keeps=False)
            return None
        wants = found.get("wants") or (waits(found) and found["status"]["phase"] == "Progressing")
        if not wants:
            self.line.passed(name, found, asked=False, keeps=False)
            return None
        turn = self.line.ask(found, self.now)
        if turn.granted and written:
            self.started.append(name)
            self.objects[name] = {**found, "status": {"phase": "Progressing"}, "wants": False}
        elif not turn.granted and not waits(found):
            entry = condition("Queued", entrant(found, self.now).seen, reason="StartLimit")
            status = {"phase": found["status"]["phase"], "conditions": [entry]}
            self.objects[name] = {**found, "status": status}
        self.line.passed(name, self.objects[name], asked=True, keeps=False, sure=sure)
        return turn
