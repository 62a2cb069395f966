"""`drill controller`: the bundled controller, outside of drills."""

from __future__ import annotations

import asyncio
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import __version__
from harness.cli.errors import UsageProblemError
from harness.cli.voice import progress
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from harness.controller.ordering import Order, Verb
    from harness.handback.carry_out import Handback

app = typer.Typer(no_args_is_help=True, help="The bundled controller, outside of drills.")

_Cluster = Annotated[
    str,
    typer.Option(
        "--cluster",
        metavar="CLUSTER",
        envvar="DRILL_CLUSTER",
        help="Where the Canaries are: context:NAME, or embedded:NAME.",
    ),
]
_Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Their namespace.")
]


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    },
    add_help_option=False,
)
def run(context: typer.Context) -> int:
    """Run it in the foreground until SIGTERM or Ctrl-C: `drill controller run --help` lists the flags."""
    from harness.controller.options import OptionsError, parse
    from harness.controller.shell import process

    try:
        options = parse(context.args, prog="drill controller run")
    except OptionsError as error:
        raise UsageProblemError(str(error)) from error
    except SystemExit:  # after --help
        return ExitCode.OK
    return ExitCode.ERROR if process.run(options) else ExitCode.OK


@app.command()
def manifest(
    *,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NAMESPACE", help="The namespace to run in, and to drive."
        ),
    ],
    image: Annotated[
        str,
        typer.Option(
            "--image",
            metavar="IMAGE",
            help="The image, which you have to make yourself: none is published; `drill controller image` makes one, and fixtures/manifests/README.md says how else.",
        ),
    ],
    crd: Annotated[
        bool, typer.Option("--crd/--no-crd", help="With the Canary CRD, or without.")
    ] = True,
) -> int:
    """Print the manifest that runs it in a cluster, for `kubectl apply -f -`: CRD, service account, rights, Deployment."""
    from harness.controller.manifest import ManifestError
    from harness.controller.manifest import manifest as filled

    try:
        typer.echo(filled(namespace, image, crd=crd), nl=False)
    except ManifestError as error:
        raise UsageProblemError(str(error)) from error
    return ExitCode.OK


@app.command()
def image(
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE.tar", help="Where the archive goes.")
    ],
    name: Annotated[
        str, typer.Option("--name", metavar="IMAGE", help="The image's name, with its tag.")
    ] = f"rollout-drill/controller:{__version__}",
) -> int:
    """Make its image out of the Python that runs this command: no registry, no container engine, no network.

    The file is what `docker save` writes: `docker load -i`, `kind load image-archive`, `k3d image import` and `ctr images import` take it.
    It is for machines with the system and architecture of this one; with a registry, build from a public Python image instead.
    """
    from harness.programs.errors import ProgramError
    from harness.subjects.base import SubjectError
    from harness.subjects.controller_image import made

    try:
        made(progress(), name=name, target=out)
    except ProgramError as error:
        msg = f"the image of the controller cannot be made: {error}"
        raise SubjectError(msg) from error
    return ExitCode.OK


@app.command()
def decide(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The frozen Canary.")],
    *,
    cluster: _Cluster,
    namespace: _Namespace,
    promote: Annotated[
        bool, typer.Option("--promote", help="Promote the frozen revision as it is.")
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Take the frozen revision back.")
    ] = False,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Give the order. Without it nothing is written, only shown."),
    ] = False,
) -> int:
    """End a freeze (analysis.freezeOnFailure) by hand: promote what is frozen, or take it back.

    The order is an annotation that names the frozen revision, so that it can never be carried out for another one.
    """
    from harness.controller.ordering import OrderError

    if promote == rollback:
        msg = "give one of --promote and --rollback"
        raise UsageProblemError(msg)
    _named(cluster)
    verb: Verb = "promote" if promote else "rollback"
    try:
        order = asyncio.run(_order(cluster, namespace, name, verb, apply=apply))
    except OrderError as error:
        raise UsageProblemError(str(error)) from error
    typer.echo(order.text(given=apply))
    return ExitCode.OK


def _named(cluster: str) -> None:
    """Raise UsageProblemError unless one cluster is named."""
    if ":" not in cluster:
        msg = f"--cluster {cluster!r}: name one cluster, as context:NAME or embedded:NAME"
        raise UsageProblemError(msg)


async def _order(cluster: str, namespace: str, name: str, verb: Verb, *, apply: bool) -> Order:
    from harness.cli.connect import connected
    from harness.controller.ordering import give

    async with connected(cluster) as client:
        return await give(client, namespace, name, verb, apply=apply)


@app.command()
def handback(
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="SUBJECT",
            help="The Flagger that takes over, as in flagger@1.44.0: exactly the version that will run.",
        ),
    ],
    cluster: _Cluster,
    namespace: _Namespace,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply", help="Write the statuses. Without it nothing is written, only worked out."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Make the way back to a Flagger: its hashes into the statuses, so that it starts no analysis nobody asked for.

    Order: stop the bundled controller, hand back with --apply, apply that Flagger's CRDs, start it. A target that changed unseen
    is not hidden: that Flagger starts an analysis for it, and the answer says so. The first time a version is named, a small
    program is built from its sources, which takes a minute or two and needs Go (installed if it is missing).
    """
    from harness.handback.program import TargetNameError, version_of
    from harness.handback.text import to_json, to_text

    _named(cluster)
    try:
        version = version_of(to)
    except TargetNameError as error:
        msg = f"--to {error}"
        raise UsageProblemError(msg) from error
    result = asyncio.run(_handback(cluster, namespace, to, version, apply=apply))
    typer.echo(json.dumps(to_json(result), indent=2) if as_json else to_text(result))
    return ExitCode.OK


async def _handback(
    cluster: str, namespace: str, to: str, version: str, *, apply: bool
) -> Handback:
    from harness.cli.connect import connected
    from harness.handback.carry_out import hand_back
    from harness.handback.program import obtain
    from harness.handback.told import ask

    async with connected(cluster) as client:
        program = await obtain(version, progress())
        return await hand_back(client, namespace, to, functools.partial(ask, program), apply=apply)
