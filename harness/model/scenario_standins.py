"""Types of what stands outside the cluster, as they stand in a scenario file."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from harness.model.duration import Duration  # noqa: TC001 - pydantic reads annotations at run time
from harness.model.standins import (
    ABSENT,
    LEAST_STATUS,
    MOST_STATUS,
    NAN,
    OPEN,
    RATE,
    SERIES,
    SERVER_WORDS,
    WORDS,
    parse_answer,
    parse_change,
    parse_value,
)

GATE_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_STATUS: Final = {"type": "integer", "minimum": LEAST_STATUS, "maximum": MOST_STATUS}
_NUMBER: Final = {"type": "number"}


def _one_of(scalar: dict[str, Any], *choices: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [scalar, *choices]})


Answer = Annotated[
    str, BeforeValidator(parse_answer), _one_of(_STATUS, {"type": "string", "enum": [*WORDS]})
]
"""What a gate answers; validated it is a text (`harness.model.standins.parse_answer`)."""
_GROWS: Final = {"type": "string", "pattern": f"^{RATE.pattern}$"}
Value = Annotated[
    str,
    BeforeValidator(parse_value),
    _one_of(_NUMBER, {"type": "string", "enum": [NAN, ABSENT]}, _GROWS),
]
"""The value of a metric; validated it is a text."""
Change = Annotated[
    str,
    BeforeValidator(parse_change),
    _one_of(_NUMBER, {"type": "string", "enum": [NAN, ABSENT, *SERVER_WORDS]}, _GROWS),
]
"""What a step makes of a metric; validated it is a text."""
GateName = Annotated[str, Field(pattern=GATE_NAME, max_length=40)]
Series = Annotated[str, Field(pattern=SERIES, max_length=400)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class AnswerSpec(_Model):
    """What a gate answers."""

    answer: Answer = Field(
        default=OPEN,
        description="`open` (200), `closed` (403), `hang` (takes the call and never answers), or a status.",
        examples=["closed"],
    )
    body: str = Field(default="", description="Body of each answer.", examples=["no capacity"])
    delay: Duration | None = Field(
        default=None, description="How long each answer takes.", examples=["2s"]
    )
    first: list[Answer] = Field(
        default=[],
        description="What the first calls get, one each, before it stays with `answer`.",
        examples=[[503, 503]],
    )


class ReceiverSpec(_Model):
    """The HTTP server that webhooks and alerts go to."""

    gates: dict[GateName, AnswerSpec] = Field(
        default={},
        description="What is answered at `{{ receiver }}/gate/NAME`; any other name gets 404.",
        examples=[{"approve": {"answer": "closed"}, "smoke": {"first": [503]}}],
    )
    alerts: dict[GateName, AnswerSpec] = Field(
        default={},
        description="The same for alerts, at `{{ receiver }}/alerts/NAME` and below; their texts are recorded.",
        examples=[{"team": {}}],
    )


class GateSpec(AnswerSpec):
    """Changes what a gate answers from now on."""

    name: str = Field(
        pattern=GATE_NAME,
        description="Which one, of `spec.receiver.gates` or `.alerts`.",
        examples=["approve"],
    )
