"""Nothing leaves the machine: a whole drill in a network that has only loopback."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.embedded

SCRIPT = """
import json, socket, subprocess, sys

def no_routes():
    names, values = [line.split() for line in open("/proc/net/snmp") if line.startswith("Ip:")]
    return int(dict(zip(names, values))["OutNoRoutes"])

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
main = "from harness.cli import main; main()"
done = subprocess.run([sys.executable, "-c", main, *sys.argv[1:]], stdout=sys.stderr)
result = {"status": done.returncode, "drill": no_routes()}
for kind, name in ((socket.SOCK_STREAM, "tcp"), (socket.SOCK_DGRAM, "udp")):
    try:
        socket.socket(socket.AF_INET, kind).connect(("198.18.0.1", 8080))
    except OSError:
        pass
    result[name] = no_routes()
print(json.dumps(result))
"""


def test_no_packet_of_a_drill_is_for_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    unshare, ip = shutil.which("unshare"), shutil.which("ip")
    if unshare is None or ip is None:
        pytest.skip("unshare and ip are not on this machine")
    if subprocess.run([unshare, "-rn", ip, "link"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a network of their own")
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    arguments = ["run", "node-spread-blue-green", "--variant", "with-key", "--cluster", "embedded"]
    arguments += ["--binaries", str(request.config.getoption("--drill-binaries"))]
    done = subprocess.run(
        [unshare, "-rn", sys.executable, "-c", SCRIPT, *arguments, "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["status"] == 0, done.stderr
    assert result["drill"] == 0, done.stderr
    # The control: the counter does count what a simulated pod's address would cost.
    assert 0 < result["tcp"] < result["udp"]
