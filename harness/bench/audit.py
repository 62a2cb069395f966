"""From lines of the API server's audit log to the requests of one subject, counted."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.bench.model import RequestRow, Requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

READS: Final = frozenset({"get", "list"})
_REFUSED: Final = 400
_WATCH: Final = "watch"


@dataclass(frozen=True, slots=True)
class Sent:
    """One request of the subject."""

    at: float
    """When the API server received it, in seconds since the epoch."""
    verb: str
    resource: str
    name: str
    """Of the object; empty for lists, watches and creations without one."""
    status: int
    seconds: float
    """From its reception to the end of the answer; 0 for a watch."""

    @property
    def write(self) -> bool:
        """Whether it may change something."""
        return self.verb not in READS and self.verb != _WATCH


def user_of(namespace: str, service_account: str) -> str:
    """Return the name that the API server has for a service account."""
    return f"system:serviceaccount:{namespace}:{service_account}"


def read_line(line: bytes | str, user: str) -> Sent | None:
    """Return the request that a line of the log tells of; None when it is of somebody else or would be counted twice.

    A watch is counted when its answer begins, since it may outlive the benchmark, everything else when its answer ends. A line that is no
    JSON is the end of a file that is being written; the log's reader gives whole lines only.
    """
    # Looked for before parsing: most of a log may be other users'.
    if isinstance(line, str):
        line = line.encode()
    if user.encode() not in line:
        return None
    event = json.loads(line)
    if (event.get("user") or {}).get("username") != user:
        return None
    verb, stage = str(event.get("verb", "")), event.get("stage")
    if stage != ("ResponseStarted" if verb == _WATCH else "ResponseComplete"):
        # A watch that was refused has no ResponseStarted.
        refused = _status(event) >= _REFUSED
        if not (verb == _WATCH and stage == "ResponseComplete" and refused):
            return None
    received = _moment(event["requestReceivedTimestamp"])
    reference = event.get("objectRef") or {}
    return Sent(
        at=received,
        verb=verb,
        resource=_resource(reference) or str(event.get("requestURI", "")).partition("?")[0],
        name=str(reference.get("name") or ""),
        status=_status(event),
        seconds=0.0 if verb == _WATCH else max(_moment(event["stageTimestamp"]) - received, 0.0),
    )


def count(sent: Iterable[Sent]) -> Requests:
    """Return how many requests there were, altogether and by verb and resource."""
    counts: Counter[tuple[str, str]] = Counter()
    refused: Counter[tuple[str, str]] = Counter()
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    for request in sent:
        key = (request.verb, request.resource)
        counts[key] += 1
        refused[key] += request.status >= _REFUSED
        seconds[key] += request.seconds
    # By name where equally frequent, so that the same requests always give the same table.
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = tuple(RequestRow(*key, number, refused[key], seconds[key]) for key, number in ordered)
    reads = sum(row.count for row in rows if row.verb in READS)
    watches = sum(row.count for row in rows if row.verb == _WATCH)
    total = sum(row.count for row in rows)
    return Requests(total, reads, watches, total - reads - watches, sum(refused.values()), rows)


def within(sent: Iterable[Sent], begin: float, end: float) -> list[Sent]:
    """Return the requests that were received from `begin` on and before `end`, in seconds since the epoch."""
    return [request for request in sent if begin <= request.at < end]


def naming(sent: Iterable[Sent], names: Sequence[str], primary_suffix: str) -> set[str]:
    """Return those of the names (of rollout objects and their targets) that a request names, itself or as its primary."""
    named = {request.name.removesuffix(primary_suffix) for request in sent if request.name}
    return named.intersection(names)


def _status(event: dict[str, Any]) -> int:
    return int((event.get("responseStatus") or {}).get("code") or 0)


def _resource(reference: dict[str, Any]) -> str:
    plural = str(reference.get("resource") or "")
    if not plural:
        return ""
    group, sub = reference.get("apiGroup"), reference.get("subresource")
    return f"{plural}{'.' if group else ''}{group or ''}{'/' if sub else ''}{sub or ''}"


def _moment(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()
