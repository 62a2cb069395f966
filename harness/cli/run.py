"""`drill run`."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options as o
from harness.cli.errors import UsageProblemError
from harness.cli.selection import parse_sets, select
from harness.cli.voice import progress, verdict_line
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.run.plan import Options, Plan
    from harness.run.session import Session
    from harness.scenario.load import Loaded


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("run")(run)


def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="Scenarios, by name or path.", show_default=False),
    ] = None,
    *,
    variant: o.Variants = None,
    sets: o.Sets = None,
    cluster: o.Cluster = "embedded",
    subject: o.Subject = "bundled",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where reports go. Default: drill-reports/RUN-ID."),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave namespace and cluster alone afterwards, to look at them."),
    ] = False,
    rendered: Annotated[
        Path | None,
        typer.Option(
            "-f",
            "--manifests",
            metavar="DIR",
            help="Instead of a scenario: manifests as they are (a rollout object and its workload), with default checks.",
        ),
    ] = None,
    change: Annotated[
        str,
        typer.Option("--change", help="With -f: what the new revision is. template-annotation is the one there is."),
    ] = "template-annotation",
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Drills at the same time on one cluster.")] = 4,
    seed: o.Seed = 1,
    binaries: o.Binaries = "auto",
    scenarios: o.Scenarios = None,
) -> int:
    """Run scenarios and write a verdict report.

    DIR/report.md covers the run, DIR/<drill>/ holds each drill's report.md, report.json, timeline.jsonl and junit.xml, and
    after a failure also the controller's log, the events and the objects.
    """
    given = parse_sets(sets or [])
    if bool(names) == bool(rendered):
        msg = "name at least one scenario (see `drill list`), or give manifests with -f DIR; not both"
        raise UsageProblemError(msg)
    if rendered is not None:
        from harness.scenario.adopt import scenario_from

        loaded = [scenario_from(rendered, change=change)]
    else:
        loaded = select(names or [], scenarios or [])
    plans = _plans(loaded, variant or [], given, cluster, subject, rendered)
    if not plans:
        typer.echo("nothing selected", err=True)
        return ExitCode.NOTHING_SELECTED
    return _carry_out(plans, out=out, cluster=cluster, subject=subject, keep=keep, seed=seed, binaries=binaries, jobs=jobs)


def _plans(
    loaded: Sequence[Loaded],
    variants: Sequence[str],
    sets: Mapping[str, str],
    cluster: str,
    subject: str,
    rendered: Path | None,
) -> list[Plan]:
    from harness.run.plan import Plan
    from harness.scenario.manifests import render
    from harness.subjects.select import make_subject

    make_subject(subject)  # an unknown one is an error before anything is made
    plans: list[Plan] = []
    for scenario in loaded:
        for resolved in scenario.resolve_all(variants, sets):
            # Rendered once now, so that a broken template is an error before a cluster is made.
            render(resolved, scenario.folder, {"namespace": "drill", "run": "check"})
            source = ["-f", str(rendered)] if rendered else [resolved.name]
            chosen = ["--variant", resolved.variant] if not rendered else []
            told = [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
            line = ["drill", "run", *source, *chosen, *told, "--subject", subject, "--cluster", cluster]
            plans.append(Plan(resolved, scenario.folder, subject, cluster, shlex.join(line)))
    return plans


def _carry_out(plans: Sequence[Plan], *, out: Path | None, **kwargs: object) -> int:
    from harness.run.identity import run_id
    from harness.run.plan import Options

    run = run_id()
    options = Options(out=out or Path("drill-reports") / run, **kwargs)  # type: ignore[arg-type]
    session = asyncio.run(_session(plans, options, run))
    for error in session.errors:
        typer.echo(f"error: {error}", err=True)
    for report in session.report.drills:
        typer.echo(verdict_line(report))
    if session.report.drills:
        typer.echo(f"report: {options.out / 'report.md'}")
    return session.exit_code


async def _session(plans: Sequence[Plan], options: Options, run: str) -> Session:
    from harness.run.session import run_session
    from harness.run.signals import Stop, handled

    say = progress()
    stop = Stop()
    with handled(stop, say):
        return await run_session(
            plans, options, run, stop, say, lambda report: say(f"{report.drill_id}: over")
        )
