"""`drill explain`."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.errors import UsageProblemError
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from harness.controller.core import World
    from harness.model.timeline import JSON

_KIND = "canary"


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("explain")(explain)


def explain(
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="canary/NAME",
            help="The Canary; with --from it may be left out for all of them.",
        ),
    ] = None,
    *,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Its namespace.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="CLUSTER",
            envvar="DRILL_CLUSTER",
            help="Where it is: context:NAME, or embedded:NAME. Nothing is written there.",
        ),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Look into a file instead (- for standard input): Canary, target, primary, Services and ReplicaSets, and what else the"
            " Canary uses (routes, autoscaler, ConfigMaps, Secrets), as kubectl get -o yaml prints them.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Explain where a Canary stands, and which row of the decision table applies to it: is its target a new revision?

    Shown are how far the run has come, which gate holds it, the conditions, what is on record and what the target has, each
    comparison, the row that decides, and what the bundled controller would do in its next pass: write, or ask a webhook or a metric.
    It reads what the controller would read for this Canary. Nothing is written, on no cluster, and nobody is asked.
    """
    from harness.controller.explain import explain as work_out
    from harness.controller.explain_text import to_text
    from harness.controller.sources import SourceError

    name = _name(reference)
    try:
        looks = _looks(name, namespace, cluster, from_)
    except SourceError as error:
        raise UsageProblemError(str(error)) from error
    now = time.time()
    found = [work_out(world, canary, now) for canary, world in looks]
    if as_json:
        shown = [one.to_json() for one in found]
        typer.echo(json.dumps(shown[0] if name and len(shown) == 1 else shown, indent=2))
    else:
        typer.echo("\n\n".join(to_text(one) for one in found))
    return ExitCode.OK


def _name(reference: str | None) -> str | None:
    if reference is None:
        return None
    kind, slash, name = reference.partition("/")
    if not slash:
        return reference
    if (
        kind.lower() not in (_KIND, "canaries", "canary.flagger.app", "canaries.flagger.app")
        or not name
    ):
        msg = f"{reference!r}: name a Canary, as in canary/NAME"
        raise UsageProblemError(msg)
    return name


def _looks(
    name: str | None, namespace: str | None, cluster: str | None, file: Path | None
) -> list[tuple[JSON, World]]:
    from harness.controller.sources import from_file

    if file is not None:
        return from_file(file, namespace, name)
    if cluster is None or ":" not in cluster:
        msg = "name a cluster with --cluster context:NAME or embedded:NAME, or a file with --from FILE"
        raise UsageProblemError(msg)
    if name is None or namespace is None:
        msg = "name a Canary and its namespace, as in: drill explain canary/NAME -n NAMESPACE"
        raise UsageProblemError(msg)
    return [asyncio.run(_look(name, namespace, cluster))]


async def _look(name: str, namespace: str, cluster: str) -> tuple[JSON, World]:
    from harness.cli.connect import connected
    from harness.controller.sources import from_cluster

    async with connected(cluster) as client:
        return await from_cluster(client, namespace, name)
