"""The timeline on disk, written as it comes, so that a killed run still has its evidence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Self

from harness.model.timeline import (
    PRECISION,
    Header,
    ObjectSeen,
    Observation,
    dump,
    dump_header,
)

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from harness.run.anonymise import Anonymiser
    from harness.run.redact import Redactor


class TimelineFile:
    """An open timeline: the header first, then one line per observation, each flushed.

    Everything but recorded objects, which the recorder has redacted, is redacted here: steps'
    details, errors, and the scenario in the header. Raises FileExistsError for a file that is there
    already, since it is somebody's evidence. With `anonymiser` the lines are anonymised as well.
    """

    def __init__(
        self,
        path: Path,
        header: Header,
        redactor: Redactor,
        anonymiser: Anonymiser | None = None,
    ) -> None:
        self.path = path
        self._redactor = redactor
        self._anonymiser = anonymiser
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("x", encoding="utf-8", newline="\n")
        self.header = dataclasses.replace(
            header,
            scenario=redactor.json(header.scenario),
            reproduce=redactor.text(header.reproduce),
        )
        if anonymiser is not None:
            self.header = anonymiser.header(self.header)
        self._line(dump_header(self.header))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def append(self, observation: Observation) -> Observation:
        """Write one observation, and return it as it was written."""
        # Rounded as the line is: a verdict of the run and one of its file must not differ in a millisecond.
        observation = dataclasses.replace(observation, t=round(observation.t, PRECISION))
        written = redacted_observation(observation, self._redactor)
        if self._anonymiser is not None:
            written = self._anonymiser.observation(written)
        self._line(dump(written))
        return written

    def close(self) -> None:
        """Close the file; closing twice does no harm."""
        self._file.close()

    def _line(self, line: str) -> None:
        # One write per line: a reader, or a kill in between, sees whole lines or a cut-off last one.
        self._file.write(line + "\n")
        self._file.flush()


def redacted_observation(observation: Observation, redactor: Redactor) -> Observation:
    """Return an observation without secrets; a recorded object is taken as redacted already."""
    if isinstance(observation, ObjectSeen):
        return observation
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(observation):
        value = getattr(observation, field.name)
        if isinstance(value, str):
            changed[field.name] = redactor.text(value)
        elif isinstance(value, tuple):
            changed[field.name] = tuple(redactor.json(list(value)))
    return dataclasses.replace(observation, **changed)
