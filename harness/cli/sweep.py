"""`drill sweep`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.errors import UsageProblemError
from harness.model.duration import parse_duration
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from harness.run.sweep import Sweep


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("sweep")(sweep)


def sweep(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be removed.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="CLUSTER",
            help="Look on this cluster too, for what runs of other machines left: context:NAME or embedded:NAME.",
        ),
    ] = None,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help="With --cluster: spare younger namespaces of runs that this machine does not know, since they may still run.",
        ),
    ] = "2h",
) -> int:
    """Remove what a killed run left: namespaces, CRDs, embedded clusters, tokens. Living runs are left alone."""
    try:
        age = parse_duration(older_than)
    except ValueError as error:
        msg = f"--older-than {older_than!r}: {error}"
        raise UsageProblemError(msg) from error
    if cluster is not None and ":" not in cluster:
        msg = f"--cluster {cluster!r}: name one cluster, as context:NAME or embedded:NAME"
        raise UsageProblemError(msg)
    result = asyncio.run(_sweep(cluster, age, dry_run=dry_run))
    word = "would remove" if dry_run else "removed"
    for line in result.removed:
        typer.echo(f"{word} {line}")
    for line in result.spared:
        typer.echo(
            f"spared {line}: it may be in use from another machine; --older-than 0s takes it",
            err=True,
        )
    for line in result.problems:
        typer.echo(line, err=True)
    if not (result.removed or result.problems or result.spared):
        typer.echo("nothing is left of earlier runs")
    return ExitCode.LEFT_BEHIND if result.problems else ExitCode.OK


async def _sweep(cluster: str | None, older_than: float, *, dry_run: bool) -> Sweep:
    from harness.clusters.select import open_cluster
    from harness.run.sweep import sweep as carry_out

    if cluster is None:
        return await carry_out(dry_run=dry_run)
    # Named clusters are only opened, never made, so neither nodes nor binaries matter.
    opened = open_cluster(
        cluster, nodes=1, seed=None, binaries_source="auto", progress=lambda _line: None
    )
    async with opened as target:
        return await carry_out(dry_run=dry_run, cluster=target, older_than=older_than)
