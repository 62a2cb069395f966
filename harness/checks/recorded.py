"""The parts of objects that the report quotes: read at the moments asked for, compared, and judged to be there."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.checks.paths import KNATIVE_SERVICE, PathMissingError, read
from harness.model.clock import moment
from harness.model.outcome import Outcome
from harness.model.report import Finding, Reading, Recorded

if TYPE_CHECKING:
    from harness.checks.state import State
    from harness.checks.windows import Schedule
    from harness.model.resolved import Record
    from harness.model.timeline import JSON, Observation

RECORDED: Final = "recorded"
END: Final = "end"


@dataclass(slots=True)
class RecordReader:
    """Reads the values while a recording is replayed."""

    records: tuple[Record, ...]
    schedule: Schedule
    _read: dict[tuple[int, str], Reading] = field(default_factory=dict)

    def observe(self, index: int, observation: Observation, state: State) -> None:
        """Read what is to be read at this position."""
        for number, record in enumerate(self.records):
            for at in record.at:
                position = self.schedule.end if at == END else self.schedule.held.get(at)
                if position == index:
                    self._read[number, at] = _reading(record, at, observation.t, state)

    def entries(self) -> tuple[Recorded, ...]:
        """Return all entries, in the scenario's order."""
        return tuple(self._entry(number, record) for number, record in enumerate(self.records))

    def _entry(self, number: int, record: Record) -> Recorded:
        readings = tuple(
            self._read.get((number, at)) or Reading(at, None, "", found=False, reason=_never(at))
            for at in record.at
        )
        change = _change(readings)
        first, last = readings[0], readings[-1]
        diff = _diff(first, last) if change == "changed" else ""
        return Recorded(
            record.title,
            record.object,
            record.path,
            readings,
            change,
            _summary(readings, change),
            diff,
        )

    def finding(self) -> Finding | None:
        """Return whether everything was found; None if the scenario records nothing."""
        if not self.records:
            return None
        title = "Everything to be recorded was found"
        missing = [
            (entry.title, reading)
            for entry in self.entries()
            for reading in entry.readings
            if not reading.found
        ]
        if not missing:
            count = sum(len(entry.readings) for entry in self.entries())
            evidence = f"{count} of {count} values read"
            return Finding(RECORDED, title, Outcome.PASS, evidence, builtin=True)
        evidence = "; ".join(f"{name}, {r.at}: {r.reason}" for name, r in missing)
        looked = any(reading.t is not None for _, reading in missing)
        outcome = Outcome.FAIL if looked else Outcome.UNKNOWN
        return Finding(RECORDED, title, outcome, evidence, builtin=True)


def _never(at: str) -> str:
    return "the drill did not get there" if at == END else f"step {at} never held"


def _reading(record: Record, at: str, t: float, state: State) -> Reading:
    obj = _object(record.object, state)
    if obj is None:
        return Reading(at, t, "", found=False, reason=f"there was no {record.object}")
    name = f"{obj.get('kind', '')} {obj['metadata']['name']}"
    try:
        return Reading(at, t, name, found=True, value=read(obj, record.path))
    except PathMissingError as error:
        return Reading(at, t, name, found=False, reason=f"{name}: {error}")


def _object(which: str, state: State) -> JSON | None:
    if which == "rollout":
        return state.rollout
    names = {"primary": state.primary_name, "target": state.target_name}
    if which in names:
        # A Knative Service is no workload, and is what users change all the same.
        return state.workload(names[which]) or state.get(KNATIVE_SERVICE, names[which])
    if which.endswith("-pod"):
        return _pod(which.removesuffix("-pod"), state)
    kind, _, name = which.partition("/")
    return state.get(kind, name)


def _pod(role: str, state: State) -> JSON | None:
    """Return one pod of a workload: of its newest revision and ready, if there is such a one; then the first by name."""
    facts = state.facts()
    newest = facts.get(role, {}).get("hash", "")
    pods = [pod for pod in facts.get("pods", ()) if pod["role"] == role]
    pods.sort(
        key=lambda pod: (
            pod["terminating"],
            pod["hash"] != newest,
            not pod["ready"],
            pod["name"],
        )
    )
    return state.get("Pod", pods[0]["name"]) if pods else None


def _change(
    readings: tuple[Reading, ...],
) -> Literal["unchanged", "changed", "single", "missing"]:
    if not all(reading.found for reading in readings):
        return "missing"
    if len(readings) == 1:
        return "single"
    first = readings[0].value
    return "unchanged" if all(r.value == first for r in readings[1:]) else "changed"


def _summary(readings: tuple[Reading, ...], change: str) -> str:
    if change == "missing":
        return "; ".join(f"{r.at}: {r.reason}" for r in readings if not r.found)
    if change == "single":
        return f"Read from {readings[0].object} {_at(readings[0])}."
    objects = list(dict.fromkeys(reading.object for reading in readings))
    moments = f"between {_when(readings[0])} and {_when(readings[-1])}"
    return f"Read from {' and '.join(objects)}: {change} {moments}."


def _when(reading: Reading) -> str:
    return f"{reading.at} ({moment(reading.t or 0.0)})"


def _at(reading: Reading) -> str:
    return f"at the {_when(reading)}" if reading.at == END else f"after {_when(reading)}"


def _diff(first: Reading, last: Reading) -> str:
    lines = difflib.unified_diff(
        pretty(first.value).splitlines(),
        pretty(last.value).splitlines(),
        first.at,
        last.at,
        lineterm="",
    )
    return "\n".join(lines)


def pretty(value: Any) -> str:
    """Return a value as indented JSON with its keys in order, so that the same value always reads the same."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
