"""The section `traffic` of a scenario file."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from harness.model.duration import Duration  # noqa: TC001 - pydantic reads annotations at run time
from harness.model.traffic import HOSTNAME, MOST_PER_SECOND, RATE

_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_MOST_PORT: Final = 65535


class TrafficSpec(BaseModel):
    """Requests of a probe in the cluster."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    after: str | None = Field(
        default=None,
        description="The step with which it begins: that one is not over before the first request was answered. The first step unless given, "
        "which is before the change; it goes on until the settle time is over.",
        examples=["initialise"],
    )
    service: str | None = Field(
        default=None,
        pattern=_NAME,
        description="Which Service is asked; the one that clients of the rollout use (its apex) unless given. A name with dots is one of another "
        "namespace, e.g. of the gateway that an HTTPRoute belongs to; such a one needs `port`.",
        examples=["gateway.istio-system"],
    )
    port: int | None = Field(
        default=None,
        ge=1,
        le=_MOST_PORT,
        description="Port of the Service; its first one unless given.",
        examples=[80],
    )
    path: str = Field(
        default=HOSTNAME,
        pattern=r"^/\S*$",
        description="What is asked for. Who answered is known where the answer is the name of the pod, as at `/hostname` of our image and of agnhost.",
        examples=[HOSTNAME],
    )
    host: str | None = Field(
        default=None,
        pattern=_NAME,
        description="Host header, for gateways that tell routes apart by it.",
        examples=["web.example"],
    )
    rate: int = Field(
        default=RATE,
        ge=1,
        le=MOST_PER_SECOND,
        description=f"Requests per second, whether or not earlier ones are answered yet; at most {MOST_PER_SECOND}.",
        examples=[50],
    )
    timeout: Duration = Field(
        default=2.0,
        description="After which time a request has failed; 2s unless given.",
        examples=["1s"],
        json_schema_extra={"default": "2s"},
    )
    keep_alive: bool = Field(
        default=False,
        alias="keepAlive",
        description="Whether connections are used again. Unless they are, every request is balanced anew.",
        examples=[True],
    )
