"""The Markdown report of one drill, made to be pasted into an issue (template: reports/templates/drill.md.j2)."""

from __future__ import annotations

import datetime as dt
import functools
import html
import json
from typing import TYPE_CHECKING, Any, Final

from harness.data import data_path
from harness.model.clock import moment, span
from harness.model.outcome import Outcome
from harness.report.limits import GITHUB, Limits, fit
from harness.report.markdown_outside import calls, queries, stand_ins
from harness.report.markdown_places import written
from harness.report.markdown_rollouts import rollouts
from harness.report.markdown_rows import rows
from harness.report.markdown_traffic import traffic
from harness.report.text import block, code, code_cell, esc, plural, short, table

if TYPE_CHECKING:
    import jinja2

    from harness.model.report import DrillReport, Finding, Reading, Recorded

MARKS: Final = {
    Outcome.PASS: "✅",
    Outcome.FAIL: "❌",
    Outcome.UNKNOWN: "❔",
    Outcome.UNSUPPORTED: "🚫",
    Outcome.ERROR: "💥",
}
SIMULATED: Final = (
    "API server, controllers and scheduler are real, the nodes are not: no container ran. Placement, order and "
    "scheduling are proven; whether an application becomes ready, how long that takes, and traffic are not."
)
REAL: Final = "What was seen holds for these nodes and versions; it proves nothing about others, or about load."


@functools.cache
def environment() -> jinja2.Environment:
    """Return the templates' environment."""
    import jinja2

    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_path("reports", "templates")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - Markdown, not HTML: every foreign text goes through `esc`, `code` or `block`
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(esc=esc, code=code, block=block, short=short)
    return env


def markdown(report: DrillReport, *, limit: int = GITHUB, level: int = 1) -> str:
    """Return the report as Markdown of at most `limit` characters; `level` is that of its heading."""
    return fit(lambda limits: _render(report, limits, level), limit)


def _render(report: DrillReport, limits: Limits, level: int) -> str:
    notes = [note for finding in report.findings for note in finding.notes]
    text = (
        environment()
        .get_template("drill.md.j2")
        .render(
            d=report,
            h="#" * level,
            limits=limits,
            title=f"Drill result: {esc(report.scenario.id)}",
            context=_context(report),
            window=window(report),
            nodes=_nodes(report),
            verdict_label=_label(report),
            checks=_checks(report.findings, limits),
            notes=notes[: limits.items],
            statements=_statements(report.findings, limits),
            time_zero=_time_zero(report),
            written=written(report),
            rows=rows(report, limits),
            rollouts=rollouts(report, limits),
            calls=calls(report, limits),
            queries=queries(report),
            traffic=traffic(report, limits),
            recorded=[_recorded(entry, limits) for entry in report.recorded[: limits.items]],
            left=_left(report),
            left_items=_left_items(report, limits),
            left_explained=[esc(text) for text in report.left.explained],
            versions=_versions(report),
        )
    )
    lines = (line.rstrip() for line in text.strip().splitlines())
    return "\n".join(lines) + "\n"


def window(report: DrillReport) -> str:
    """Return when the drill ran: `2026-10-29 11:22:35 to 11:31:24 UTC`."""
    try:
        start = dt.datetime.fromisoformat(report.started_at)
        end = dt.datetime.fromisoformat(report.ended_at)
    except ValueError:
        return f"{esc(report.started_at)} UTC"
    first = f"{start:%Y-%m-%d %H:%M:%S}"
    last = f"{end:%H:%M:%S}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"{first} to {last} UTC"


def _context(report: DrillReport) -> str:
    env = report.environment
    kinds = {"existing": "context", "embedded": "embedded cluster"}
    return f"{kinds.get(env.cluster_kind, env.cluster_kind + ' cluster')} {code(env.cluster_name)}"


def _nodes(report: DrillReport) -> str:
    env = report.environment
    names = ", ".join(esc(name) for name in env.nodes) or "none"
    kind = esc(f"simulated ({env.simulated})") if env.simulated else "real"
    added = "".join(f" {esc(text)}." for text in env.addons)
    notes = "".join(f" {esc(text)}" for text in env.notes)
    if env.cluster_kind == "existing" and not env.nodes:
        # Whoever may not list them cannot tell real ones from simulated ones either.
        return f"Nodes: not known, and whether they are real neither.{added} {REAL}{notes}"
    return f"Nodes: {kind}: {names}.{added} {SIMULATED if env.simulated else REAL}{notes}"


def _label(report: DrillReport) -> str:
    outcome = report.verdict.outcome
    mark = MARKS[outcome]
    if report.verdict.control and report.verdict.as_expected:
        return f"{MARKS[Outcome.PASS]} Verdict (control):"
    return f"{mark} Verdict:"


