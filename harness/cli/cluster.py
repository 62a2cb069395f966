"""`drill cluster`: clusters that stay between runs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer

from harness import __version__
from harness.cli import options as o
from harness.cli.errors import UsageProblemError
from harness.cli.voice import progress
from harness.model.outcome import ExitCode

app = typer.Typer(
    no_args_is_help=True,
    help="Keep clusters warm between runs: embedded ones, and those of kind or k3s.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the cluster.")]
Any_ = typer.Argument(
    metavar="NAME", help="Name of an embedded cluster, or kind:NAME, or k3s:NAME."
)


@app.command()
def up(
    name: Annotated[str, Any_] = "dev",
    *,
    nodes: Annotated[
        int,
        typer.Option("--nodes", min=1, help="Nodes that take pods; simulated on an embedded one."),
    ] = 2,
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
    """Make a cluster that stays until `drill cluster down`; runs that need as many nodes and that version use it by themselves.

    kind and k3s make it with the tool of that name (kind, k3d) from PATH. What a site needs for kind: DRILL_KIND_IMAGE (node image), DRILL_KIND_CONFIG (a
    configuration into which the nodes go), DRILL_KIND_AFTER_CREATE (a command that is run when the nodes are ready).
    """
    kind, bare = _split(name)
    if kind != "embedded":
        if kubernetes is not None or addons:
            msg = f"--kubernetes and --with are for embedded clusters; what {kind} runs comes from its node image"
            raise UsageProblemError(msg)
        return _up_local(kind, bare, nodes)
    name = bare
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
    name: Annotated[str | None, Any_] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All clusters of this user.")] = False,
) -> int:
    """Remove a cluster with everything in it."""
    from harness.clusters.embedded.cluster import down as remove
    from harness.clusters.embedded.cluster import listing
    from harness.clusters.local import cluster as local
    from harness.clusters.local import records

    embedded = {f"embedded:{row.name}": row.name for row in listing()}
    others = {one.title: one for one in records.read_all("kind", "k3s")}
    there = [*embedded, *others]
    if everything == (name is not None):
        msg = f"name a cluster ({', '.join(there) or 'there is none'}), or give --all"
        raise UsageProblemError(msg)
    wanted = there if name is None else [":".join(_split(name))]
    if unknown := [each for each in wanted if each not in there]:
        msg = f"there is no cluster {unknown[0]!r} (there are: {', '.join(there) or 'none'})"
        raise UsageProblemError(msg)
    for each in wanted:
        if each in embedded:
            remove(embedded[each])
        else:
            local.down(others[each].kind, others[each].name)
        typer.echo(f"{each} is gone")
    return ExitCode.OK


@app.command("list")
def list_() -> int:
    """List the clusters that drills were given."""
    from tabulate import tabulate

    from harness.clusters.embedded.cluster import listing
    from harness.clusters.local import records

    rows: list[tuple[object, ...]] = [
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
    rows += [
        (
            one.title,
            one.nodes or "",
            "",
            "",
            "made" if one.ready else "found" if one.found else "being made",
            "with its run" if one.owner_bound else "until removed",
            f"{time.time() - one.created:.0f} s",
        )
        for one in records.read_all("kind", "k3s")
    ]
    headers = ("cluster", "nodes", "seed", "kubernetes", "state", "stays", "age")
    typer.echo(tabulate(rows, headers) if rows else "there is no cluster")
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
def image(
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE.tar", help="Where the archive goes.")
    ],
    name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="IMAGE",
            help="The image's name, with a registry before it if you like.",
        ),
    ] = f"rollout-drill/workload:{__version__}",
    architecture: Annotated[
        str,
        typer.Option(
            "--architecture",
            metavar="ARCH",
            help="Of the nodes, as they state it: amd64, arm64, …; this machine's unless given.",
        ),
    ] = "",
) -> int:
    """Make the image that workloads of drills can run, and that drills with traffic need: for `--image`, on a cluster of your own.

    The file is what `docker save` writes: load it into the nodes, or load, push and name it by your registry. No container engine is needed to make it.
    """
    from harness.clusters.workload import save_image

    save_image(out, name, progress(), architecture=architecture)
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


def _split(name: str) -> tuple[str, str]:
    """Return kind and name of `NAME`, `embedded:NAME`, `kind:NAME` or `k3s:NAME`."""
    kind, colon, rest = name.partition(":")
    if not colon:
        return "embedded", name
    if kind not in ("embedded", "kind", "k3s") or not rest:
        msg = f"{name!r} names no cluster; allowed: NAME, embedded:NAME, kind:NAME, k3s:NAME"
        raise UsageProblemError(msg)
    return kind, rest


def _up_local(kind: str, name: str, nodes: int) -> int:
    from harness.clusters.local.cluster import up as make

    made = asyncio.run(
        make(kind, name, nodes=nodes, progress=progress(), bound=False, exclusive=False)
    )
    typer.echo(
        f"{made.name} is up: Kubernetes {made.facts.kubernetes}, {len(made.facts.nodes)} nodes that take pods"
    )
    typer.echo(f"use it with --cluster {made.name}, or with kubectl --kubeconfig {made.kubeconfig}")
    return ExitCode.OK
