"""A run: several drills, side by side where they can share a cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.clusters.base import ChoiceError, ClusterError
from harness.kube.errors import KubeError
from harness.model.outcome import ExitCode, combine
from harness.model.report import RunReport
from harness.run import artefacts
from harness.run.drill import run_drill
from harness.run.objects import RefusedError
from harness.run.pool import Pool, key_of
from harness.run.signals import unless_stopped
from harness.scenario.problem import ScenarioError
from harness.subjects.base import SubjectError
from harness.subjects.select import make_subject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.model.report import DrillReport
    from harness.run.plan import Options, Plan
    from harness.run.signals import Stop

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
    groups: dict[object, list[Plan]] = {}
    for plan in plans:
        groups.setdefault(key_of(plan), []).append(plan)
    limit = asyncio.Semaphore(options.jobs)

    async def one(pool: Pool, plan: Plan) -> None:
        async with limit:
            if stop.event.is_set():
                return
            title = plan.name.title
            subject = make_subject(plan.subject)
            try:
                # While the cluster is opened, the subject's process can load already.
                await subject.warm_up()
                # Making a cluster takes seconds, its programs minutes: a signal does not wait for that.
                place = await unless_stopped(stop, pool.place(plan))
                if place is None:
                    return
                report = await run_drill(plan, place, subject, options.out / plan.name.folder)
            except EXPECTED_ERRORS as error:
                errors[title] = error
                return
            finally:
                await subject.stop()
            finished[title] = report

    for group in groups.values():
        if stop.event.is_set():
            break
        async with Pool(options, run, stop, say) as pool, asyncio.TaskGroup() as tasks:
            for plan in group:
                tasks.create_task(one(pool, plan))
    order = [plan.name.title for plan in plans]
    reports = tuple(finished[title] for title in order if title in finished)
    session = Session(
        RunReport(run, reports),
        errors=[f"{title}: {errors[title]}" for title in order if title in errors],
        misused=any(isinstance(error, ChoiceError | ScenarioError) for error in errors.values()),
        interrupted=stop.event.is_set(),
    )
    if reports:
        artefacts.write_run(options.out, session.report)
    return session
