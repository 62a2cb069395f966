"""The Markdown report of a run of several drills: one table of verdicts, then every drill, folded."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from harness.model.clock import span
from harness.report.limits import GITHUB
from harness.report.markdown import MARKS, environment, markdown, window
from harness.report.text import code, esc, plural, short, table

if TYPE_CHECKING:
    from harness.model.report import DrillReport, RunReport

_LEAST: Final = 3_000
"""Characters. Less of a drill is not worth showing; its own report.md is pointed to."""
_SENTENCE: Final = 400
_SPARE: Final = 200
"""Characters that folding costs for each drill."""


def markdown_run(run: RunReport, *, limit: int = GITHUB) -> str:
    """Return the report of a run as Markdown of at most `limit` characters."""
    sentence = _SENTENCE
    text = _render(run, 0, sentence)
    while len(text) > limit and sentence > 20:  # noqa: PLR2004 - a stump of a sentence still says the outcome
        sentence //= 2
        text = _render(run, 0, sentence)
    if len(text) > limit:
        return _few(run, limit)
    if not run.drills:
        return text
    each = (limit - len(text)) // len(run.drills) - _SPARE
    return _render(run, each, sentence) if each >= _LEAST else text


def _few(run: RunReport, limit: int) -> str:
    """Return the text for a run of so many drills that not even the table fits: the worst ones only."""
    bad = [drill for drill in run.drills if not drill.verdict.as_expected]
    lead = [
        f"# Drill run {code(run.run_id)}",
        "",
        f"{_lead(run)} The table does not fit; not as expected:",
        "",
    ]
    size = len("\n".join(lead))
    for drill in bad:
        line = f"- {esc(drill.scenario.id)}: {drill.verdict.outcome}"
        size += len(line) + 1
        if size > limit - _SPARE:
            lead.append("- and more, see report.json")
            break
        lead.append(line)
    return "\n".join(lead) + "\n"


def _render(run: RunReport, each: int, sentence: int) -> str:
    shown = [_drill(drill, each) for drill in run.drills] if each else []
    text = (
        environment()
        .get_template("run.md.j2")
        .render(run=run, lead=_lead(run), table=_table(run, sentence), drills=shown)
    )
    return text.strip() + "\n"


def _lead(run: RunReport) -> str:
    good = sum(1 for drill in run.drills if drill.verdict.as_expected)
    told = (
        f"{plural(len(run.drills), 'drill')}, {good} as expected; exit code {int(run.exit_code)}."
    )
    if not run.drills:
        return told
    env = run.drills[0].environment
    nodes = f"simulated ({env.simulated})" if env.simulated else "real"
    subjects = list(dict.fromkeys(drill.environment.subject_text for drill in run.drills))
    subject = f"Subject {subjects[0]}" if len(subjects) == 1 else "Subjects differ"
    return (
        f"{told} {esc(subject)}, Kubernetes {esc(env.kubernetes)}, "
        f"nodes {esc(nodes)}; rollout-drill {esc(env.harness)}; {window(run.drills[0])} (first drill)."
    )


def _table(run: RunReport, sentence: int) -> str:
    headers = ("drill", "outcome", "as expected", "verdict", "change to end")
    return table(headers, [_cells(drill, sentence) for drill in run.drills])


def _cells(drill: DrillReport, sentence: int) -> tuple[str, ...]:
    verdict = drill.verdict
    return (
        esc(drill.scenario.id),
        f"{MARKS[verdict.outcome]} {verdict.outcome}",
        "yes" if verdict.as_expected else "**no**",
        esc(short(verdict.sentence, sentence)),
        "-" if verdict.took is None else span(verdict.took),
    )


def _drill(drill: DrillReport, each: int) -> dict[str, str | bool]:
    verdict = drill.verdict
    return {
        "open": not verdict.as_expected,
        "summary": f"{MARKS[verdict.outcome]} {html.escape(drill.scenario.id)}",
        "text": markdown(drill, limit=each, level=2).strip(),
    }
