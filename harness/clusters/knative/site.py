"""Where Knative's processes run: beside an embedded cluster, in a network namespace of their own.

`start` spawns one process (`harness.clusters.knative.process`), which carries bytes between the namespaces and looks after everything in
the inner one. It belongs to the cluster as the control plane's processes do: its pid files lie beside theirs, and it goes with them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from harness.clusters.base import ClusterError
from harness.clusters.embedded import ports, processes, records
from harness.clusters.knative import isolation
from harness.programs.paths import python_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.clusters.embedded.records import Record
    from harness.clusters.knative.component import Component
    from harness.clusters.knative.isolation import Counters

NAME: Final = "knative"
"""Of the site's own process, beside those of the components."""
INSIDE: Final = "knative-inside"
"""Of the process in the inner namespace."""
WEBHOOK_PORT: Final = "knativeWebhookPort"
"""Among a cluster's ports: where its API server reaches Knative's webhook."""
INNER_WEBHOOK_PORT: Final = 8443
DATAPLANE_PORT: Final = 8990
"""Inside, where ports are nobody else's: the proxy of Knative's processes, which answers for simulated pods."""
PROFILING_PORT: Final = 9100
"""Inside: the first of as many as there are components."""
AUTOSCALER: Final = "127.0.0.1:8080"
"""Inside: where the autoscaler takes statistics."""
STARTS_WITHIN: Final = 20.0
"""Seconds until all its processes are started; it takes half a second."""
ENDS_WITHIN: Final = 2.0
READY: Final = "ready"
_children: dict[str, subprocess.Popen[bytes]] = {}
"""Those that this process has started, by the id of the cluster: somebody has to take note of their end."""


def with_port(record: Record) -> Record:
    """Return the record with a port for the webhook, which is free right now. Raises ClusterError."""
    if WEBHOOK_PORT in record.ports:
        return record
    taken = (port for other in records.read_all() for port in other.ports.values())
    added = ports.free(taken, names=(WEBHOOK_PORT,))
    record = dataclasses.replace(record, ports={**record.ports, **added})
    records.write(record)
    return record


def start(record: Record, components: Sequence[Component]) -> None:
    """Start the components in a network namespace of their own; return once all processes run, which is before they are ready.

    `record` has a port for the webhook (`with_port`). Blocks for about half a second. Raises ClusterError.
    """
    known = [component.plain() for component in components]
    records.write_private(_known(record), json.dumps(known, indent=1))
    folder = record.workdir / "bin"
    try:
        for component in components:
            # Under a name in the cluster's own folder, by which its processes are told from all others.
            link = folder / component.name
            link.unlink(missing_ok=True)
            link.symlink_to(component.program)
    except OSError as error:
        msg = f"Knative's programs cannot be linked in {folder}: {error.strerror}."
        raise ClusterError(msg) from error
    again(record)


def again(record: Record) -> None:
    """Start it as it was started before; nothing where it was never, or where it runs. Raises ClusterError."""
    if not belongs_to(record) or running(record):
        return
    stop(record)  # what is left of one that was killed
    reading, writing = os.pipe()
    log = record.log(NAME)
    try:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", processes.SITE, record.name, record.id, str(writing)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env={**os.environ, "PYTHONPATH": python_path(), "PYTHONDONTWRITEBYTECODE": "1"},
                pass_fds=(writing,),
                start_new_session=True,
            )
    except OSError as error:
        os.close(reading)
        msg = (
            f"Knative cannot be started beside embedded cluster {record.name!r}: {error.strerror}."
        )
        raise ClusterError(msg) from error
    finally:
        os.close(writing)
    try:
        said = _heard(reading, STARTS_WITHIN)
    finally:
        os.close(reading)
    if said == READY:
        _children[record.id] = process
        return
    process.kill()
    process.wait()
    if said is None:
        said = f"it did not run within {STARTS_WITHIN:g} s"
    said = said or f"it ended without a word; its log ends with: {_last_line(log)}"
    msg = f"Knative cannot be started beside embedded cluster {record.name!r}: {said}."
    raise ClusterError(msg)


def stop(record: Record) -> None:
    """End it with everything inside; nothing where it does not run."""
    # What is inside dies with it (PDEATHSIG).
    processes.end(record, (NAME,), ENDS_WITHIN)
    child = _children.pop(record.id, None)
    if child is not None:
        child.wait()


def belongs_to(record: Record) -> bool:
    """Whether it was started once."""
    return _known(record).exists()


def running(record: Record) -> bool:
    """Whether its two own processes run; components that have ended are started again by them."""
    return {NAME, INSIDE} <= processes.running(record).keys()


def counters(record: Record) -> Counters:
    """Return what the kernel has counted in the inner namespace. Raises ClusterError when nothing runs in it."""
    pid = processes.running(record).get(INSIDE)
    try:
        if pid is not None:
            return isolation.counters(pid)
    except OSError:
        pass
    msg = f"Knative does not run beside embedded cluster {record.name!r}."
    raise ClusterError(msg)


def says(record: Record) -> str:
    """Return who answers for simulated pods, and what the kernel has counted, in words for a report."""
    who = "an HTTP server of the harness, with Knative in a network namespace of its own"
    try:
        strays = counters(record).no_route
    except ClusterError:
        return f"{who}, which has ended, so that nobody knows whether anything tried to leave it"
    if not strays:
        return f"{who}, which nothing tried to leave (OutNoRoutes = 0)"
    many = "1 packet" if strays == 1 else f"{strays} packets"
    return f"{who}, which {many} tried to leave, in vain (OutNoRoutes = {strays})"


def known(record: Record) -> list[dict[str, Any]]:
    """Return the components that it was started with, as JSON. Raises OSError or ValueError."""
    found: list[dict[str, Any]] = json.loads(_known(record).read_text("utf-8"))
    return found


def logs(record: Record) -> tuple[str, ...]:
    """Return the names under which its log and those of its components are found; none where it was never started."""
    if not belongs_to(record):
        return ()
    return (NAME, *(str(one["name"]) for one in known(record)))


def _known(record: Record) -> Path:
    return record.folder / "knative.json"


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")


def _heard(reading: int, seconds: float) -> str | None:
    """Return what was said until the other end was closed, or until `ready`; None after `seconds`."""
    deadline, said = time.monotonic() + seconds, b""
    while READY.encode() not in said:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            return None
        data = os.read(reading, 4096)
        if not data:
            break
        said += data
    return said.decode(errors="replace").strip().rstrip(".")
