"""`drill doctor`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from harness.cli import options as o
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.clusters.health import Row
    from harness.clusters.select import Choice
    from harness.run.chosen import Chosen
    from harness.subjects.detect import Seen

_MARKS: Final = {"ok": "ok", "note": "note", "missing": "MISSING", "unknown": "?"}


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("doctor")(doctor)


def doctor(
    *,
    cluster: o.Cluster = "embedded",
    namespace: o.Namespace = None,
    nodes: o.Nodes = None,
    node_selector: o.NodeSelector = None,
    subject: o.Subject = "bundled",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say whether drills can run on a cluster, what is missing, and what else is at work there. Nothing is made or changed.

    On your own cluster (context:NAME): rights, the CRD, nodes, what the namespace asks of pods, admission webhooks, autoscalers. Of
    the others: whether the programs are there that make them. Exit code 0: drills can run; 11: something is missing.
    """
    from harness.clusters.select import parse
    from harness.run.chosen import choose

    choice = parse(cluster)
    chosen = choose(
        cluster, nodes=nodes, node_selector=node_selector, namespace=namespace, image=None
    )
    if choice.kind == "context":
        rows = asyncio.run(_examined(choice, chosen, subject))
    else:
        rows = _made(choice)
    able = not any(row.state == "missing" for row in rows)
    typer.echo(_json(cluster, rows, able=able) if as_json else _table(cluster, rows, able=able))
    return ExitCode.OK if able else ExitCode.UNDECIDED


async def _examined(choice: Choice, chosen: Chosen, name: str) -> list[Row]:
    from harness import __version__
    from harness.clusters.base import ClusterError
    from harness.clusters.existing import FIRST_CONTACT, file_of
    from harness.kube.client import KubeClient
    from harness.kube.errors import KubeError
    from harness.kube.retry import Budget
    from harness.run.existing import Wanted, look
    from harness.subjects.detect_reader import look_around
    from harness.subjects.select import make_subject

    path = file_of(choice.name)
    subject = make_subject(name)
    await subject.obtain(lambda line: typer.echo(line, err=True))
    crds = tuple(subject.cluster_objects())
    roles = tuple(subject.namespace_objects(chosen.namespace or "drill"))
    wanted = Wanted(chosen.nodes, chosen.node_selector, chosen.namespace, "", crds, roles)
    agent, budget = f"rollout-drill/{__version__}", Budget(total=FIRST_CONTACT)
    try:
        connecting = KubeClient.connect(path, choice.name, user_agent=agent, budget=budget)
        async with await connecting as client:
            found = await look(client, wanted)
            seen = await look_around(client, chosen.namespace)
    except KubeError as error:
        msg = f"The cluster of context {choice.name!r} ({path}) cannot be used: {error}."
        raise ClusterError(msg) from error
    return [*_protection(choice.name), *found.rows(crds), *_controllers(seen)]


def _controllers(seen: Seen) -> list[Row]:
    """Return what is known of controllers of Canaries that are there already."""
    from harness.clusters.health import Row

    unseen = [f"{what} cannot be looked at" for what in seen.unseen]
    told = [one.text for one in seen.controllers] or ["none that acts on Canaries was seen"]
    return [Row("controllers", "note", "; ".join([*told, *unseen]))]


def _protection(context: str) -> list[Row]:
    from harness.clusters.health import Row
    from harness.clusters.protected import KEY, read_configuration

    configuration = read_configuration()
    pattern = configuration.pattern_of(context)
    if not pattern:
        return []
    text = f"the pattern {pattern!r} of {KEY} in {configuration.file} forbids drills here"
    return [Row("context", "missing", text)]


def _made(choice: Choice) -> list[Row]:
    """Return whether the programs are there that make a cluster of this kind, and the one that was named."""
    from harness.clusters.health import Row

    if choice.kind == "embedded":
        return [*_embedded(), *_named(choice)]
    from harness.clusters.local.cluster import provider_of

    provider = provider_of(choice.kind)
    lacking = provider.missing()
    if lacking:
        return [Row("programs", "missing", lacking)]
    return [Row("programs", "ok", f"{provider.tool} and what it needs is there"), *_named(choice)]


def _embedded() -> list[Row]:
    import os
    import sys

    from harness.clusters.embedded.binaries import VARIABLE, ensure_binaries, lacking
    from harness.clusters.health import Row

    if sys.platform != "linux" or os.environ.get(VARIABLE, "").startswith("path:"):
        ensure_binaries("auto", lambda _line: None)  # says what is wrong, and gets nothing
        return [Row("programs", "ok", f"those of {VARIABLE}={os.environ[VARIABLE]}")]
    names = lacking()
    if names:
        text = f"{', '.join(names)}: not there yet; the first drill, or `drill cluster build`, gets them, which takes minutes once"
        return [Row("programs", "note", text)]
    return [Row("programs", "ok", "all of the control plane's are there")]


def _named(choice: Choice) -> list[Row]:
    from harness.clusters.health import Row

    if not choice.name:
        return []
    if choice.kind == "embedded":
        from harness.clusters.embedded import cluster as embedded

        there = embedded.find(choice.name) is not None
    else:
        from harness.clusters.local.cluster import provider_of

        there = choice.name in provider_of(choice.kind).names()
    text = (
        f"{choice.kind}:{choice.name} is there"
        if there
        else f"there is no {choice.kind}:{choice.name}"
    )
    return [Row("cluster", "ok" if there else "missing", text)]


def _table(cluster: str, rows: Sequence[Row], *, able: bool) -> str:
    from tabulate import tabulate

    cells = [(row.topic, _MARKS[row.state], row.text) for row in rows]
    table = tabulate(
        cells, ("what", "", "found"), tablefmt="simple", maxcolwidths=[None, None, 110]
    )
    count = sum(row.state == "missing" for row in rows)
    end = (
        f"Drills can run on {cluster}."
        if able
        else f"Drills cannot run on {cluster}: {count} missing."
    )
    return f"{table}\n\n{end}"


def _json(cluster: str, rows: Sequence[Row], *, able: bool) -> str:
    body: dict[str, Any] = {
        "format": "drill-doctor/1",
        "cluster": cluster,
        "able": able,
        "rows": [{"topic": row.topic, "state": row.state, "text": row.text} for row in rows],
    }
    return json.dumps(body, indent=2, ensure_ascii=False)
