"""`drill sweep`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.errors import UsageProblemError
from harness.model.duration import parse_duration
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from harness.run.sweep_cluster import Found


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
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            metavar="NAME",
            help="With --cluster: look only in this namespace, which stays, for objects of drills that were run in it. "
            "Nothing cluster-wide is asked.",
        ),
    ] = None,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help="With --cluster: spare younger objects of runs that this machine does not know, since they may still run.",
        ),
    ] = "2h",
) -> int:
    """Remove what a killed run left: namespaces, CRDs, embedded clusters, tokens. Living runs are left alone.

    What does not go is named, with what it waits for, and the exit code is 10.
    """
    try:
        age = parse_duration(older_than)
    except ValueError as error:
        msg = f"--older-than {older_than!r}: {error}"
        raise UsageProblemError(msg) from error
    if cluster is not None and ":" not in cluster:
        msg = f"--cluster {cluster!r}: name one cluster, as context:NAME or embedded:NAME"
        raise UsageProblemError(msg)
    if namespace and cluster is None:
        msg = f"--namespace {namespace!r}: name its cluster with --cluster context:NAME"
        raise UsageProblemError(msg)
    _not_protected(None if dry_run else cluster)
    result = asyncio.run(_sweep(cluster, age, namespace or "", dry_run=dry_run))
    word = "would remove" if dry_run else "removed"
    for line in result.removed:
        typer.echo(f"{word} {line}")
    for line in result.spared:
        typer.echo(
            f"spared {line}: it may be in use from another machine; --older-than 0s takes it",
            err=True,
        )
    for line in dict.fromkeys(result.stays):
        typer.echo(line, err=True)
    for line in result.problems:
        typer.echo(line, err=True)
    for line in result.explained:
        typer.echo(f"  {line}", err=True)
    if not (result.removed or result.problems or result.spared or result.stays):
        typer.echo("nothing is left of earlier runs")
    return ExitCode.LEFT_BEHIND if result.problems else ExitCode.OK


def _not_protected(cluster: str | None) -> None:
    if cluster is None:
        return
    from harness.clusters.protected import refuse_protected
    from harness.clusters.select import parse

    choice = parse(cluster)
    if choice.kind == "context":
        refuse_protected(choice.name, "swept")


async def _sweep(cluster: str | None, older_than: float, namespace: str, *, dry_run: bool) -> Found:
    from harness.clusters.select import open_cluster
    from harness.run.sweep import sweep as carry_out

    if cluster is None:
        return await carry_out(dry_run=dry_run)
    # Named clusters are only opened, never made, so neither nodes nor binaries matter.
    opened = open_cluster(
        cluster, nodes=1, seed=None, binaries_source="auto", progress=lambda _line: None
    )
    async with opened as target:
        return await carry_out(
            dry_run=dry_run, cluster=target, older_than=older_than, namespace=namespace
        )
