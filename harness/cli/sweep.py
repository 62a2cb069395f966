"""`drill sweep`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.errors import UsageProblemError
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
) -> int:
    """Remove what a killed run left: namespaces, CRDs, embedded clusters, tokens. Living runs are left alone."""
    if cluster is not None and ":" not in cluster:
        msg = f"--cluster {cluster!r}: name one cluster, as context:NAME or embedded:NAME"
        raise UsageProblemError(msg)
    result = asyncio.run(_sweep(cluster, dry_run=dry_run))
    word = "would remove" if dry_run else "removed"
    for line in result.removed:
        typer.echo(f"{word} {line}")
    for line in result.problems:
        typer.echo(line, err=True)
    if not result.removed and not result.problems:
        typer.echo("nothing is left of earlier runs")
    return ExitCode.LEFT_BEHIND if result.problems else ExitCode.OK


async def _sweep(cluster: str | None, *, dry_run: bool) -> Sweep:
    from harness.clusters.select import open_cluster
    from harness.run.sweep import sweep as carry_out

    if cluster is None:
        return await carry_out(dry_run=dry_run)
    # Named clusters are only opened, never made, so neither nodes nor binaries matter.
    opened = open_cluster(
        cluster, nodes=1, seed=None, binaries_source="auto", progress=lambda _line: None
    )
    async with opened as target:
        return await carry_out(dry_run=dry_run, cluster=target)
