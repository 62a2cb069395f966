"""The command line: one function per command, in the files beside this one; here are the exit codes and the errors."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from harness import __version__
from harness.cli import (
    bench,
    cluster,
    compare,
    controller,
    doctor,
    evaluate,
    explain,
    matrix,
    run,
    scenarios,
    sweep,
)
from harness.cli.errors import UsageProblemError
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(
    name="drill",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Drill a progressive delivery controller, and see where every pod ran meanwhile.",
    epilog="Exit codes: 0 as expected · 1 a verdict failed · 2 interrupted · 3 harness or cluster error · 4 usage or invalid "
    "scenario · 5 nothing selected · 10 something was left behind · 11 unknown or unsupported only",
)
run.register(app)
scenarios.register(app)
evaluate.register(app)
compare.register(app)
matrix.register(app)
explain.register(app)
sweep.register(app)
doctor.register(app)
app.add_typer(cluster.app, name="cluster")
app.add_typer(bench.app, name="bench")
app.add_typer(controller.app, name="controller")


def _version(value: bool) -> None:  # noqa: FBT001 - Typer's callback
    if value:
        typer.echo(f"rollout-drill {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with one of `ExitCode`.

    Every error that a user can make or meet is one sentence on standard error, without a traceback.
    """
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        # Not standalone: the library's own codes (2 for usage) mean other things here.
        return int(app(arguments, standalone_mode=False) or 0)
    except TyperException as error:
        show = getattr(error, "show", None)
        if show is None:  # Abort, after Ctrl-C
            return ExitCode.INTERRUPTED
        show()
        return ExitCode.USAGE
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`drill list | head`); Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:  # noqa: BLE001 - told to the user, or raised again as a bug of ours
        return _told(error)


def _told(error: Exception) -> ExitCode:
    """Print an error that a user can make or meet; raise any other one, since it is a bug of ours."""
    from harness.clusters.base import ChoiceError, ClusterError
    from harness.handback.told import HandbackError
    from harness.kube.errors import KubeError
    from harness.model.timeline import TimelineError
    from harness.run.objects import RefusedError
    from harness.scenario.problem import ScenarioError
    from harness.subjects.base import SubjectError

    if isinstance(error, ChoiceError | ScenarioError | TimelineError | UsageProblemError):
        typer.echo(str(error), err=True)
        return ExitCode.USAGE
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"error: {where}{error.strerror or error}", err=True)
        return ExitCode.ERROR
    if isinstance(error, ClusterError | HandbackError | KubeError | RefusedError | SubjectError):
        typer.echo(f"error: {error}", err=True)
        return ExitCode.ERROR
    raise error
