"""The program that pods run on real nodes: it serves as it should, and its probe writes what the harness reads."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters import workload
from harness.model.timeline_traffic import TrafficBegan, TrafficWindow
from harness.run.traffic_lines import Lines

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.embedded
SERVES = 1
"""Seconds for which it goes on serving when it is told to end."""


@pytest.fixture(scope="module")
def program() -> Path:
    return workload.obtain(print)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def end(process: subprocess.Popen[Any]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(10)


def test_it_serves_on_when_told_to_end_and_its_probe_tells_of_every_request(program: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/hostname"
    asking = [str(program), "probe", f"--url={url}", "--rate=50", "--every=50ms"]
    lines = Lines(url, 50, "probe")
    seen: list[Any] = []
    with subprocess.Popen(asking, stdout=subprocess.PIPE, text=True) as probe:
        assert probe.stdout is not None
        told = (json.loads(row) for row in probe.stdout)

        def read() -> None:
            line = next(told)
            seen.extend(lines.take(line, line["at"] / 1e6))

        # Nobody serves yet, which does not count.
        while not lines.complaint:
            read()
        assert lines.complaint == "refused"
        serving = [str(program), "netexec", f"--http-port={port}", f"--delay-shutdown={SERVES}"]
        with subprocess.Popen(serving) as server:
            while not lines.began:
                read()
            known = len(seen)
            assert end(server) == 0
        while not any(window.failures for window in seen if isinstance(window, TrafficWindow)):
            read()
        probe.send_signal(signal.SIGTERM)
        while not lines.ended:
            read()
        assert probe.wait(10) == 0
    (began,) = (one for one in seen if isinstance(one, TrafficBegan))
    windows = [one for one in seen if isinstance(one, TrafficWindow)]
    assert began.url == url
    assert {answer["pod"] for one in windows for answer in one.answers} == {socket.gethostname()}
    assert {failure["kind"] for one in windows for failure in one.failures} == {"refused"}
    for one in windows:
        assert one.sent == len(one.failures) + sum(len(answer["ms"]) for answer in one.answers)
    # It was told to end at about the window that was read last by then.
    first = min(failure["at"] for one in windows for failure in one.failures)
    assert first - seen[known - 1].until > SERVES * 0.8


def test_without_arguments_it_lives_until_it_is_told_to_end(program: Path) -> None:
    with subprocess.Popen([program]) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        assert end(process) == 0


@pytest.mark.parametrize(
    "arguments", [["no-such-command"], ["netexec", "--no-such-flag"], ["netexec", "x"], ["probe"]]
)
def test_what_it_does_not_know_ends_it_at_once(program: Path, arguments: list[str]) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, timeout=10, check=False)
    assert done.returncode == 1
    assert done.stderr
