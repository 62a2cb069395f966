"""Where Knative's processes run: real processes in a real network namespace, with small programs in the place of Knative's."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import os
import signal
import socket
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from harness.clusters.base import ClusterError
from harness.clusters.embedded import ports, processes, records
from harness.clusters.knative import isolation, site
from harness.clusters.knative.component import Component

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WITHIN = 20.0
STRANGE = "198.51.100.7"
"""An address for documentation (RFC 5737), as simulated pods have one."""
WEBHOOK = """
import http.server
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the webhook")
http.server.HTTPServer(("127.0.0.1", {port}), Answer).serve_forever()
"""
ASKS = """
import sys, time, urllib.request
said = urllib.request.urlopen("http://127.0.0.1:{port}/", timeout=20).read()
open(sys.argv[1], "wb").write(said)
time.sleep(600)
"""
SENDS = """
import socket, sys, time
try:
    socket.create_connection(("{address}", 80), timeout=20)
except OSError as error:
    open(sys.argv[1], "w").write(error.strerror)
time.sleep(600)
"""

pytestmark = pytest.mark.skipif(bool(isolation.possible()), reason=isolation.possible())


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[records.Record]:
    """A cluster without a control plane."""
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    pid, started = records.this_process()
    made = records.Record(
        name="site",
        nodes=1,
        seed=1,
        owner_pid=pid,
        owner_started=started,
        owner_bound=True,
        kwokctl="/nonexistent",
        ports=ports.free(()),
    )
    records.write(made)
    for folder in ("bin", "pids", "logs"):
        (made.workdir / folder).mkdir(parents=True)
    made.kubeconfig.write_text("{}", encoding="utf-8")
    made = site.with_port(made)
    try:
        yield made
    finally:
        site.stop(made)
        assert not processes.end_all(made, 5.0)


def program(name: str, text: str, *args: str) -> Component:
    """A component that runs Python."""
    python = Path(sys.executable).resolve()
    return Component(name, python, ("-c", text, *args))


def until(what: str, holds: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + WITHIN
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {WITHIN:g} s: {what}")
        time.sleep(0.02)


@contextlib.contextmanager
def api_server(port: int) -> Iterator[None]:
    """Something that answers where the API server would."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"the API server")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", port), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def get(port: int) -> bytes:
    """What a port of this machine's loopback answers; empty when nobody does."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            said: bytes = answer.read()
            return said
    except OSError:
        return b""


def test_both_ways_lead_through_the_wall_and_nothing_else_does(
    record: records.Record, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    port = record.ports["kubeApiserverPort"]
    with api_server(port):
        site.start(
            record,
            [
                program("knative-webhook", WEBHOOK.format(port=site.INNER_WEBHOOK_PORT)),
                program("knative-controller", ASKS.format(port=port), str(said)),
            ],
        )
        until("it asked the API server", lambda: said.exists() and bool(said.read_bytes()))
    assert said.read_bytes() == b"the API server"
    webhook = record.ports[site.WEBHOOK_PORT]
    until("the webhook answers", lambda: get(webhook) == b"the webhook")
    assert site.running(record)
    # The very port of the inside is nobody's on the outside.
    inner = processes.running(record)[site.INSIDE]
    inside, outside = (Path(f"/proc/{pid}/ns/net").stat().st_ino for pid in (inner, os.getpid()))
    assert inside != outside
    assert site.counters(record).no_route == 0
    assert site.says(record).endswith("which nothing tried to leave (OutNoRoutes = 0)")


def test_a_packet_to_a_simulated_pod_goes_nowhere_and_is_counted(
    record: records.Record, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    site.start(record, [program("knative-autoscaler", SENDS.format(address=STRANGE), str(said))])
    until("it was refused", lambda: said.exists() and bool(said.read_text()))
    assert said.read_text() == "Network is unreachable"
    assert site.counters(record).no_route_4 == 1
    assert site.says(record).endswith("1 packet tried to leave, in vain (OutNoRoutes = 1)")
    site.stop(record)
    assert "has ended, so that nobody knows" in site.says(record)


def test_a_component_that_ends_is_started_again(record: records.Record, tmp_path: Path) -> None:
    lives = tmp_path / "lives"
    text = "import sys; open(sys.argv[1], 'a').write('x')"
    site.start(record, [program("knative-webhook", text, str(lives))])
    until("it lived twice", lambda: lives.exists() and len(lives.read_text()) > 1)
    assert "knative-webhook has ended with 0" in record.log(site.NAME).read_text()


@pytest.mark.parametrize("half", [site.NAME, site.INSIDE])
def test_when_one_half_is_killed_everything_goes(record: records.Record, half: str) -> None:
    forever = "import time; time.sleep(600)"
    site.start(record, [program("knative-webhook", forever)])
    pids = [*processes.running(record).values()]
    assert len(pids) == 3
    os.kill(processes.running(record)[half], signal.SIGKILL)
    until("all are gone", lambda: not processes.running(record))
    assert not site.running(record)
    assert site.belongs_to(record)
    with pytest.raises(ClusterError, match="Knative does not run beside embedded cluster 'site'"):
        site.counters(record)
    site.again(record)
    assert site.running(record)
    site.stop(record)
    assert not any(psutil.pid_exists(pid) and processes.running(record) for pid in pids)


def test_its_processes_count_as_the_clusters(record: records.Record) -> None:
    site.start(record, [program("knative-webhook", "import time; time.sleep(600)")])
    assert set(processes.running(record)) == {site.NAME, site.INSIDE, "knative-webhook"}
    # A later cluster of the same name is another one.
    other = dataclasses.replace(record, id="0" * 32)
    assert set(processes.running(other)) == {"knative-webhook"}
    assert not processes.end_all(record, 5.0)
    assert not processes.running(record)


def test_a_port_that_is_taken_is_one_sentence(record: records.Record) -> None:
    port = record.ports[site.WEBHOOK_PORT]
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ClusterError) as raised:
        site.start(record, [])
    assert str(raised.value) == (
        "Knative cannot be started beside embedded cluster 'site': Address already in use "
        f"(while attempting to bind on address ('127.0.0.1', {port}))."
    )
