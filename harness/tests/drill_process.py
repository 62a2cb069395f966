"""The command as a process of its own, for tests that signal or kill it, or look at what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

PATIENCE = 90.0
COMMAND = (sys.executable, "-c", "from harness.cli import main; main()")


def command(
    *arguments: str,
    state: Path | None = None,
    cwd: Path | None = None,
    within: float = 2 * PATIENCE,
    **more: str,
) -> tuple[int, str]:
    """Run a `drill` command to its end, for at most `within` seconds; return exit status and output.

    `more` are environment variables.
    """
    done = subprocess.run(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=cwd,
        env=_environment(state, more),
        timeout=within,
    )
    assert "Traceback" not in done.stdout, done.stdout
    return done.returncode, done.stdout


def _environment(state: Path | None, more: Mapping[str, str]) -> dict[str, str]:
    given = {} if state is None else {"DRILL_STATE_DIR": str(state)}
    return {**os.environ, **given, **more}


class DrillProcess:
    """One `drill run`; its reports are below `out`."""

    def __init__(self, out: Path, *arguments: str, state: Path | None = None, **more: str) -> None:
        self.out = out
        self.process = subprocess.Popen(
            [*COMMAND, "run", *arguments, "--out", str(out)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=_environment(state, more),
            start_new_session=True,
        )

    def observations(self) -> Iterator[dict[str, Any]]:
        """Return every whole line of every timeline so far."""
        for file in sorted(self.out.glob("*/timeline.jsonl")):
            for line in file.read_text(encoding="utf-8").splitlines():
                try:
                    yield json.loads(line)
                except ValueError:
                    return

    def wait_until(self, seen: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Wait until an observation is in the timeline; the file has no watch, so it is read again and again."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for row in self.observations():
                if seen(row):
                    return row
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        output = self.process.communicate()[0] if self.process.poll() is not None else ""
        msg = f"never seen: {what}; the drill says: {output}"
        raise AssertionError(msg)

    def wait_for_phase(self, phase: str) -> None:
        """Wait until the rollout object is in `phase`."""

        def in_phase(row: dict[str, Any]) -> bool:
            obj = row.get("object") or {}
            return obj.get("kind") == "Canary" and (obj.get("status") or {}).get("phase") == phase

        self.wait_until(in_phase, f"phase {phase}")

    @property
    def namespace(self) -> str:
        """The drill's namespace."""
        return str(self.wait_until(lambda row: row["type"] == "header", "a header")["namespace"])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the drill alone."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """End the drill as a crash would, and close its output."""
        self.process.kill()
        self.process.communicate()

    def end(self) -> tuple[int, str]:
        """Wait for the end and return exit status and output."""
        output, _ = self.process.communicate(timeout=PATIENCE)
        assert "Traceback" not in output, output
        return self.process.returncode, output

    def report(self) -> str:
        """The one drill's report."""
        (path,) = self.out.glob("*/report.md")
        return path.read_text(encoding="utf-8")
