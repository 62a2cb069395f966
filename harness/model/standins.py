"""What stands for the world outside the cluster during a drill: gates, receivers of alerts, metrics. Plain data, no I/O.

A scenario declares it, steps change it, and stand-ins on this machine's loopback (`harness.standins`) play it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

OPEN: Final = "open"
CLOSED: Final = "closed"
HANG: Final = "hang"
WORDS: Final = (OPEN, CLOSED, HANG)
"""Answers that have a name; any other one is a status."""
STATUSES: Final[Mapping[str, int]] = {OPEN: 200, CLOSED: 403}
"""Names of answers and their statuses; `hang` has none, since no answer comes."""
LEAST_STATUS: Final = 200
MOST_STATUS: Final = 599
ANSWER_FORMS: Final = (*WORDS, "a status such as 503")

NAN: Final = "NaN"
ABSENT: Final = "absent"
DOWN: Final = "down"
THROTTLED: Final = "throttled"
SERVER_WORDS: Final = (DOWN, THROTTLED)
"""What a step may say in the place of a value: it is about the server that tells the metrics, not about one of them."""
TOO_MANY: Final = 429
RETRY_AFTER: Final = 5
"""Seconds that a server which is `throttled` asks everybody to wait."""
VALUE_FORMS: Final = ("a number", "'NaN'", "absent", "'5/s' (a counter that grows)")
RATE: Final = re.compile(r"(\d+(?:\.\d+)?)/s")
"""A counter: how much it grows in a second."""
_LABEL: Final = r'[a-zA-Z_][a-zA-Z0-9_]*="[^"\\\n]*"'
SERIES: Final = rf"^[a-zA-Z_:][a-zA-Z0-9_:]*(\{{({_LABEL}(,{_LABEL})*)?\}})?$"
"""How a metric is named: its name, and labels in Prometheus' own form."""

RECEIVER: Final = "receiver"
PROMETHEUS: Final = "prometheus"
PLACEHOLDERS: Final[Mapping[str, str]] = {
    RECEIVER: "http://receiver.drill.invalid",
    PROMETHEUS: "http://prometheus.drill.invalid",
}
"""What templates get for the addresses of the stand-ins: they have their real ones only while a drill runs, which puts those in."""


class GivenError(ValueError):
    """A value of a scenario that is none; `allowed` says which are."""

    def __init__(self, message: str, allowed: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allowed = allowed


def parse_answer(value: object) -> str:
    """Return an answer in its one form: `open`, `closed`, `hang`, or a status as text. Raises GivenError."""
    if isinstance(value, str) and value in WORDS:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if LEAST_STATUS <= value <= MOST_STATUS:
            return str(value)
        msg = f"must be a status from {LEAST_STATUS} to {MOST_STATUS}, not {value}"
        raise GivenError(msg, ANSWER_FORMS)
    msg = f"{value!r} is no answer"
    raise GivenError(msg, ANSWER_FORMS)


def parse_value(value: object) -> str:
    """Return the value of a metric in its one form: a number, `NaN`, `absent`, or `N/s`, as text. Raises GivenError."""
    return _value(value, VALUE_FORMS)


def parse_change(value: object) -> str:
    """Return what a step makes of a metric: as `parse_value`, or one of `SERVER_WORDS`. Raises GivenError."""
    for word in SERVER_WORDS:
        if value == word:
            return word
    return _value(value, (*VALUE_FORMS, *SERVER_WORDS))


def _value(value: object, allowed: tuple[str, ...]) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return NAN if math.isnan(value) else f"{'-' if value < 0 else '+'}Inf"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.15g}"
    if isinstance(value, str) and (value in {NAN, ABSENT} or RATE.fullmatch(value)):
        return value
    msg = f"{value!r} is no value of a metric"
    raise GivenError(msg, allowed)


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """What a gate, or a receiver of alerts, answers."""

    answer: str = OPEN
    """`open` (200), `closed` (403), `hang` (never answers), or a status as text."""
    body: str = ""
    delay: float = 0.0
    """Seconds before each answer."""
    first: tuple[str, ...] = ()
    """What the first calls get, one each, before it stays with `answer`."""

    @property
    def text(self) -> str:
        """The answer in words, e.g. `503, 503, then open after 2 s`."""
        told = ", ".join((*self.first, f"then {self.answer}")) if self.first else self.answer
        return f"{told} after {self.delay:g} s" if self.delay else told


@dataclass(frozen=True, slots=True)
class Receiver:
    """The HTTP server that webhooks and alerts go to."""

    gates: Mapping[str, GateAnswer] = field(default_factory=dict)
    """By the NAME of `/gate/NAME`."""
    alerts: Mapping[str, GateAnswer] = field(default_factory=dict)
    """By the NAME of `/alerts/NAME`."""


def status_of(answer: str) -> int:
    """Return the status of an answer; 0 for `hang`, which has none."""
    if answer == HANG:
        return 0
    return STATUSES.get(answer) or int(answer)


def read_answer(value: object) -> GateAnswer:
    """Read an answer back from its JSON form, a redacted one too. Never fails."""
    row = value if isinstance(value, Mapping) else {}
    first = row.get("first")
    delay = row.get("delay")
    return GateAnswer(
        str(row.get("answer", OPEN)),
        str(row.get("body", "")),
        float(delay) if isinstance(delay, int | float) else 0.0,
        tuple(str(one) for one in first) if isinstance(first, list) else (),
    )


def read_receiver(value: object) -> Receiver | None:
    """Read a receiver back from its JSON form; None where there is none. Never fails."""
    if not isinstance(value, Mapping):
        return None
    return Receiver(_answers(value.get("gates")), _answers(value.get("alerts")))


def read_metrics(value: object) -> dict[str, str] | None:
    """Read metrics back from their JSON form; None where there are none. Never fails."""
    if not isinstance(value, Mapping):
        return None
    return {str(name): str(given) for name, given in value.items()}


def _answers(value: object) -> dict[str, GateAnswer]:
    rows = value if isinstance(value, Mapping) else {}
    return {str(name): read_answer(row) for name, row in rows.items()}


def addressed(value: Any, addresses: Mapping[str, str]) -> Any:
    """Return a copy of any JSON with the placeholders of `addresses` (names of `PLACEHOLDERS`) replaced by real addresses."""
    if isinstance(value, str):
        for name, address in addresses.items():
            value = value.replace(PLACEHOLDERS[name], address)
        return value
    if isinstance(value, Mapping):
        return {key: addressed(item, addresses) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [addressed(item, addresses) for item in value]
    return value
