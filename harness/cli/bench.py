"""`drill bench`."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from harness.cli import options as o
from harness.cli.errors import UsageProblemError
from harness.cli.out import check_out
from harness.cli.voice import progress
from harness.model.duration import format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.bench.plan import StormPlan
    from harness.bench.session import Session

app = typer.Typer(no_args_is_help=True, help="Measure what subjects cost, and how soon they act.")
_MOST: Final = 3000
"""Rollouts that the simulated nodes of one embedded cluster hold."""
_SEED: Final = 1
_IDLE: Final = "60s"


@app.callback()
def _root() -> None:
    # Without it, Typer would take the only command for the group itself.
    pass


@app.command()
def storm(
    *,
    canaries: Annotated[
        int, typer.Option("--canaries", min=1, max=_MOST, help="Rollouts, all at the same time.")
    ] = 100,
    subject: Annotated[
        list[str] | None,
        typer.Option(
            "--subject",
            metavar="SUBJECT",
            help="A controller: bundled, flagger@VERSION, flagger@path:FILE; repeatable. Ratios are to the first one. Default: bundled.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where the report goes. Default: drill-reports/RUN-ID."
        ),
    ] = None,
    idle: Annotated[
        str, typer.Option("--idle", metavar="DURATION", help="How long nothing is changed.")
    ] = _IDLE,
    upgrade: Annotated[
        bool,
        typer.Option(
            "--upgrade", help="Stop and start each subject again over the settled rollouts."
        ),
    ] = False,
    restarts: Annotated[
        int, typer.Option("--restarts", min=0, help="Do that so many times more, in a loop.")
    ] = 0,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Run the bundled controller under a profiler: profile.md."),
    ] = False,
    seed: o.Seed = _SEED,
    binaries: o.Binaries = "auto",
) -> int:
    """Initialise all rollouts at once, leave them alone, promote all at once; measure each subject on an embedded cluster of its own.

    DIR/bench.md has times, requests, CPU, memory and how soon changes are detected, as ratios to the first subject; DIR/bench.json
    has it all as data. The exit code is 1 when a rollout starved or an analysis began that nobody asked for.
    """
    from harness.bench.plan import StormPlan
    from harness.run.identity import run_id

    try:
        seconds = parse_duration(idle)
    except ValueError as error:
        msg = f"--idle {idle!r}: {error}"
        raise UsageProblemError(msg) from error
    names = _checked(subject or ["bundled"])
    if profile and "bundled" not in names:
        msg = (
            "--profile: only the bundled controller can be profiled; name it with --subject bundled"
        )
        raise UsageProblemError(msg)
    run = run_id()
    folder = out or Path("drill-reports") / run
    check_out(folder, "bench.md")
    line = ["drill", "bench", "storm", "--canaries", str(canaries)]
    line += [part for name in names for part in ("--subject", _shown(name))]
    line += ["--idle", format_duration(seconds)] * (seconds != parse_duration(_IDLE))
    line += ["--upgrade"] * upgrade
    line += ["--restarts", str(restarts)] * bool(restarts)
    line += ["--profile"] * profile
    line += ["--seed", str(seed)] * (seed != _SEED)
    plan = StormPlan(
        canaries=canaries,
        subjects=tuple(names),
        out=folder,
        idle=seconds,
        upgrade=upgrade,
        restarts=restarts,
        profile=profile,
        seed=seed,
        binaries=binaries,
        reproduce=shlex.join(line),
    )
    return _carry_out(plan, run)


def _checked(names: Sequence[str]) -> list[str]:
    from harness.model.names import IN_CLUSTER, INSTALLED
    from harness.subjects.base import SubjectError
    from harness.subjects.select import check_subject

    for name in names:
        if name in {INSTALLED, IN_CLUSTER}:
            why = (
                "starts and stops its subjects itself"
                if name == INSTALLED
                else "measures processes"
            )
            msg = f"--subject {name}: a benchmark {why} (allowed: bundled, flagger@VERSION, flagger@path:FILE)"
            raise UsageProblemError(msg)
        try:
            check_subject(name)
        except SubjectError as error:
            raise UsageProblemError(str(error)) from error
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        msg = f"--subject {twice}: named twice; each subject is measured once"
        raise UsageProblemError(msg)
    return list(names)


def _shown(name: str) -> str:
    from harness.subjects.names import parse

    # A report is for others to read, who do not have this machine's folders.
    return str(parse(name))


def _carry_out(plan: StormPlan, run: str) -> int:
    from harness.bench.output import REPORT
    from harness.bench.summary import summary

    session = asyncio.run(_session(plan, run))
    for error in session.errors:
        typer.echo(f"error: {error}", err=True)
    if (report := session.report) is not None:
        typer.echo(summary(report), nl=False)
        typer.echo(f"report: {plan.out / REPORT}")
    return session.exit_code


async def _session(plan: StormPlan, run: str) -> Session:
    from harness.bench.session import run_session
    from harness.run.signals import Stop, handled

    say = progress()
    stop = Stop()
    with handled(stop, say):
        return await run_session(plan, run, stop=stop, say=say)
