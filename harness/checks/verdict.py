"""The verdict of a drill: its outcome, whether that was expected, the exit code, and one sentence made from the findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.checks import builtin_steps, rollout
from harness.checks.builtin_trace import NOTHING_LEFT
from harness.checks.witness import ROLLOUT
from harness.model.clock import moment_of, span
from harness.model.outcome import ExitCode, Outcome, worst
from harness.model.report import Verdict

if TYPE_CHECKING:
    from harness.checks.phases import PhaseLog
    from harness.checks.rollout_log import RolloutLog
    from harness.model.report import Finding, Left, Recorded

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that a verdict is made from."""

    findings: tuple[Finding, ...]
    expected_failures: frozenset[str]
    left: Left
    phases: PhaseLog
    recorded: tuple[Recorded, ...]
    log: RolloutLog | None = None
    """Where there is more than one rollout."""

    @property
    def judged(self) -> tuple[Finding, ...]:
        """The findings about the drill itself: without the one about what it left, while teardown is not over."""
        pending = self.left.state == "pending"
        return tuple(f for f in self.findings if not (pending and f.id == NOTHING_LEFT))

    def of(self, outcome: Outcome) -> list[Finding]:
        """Return the findings of an outcome, what was left behind not among them: it is told apart."""
        return [f for f in self.findings if f.outcome is outcome and f.id != NOTHING_LEFT]

    @property
    def unexpected(self) -> list[Finding]:
        """Checks that failed although they should not."""
        return [f for f in self.of(Outcome.FAIL) if f.id not in self.expected_failures]

    @property
    def toothless(self) -> list[Finding]:
        """Checks that passed although the control says that they must fail."""
        return [f for f in self.of(Outcome.PASS) if f.id in self.expected_failures]

    @property
    def interrupted(self) -> Finding | None:
        """The finding about an interruption, if there was one."""
        return next((f for f in self.findings if f.id == builtin_steps.INTERRUPTED), None)


def verdict(case: Case) -> Verdict:
    """Return the verdict."""
    failing = {f.id for f in case.judged if f.outcome is Outcome.FAIL}
    others = [f.outcome for f in case.judged if f.id not in case.expected_failures]
    as_expected = (
        failing == case.expected_failures
        and bool(others)
        and all(outcome is Outcome.PASS for outcome in others)
    )
    phase, took = _final(case)
    return Verdict(
        outcome=worst(f.outcome for f in case.judged),
        as_expected=as_expected,
        control=bool(case.expected_failures),
        sentence=_sentence(case),
        exit_code=_exit_code(case, as_expected=as_expected),
        final_phase=phase,
        took=took,
    )


def _final(case: Case) -> tuple[str, float | None]:
    """Return the final phase (of several rollouts the one that all have), and the seconds from the change to it."""
    if case.log is not None:
        finals = list(case.log.finals())
        return finals[0] if len(finals) == 1 else "", case.log.took
    phase, since = case.phases.final
    change = case.phases.change_at
    if change is not None and phase in rollout.ENDED and since >= change:
        return phase, since - change
    return phase, None


def _exit_code(case: Case, *, as_expected: bool) -> ExitCode:
    if case.interrupted is not None:
        return ExitCode.INTERRUPTED
    if case.of(Outcome.ERROR):
        return ExitCode.ERROR
    if case.left.items:
        return ExitCode.LEFT_BEHIND
    if case.unexpected or case.toothless:
        return ExitCode.FAILED
    if as_expected and case.left.state != "pending":
        return ExitCode.OK
    return ExitCode.UNDECIDED


def _sentence(case: Case) -> str:
    text = _about_the_drill(case)
    if case.left.state == "pending":
        return f"{text} Teardown is in progress."
    if case.left.items:
        count = len(case.left.items)
        noun = "object was" if count == 1 else "objects were"
        return f"{text} {count} {noun} left behind."
    if case.left.state == "unlisted":
        return f"{text} Whether anything is left is unknown: {case.left.error}."
    return text


