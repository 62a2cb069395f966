"""`python -m harness.controller --kubeconfig FILE --namespace NAME`: run the controller until SIGTERM or SIGINT.

With `--from-stdin` it loads everything, then waits for one line `{"kubeconfig": …, "namespace": …}`: whoever starts it early
has it ready at once. The end of standard input instead of a line ends it.

It stores nothing of its own: it may be killed at any moment and started again.
Exit codes: 0 ended by a signal, 1 an unexpected error (logged), 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from harness.controller.shell import log as logs
from harness.controller.shell.engine import Engine
from harness.kube.client import KubeClient
from harness.kube.errors import KubeError

USER_AGENT = "rollout-drill-controller"


def main(argv: list[str] | None = None) -> int:
    """Parse the arguments and run; return the exit code."""
    parser = _parser()
    options = parser.parse_args(argv)
    if not options.from_stdin and options.namespace is None:
        parser.error("--namespace is needed")
    if options.from_stdin and not _told(options):
        return 0
    with contextlib.ExitStack() as stack:
        stream = sys.stderr
        if options.log is not None:
            stream = stack.enter_context(options.log.open("a", encoding="utf-8"))
        log = logs.to(stream)
        try:
            asyncio.run(_run(options, log))
        except KubeError as error:
            log.exception("stopped", message=str(error))
            return 1
        except Exception:
            log.exception("crashed")
            return 1
        log.info("stopped")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harness.controller",
        description="The bundled progressive delivery controller for Canary (flagger.app/v1beta1).",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--kubeconfig", type=Path, help="file with the credentials")
    source.add_argument(
        "--from-stdin", action="store_true", help="wait to be told on standard input"
    )
    parser.add_argument("--context", help="context in it; default: its current one")
    parser.add_argument("--namespace", help="the one namespace to watch")
    parser.add_argument("--log", type=Path, help="file for JSON log lines; default: stderr")
    return parser


def _told(options: argparse.Namespace) -> bool:
    """Take kubeconfig and namespace from a line of standard input; False when it ends without one."""
    # The slowest import of all, which would otherwise begin when the line is there.
    import kubernetes.aio.config.kube_config  # noqa: F401

    line = sys.stdin.readline()
    if not line:
        return False
    given = json.loads(line)
    options.kubeconfig, options.namespace = Path(given["kubeconfig"]), given["namespace"]
    return True


async def _run(options: argparse.Namespace, log: Any) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    if task is None:
        msg = "not inside a task"
        raise RuntimeError(msg)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    log.info("starting", namespace=options.namespace)
    with contextlib.suppress(asyncio.CancelledError):
        async with await KubeClient.connect(
            options.kubeconfig, options.context, user_agent=USER_AGENT
        ) as client:
            await Engine(client, options.namespace, log, time.time).run()


if __name__ == "__main__":
    sys.exit(main())
