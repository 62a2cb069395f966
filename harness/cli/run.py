"""`drill run`."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from harness.cli import options as o
from harness.cli.errors import UsageProblemError
from harness.cli.given import is_given
from harness.cli.out import check_out
from harness.cli.sets import across_options, parse_across, parse_sets
from harness.cli.voice import progress
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.model.scenario import Resolved
    from harness.run.chosen import Chosen
    from harness.run.plan import Options, Plan
    from harness.run.session import Session
    from harness.scenario.loaded import Loaded


_SEED: Final = 1


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("run")(run)


def run(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="Scenarios, by name or path.", show_default=False),
    ] = None,
    *,
    variant: o.Variants = None,
    sets: o.Sets = None,
    across: o.Across = None,
    cluster: o.Cluster = "embedded",
    subject: o.Subject = "bundled",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where reports go. Default: drill-reports/RUN-ID."
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Leave namespace and cluster alone afterwards, to look at them."
        ),
    ] = False,
    rendered: Annotated[
        Path | None,
        typer.Option(
            "-f",
            "--manifests",
            metavar="DIR",
            help="Instead of a scenario: manifests as they are (a rollout object and its workload), with default checks.",
        ),
    ] = None,
    change: Annotated[
        str,
        typer.Option(
            "--change",
            help="With -f: what the new revision is. template-annotation is the one there is.",
        ),
    ] = "template-annotation",
    jobs: o.Jobs = 4,
    seed: o.Seed = _SEED,
    controller_image: o.ControllerImage = "",
    binaries: o.Binaries = "auto",
    anonymise: o.Anonymise = False,
    nodes: o.Nodes = None,
    node_selector: o.NodeSelector = None,
    namespace: o.Namespace = None,
    image: o.Image = None,
    scenarios: o.Scenarios = None,
) -> int:
    """Run scenarios and write a verdict report.

    DIR/report.md covers the run, DIR/<drill>/ holds each drill's report.md, report.json, timeline.jsonl and junit.xml, and
    after a failure also the controller's log, the events and the objects. Where values are varied, by --across or by the
    scenario's own matrix, DIR/matrix.md is the table of all combinations.
    """
    from harness.run.chosen import choose, select_on

    given, varied = parse_sets(sets or []), parse_across(across or [])
    if bool(names) == bool(rendered):
        msg = (
            "name at least one scenario (see `drill list`), or give manifests with -f DIR; not both"
        )
        raise UsageProblemError(msg)
    place = choose(
        cluster,
        nodes=nodes,
        node_selector=node_selector,
        namespace=namespace,
        image=image,
        image_given=is_given(context, "image"),
    )
    if rendered is not None:
        chosen = _adopted(rendered, change, _Values(given, varied, variant or []))
    else:
        folders = scenarios or []
        chosen = select_on(cluster, place, names or [], folders, variant or [], given, varied)
    plans = _plans(
        chosen,
        given,
        varied,
        cluster,
        _Asked(subject, controller_image, explicit=is_given(context, "subject")),
        place=place,
        rendered=rendered,
        seed=seed,
        anonymise=anonymise,
    )
    if not plans:
        typer.echo("nothing selected", err=True)
        return ExitCode.NOTHING_SELECTED
    if out is not None:
        check_out(out, "report.md")
    from harness.run.identity import run_id
    from harness.run.plan import Options

    run = run_id()
    options = Options(
        out=out or Path("drill-reports") / run,
        cluster=cluster,
        keep=keep,
        seed=seed,
        binaries=binaries,
        jobs=jobs,
        anonymise=anonymise,
        nodes=place.nodes,
        node_selector=place.node_selector,
        namespace=place.namespace,
        image=place.image,
    )
    return _carry_out(plans, options, run)


@dataclass(frozen=True, slots=True)
class _Values:
    """The values and variants that the user has named."""

    sets: Mapping[str, str]
    across: Mapping[str, Sequence[Any]]
    variants: Sequence[str]


def _adopted(folder: Path, change: str, values: _Values) -> list[tuple[Loaded, Resolved]]:
    from harness.run.selection import variants_of
    from harness.scenario.adopt import scenario_from

    adopted = scenario_from(folder, change=change)
    for note in adopted.notes:
        typer.echo(note, err=True)
    drills = variants_of(adopted, values.variants, values.sets, values.across)
    return [(adopted, drill) for drill in drills]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The subject that the user has named."""

    subject: str
    image: str
    """Of a controller that runs as a pod; empty: the harness' own."""
    explicit: bool
    """On the command line, not by default or by the environment, which scenarios that name their own may overrule."""


def _plans(
    chosen: Sequence[tuple[Loaded, Resolved]],
    sets: Mapping[str, str],
    across: Mapping[str, Sequence[Any]],
    cluster: str,
    asked: _Asked,
    *,
    place: Chosen,
    rendered: Path | None,
    seed: int,
    anonymise: bool,
) -> list[Plan]:
    from harness.clusters.base import ChoiceError
    from harness.clusters.select import parse
    from harness.run.plan import Plan
    from harness.run.selection import SelectionError, check, subject_of
    from harness.subjects.base import SubjectError
    from harness.subjects.select import check_subject

    try:
        check_subject(asked.subject)
        choice = parse(cluster)
    except (ChoiceError, SubjectError) as error:
        raise UsageProblemError(str(error)) from error
    plans: list[Plan] = []
    for loaded, resolved in chosen:
        source = ["-f", str(rendered)] if rendered else [resolved.name]
        variant = [] if rendered else ["--variant", resolved.variant]
        told = across_options({key: [resolved.values[key]] for key in across})
        told += [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
        try:
            wanted = asked.subject if asked.explicit else None
            subject = subject_of(resolved, wanted, asked.subject)
        except SelectionError as error:
            raise UsageProblemError(str(error)) from error
        named = ["--subject", subject] if resolved.subject is None else []
        line = ["drill", "run", *source, *variant, *told, *named, "--cluster", cluster]
        line += place.arguments
        if seed != _SEED:
            line += ["--seed", str(seed)]
        # The name is that of a folder and of a label, too, where nothing is replaced afterwards.
        shown = choice.kind if anonymise else cluster
        plan = Plan(resolved, loaded.folder, subject, shown, "", asked.image)
        line += ["--controller-image", asked.image] * bool(plan.in_cluster and asked.image)
        plans.append(replace(plan, reproduce=shlex.join(line)))
        try:
            check(replace(plans[-1], cluster=cluster))
        except (ChoiceError, SubjectError) as error:
            raise UsageProblemError(str(error)) from error
    return plans


def _carry_out(plans: Sequence[Plan], options: Options, run: str) -> int:
    from harness.report.matrix_markdown import matrix_text
    from harness.report.summary import summary
    from harness.run.artefacts import MATRIX, REPORT

    session = asyncio.run(_session(plans, options, run))
    for error in session.errors:
        typer.echo(f"error: {error}", err=True)
    if session.report.drills:
        typer.echo(summary(session.report), nl=False)
        typer.echo(f"report: {options.out / REPORT}")
    if session.matrix is not None:
        typer.echo(f"\n{matrix_text(session.matrix)}\nmatrix: {options.out / MATRIX}")
    return session.exit_code


async def _session(plans: Sequence[Plan], options: Options, run: str) -> Session:
    from harness.run.session import run_session
    from harness.run.signals import Stop, handled

    say = progress()
    stop = Stop()
    with handled(stop, say):
        return await run_session(plans, options, run, stop=stop, say=say)
