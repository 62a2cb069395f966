"""`drill sweep`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from harness.cli.errors import UsageProblemError
from harness.model.outcome import ExitCode


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
    from harness.run.sweep import sweep as carry_out

    target = None
    if cluster is not None:
        from harness.clusters.select import open_named

        if ":" not in cluster:
            msg = f"--cluster {cluster!r}: name one cluster, as context:NAME or embedded:NAME"
            raise UsageProblemError(msg)
        target = asyncio.run(open_named(cluster))
    result = asyncio.run(carry_out(dry_run=dry_run, cluster=target))
    word = "would remove" if dry_run else "removed"
    for line in result.removed:
        typer.echo(f"{word} {line}")
    for line in result.problems:
        typer.echo(line, err=True)
    if not result.removed and not result.problems:
        typer.echo("nothing is left of earlier runs")
    return ExitCode.LEFT_BEHIND if result.problems else ExitCode.OK
