"""Statistics as Knative's queue-proxy and activator tell them to its autoscaler: three small protobuf messages, written by hand.

The library would want generated code of somebody else's schema in this repository, for eight fields that are only ever written.
Field numbers: knative.dev/serving, pkg/autoscaler/metrics/stat.proto. As its own encoder does, fields that are 0 are left out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MEDIA_TYPE: Final = "application/protobuf"
_DOUBLE: Final = 1
_BYTES: Final = 2
_VARINT: Final = 0


@dataclass(frozen=True, slots=True)
class Stat:
    """What one pod says."""

    pod: str
    concurrency: float
    """Requests under way, on average."""
    rate: float
    """Requests since the last time, about one second ago."""
    uptime: float
    """Seconds."""
    timestamp: int
    """Seconds since the epoch."""


def encode(stat: Stat) -> bytes:
    """Return a `Stat` as the autoscaler reads it."""
    return b"".join(
        (
            _text(1, stat.pod),
            _number(2, stat.concurrency),
            _number(4, stat.rate),
            _number(6, stat.uptime),
            _key(7, _VARINT) + _varint(stat.timestamp) if stat.timestamp else b"",
        )
    )


def encode_all(stats: Iterable[tuple[str, str, Stat]]) -> bytes:
    """Return `WireStatMessages` for (namespace, revision, what its pod says)."""
    return b"".join(
        _block(1, _text(1, namespace) + _text(2, revision) + _block(3, encode(stat)))
        for namespace, revision, stat in stats
    )


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _text(field: int, value: str) -> bytes:
    return _block(field, value.encode())


def _block(field: int, value: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(value)) + value


def _number(field: int, value: float) -> bytes:
    return _key(field, _DOUBLE) + struct.pack("<d", value) if value else b""


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits go into a byte
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
