"""Ports for an embedded cluster's six listeners, on loopback.

They are ours to choose, not kwokctl's: it does not know the ports of a cluster that is stopped for a while.
"""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LISTENERS: Final = (
    "etcdPort",
    "etcdPeerPort",
    "kubeApiserverPort",
    "kubeControllerManagerPort",
    "kubeSchedulerPort",
    "kwokControllerPort",
)
"""The names of kwokctl's options."""
RANGE: Final = range(21000, 31000)
"""Below the ports that Linux gives to outgoing connections, which begin at 32768."""


def free(
    taken: Iterable[int], *, start: int | None = None, names: Sequence[str] = LISTENERS
) -> dict[str, int]:
    """Return one free port for each of the listeners `names`, none of them in `taken`.

    Begins at a random port, so that two machines' worth of state folders seldom meet; whoever creates a
    cluster tries again when a port was taken meanwhile. Raises ClusterError when none is left.
    """
    used = set(taken)
    first = random.randrange(len(RANGE)) if start is None else start - RANGE.start  # noqa: S311
    chosen: list[int] = []
    for offset in range(len(RANGE)):
        port = RANGE[(first + offset) % len(RANGE)]
        if port not in used and _is_free(port):
            chosen.append(port)
            if len(chosen) == len(names):
                return dict(zip(names, chosen, strict=True))
    msg = f"No {len(names)} free ports are left between {RANGE.start} and {RANGE.stop - 1}."
    raise ClusterError(msg)


def answers(port: int, seconds: float = 0.5) -> bool:
    """Whether something accepts connections on a loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=seconds).close()
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # As Go's listeners do it: a port whose last connections are still closing counts as free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
        except OSError:
            return False
    return True
