"""The report of a benchmark, as data. Markdown and JSON are derived from it.

Times are seconds, sizes are bytes. A *stage* is a part of the benchmark (`initialise all`, `idle`, …); a *phase* is what the
status of a rollout object says (`Progressing`, …).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.model.outcome import ExitCode, combine

FORMAT: Final = "drill-bench/1"
"""Format of the report."""
HARNESS: Final = "harness"
"""This process, among those that use the machine."""
OTHERS: Final = "everything else"
"""What does not belong to the benchmark, among those that use the machine."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How values are spread: the largest of the lower half, of the lower 95 %, and of all (nearest rank)."""

    count: int
    median: float
    p95: float
    largest: float


@dataclass(frozen=True, slots=True)
class RequestRow:
    """The requests of one verb for one resource."""

    verb: str
    """As the API server's audit log has it: get, list, watch, create, update, patch, delete, deletecollection."""
    resource: str
    """E.g. `deployments.apps` or `canaries.flagger.app/status`; the path for what is no resource."""
    count: int
    refused: int
    """Answered with a status of 400 or above."""
    seconds: float
    """Time that the API server spent on them altogether; for watches 0, since they stay open."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests that a subject sent in a stage."""

    total: int
    reads: int
    """Verbs get and list."""
    watches: int
    writes: int
    refused: int
    rows: tuple[RequestRow, ...]
    """Most frequent first."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the subject's processes took of the machine."""

    cpu: float
    """CPU seconds, user and system, children included."""
    rss_most: int
    """Largest resident size seen (looked at twice a second)."""
    rss_end: int
    """Resident size when the stage ended."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a part of the machine's work took."""

    name: str
    """A program of the control plane, `harness` (which makes the changes and watches), or `everything else`."""
    cpu: float
    """CPU seconds, user and system."""


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """How long the rollout objects were in a phase within a stage."""

    phase: str
    spread: Spread


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of the benchmark showed."""

    name: str
    """`initialise all`, `idle`, `promote all`, `upgrade` or `restart loop`."""
    seconds: float
    """From its begin to its end: for `initialise all` and `promote all` from the first change to the last object that ended."""
    ended: int
    """Rollout objects that were where the stage wants them, at its end."""
    unasked: int
    """Analyses that began although nothing had changed."""
    requests: Requests
    usage: Usage
    machine: tuple[Load, ...] = ()
    """Who else used the processors meanwhile."""
    changed: float | None = None
    """When the API server had acknowledged the last change, counted from the begin; None where nothing is changed."""
    detection: Spread | None = None
    """From the acknowledged change of a target to the phase in which its analysis runs, seen on a watch."""
    finish: Spread | None = None
    """From the acknowledged change of a target to the phase that the stage waits for."""
    phases: tuple[PhaseTime, ...] = ()
    starts: int = 0
    """Times the subject was stopped and started again."""
    looked: int | None = None
    """Rollout objects that the subject provably looked at after each start; None where it was not started."""
    looked_after: tuple[float, ...] = ()
    """Seconds from each start until that was so; or until we stopped waiting for it."""
    writes_by_start: tuple[int, ...] = ()
    """Writes after each start."""
    gaps: int = 0
    """Times that our own watch missed something, so that the counts of this stage are lower bounds."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """A function in a profile."""

    function: str
    """`module.py:line name`."""
    calls: int
    own: float
    """CPU seconds in the function itself."""
    whole: float
    """CPU seconds in it and what it called."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the CPU time of a stage went."""

    stage: str
    seconds: float
    """All CPU seconds of the profile; profiling makes them more than they are without."""
    own: tuple[ProfileRow, ...]
    """By own time, most first."""
    whole: tuple[ProfileRow, ...]
    """Functions of this package alone, by whole time, most first."""


@dataclass(frozen=True, slots=True)
class SubjectFigures:
    """Everything that was measured of one subject."""

    name: str
    version: str
    stages: tuple[Stage, ...]
    problems: tuple[str, ...] = ()
    """What went wrong, a sentence each; a stage that did not end has no successors."""
    profiles: tuple[Profile, ...] = ()

    def stage(self, name: str) -> Stage | None:
        """Return a stage by its name."""
        return next((stage for stage in self.stages if stage.name == name), None)


@dataclass(frozen=True, slots=True)
class Setup:
    """What all subjects of a benchmark had in common."""

    canaries: int
    interval: float
    iterations: int
    idle: float
    nodes: int
    simulated: str
    kubernetes: str
    seed: int
    harness: str
    python: str
    cores: int
    """Processors that this process may use: the control plane, the subject and the harness share them."""
    profiled: bool
    """Whether the bundled controller ran under a profiler, so that its times say nothing in comparison."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure that is wanted of a subject, as a ratio to the first one or by itself."""

    subject: str
    figure: str
    wanted: str
    reached: str
    met: bool


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The report of `drill bench storm`."""

    run_id: str
    started_at: str
    """UTC, ISO 8601."""
    ended_at: str
    setup: Setup
    subjects: tuple[SubjectFigures, ...]
    goals: tuple[Goal, ...]
    reproduce: str
    interrupted: bool = False
    format: str = FORMAT

    @property
    def exit_code(self) -> ExitCode:
        """Failed when something starved or began unasked; the goals are stated, not enforced: a busy machine would miss them."""
        bad = any(subject.problems for subject in self.subjects)
        codes = [ExitCode.FAILED if bad else ExitCode.OK]
        codes += [ExitCode.INTERRUPTED] * self.interrupted
        return combine(codes)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON types (schema: `harness/bench/bench-v1.json`)."""
        return {**_plain(self), "exit_code": int(self.exit_code)}


_DECIMALS: Final = 4


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, float):
        return round(value, _DECIMALS)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
