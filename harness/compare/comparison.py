"""From recordings to a comparison. Pure: the same recordings and table always give the same, and no cluster is asked anything."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from harness.compare.classify import Names, classify, names_of
from harness.compare.difference import Differ
from harness.compare.model import Comparison, DrillComparison, Pair, Side
from harness.compare.normal import normal_form
from harness.model.outcome import Outcome
from harness.report.text import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.compare.classify import Classified
    from harness.compare.normal import Normal
    from harness.compare.table import Table
    from harness.model.timeline import Timeline


class CompareError(ValueError):
    """Recordings that cannot be compared with each other; the message says why."""


def compare(
    sets: Sequence[Sequence[Timeline]],
    table: Table,
    *,
    reproduce: str,
    problems: Sequence[str] = (),
) -> Comparison:
    """Compare recordings: a set for each subject, the reference first, with a recording of each scenario in it.

    `problems` are drills that have no recording. A scenario that not every subject has is left out, and is a problem too.
    Raises CompareError for recordings of different scenarios under one name, or of one scenario twice in a set.
    """
    forms = [_by_scenario(timelines) for timelines in sets]
    subjects = _titles([next(iter(form.values())).subject if form else "?" for form in forms])
    missing = list(problems)
    drills: list[DrillComparison] = []
    for scenario in dict.fromkeys(name for form in forms for name in form):
        lacking = [s for s, form in zip(subjects, forms, strict=True) if scenario not in form]
        if lacking:
            # A drill that did not begin is told already.
            if not problems:
                missing.append(f"{scenario}: there is no recording with {', '.join(lacking)}")
            continue
        drills.append(_drill([form[scenario] for form in forms], subjects, table))
    return Comparison(subjects, tuple(drills), reproduce, tuple(missing))


def _by_scenario(timelines: Sequence[Timeline]) -> dict[str, Normal]:
    found: dict[str, Normal] = {}
    for timeline in timelines:
        form = normal_form(timeline)
        name = form.report.scenario.id
        if name in found:
            msg = f"two recordings of {name} with {form.subject}; compare them one at a time"
            raise CompareError(msg)
        found[name] = form
    return found


def _titles(names: Sequence[str]) -> tuple[str, ...]:
    seen: Counter[str] = Counter()
    titles = []
    for name in names:
        seen[name] += 1
        titles.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(titles)


def _drill(forms: Sequence[Normal], subjects: Sequence[str], table: Table) -> DrillComparison:
    first = forms[0].report.scenario
    for form in forms[1:]:
        facts = form.report.scenario
        if facts.digest != first.digest or facts.values != first.values:
            what = "other values" if facts.digest == first.digest else "another scenario file"
            msg = f"{first.id}: {form.subject} was drilled with {what} than {forms[0].subject}; the scenario must be the same"
            raise CompareError(msg)
    pairs = [
        _pair((forms[0], subjects[0]), (form, subject), table)
        for form, subject in zip(forms[1:], subjects[1:], strict=True)
    ]
    sides = [_side(form, subject) for form, subject in zip(forms, subjects, strict=True)]
    return DrillComparison(first, tuple(sides), tuple(pairs))


def _side(form: Normal, subject: str) -> Side:
    report = form.report
    return Side(
        subject=subject,
        run_id=report.run_id,
        drill_id=report.drill_id,
        started_at=report.started_at,
        environment=report.environment,
        outcome=report.verdict.outcome,
        as_expected=report.verdict.as_expected,
        exit_code=report.verdict.exit_code,
        sentence=report.verdict.sentence,
        reproduce=report.reproduce,
    )


def _pair(reference: tuple[Normal, str], other: tuple[Normal, str], table: Table) -> Pair:
    (mine, my_title), (theirs, their_title) = reference, other
    differ = Differ(mine, theirs)
    names = Names(names_of(mine.subject, mine.version), names_of(theirs.subject, theirs.version))
    classified = classify(differ.differences, table, mine.report.scenario.id, names)
    holes = [
        (form.incomplete, title)
        for form, title in (reference, other)
        if form.incomplete is not None
    ]
    if holes:
        outcome = min((hole[0] for hole, _ in holes), key=list(Outcome).index)
        told = "; ".join(f"{title}: {hole[1]}" for hole, title in holes)
        sentence = f"Not comparable: {told.rstrip('.')}."
        if any(why is Outcome.UNSUPPORTED for (why, _), _ in holes):
            # One of the two did nothing at all, and all that the other did would be a difference.
            return Pair(my_title, their_title, outcome, sentence)
    else:
        outcome, sentence = _conclusion(classified)
    return Pair(
        reference=my_title,
        other=their_title,
        outcome=outcome,
        sentence=sentence,
        differences=classified.differences,
        used=classified.used,
        stale=() if holes else classified.stale,
        compared=dict(differ.compared),
        rows=tuple(differ.rows),
    )


def _conclusion(classified: Classified) -> tuple[Outcome, str]:
    unexplained = [d for d in classified.differences if not d.documented]
    documented = len(classified.differences) - len(unexplained)
    known = (
        f"{plural(documented, 'difference')} documented ({', '.join(u.id for u in classified.used)})"
        if documented
        else "no documented difference"
    )
    bad = []
    if unexplained:
        bad.append(f"{plural(len(unexplained), 'unexplained difference')}")
    if classified.stale:
        bad.append(f"{plural(len(classified.stale), 'documented difference')} not found")
    if bad:
        return Outcome.FAIL, f"{' and '.join(bad)}; {known}."
    if documented:
        return Outcome.PASS, f"No unexplained difference; {known}."
    return Outcome.PASS, "No difference."