def _about_the_drill(case: Case) -> str:
    if case.interrupted is not None:
        text = case.interrupted.evidence
        seen = f"; seen before: {_each(case.unexpected)}" if case.unexpected else ""
        return f"{text[0].upper()}{text[1:]}{seen}."
    if errors := case.of(Outcome.ERROR):
        return f"Error: {_each(errors)}."
    if case.unexpected or case.toothless:
        return _failed(case)
    if undecided := [*case.of(Outcome.UNKNOWN), *case.of(Outcome.UNSUPPORTED)]:
        return f"{undecided[0].outcome.capitalize()}: {_each(undecided)}."
    if case.expected_failures:
        behaved = _each(case.of(Outcome.FAIL), "failed ")
        return f"As expected for this control: {behaved}; {_ending(case)}."
    return _clean(case)


def _failed(case: Case) -> str:
    parts = []
    if case.toothless:
        ids = ", ".join(f.id for f in case.toothless)
        parts.append(f"{ids} should have failed in this control and passed")
    if case.unexpected:
        parts.append(_each(case.unexpected))
    lead = "Not as expected for this control" if case.expected_failures else "Failed"
    ends = any(f.id == builtin_steps.ENDS_IN for f in case.unexpected)
    tail = "" if ends else f"; {_ending(case)}"
    return f"{lead}: {'; '.join(parts)}{tail}."


def _clean(case: Case) -> str:
    """Return the sentence for a drill in which every check passed: the checks' own titles are then true."""
    titles = [f.title for f in case.findings if not f.builtin and f.outcome is Outcome.PASS]
    said = [_lower(title) for title in titles[:_SHOWN]]
    said += [
        f"{_lower(entry.title)} is unchanged"
        for entry in case.recorded
        if entry.change == "unchanged"
    ]
    if len(titles) > _SHOWN:
        said.append(f"{len(titles) - _SHOWN} more checks passed")
    # Who reads the first word only must not take a drill that left something for a clean one.
    lead = "Clean but for what is left" if case.left.items else "Clean"
    return f"{lead}: {'; '.join([_ending(case), *said])}."


def _ending(case: Case) -> str:
    if case.log is not None:
        return _endings(case.log)
    phase, since = case.phases.final
    change = case.phases.change_at
    if not case.phases.seen:
        return "no rollout object was observed"
    if case.phases.gone_at is not None:
        return f"the rollout object is gone since {moment_of(case.phases.gone_at, change)}"
    if phase in rollout.ENDED and change is not None and since >= change:
        did = "was frozen" if phase == "Frozen" else phase
        return f"the promotion {did} {span(since - change)} after the change"
    where = f"was in phase {phase}" if phase else "had no phase"
    return f"the rollout {where} since {moment_of(since, change)}"


def _endings(log: RolloutLog) -> str:
    """Return how several rollouts ended, e.g. `all 100 rollouts Succeeded, the last one 12.3 s after the change`."""
    finals = log.finals()
    if len(finals) == 1:
        phase = next(iter(finals))
        text = f"all {len(log.names)} rollouts ended in {phase}"
    else:
        counts = ", ".join(f"{count} in {phase}" for phase, count in finals.items())
        text = f"of {len(log.names)} rollouts ended {counts}"
    if log.took is None:
        return text
    return f"{text}, the last one {span(log.took)} after the change"


def _each(findings: list[Finding], verb: str = "") -> str:
    shown = [f"{f.id} {verb}({_brief(f)})" for f in findings[:_SHOWN]]
    more = len(findings) - _SHOWN
    return "; ".join([*shown, f"{more} more checks"] if more > 0 else shown)


def _brief(finding: Finding) -> str:
    """Return a finding's evidence as short as one sentence bears: its first witness, and the first sentence of its message."""
    text = finding.evidence
    if finding.witnesses:
        first = finding.witnesses[0]
        head, _, rest = finding.evidence.partition(f": {ROLLOUT}")
        if rest:  # several rollouts: how many matters more than what any one of them was like
            return f"{head}, the first {first.text.removeprefix(ROLLOUT).rstrip('.')}"
        text = first.text.replace(first.message, first.message.split(". ", 1)[0])
        more = len(finding.witnesses) - 1
        text = f"{text.rstrip('.')}; and {more} more" if more else text
    kinds = "".join(f"{note.kind}: " for note in finding.notes)
    return kinds + text.rstrip(".")


def _lower(title: str) -> str:
    """Return a title for the middle of a sentence; one that begins with a name or an abbreviation keeps its capital."""
    title = title.rstrip(".")
    word = title.split(" ", 1)[0]
    return title[:1].lower() + title[1:] if word[1:].islower() or len(word) == 1 else title
