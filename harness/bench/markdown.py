"""The Markdown report of a benchmark (template: reports/templates/bench.md.j2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.bench.model import OTHERS
from harness.bench.rows import NOTHING, STAGES, count, rows, seconds
from harness.model.clock import span
from harness.model.duration import format_duration
from harness.report.limits import GITHUB
from harness.report.markdown import environment
from harness.report.text import code, code_cell, esc, plural, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.bench.model import BenchReport, Stage, SubjectFigures

_REQUESTS: Final = (40, 12, 5)
"""Rows of the tables of requests; fewer when the text does not fit."""
_SLOWEST: Final = 3
_LEAST_CPU: Final = 0.05
_BUSY: Final = 0.1
"""Share of the machine that others may use before the report warns of it."""


def markdown(report: BenchReport, *, limit: int = GITHUB) -> str:
    """Return the report as Markdown, of at most `limit` characters where leaving out rare requests makes that possible."""
    text = ""
    for most in _REQUESTS:
        text = _render(report, most)
        if len(text) <= limit:
            break
    return text


def _render(report: BenchReport, most: int) -> str:
    text = (
        environment()
        .get_template("bench.md.j2")
        .render(
            r=report,
            title=_title(report),
            lead=_lead(report),
            busy=_busy(report),
            problems=[
                f"{esc(subject.name)}: {esc(problem)}"
                for subject in report.subjects
                for problem in subject.problems
            ],
            figures=_figures(report),
            goals=_goals(report),
            parts=list(_parts(report)),
            requests=list(_requests(report, most)),
            versions=_versions(report),
        )
    )
    return text.strip() + "\n"


def _title(report: BenchReport) -> str:
    names = " and ".join(esc(subject.name) for subject in report.subjects)
    return f"Storm of {plural(report.setup.canaries, 'rollout')}: {names}"


def _lead(report: BenchReport) -> str:
    setup = report.setup
    interval = format_duration(setup.interval)
    return (
        f"Run {code(report.run_id)}, {esc(report.started_at)} to {esc(report.ended_at)}. Each subject had a cluster of its own, made for it "
        f"alone, one after the other: Kubernetes {esc(setup.kubernetes)}, {plural(setup.nodes, 'node')} simulated by {esc(setup.simulated)}, "
        f"on {plural(setup.cores, 'core')} that control plane, subject and harness share. Every rollout is a Canary of a Deployment with one "
        f"replica, {setup.iterations} iterations of {interval}. Requests are those of the subject's service account in the API server's audit log."
    )


def _busy(report: BenchReport) -> str:
    """Return a warning when processes that do not belong to the benchmark used much of the machine."""
    stages = [stage for subject in report.subjects for stage in subject.stages]
    had = sum(stage.seconds for stage in stages) * report.setup.cores
    others = sum(load.cpu for stage in stages for load in stage.machine if load.name == OTHERS)
    if not had or others / had < _BUSY:
        return ""
    return f"Processes that have nothing to do with it used {others / had:.0%} of the machine: the times are longer than they would be on a quiet one."


def _figures(report: BenchReport) -> str:
    names = [esc(subject.name) for subject in report.subjects]
    headers = ["stage", "figure", *names, *(f"{name} ÷ {names[0]}" for name in names[1:])]
    shown: list[tuple[str, ...]] = []
    before = ""
    for row in rows(report):
        stage = "" if row.stage == before else f"**{row.stage}**"
        before = row.stage
        shown.append((stage, row.figure, *row.values, *row.ratios))
    return table(headers, shown)


def _goals(report: BenchReport) -> str:
    headers = ("subject", "figure", "wanted", "reached", "met")
    return table(
        headers,
        [
            (
                esc(goal.subject),
                esc(goal.figure),
                esc(goal.wanted),
                esc(goal.reached),
                "yes" if goal.met else "**no**",
            )
            for goal in report.goals
        ],
    )


def _parts(report: BenchReport) -> Iterator[dict[str, Any]]:
    """Yield where the time went, stage by stage of each subject."""
    for subject in report.subjects:
        for name in STAGES:
            stage = subject.stage(name)
            if stage is not None:
                yield {
                    "title": f"{esc(subject.name)}: {name}",
                    "sentences": list(_sentences(subject, stage, report)),
                    "phases": _phases(stage),
                }


def _sentences(subject: SubjectFigures, stage: Stage, report: BenchReport) -> Iterator[str]:
    cores = report.setup.cores
    had = stage.seconds * cores
    loads = sorted(
        [(esc(subject.name), stage.usage.cpu), *((load.name, load.cpu) for load in stage.machine)],
        key=lambda item: -item[1],
    )
    if had > 0:
        used = sum(cpu for _, cpu in loads)
        parts = ", ".join(f"{name} {cpu:.1f}" for name, cpu in loads if cpu >= _LEAST_CPU)
        yield (
            f"{plural(cores, 'core')} for {span(stage.seconds)} are {had:.0f} CPU seconds, of which {used:.0f} were used "
            f"({used / had:.0%}): {parts}."
        )
    requests = stage.requests
    if requests.total and stage.seconds > 0:
        rate = requests.total / stage.seconds
        each = requests.total / report.setup.canaries
        yield f"{count(requests.total)} requests are {rate:.1f} a second and {each:.1f} for each rollout."
    slow = sorted(requests.rows, key=lambda row: -row.seconds)[:_SLOWEST]
    told = [
        f"{row.verb} {code(row.resource)} {seconds(row.seconds / row.count)} ({plural(row.count, 'time')})"
        for row in slow
        if row.seconds > 0
    ]
    if told:
        yield f"Most of the API server's time for it, on average each: {', '.join(told)}."


def _phases(stage: Stage) -> str:
    if not stage.phases:
        return ""
    headers = ("phase", "rollouts", "time in it, median", "95 %", "most")
    shown = [
        (
            esc(row.phase),
            count(row.spread.count),
            seconds(row.spread.median),
            seconds(row.spread.p95),
            seconds(row.spread.largest),
        )
        for row in stage.phases
    ]
    return table(headers, shown)


def _requests(report: BenchReport, most: int) -> Iterator[dict[str, str]]:
    """Yield the requests by verb and resource, one table for each stage."""
    names = [esc(subject.name) for subject in report.subjects]
    for name in STAGES:
        found = [subject.stage(name) for subject in report.subjects]
        counts: dict[tuple[str, str], list[str]] = {}
        total: dict[tuple[str, str], int] = {}
        for index, stage in enumerate(found):
            for row in stage.requests.rows if stage is not None else ():
                key = (row.verb, row.resource)
                cells = counts.setdefault(key, [NOTHING] * len(found))
                refused = f" ({row.refused} refused)" if row.refused else ""
                cells[index] = f"{count(row.count)}{refused}"
                total[key] = total.get(key, 0) + row.count
        if not counts:
            continue
        ordered = sorted(counts, key=lambda key: (-total[key], key))
        shown = [(key[0], code_cell(key[1]), *counts[key]) for key in ordered[:most]]
        if len(ordered) > most:
            shown.append(("and", f"{len(ordered) - most} more, see bench.json", *[""] * len(found)))
        yield {"title": name, "table": table(("verb", "resource", *names), shown)}


def _versions(report: BenchReport) -> str:
    subjects = [(esc(subject.name), esc(subject.version)) for subject in report.subjects]
    setup = report.setup
    common = [
        ("rollout-drill", esc(setup.harness)),
        ("Python", esc(setup.python)),
        ("Kubernetes", esc(setup.kubernetes)),
        ("nodes", esc(f"simulated ({setup.simulated}), seed {setup.seed}")),
    ]
    return table(("what", "version"), [*subjects, *common])
