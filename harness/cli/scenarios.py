"""`drill list`, `lint`, `render`, `init`: everything about scenarios that needs no cluster."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import options as o
from harness.cli.sets import parse_across, parse_sets
from harness.model.outcome import ExitCode


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command("list")(list_)
    app.command("lint")(lint)
    app.command("render")(render)
    app.command("init")(init)


def list_(
    *,
    scenarios: o.Scenarios = None,
) -> int:
    """List the scenarios with their variants and the question that each answers."""
    from tabulate import tabulate

    from harness.run.selection import select

    chosen = select([], scenarios or [])
    if not chosen:
        typer.echo("there is no scenario", err=True)
        return ExitCode.NOTHING_SELECTED
    for loaded in {loaded.name: loaded for loaded, _ in chosen}.values():
        typer.echo(f"{loaded.name}: {loaded.question}")
        rows = [
            (drill.variant, "control" if drill.control else "", drill.description)
            for scenario, drill in chosen
            if scenario is loaded
        ]
        table = tabulate(rows, tablefmt="plain", maxcolwidths=[None, None, 80])
        typer.echo(textwrap.indent(table, "  ") + "\n")
    return ExitCode.OK


def lint(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="Scenario folders or files. Default: all known ones.",
            show_default=False,
        ),
    ] = None,
    *,
    scenarios: o.Scenarios = None,
) -> int:
    """Check scenarios without a cluster: every problem at once, with file, line, field and what is allowed."""
    from harness.scenario.catalogue import entries
    from harness.scenario.lint import lint as check

    files = list(paths or []) or [entry.file for entry in entries(scenarios or [])]
    problems = [problem for path in files for problem in check(path)]
    for problem in problems:
        typer.echo(str(problem), err=True)
    if any(problem.severity == "error" for problem in problems):
        return ExitCode.USAGE
    typer.echo(f"{len(files)} scenario{'s' * (len(files) != 1)}, no error")
    return ExitCode.OK


def render(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A scenario, by name or path.")],
    *,
    variant: o.Variants = None,
    sets: o.Sets = None,
    across: o.Across = None,
    scenarios: o.Scenarios = None,
) -> int:
    """Print the manifests of a scenario's variants as they would be applied."""
    from harness.run.selection import select
    from harness.scenario.dump import render_yaml

    given, varied = parse_sets(sets or []), parse_across(across or [])
    for loaded, resolved in select([name], scenarios or [], variant or [], given, varied):
        typer.echo(render_yaml(resolved, loaded.folder), nl=False)
    return ExitCode.OK


def init(
    rendered: Annotated[
        Path,
        typer.Option(
            "-f", "--manifests", metavar="DIR", help="Manifests: a rollout object and its workload."
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="The new scenario's folder. Default: scenarios/NAME-OF-THE-ROLLOUT.",
        ),
    ] = None,
) -> int:
    """Write a scenario from manifests: their copies, the steps of one promotion, and the default checks."""
    from harness.scenario.adopt import scenario_from, write_scenario

    target = out or Path("scenarios") / scenario_from(rendered).name
    for written in write_scenario(rendered, target):
        typer.echo(f"wrote {written}")
    typer.echo(f"run it with: drill run {target}")
    return ExitCode.OK
