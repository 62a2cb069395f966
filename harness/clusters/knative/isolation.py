"""A network namespace with nothing but loopback, and the counters that prove that nothing left it.

Simulated pods have addresses that a host would happily send packets for to its gateway. In here there is no route to anywhere: what
is sent to such an address is refused by the kernel, which counts it (`OutNoRoutes`, RFC 4293).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWNET: Final = 0x40000000
SIOCGIFFLAGS: Final = 0x8913
SIOCSIFFLAGS: Final = 0x8914
IFF_UP: Final = 1
_REQUEST: Final = "16sH14x"
"""struct ifreq, as far as flags need it."""
TRY_SECONDS: Final = 20.0
REFUSED: Final = 3
"""Exit code of a try that the kernel refused; its output says why."""


class IsolationError(Exception):
    """The kernel does not give this user a network namespace; the message is the kernel's reason."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What the kernel counted in a network namespace since it was made."""

    no_route_4: int
    """IPv4 packets and connects that were refused for want of a route: what tried to leave."""
    no_route_6: int

    @property
    def no_route(self) -> int:
        """Both together."""
        return self.no_route_4 + self.no_route_6


def enter() -> None:
    """Move this process, which must have one thread only, to a new network namespace, and bring its loopback up.

    Who is not root gets a user namespace as well, in which he is. Raises IsolationError.
    """
    uid, gid = os.geteuid(), os.getegid()
    # Root of a container often may not; a user namespace is another way then.
    if uid != 0 or _unshare(CLONE_NEWNET):
        refused = _unshare(CLONE_NEWUSER | CLONE_NEWNET)
        if refused:
            raise IsolationError(os.strerror(refused))
        try:
            # Groups cannot be mapped before the right to change them is given up.
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"0 {uid} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"0 {gid} 1", encoding="ascii")
        except OSError as error:
            raise IsolationError(error.strerror or str(error)) from error
    try:
        _loopback_up()
    except OSError as error:
        raise IsolationError(error.strerror or str(error)) from error


def possible() -> str:
    """Return why there can be no network namespace for this user, in a sentence; empty when there can. Blocks for some tenths of a second."""
    if sys.platform != "linux":
        return f"network namespaces need Linux, this is {sys.platform}"
    package = str(Path(__file__).resolve().parents[3])
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        env={**os.environ, "PYTHONPATH": package},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TRY_SECONDS,
        check=False,
    )
    if done.returncode == 0:
        return ""
    said = (done.stdout if done.returncode == REFUSED else done.stderr).strip().splitlines()
    return f"this machine gives {'root' if os.geteuid() == 0 else 'this user'} no network namespace ({said[-1] if said else done.returncode})"


def counters(pid: int) -> Counters:
    """Return the counters of the namespace in which a process is. Raises OSError when it has ended."""
    proc = Path("/proc") / str(pid) / "net"
    titles, values = (line.split() for line in (proc / "snmp").read_text("ascii").splitlines()[:2])
    plain = dict(zip(titles[1:], values[1:], strict=True))
    # Without IPv6 there is no such file.
    six = proc / "snmp6"
    rows = (
        dict(line.split() for line in six.read_text("ascii").splitlines()) if six.exists() else {}
    )
    return Counters(int(plain["OutNoRoutes"]), int(rows.get("Ip6OutNoRoutes", 0)))


def _unshare(flags: int) -> int:
    """Return 0, or the error number."""
    # os.unshare came with Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    return 0 if libc.unshare(flags) == 0 else ctypes.get_errno()


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack(_REQUEST, b"lo", 0)
        _, flags = struct.unpack(_REQUEST, fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack(_REQUEST, b"lo", flags | IFF_UP))


if __name__ == "__main__":
    try:
        enter()
    except IsolationError as problem:
        print(problem)  # noqa: T201 - for `possible`
        sys.exit(REFUSED)
