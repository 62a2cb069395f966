"""`drill cluster`: embedded clusters that stay between runs."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from harness.cli import options as o
from harness.cli.errors import UsageProblemError
from harness.cli.voice import progress
from harness.model.outcome import ExitCode

app = typer.Typer(no_args_is_help=True, help="Keep embedded clusters warm between runs.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the cluster.")]


@app.command()
def up(
    name: Name = "dev",
    *,
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Simulated nodes.")] = 2,
    seed: o.Seed = 1,
    binaries: o.Binaries = "auto",
    kubernetes: o.Kubernetes = None,
    addons: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="ADD-ON",
            help="Give it this add-on: gateway-api, istio, keda or knative; may be repeated. Runs that need an add-on give it to a cluster themselves.",
        ),
    ] = None,
) -> int:
    """Make a cluster that stays until `drill cluster down`; runs that need as many nodes and that version use it by themselves."""
    from harness.clusters.addons import chosen
    from harness.clusters.embedded.binaries import ensure_binaries
    from harness.clusters.embedded.cluster import down as remove
    from harness.clusters.embedded.cluster import up as make
    from harness.run.addons import furnish, needed

    say = progress()
    wanted = needed(chosen(addons or ()), say)
    cluster = make(
        name,
        nodes=nodes,
        seed=seed,
        binaries=ensure_binaries(binaries, say, kubernetes=kubernetes),
        progress=say,
        owner_pid_bound=False,
        kubernetes=kubernetes,
    )
    try:
        facts = asyncio.run(furnish(cluster, wanted, say)).facts
    except BaseException:
        remove(name)
        raise
    typer.echo(
        f"embedded:{name} is up: Kubernetes {cluster.facts.kubernetes}, {nodes} simulated nodes"
    )
    for says in facts.addons:
        typer.echo(f"it has {says}")
    typer.echo(
        f"use it with --cluster embedded:{name}, or with kubectl --kubeconfig {cluster.kubeconfig}"
    )
    return ExitCode.OK


@app.command()
def down(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the cluster.")] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All clusters of this user.")] = False,
) -> int:
    """Remove a cluster with everything in it."""
    from harness.clusters.embedded.cluster import down as remove
    from harness.clusters.embedded.cluster import listing

    names = [row.name for row in listing()]
    if everything == (name is not None):
        msg = f"name a cluster ({', '.join(names) or 'there is none'}), or give --all"
        raise UsageProblemError(msg)
    if name is not None and name not in names:
        msg = f"there is no embedded cluster {name!r} (there are: {', '.join(names) or 'none'})"
        raise UsageProblemError(msg)
    for each in names if name is None else [name]:
        remove(each)
        typer.echo(f"embedded:{each} is gone")
    return ExitCode.OK


@app.command("list")
def list_() -> int:
    """List the embedded clusters."""
    from tabulate import tabulate

    from harness.clusters.embedded.cluster import listing

    rows = [
        (
            f"embedded:{row.name}",
            row.nodes,
            row.seed,
            row.kubernetes,
            "alive" if row.alive else "dead",
            "with its run" if row.owner_bound else "until removed",
            f"{row.age:.0f} s",
        )
        for row in listing()
    ]
    headers = ("cluster", "nodes", "seed", "kubernetes", "state", "stays", "age")
    typer.echo(tabulate(rows, headers) if rows else "there is no embedded cluster")
    return ExitCode.OK


@app.command()
def logs(
    name: Name,
    component: Annotated[
        str, typer.Argument(metavar="COMPONENT", help="E.g. kube-apiserver or kube-scheduler.")
    ],
) -> int:
    """Print a component's log."""
    from harness.clusters.embedded.cluster import logs as read

    typer.echo(read(name, component).read_text(encoding="utf-8", errors="replace"), nl=False)
    return ExitCode.OK


@app.command()
def build(
    *,
    binaries: o.Binaries = "auto",
    kubernetes: o.Kubernetes = None,
    addon: Annotated[
        list[str] | None,
        typer.Option(
            "--addon",
            metavar="NAME",
            help="Get the CRDs, and the programs, of these add-ons only, `none` for none of them; may be repeated. All unless given.",
        ),
    ] = None,
) -> int:
    """Get the control plane's programs and all that add-ons need into the cache, so that later runs find them there."""
    from harness.clusters import addons
    from harness.clusters.embedded.binaries import ensure_binaries
    from harness.run.addons import needed

    say = progress()
    names = [name for name in (addons.ADDONS if addon is None else addon) if name != "none"]
    wanted = addons.chosen(names)
    found = ensure_binaries(binaries, say, kubernetes=kubernetes)
    typer.echo(f"the control plane's programs are in {found.kube_apiserver.parent}")
    for one in wanted:
        needed([one], say)
        typer.echo(f"{one.needs} of {one.title} {one.module.version} are in the cache")
    return ExitCode.OK


@app.command()
def prove(name: Name) -> int:
    """Prove that namespaces and owned objects really go there (a plane without its controllers would never end a drill)."""
    from harness.clusters.embedded.cluster import find, prove_collectors

    cluster = find(name)
    if cluster is None:
        msg = f"there is no living embedded cluster {name!r}; see `drill cluster list`"
        raise UsageProblemError(msg)
    seconds = prove_collectors(cluster)
    typer.echo(f"a namespace and an owned object were gone after {seconds:.1f} s")
    return ExitCode.OK
