"""Types of what a scenario observes and decides, as they stand in the file."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import ConfigDict, Field

from harness.model.duration import Duration  # noqa: TC001 - pydantic reads annotations at run time
from harness.model.scenario_steps import Model

KINDS: Final = ("eventually", "always", "never")
"""The kinds of checks; a check is exactly one of them."""
END: Final = "end"
"""The moment at which the last step is over."""
SETTLED: Final = "settled"
"""The moment at which the settle time is over."""
RESERVED_MOMENTS: Final = (END, SETTLED)
"""Names that no step may have."""
RECORDABLE: Final = ("primary", "target", "primary-pod", "target-pod", "rollout")
"""Objects that a record can name by what they are to the rollout."""
RECORD_OBJECT: Final = (
    rf"^({'|'.join(RECORDABLE)}|[A-Z][A-Za-z0-9]*/[a-z0-9]([-.a-z0-9]*[a-z0-9])?)$"
)
BUILT_IN_CHECKS: Final[dict[str, str]] = {
    "steps-completed": "Every step's `until` held in time.",
    "ends-in": "Every rollout's last phase is the expected one.",
    "settled": "Nothing changed any more during the settle time.",
    "recorded": "Everything that the scenario wants recorded was found.",
    "one-controller": "No other controller wrote a rollout's status (told only where one did).",
    "nothing-forbidden": "The API server refused nothing to the controller under test.",
    "nothing-left": "Nothing that the drill created is left.",
}
"""Ids of the checks that every drill has; no check of a scenario may use them."""
VERDICT: Final = "verdict"
"""In `doneWhen.by`: the drill has a verdict that can be posted, i.e. it is neither an error nor unknown."""

Phase = Literal[
    "Initializing",
    "Initialized",
    "Waiting",
    "Progressing",
    "WaitingPromotion",
    "Promoting",
    "Finalising",
    "Succeeded",
    "Failed",
    "Frozen",
    "Terminating",
    "Terminated",
]
ANALYSED: Final[frozenset[str]] = frozenset({"Progressing", "WaitingPromotion"})
"""Phases in which an analysis is under way, and in which a limit on analyses counts it."""
ExpectedPhase = Literal[Phase, "any"]


class ExpectSpec(Model):
    """How a drill should end."""

    phase: ExpectedPhase | None = Field(
        default=None,
        description="Phase in which every rollout should end; Succeeded unless given. `any`: the checks decide.",
        examples=["Failed"],
    )
    fail: list[str] | None = Field(
        default=None,
        description="Ids of the checks that must fail, for a control; all others must pass.",
        examples=[["never-blocked"]],
    )


class CheckSpec(Model):
    """One statement over everything observed: exactly one of `eventually`, `always`, `never`."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [kind]} for kind in KINDS]},
    )

    id: str = Field(
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        max_length=60,
        description="Id of the check, unique, in lower case with dashes.",
        examples=["never-blocked"],
    )
    title: str = Field(
        default="",
        description="The statement as a sentence for the report; the id in words unless given.",
        examples=["No pod was ever blocked"],
    )
    when: bool = Field(
        default=True,
        description="Whether there is such a check at all; a template makes it depend on values. A line of `doneWhen` that needs a "
        "check which is left out is left out too.",
        examples=["{{ looks > 0 }}"],
    )
    eventually: str | None = Field(
        default=None,
        min_length=1,
        description="CEL: must be true at some moment.",
        examples=["pods.all(p, p.ready)"],
    )
    always: str | None = Field(
        default=None,
        min_length=1,
        description="CEL: must be true all the time.",
        examples=["primary.ready >= 1"],
    )
    never: str | None = Field(
        default=None,
        min_length=1,
        description="CEL: must not be true at any moment.",
        examples=["pods.exists(p, p.unschedulable)"],
    )
    from_: str | None = Field(
        default=None,
        alias="from",
        description="From when: the name of a step (when its `until` held) or `end`; "
        "the first observation unless given.",
        examples=["initialise"],
    )
    until: str | None = Field(
        default=None,
        description="Until when: the name of a step (when its `until` held), `end` (the last step is over) "
        "or `settled` (the settle time is over); `settled` unless given.",
        examples=["end"],
    )
    for_: Duration | None = Field(
        default=None,
        alias="for",
        description="The expression counts only when it holds without a break for longer than this; "
        "0s unless given, which means any moment.",
        examples=["5s"],
    )
    otherwise: Literal["fail", "unknown"] = Field(
        default="fail",
        description="What becomes of the check when it does not hold. `unknown` is for a check that says whether the others mean "
        "anything; then the drill has no verdict.",
        examples=["unknown"],
    )


class RecordSpec(Model):
    """A part of an object that the report quotes."""

    title: str = Field(min_length=1, description="Heading in the report.", examples=["The term"])
    object: str = Field(
        pattern=RECORD_OBJECT,
        description="Which object: `primary`, `target`, `primary-pod`, `target-pod`, `rollout`, or `Kind/name`.",
        examples=["primary"],
    )
    path: str = Field(
        default="",
        description="Dotted path of the part; the whole object unless given.",
        examples=["spec.template.spec.affinity"],
    )
    at: list[str] = Field(
        default=["end"],
        min_length=1,
        description="When: names of steps (when their `until` held) or `end`.",
        examples=[["initialise", "end"]],
    )


class DoneWhenSpec(Model):
    """One line of the list that says when the question is answered."""

    text: str = Field(
        min_length=1, description="The line.", examples=["The term on the primary is recorded."]
    )
    by: list[str] = Field(
        min_length=1,
        description="Ids of the checks that must pass for it, the built-in ones and `verdict` included.",
        examples=[["recorded"]],
    )
