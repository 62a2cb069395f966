"""`drill compare`."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from harness.cli import options as o
from harness.cli.errors import UsageProblemError
from harness.cli.out import check_out
from harness.cli.sets import parse_sets
from harness.cli.voice import progress
from harness.model.names import CONTROLLER_IMAGE
from harness.model.outcome import ExitCode, combine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.compare.live import Ran
    from harness.compare.model import Comparison
    from harness.compare.table import Table
    from harness.model.scenario import Resolved
    from harness.run.plan import Options, Plan
    from harness.scenario.loaded import Loaded

_SEED: Final = 1
_REPORT: Final = "compare.md"


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("compare")(compare)


def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Scenarios, by name or path. With --timelines: a recording, or a folder of recordings, for each subject.",
            show_default=False,
        ),
    ],
    *,
    subject: Annotated[
        list[str] | None,
        typer.Option(
            "--subject",
            metavar="SUBJECT",
            help="A controller; give it twice or more. The first is the reference.",
        ),
    ] = None,
    timelines: Annotated[
        bool,
        typer.Option(
            "--timelines", help="Compare recordings instead of running anything. No cluster needed."
        ),
    ] = False,
    variant: o.Variants = None,
    sets: o.Sets = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where reports go. Default: drill-reports/RUN-ID; with --timelines they are only printed.",
        ),
    ] = None,
    differences: Annotated[
        list[Path] | None,
        typer.Option(
            "--differences",
            metavar="FILE",
            help="A further table of documented differences, behind the shipped one; repeatable.",
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the whole report instead of a summary.")
    ] = False,
    cluster: o.Cluster = "embedded",
    jobs: o.Jobs = 4,
    seed: o.Seed = _SEED,
    binaries: o.Binaries = "auto",
    anonymise: o.Anonymise = False,
    scenarios: o.Scenarios = None,
) -> int:
    """Compare what several controllers make of the same scenario.

    Each gets a cluster of its own, made alike. Compared are the order of phases,
    the weights and iterations in them, where the pods were whenever their
    workload was at rest, the outcome of every check, and the final objects, all
    without what is generated or a matter of timing.

    A difference is documented (fixtures/differences.yaml says why it is) or
    unexplained. Exit code 1: an unexplained one, or a documented one that is not
    there. Whether a drill by itself ended as expected does not count here.

    DIR/compare.md and DIR/compare.json are the comparison, DIR/<subject>/ holds
    each subject's own reports and recordings.
    """
    from harness.compare.files import tables

    table = tables(differences or [])
    if timelines:
        if subject or variant or sets:
            msg = "--timelines compares what was recorded; --subject, --variant and --set choose what to run"
            raise UsageProblemError(msg)
        return _recorded([Path(name) for name in names], table, out, markdown=markdown)
    subjects = subject or []
    if len(subjects) < 2:  # noqa: PLR2004 - a comparison is one of two or more
        msg = "name at least two subjects, as in --subject flagger@1.44.0 --subject bundled"
        raise UsageProblemError(msg)
    given = parse_sets(sets or [])
    from harness.run.chosen import choose, select_on

    # What a site has set for its own clusters holds here, too; the rest is for single drills.
    site = os.environ.get("DRILL_IMAGE")
    place = choose(
        cluster, nodes=None, node_selector=None, namespace=None, image=site, image_given=False
    )
    chosen = select_on(cluster, place, names, scenarios or [], variant or [], given)
    if not chosen:
        typer.echo("nothing selected", err=True)
        return ExitCode.NOTHING_SELECTED
    if out is not None:
        check_out(out, _REPORT)
    from harness.run.identity import run_id
    from harness.run.plan import Options

    options = Options(
        out=out or Path("drill-reports") / run_id(),
        cluster=cluster,
        seed=seed,
        binaries=binaries,
        jobs=jobs,
        anonymise=anonymise,
        image=place.image,
    )
    told = [part for key, value in given.items() for part in ("--set", f"{key}={value}")]
    told += ["--cluster", cluster]
    told += ["--seed", str(seed)] if seed != _SEED else []
    plans = _plans(chosen, subjects, told, cluster, anonymise=anonymise)
    several = [part for name in subjects for part in ("--subject", name)]
    which = [part for name in variant or [] for part in ("--variant", name)]
    reproduce = shlex.join(["drill", "compare", *names, *which, *several, *told])
    return _run(plans, options, table, reproduce, markdown=markdown)


def _plans(
    chosen: Sequence[tuple[Loaded, Resolved]],
    subjects: Sequence[str],
    told: Sequence[str],
    cluster: str,
    *,
    anonymise: bool,
) -> list[list[Plan]]:
    """Return the plans of each subject."""
    from harness.clusters.base import ChoiceError
    from harness.clusters.select import parse
    from harness.run.plan import Plan
    from harness.run.selection import SelectionError, check, subject_of
    from harness.subjects.base import SubjectError

    def plan(loaded: Loaded, resolved: Resolved, subject: str) -> Plan:
        chosen = subject_of(resolved, subject, subject)
        line = ["drill", "run", resolved.name, "--variant", resolved.variant, "--subject", chosen]
        reproduce = shlex.join([*line, *told])
        image = os.environ.get(CONTROLLER_IMAGE, "")
        made = Plan(resolved, loaded.folder, chosen, cluster, reproduce, image)
        check(made)
        # The name is that of a folder and of a label, too, where nothing is replaced afterwards.
        return dataclasses.replace(made, cluster=parse(cluster).kind) if anonymise else made

    try:
        return [
            [plan(loaded, resolved, subject) for loaded, resolved in chosen] for subject in subjects
        ]
    except (ChoiceError, SelectionError, SubjectError) as error:
        raise UsageProblemError(str(error)) from error


def _recorded(paths: Sequence[Path], table: Table, out: Path | None, *, markdown: bool) -> int:
    from harness.compare.comparison import CompareError
    from harness.compare.comparison import compare as compared
    from harness.compare.files import recordings

    if len(paths) < 2:  # noqa: PLR2004 - a comparison is one of two or more
        msg = "name at least two recordings, or two folders of them"
        raise UsageProblemError(msg)
    reproduce = shlex.join(["drill", "compare", "--timelines", *(path.name for path in paths)])
    try:
        found = compared([recordings(path) for path in paths], table, reproduce=reproduce)
    except CompareError as error:
        raise UsageProblemError(str(error)) from error
    return _tell(found, out, found.exit_code, markdown=markdown)


def _run(
    plans: Sequence[Sequence[Plan]],
    options: Options,
    table: Table,
    reproduce: str,
    *,
    markdown: bool,
) -> int:
    from harness.compare.comparison import compare as compared

    ran = asyncio.run(_ran(plans, options))
    codes = [ExitCode.USAGE] * ran.misused + [ExitCode.INTERRUPTED] * ran.interrupted
    if not any(ran.sets):
        for problem in ran.problems:
            typer.echo(f"error: {problem}", err=True)
        return combine(codes or [ExitCode.ERROR])
    found = compared(ran.sets, table, reproduce=reproduce, problems=ran.problems)
    return _tell(found, options.out, combine([*codes, found.exit_code]), markdown=markdown)


def _tell(found: Comparison, out: Path | None, code: ExitCode, *, markdown: bool) -> int:
    from harness.compare.files import write
    from harness.compare.markdown import markdown as render
    from harness.compare.summary import summary

    if out is not None:
        write(out, found)
    typer.echo(render(found) if markdown else summary(found), nl=False)
    if out is not None:
        typer.echo(f"report: {out / _REPORT}", err=markdown)
    return code


async def _ran(plans: Sequence[Sequence[Plan]], options: Options) -> Ran:
    from harness.compare.live import run_all
    from harness.run.signals import Stop, handled

    say = progress()
    stop = Stop()
    with handled(stop, say):
        return await run_all(plans, options, stop=stop, say=say)
