"""The process of a site: `python -m harness.clusters.knative.process CLUSTER ID PIPE`, which forks once.

    outside  accepts for whoever is inside what they ask of the API server, and is the one that is told to end
    inside   in the network namespace: accepts for the API server what it asks of the webhook, stands in for simulated pods,
             runs the components, and starts those again that end, as a kubelet would

Each of the two was handed the other's listener, so bytes need no way between the namespaces but these two processes. PIPE gets `ready`,
or the reason why there is none.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from harness.clusters.embedded import records
from harness.clusters.knative import isolation, site
from harness.clusters.knative.component import Component
from harness.clusters.knative.names import HOST
from harness.clusters.knative.relay import relay
from harness.programs.lifeline import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from harness.clusters.embedded.records import Record

_AGAIN: Final = 1.0
"""Seconds until a component that has ended is started again."""
_PORT: Final = "kubeApiserverPort"
_PASSED: Final = ("PATH", "HOME", "TMPDIR", "TZ", "LANG")
"""All that a component gets of the user's environment."""


def main(name: str, identity: str, pipe: str) -> int:
    """Run until told to end, or until the other half ends."""
    report = int(pipe)
    record = records.read(name)
    if record is None or record.id != identity:
        return _told(report, f"there is no embedded cluster {name!r} any more")
    try:
        webhook = socket.create_server((HOST, record.ports[site.WEBHOOK_PORT]))
    except OSError as error:
        return _told(report, str(error.strerror))  # which names the port
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        die_with_parent()
        ours.close()
        return _inside(record, webhook, theirs, report)
    theirs.close()
    webhook.close()
    _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    os.close(report)
    if not descriptors:
        return 1  # the inner half has said why
    return asyncio.run(_outside(record, socket.socket(fileno=descriptors[0]), child))


def _inside(record: Record, webhook: socket.socket, outside: socket.socket, report: int) -> int:
    try:
        isolation.enter()
    except isolation.IsolationError as error:
        return _told(report, f"there is no network namespace to be had ({error})")
    api = socket.create_server((HOST, record.ports[_PORT]))
    socket.send_fds(outside, [b"."], [api.fileno()])
    api.close()
    outside.close()
    return asyncio.run(_work(record, webhook, report))


async def _outside(record: Record, api: socket.socket, child: int) -> int:
    """Carry what is asked of the API server until the inner half ends or a signal comes."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGCHLD, ended.set)
    _note(record, site.NAME, os.getpid())
    _note(record, site.INSIDE, child)
    server = await relay(api, record.ports[_PORT])
    await ended.wait()
    server.close()
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return 0


async def _work(record: Record, webhook: socket.socket, report: int) -> int:
    """Run everything inside."""
    await relay(webhook, site.INNER_WEBHOOK_PORT)
    components = [Component.of(plain) for plain in site.known(record)]
    started = [asyncio.Event() for _ in components]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_stand_in(record))
        for component, event in zip(components, started, strict=True):
            tasks.create_task(_kept(record, component, event))
        for event in started:
            await event.wait()
        _told(report, site.READY)
    return 0


async def _kept(record: Record, component: Component, started: asyncio.Event) -> None:
    """Run a component, again and again."""
    environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
    with record.log(component.name).open("ab") as log:
        while True:
            process = await asyncio.create_subprocess_exec(
                str(record.workdir / "bin" / component.name),
                *component.args,
                env={**environment, **component.env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
            _note(record, component.name, process.pid)
            started.set()
            code = await process.wait()
            _say(f"{component.name} has ended with {code}; it is started again")
            await asyncio.sleep(_AGAIN)


async def _stand_in(record: Record) -> None:
    """Answer for simulated pods, and begin anew where that fails."""

    async def once() -> None:
        from harness.clusters.knative.dataplane import serve
        from harness.kube.client import KubeClient

        agent = "rollout-drill/knative-stand-in"
        async with await KubeClient.connect(
            record.kubeconfig, record.name, user_agent=agent
        ) as client:
            await serve(client, site.DATAPLANE_PORT, site.AUTOSCALER, _say)

    while True:
        await _told_of(once())
        await asyncio.sleep(_AGAIN)


async def _told_of(work: Coroutine[object, object, None]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - whatever it is, the next attempt may do, and the log says it
        _say(f"the stand-in for simulated pods has ended: {error!r}")


def _note(record: Record, name: str, pid: int) -> None:
    file: Path = record.workdir / "pids" / f"{name}.pid"
    file.write_text(str(pid), encoding="utf-8")


def _told(report: int, text: str) -> int:
    with contextlib.suppress(OSError):
        os.write(report, text.encode())
        os.close(report)
    return 0 if text == site.READY else 1


def _say(text: str) -> None:
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z {text}", flush=True)  # noqa: T201 - its log


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
