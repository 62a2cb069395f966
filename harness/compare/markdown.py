"""The Markdown report of a comparison (template: reports/templates/compare.md.j2)."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Final

from harness.model.clock import span
from harness.model.outcome import Outcome
from harness.report.limits import GITHUB, Limits, fit
from harness.report.markdown import MARKS, environment
from harness.report.text import code, code_cell, esc, plural, short, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.compare.model import (
        Comparison,
        Difference,
        DrillComparison,
        Pair,
        Row,
        Side,
        Stale,
        Visit,
    )

_OBJECTS: Final = "objects."
_WORDS: Final = {
    "phases": "phase",
    "counts": "counter in a phase",
    "placements": "placement at rest",
    "cluster": "fact about the cluster",
    "checks": "check",
    "recorded": "recorded term",
    "objects": "final object",
}
_PLURALS: Final = {
    "counts": "counters in phases",
    "placements": "placements at rest",
    "cluster": "facts about the cluster",
}
NOTHING: Final = "-"


def markdown(comparison: Comparison, *, limit: int = GITHUB) -> str:
    """Return the comparison as Markdown of at most `limit` characters."""
    return fit(lambda limits: _render(comparison, limits), limit)


def conclusion(comparison: Comparison) -> tuple[Outcome, str]:
    """Return the outcome over all drills, and a sentence."""
    pairs = comparison.pairs
    if comparison.problems or not pairs:
        return Outcome.ERROR, "Not every drill took place, so nothing is concluded."
    outcome = min((pair.outcome for pair in pairs), key=list(Outcome).index)
    count = plural(len(pairs), "comparison")
    documented = sum(1 for p in pairs for d in p.differences if d.documented)
    known = f"{plural(documented, 'difference')} documented"
    if outcome is Outcome.PASS:
        if not documented:
            return outcome, f"{count}: no difference."
        return outcome, f"{count}: no unexplained difference; {known}."
    if outcome is Outcome.FAIL:
        unexplained = sum(len(pair.unexplained) for pair in pairs)
        stale = sum(len(pair.stale) for pair in pairs)
        told = f"{count}: {plural(unexplained, 'unexplained difference')}"
        told += f", {plural(stale, 'documented difference')} not found" if stale else ""
        return outcome, f"{told}; {known}."
    return outcome, next(pair.sentence for pair in pairs if pair.outcome is outcome)


def _render(comparison: Comparison, limits: Limits) -> str:
    outcome, verdict = conclusion(comparison)
    text = (
        environment()
        .get_template("compare.md.j2")
        .render(
            title=_title(comparison),
            lead=_lead(comparison),
            nodes=_nodes(comparison),
            mark=MARKS[outcome],
            verdict=verdict,
            drills=_drills(comparison),
            problems=[short(p, limits.evidence) for p in comparison.problems[: limits.items]],
            explanations=_explanations(comparison),
            details=[_detail(drill, limits) for drill in comparison.drills],
            reproduce=comparison.reproduce,
        )
    )
    lines = (line.rstrip() for line in text.strip().splitlines())
    return "\n".join(lines) + "\n"


def _title(comparison: Comparison) -> str:
    names = dict.fromkeys(drill.scenario.name for drill in comparison.drills)
    return f"{esc(', '.join(names)) or 'nothing'}: {_each(comparison.subjects)}"


def _each(names: Iterable[str]) -> str:
    *most, last = [esc(name) for name in names]
    return f"{', '.join(most)} and {last}" if most else last


def _lead(comparison: Comparison) -> str:
    reference, *others = comparison.subjects
    return (
        f"The reference is {code(reference)}; compared with it: {', '.join(map(code, others))}. "
        "Times are shown, and not compared."
    )


def _nodes(comparison: Comparison) -> str:
    if not comparison.drills:
        return ""
    sides = comparison.drills[0].sides
    env = sides[0].environment
    nodes = f"simulated ({esc(env.simulated)})" if env.simulated else "real"
    clusters = dict.fromkeys(code(s.environment.cluster_name) for s in sides)
    where = "One cluster for all" if len(clusters) == 1 else "A cluster for each"
    versions = ", ".join(f"{esc(s.subject)} is {esc(s.environment.subject_version)}" for s in sides)
    return (
        f"{where} ({esc(env.cluster_kind)}: {', '.join(clusters)}): Kubernetes {esc(env.kubernetes)}, "
        f"{plural(len(env.nodes), 'node')}, {nodes}; rollout-drill {esc(env.harness)}; {versions}."
    )


def _drills(comparison: Comparison) -> str:
    rows = []
    for drill in comparison.drills:
        sides = {side.subject: side for side in drill.sides}
        for pair in drill.pairs:
            by_itself = [_by_itself(sides[name]) for name in (pair.reference, pair.other)]
            rows.append(
                (
                    esc(drill.scenario.id),
                    esc(f"{pair.reference}, {pair.other}"),
                    ", ".join(by_itself),
                    f"{MARKS[pair.outcome]} {_same(pair)}",
                    str(len(pair.unexplained)),
                    str(len(pair.differences) - len(pair.unexplained)),
                )
            )
    headers = ("drill", "subjects", "by themselves", "comparison", "unexplained", "documented")
    return table(headers, rows) if rows else ""


def _by_itself(side: Side) -> str:
    control = side.as_expected and side.outcome is not Outcome.PASS
    mark = MARKS[Outcome.PASS if side.as_expected else side.outcome]
    return f"{mark} {side.outcome}{' as expected' * control}"


def _same(pair: Pair) -> str:
    if pair.outcome is not Outcome.PASS:
        return str(pair.outcome)
    return "as documented" if pair.differences else "the same"


def _explanations(comparison: Comparison) -> list[str]:
    sentences: dict[str, dict[str, None]] = {}
    counts: dict[str, int] = {}
    for pair in comparison.pairs:
        for used in pair.used:
            sentences.setdefault(used.id, {})[used.why] = None
            counts[used.id] = counts.get(used.id, 0) + used.count
    return [
        f"- **{name}** ({plural(counts[name], 'difference')}): {esc(' '.join(whys))}"
        for name, whys in sorted(sentences.items())
    ]


def _detail(drill: DrillComparison, limits: Limits) -> dict[str, Any]:
    return {
        "title": drill.scenario.id,
        "question": drill.scenario.question,
        "sides": [
            f"- {esc(side.subject)}: {_by_itself(side)}. {esc(short(side.sentence, limits.evidence))}"
            for side in drill.sides
        ],
        "pairs": [_pair(pair, limits) for pair in drill.pairs],
    }


def _pair(pair: Pair, limits: Limits) -> dict[str, Any]:
    course = [d for d in pair.differences if not d.path.startswith(_OBJECTS)]
    objects = [d for d in pair.differences if d.path.startswith(_OBJECTS)]
    blocks = [
        *_differences("What happened otherwise", course, pair, limits),
        *_differences("Final objects", objects, pair, limits),
        *_side_by_side(pair, limits),
    ]
    return {
        "title": f"{pair.reference} and {pair.other}",
        "mark": MARKS[pair.outcome],
        "sentence": short(pair.sentence, limits.evidence),
        "compared": _compared(pair),
        "stale": [_stale(stale) for stale in pair.stale[: limits.items]],
        "blocks": blocks,
    }


def _compared(pair: Pair) -> str:
    told = []
    for what, count in pair.compared.items():
        noun = _WORDS.get(what, what)
        several = _PLURALS.get(what, f"{noun}s")
        told.append(f"{count} {noun if count == 1 else several}")
    return ", ".join(told)


def _stale(stale: Stale) -> str:
    return (
        f"{stale.id} says that {code(stale.path)} differs ({esc(stale.where)}), and it does not. "
        "Take the entry out, or narrow it."
    )


def _differences(
    title: str, differences: Sequence[Difference], pair: Pair, limits: Limits
) -> list[str]:
    if not differences:
        return []
    shown = differences[: limits.items]
    rows = [
        (
            ", ".join(d.ids) or "❌ **unexplained**",
            code_cell(short(d.path, limits.evidence)),
            _value(d.reference, limits),
            _value(d.other, limits),
        )
        for d in shown
    ]
    text = table(("explained by", "path", esc(pair.reference), esc(pair.other)), rows)
    if len(differences) > len(shown):
        text += f"\n\nand {len(differences) - len(shown)} more (compare.json has them all)"
    return [f"**{title}**", text]


def _value(value: str | None, limits: Limits) -> str:
    return NOTHING if value is None else esc(short(value, limits.evidence)) or "(empty)"


def _side_by_side(pair: Pair, limits: Limits) -> list[str]:
    if not pair.rows or not limits.main_rows:
        return []
    several = len({row.rollout for row in pair.rows}) > 1
    # Of many rollouts those with something to explain are looked at first.
    bad = {d.path.split(".")[1] for d in pair.unexplained if not d.path.startswith(_OBJECTS)}
    rows = sorted(pair.rows, key=lambda row: row.rollout not in bad)
    shown = rows[: max(limits.rows, limits.main_rows)]
    headers = ["rollout"] * several + ["phase"]
    for name in (pair.reference, pair.other):
        headers += [f"{esc(name)}: since change", "weight", "iterations", "pods"]
    text = table(headers, [_row(row, several=several) for row in shown])
    if len(rows) > len(shown):
        text += f"\n\n{len(rows) - len(shown)} of {len(rows)} rows are left out; compare.json has them all."
    note = "One row for each phase; pods as they were when their workload last was at rest in it."
    if len(shown) <= limits.main_rows:
        return ["**Side by side**", f"{note}\n\n{text}"]
    summary = html.escape(f"Side by side ({plural(len(shown), 'row')})")
    return [f"<details><summary>{summary}</summary>\n\n{note}\n\n{text}\n\n</details>"]


def _row(row: Row, *, several: bool) -> list[str]:
    cells = [esc(row.rollout)] * several + [esc(row.phase)]
    for visit in (row.reference, row.other):
        cells += _visit(visit)
    return cells


def _visit(visit: Visit | None) -> list[str]:
    if visit is None:
        return [NOTHING] * 4
    pods = [f"{esc(role)}: {esc(where)}" for role, where in visit.placements.items()]
    return [
        since(visit.since_change),
        ", ".join(map(str, visit.weights)),
        ", ".join(map(str, visit.iterations)),
        "<br>".join(pods) or NOTHING,
    ]


def since(seconds: float | None) -> str:
    """Return a moment as seen from the change: `+9.8 s`, or `-20.3 s` before it."""
    if seconds is None:
        return NOTHING
    return f"{'+' if seconds >= 0 else '-'}{span(abs(seconds))}"