def _checks(findings: tuple[Finding, ...], limits: Limits) -> str:
    lines = []
    for finding in findings:
        outcome = f"{MARKS[finding.outcome]} {finding.outcome}"
        if finding.expected is Outcome.FAIL:
            outcome += " (expected)" if finding.outcome is Outcome.FAIL else " (should fail)"
        title = f"{esc(finding.title)} ({code_cell(finding.id)})"
        lines.append((title, outcome, esc(short(finding.evidence, limits.evidence))))
    return table(("check", "outcome", "evidence"), lines)


def _statements(findings: tuple[Finding, ...], limits: Limits) -> str:
    lines = [
        f"- {code(f.id)}: {code(short(f.statement, limits.evidence))}"
        for f in findings
        if f.statement
    ]
    return "\n".join(lines)


def _time_zero(report: DrillReport) -> str:
    text = f"Time zero is {esc(report.started_at)}, when the recording began."
    if report.change_at is None:
        return f"{text} There was no change."
    return f"{text} The change (step {code(report.change_step)}) was made at {moment(report.change_at)}."


def _recorded(entry: Recorded, limits: Limits) -> dict[str, Any]:
    found = [reading for reading in entry.readings if reading.found]
    blocks = []
    if found:
        first, last = found[0], found[-1]
        blocks.append(_json(first, limits))
        if entry.change == "changed":
            blocks.append(_folded(f"After: {last.at}", _json(last, limits)))
            blocks.append(block(short(entry.diff, limits.block), "diff"))
    return {"title": entry.title, "path": entry.path, "summary": entry.summary, "blocks": blocks}


def _json(reading: Reading, limits: Limits) -> str:
    text = json.dumps(reading.value, indent=2, sort_keys=True, ensure_ascii=False)
    return block(short(text, limits.block), "json")


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{html.escape(summary)}</summary>\n\n{body}\n\n</details>"


def _left(report: DrillReport) -> str:
    left = report.left
    if left.state == "pending":
        return "Teardown is in progress; this report is written again when it is over."
    if left.state == "kept":
        return (
            f"Everything, as was asked for: namespace `{report.namespace}` on {_context(report)}. "
            "`drill sweep` removes it."
        )
    if left.state == "nothing-made":
        return "Nothing was made, so nothing can be left."
    if left.state == "unlisted":
        return f"Unknown: {esc(left.error)}."
    removed = ", ".join(f"{count} {esc(kind)}" for kind, count in sorted(left.removed.items()))
    told = f" Teardown removed {removed} in {span(left.seconds)}." if removed else ""
    listed = f"{left.kinds_listed} resource types were listed while the cluster still ran."
    if left.refused:
        listed += f" Not listed, since that is not allowed: {esc(', '.join(left.refused))}."
    head = f"**{plural(len(left.items), 'object')}:**" if left.items else "Nothing."
    return f"{head}{told} {listed}" if not left.items else f"{listed}{told} {head}"


def _left_items(report: DrillReport, limits: Limits) -> list[str]:
    items = sorted(
        report.left.items, key=lambda i: [str(i.get(k)) for k in ("kind", "namespace", "name")]
    )
    lines = []
    for item in items[: limits.items]:
        place = f"{item['namespace']}/" if item.get("namespace") else ""
        name = f"{place}{item.get('name')}"
        text = f"{esc(item.get('kind'))} {code(name)}"
        if item.get("finalizers"):
            text += f", finalizers {', '.join(code(f) for f in item['finalizers'])}"
        lines.append(f"{text}: {esc(item['why'])}" if item.get("why") else text)
    if len(items) > limits.items:
        lines.append(f"and {len(items) - limits.items} more (report.json has them all)")
    return lines


def _versions(report: DrillReport) -> str:
    env = report.environment
    nodes = f"simulated ({env.simulated})" if env.simulated else "real"
    seed = "" if env.seed is None else f", seed {env.seed}"
    lines = [
        ("rollout-drill", env.harness),
        ("subject", f"{env.subject_text}, {env.rollout_kind}"),
        *((("flags", ", ".join(report.flags)),) if report.flags else ()),
        ("Kubernetes", env.kubernetes_text),
        ("cluster", f"{env.cluster_kind} {env.cluster_name}"),
        ("nodes", f"{nodes}{seed}"),
        *(("add-on", text) for text in env.addons),
        *stand_ins(report),
        ("recording", f"{plural(report.observations, 'observation')} in {span(report.seconds)}"),
    ]
    return table(("what", "version"), [(name, esc(value)) for name, value in lines])
