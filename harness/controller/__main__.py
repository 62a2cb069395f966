"""`python -m harness.controller --kubeconfig FILE --namespace NAME`: run the controller until SIGTERM or SIGINT.

The flags are in `options.py`; `drill controller run` takes the same ones. With `--from-stdin` it loads everything, then waits for one line
`{"kubeconfig": …, "namespace": …}`: whoever starts it early has it ready at once. Each key is a flag (`metrics_server` is --metrics-server), its value a
text, or true or false for one that is given or not (--no-…); `no_proxy` is a host that is reached past the proxies of its environment. The
end of standard input instead of a line ends it.

It stores nothing of its own: it may be killed at any moment and started again.
Exit codes: 0 ended by a signal, 1 an unexpected error (logged), 2 wrong arguments.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Final

from harness.controller import flags
from harness.controller.options import OptionsError, parse
from harness.controller.shell import process

if TYPE_CHECKING:
    from collections.abc import Sequence

PROG: Final = "python -m harness.controller"
FROM_STDIN: Final = "--from-stdin"
_WRONG: Final = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments and run; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if FROM_STDIN in arguments:
        told = _told()
        if told is None:
            return 0
        arguments = [*(each for each in arguments if each != FROM_STDIN), *told]
    try:
        options = parse(arguments, prog=PROG)
    except OptionsError as error:
        print(f"{PROG}: {error}", file=sys.stderr)  # noqa: T201 - there is no log yet
        return _WRONG
    return process.run(options)


def _told() -> list[str] | None:
    """Take further arguments from a line of standard input; None when it ends without one."""
    # The slowest import of all, which would otherwise begin when the line is there.
    import kubernetes.aio.config.kube_config  # noqa: F401

    line = sys.stdin.readline()
    if not line:
        return None
    given: dict[str, str | bool] = json.loads(line)
    if host := given.pop(flags.NO_PROXY, ""):
        for name in ("NO_PROXY", "no_proxy"):
            os.environ[name] = ",".join(filter(None, (os.environ.get(name), str(host))))
    return flags.arguments(given)


if __name__ == "__main__":
    sys.exit(main())
