"""A benchmark from its first subject to its report."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness import __version__
from harness.bench import output, population
from harness.bench.goals import goals
from harness.bench.model import BenchReport, Setup
from harness.bench.profiles import ProfiledBundled
from harness.bench.scene import scene
from harness.bench.storm import Storm
from harness.model.outcome import ExitCode, combine
from harness.run.redact import Redactor
from harness.run.session import EXPECTED_ERRORS
from harness.run.signals import unless_stopped
from harness.subjects.select import make_subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.bench.model import SubjectFigures
    from harness.bench.plan import StormPlan
    from harness.bench.scene import Scene
    from harness.model.timeline import ClusterFacts
    from harness.run.signals import Stop
    from harness.subjects.base import Subject


@dataclass(slots=True)
class Session:
    """What became of a benchmark."""

    run: str
    plan: StormPlan
    started: str
    figures: list[SubjectFigures] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Subjects that could not be measured to the end, one sentence each."""
    cluster: ClusterFacts | None = None
    interrupted: bool = False

    @property
    def report(self) -> BenchReport | None:
        """The report; None when nothing was measured."""
        if not self.figures or self.cluster is None:
            return None
        plan = self.plan
        setup = Setup(
            canaries=plan.canaries,
            interval=float(population.INTERVAL),
            iterations=population.ITERATIONS,
            idle=plan.idle,
            nodes=len(self.cluster.nodes),
            simulated=self.cluster.simulated,
            kubernetes=self.cluster.kubernetes,
            seed=plan.seed,
            harness=__version__,
            python=platform.python_version(),
            cores=len(os.sched_getaffinity(0)),
            profiled=plan.profile,
        )
        return BenchReport(
            run_id=self.run,
            started_at=self.started,
            ended_at=_utc(),
            setup=setup,
            subjects=tuple(self.figures),
            goals=goals(self.figures),
            reproduce=plan.reproduce,
            interrupted=self.interrupted,
        )

    @property
    def exit_code(self) -> ExitCode:
        """The one exit code of the benchmark."""
        report = self.report
        codes = [] if report is None else [report.exit_code]
        codes += [ExitCode.ERROR] * bool(self.errors)
        codes += [ExitCode.INTERRUPTED] * self.interrupted
        return combine(codes)


async def run_session(
    plan: StormPlan, run: str, *, stop: Stop, say: Callable[[str], None]
) -> Session:
    """Measure one subject after the other and write the report, after each of them anew.

    Returns also when a signal came or a subject could not be measured; its cluster is gone by then.
    """
    session = Session(run, plan, _utc())
    for name in plan.subjects:
        if stop.event.is_set():
            break
        try:
            await unless_stopped(stop, _measure(session, name, say))
        except EXPECTED_ERRORS as error:
            session.errors.append(f"{name}: {error}")
        session.interrupted = stop.event.is_set()
        if (report := session.report) is not None:
            output.write(plan.out, report)
    return session


async def _measure(session: Session, name: str, say: Callable[[str], None]) -> None:
    plan = session.plan
    subject: Subject = make_subject(name)
    if plan.profile and name == "bundled":
        subject = ProfiledBundled()
    await subject.obtain(say)
    # A cluster of its own, made for it alone: what an earlier subject left in the caches of an API server would be its gain.
    async with scene(subject, plan, session.run, say) as place:
        session.cluster = place.cluster.facts
        try:
            if isinstance(subject, ProfiledBundled):
                subject.folder = place.private
            storm = Storm(place, subject, plan, say)
            try:
                await storm.run()
            finally:
                # Also what an interrupted storm has measured by then: at a thousand rollouts that took a quarter of an hour.
                figures = storm.figures
                if figures.stages or figures.problems:
                    session.figures.append(figures)
        except Exception:
            _keep_log(plan, name, place)
            raise
        if figures.problems:
            _keep_log(plan, name, place)


def _keep_log(plan: StormPlan, name: str, place: Scene) -> None:
    """Save the subject's log, which says why something went wrong. The subject knows its token and may have logged it."""
    if place.log.exists():
        redactor = Redactor()
        redactor.learn_value(place.token)
        text = place.log.read_text(encoding="utf-8", errors="replace")
        output.write_log(plan.out, name, redactor.text(text))


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
