"""A run: several drills, side by side where they can share a cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.checks.refusals import explained
from harness.clusters.base import ChoiceError, ClusterError
from harness.kube.errors import KubeError
from harness.model.outcome import ExitCode, combine
from harness.model.report import RunReport
from harness.run import artefacts
from harness.run.casting import Casting
from harness.run.drill import run_drill
from harness.run.matrix import of_run
from harness.run.objects import RefusedError
from harness.run.pool import Key, Pool, key_of
from harness.run.signals import unless_stopped
from harness.scenario.problem import ScenarioError
from harness.subjects.base import SubjectError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness.model.report import DrillReport
    from harness.report.matrix_model import Matrix
    from harness.run.plan import Options, Plan
    from harness.run.signals import Stop
    from harness.subjects.base import Subject

EXPECTED_ERRORS = (ClusterError, KubeError, RefusedError, ScenarioError, SubjectError, OSError)
"""What a cluster or a machine can do to a run; anything else is a bug of ours and keeps its traceback."""


@dataclass(slots=True)
class Session:
    """What became of a run."""

    report: RunReport
    errors: list[str] = field(default_factory=list)
    """Drills that never began, one sentence each."""
    misused: bool = False
    """Whether one of them did not because of what the user asked for."""
    interrupted: bool = False
    matrix: Matrix | None = None
    """Its drills as tables, where values were varied."""

    @property
    def exit_code(self) -> ExitCode:
        """The one exit code of the run."""
        codes = [drill.verdict.exit_code for drill in self.report.drills]
        codes += [ExitCode.USAGE if self.misused else ExitCode.ERROR] * bool(self.errors)
        codes += [ExitCode.INTERRUPTED] * self.interrupted
        return combine(codes)


async def run_session(
    plans: Sequence[Plan],
    options: Options,
    run: str,
    *,
    stop: Stop,
    say: Callable[[str], None],
) -> Session:
    """Run all `plans` and write the run's report; `say` takes lines of progress.

    Returns even when drills could not begin or a signal came; what they made is removed by then.
    """
    finished: dict[str, DrillReport] = {}
    errors: dict[str, Exception] = {}
    casting = Casting(say)
    groups = await _grouped(plans, casting, stop, errors)
    # In one namespace names can be used once only, and a controller acts on all that it finds there.
    limit = asyncio.Semaphore(1 if options.namespace else options.jobs)

    async def one(pool: Pool, plan: Plan) -> None:
        async with limit:
            if stop.event.is_set():
                return
            title = plan.name.title
            subjects: list[Subject] = []
            try:
                subjects = await casting.subjects(plan)
                first, *later = subjects
                # While the cluster is opened, the subject's process can load already.
                await first.warm_up()
                # Making a cluster takes seconds, its programs minutes: a signal does not wait for that.
                place = await unless_stopped(stop, pool.place(plan))
                if place is None:
                    return
                folder = options.out / plan.name.folder
                report = await run_drill(plan, place, first, folder, later=later)
            except EXPECTED_ERRORS as error:
                errors[title] = error
                return
            finally:
                for subject in subjects:
                    await subject.stop()
            finished[title] = report

    for group in groups.values():
        if stop.event.is_set():
            break
        pooled = Pool(options, run, stop, say, casting)
        async with pooled as pool, asyncio.TaskGroup() as tasks:
            for plan in group:
                tasks.create_task(one(pool, plan))
    order = [plan.name.title for plan in plans]
    reports = tuple(finished[title] for title in order if title in finished)
    session = Session(
        RunReport(run, reports),
        errors=[f"{title}: {explained(str(errors[title]))}" for title in order if title in errors],
        misused=any(isinstance(error, ChoiceError | ScenarioError) for error in errors.values()),
        interrupted=stop.event.is_set(),
        matrix=of_run(plans, finished, errors) if reports else None,
    )
    _write(options.out, session)
    return session


def _write(folder: Path, session: Session) -> None:
    if session.report.drills:
        artefacts.write_run(folder, session.report)
    if session.matrix is not None:
        artefacts.write_matrix(folder, session.matrix)


async def _grouped(
    plans: Sequence[Plan], casting: Casting, stop: Stop, errors: dict[str, Exception]
) -> dict[Key, list[Plan]]:
    """Obtain the subjects of all drills, and return the drills by the cluster they need; without those that are in `errors` then."""
    groups: dict[Key, list[Plan]] = {}
    for plan in plans:
        try:
            # Builds take minutes: a signal does not wait for them.
            if await unless_stopped(stop, casting.subjects(plan)) is None:
                break
        except EXPECTED_ERRORS as error:
            errors[plan.name.title] = error
            continue
        groups.setdefault(key_of(plan, casting.digest(plan)), []).append(plan)
    return groups
