"""What the pytest plugin does once drills are asked for; apart from it, so that other test runs load nothing of it."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.checks.refusals import explained
from harness.clusters.base import ClusterError
from harness.model.names import CONTROLLER_IMAGE
from harness.report.summary import drill_lines
from harness.run import artefacts
from harness.run.chosen import choose, select_on
from harness.run.drill import run_drill
from harness.run.identity import run_id
from harness.run.plan import Options, Plan
from harness.run.pool import Pool
from harness.run.selection import check, needs_own_cluster, no_pod, subject_of
from harness.run.session import EXPECTED_ERRORS
from harness.run.signals import Stop, handled, unless_stopped
from harness.scenario.problem import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.model.report import DrillReport
    from harness.model.scenario import Resolved
    from harness.run.chosen import Chosen
    from harness.scenario.loaded import Loaded


def collect(config: pytest.Config, names: list[str] | None = None) -> list[Plan]:
    """Return one plan per scenario and variant that the options name.

    With a subject among the options those that name their own are not among them. Raises pytest.UsageError for a broken scenario,
    with every problem in it.
    """
    asked = config.getoption("--drill-subject")
    try:
        return [
            _plan(config, loaded, resolved)
            for loaded, resolved in _selected(config, names or [])
            if asked is None or resolved.subject is None
        ]
    except (ClusterError, ScenarioError) as error:
        raise pytest.UsageError(str(error)) from error


def chosen_of(config: pytest.Config) -> Chosen:
    """Return what the options choose on a cluster that is not ours. Raises ChoiceError where they have no meaning."""
    given = config.getoption("--drill-image")
    return choose(
        str(config.getoption("--drill-cluster")),
        nodes=config.getoption("--drill-nodes"),
        node_selector=config.getoption("--drill-node-selector"),
        namespace=config.getoption("--drill-namespace"),
        image=given or os.environ.get("DRILL_IMAGE"),
        image_given=given is not None,
        prefix="--drill-",
    )


def _selected(
    config: pytest.Config,
    names: list[str],
    variants: list[str] | None = None,
    sets: Mapping[str, str] | None = None,
) -> list[tuple[Loaded, Resolved]]:
    """Return drills, with as many replicas as the cluster has nodes where a scenario wants that."""
    folders = [Path(folder) for folder in config.getoption("--drill-scenarios")]
    cluster = str(config.getoption("--drill-cluster"))
    return select_on(cluster, chosen_of(config), names, folders, variants or [], sets)


def _plan(config: pytest.Config, loaded: Loaded, resolved: Resolved) -> Plan:
    cluster = str(config.getoption("--drill-cluster"))
    subject = subject_of(resolved, config.getoption("--drill-subject"))
    line = ["drill", "run", resolved.name, "--variant", resolved.variant]
    line += ["--subject", subject] * (resolved.subject is None)
    line += ["--cluster", cluster, *chosen_of(config).arguments]
    image = os.environ.get(CONTROLLER_IMAGE, "")
    return Plan(resolved, loaded.folder, subject, cluster, shlex.join(line), image)


class DrillRunner:
    """Runs drills from synchronous tests, on clusters that live as long as the session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        # Under xdist all workers write into one folder; every worker has a run of its own for what it makes.
        shared = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
        self._run = run_id()
        given = config.getoption("--drill-out")
        out = (
            Path(given)
            if given
            else Path("drill-reports") / (f"pytest-{shared[:12]}" if shared else self._run)
        )
        place = chosen_of(config)
        self._options = Options(
            out=out.absolute(),
            cluster=str(config.getoption("--drill-cluster")),
            keep=bool(config.getoption("--drill-keep")),
            seed=int(config.getoption("--drill-seed")),
            binaries=str(config.getoption("--drill-binaries")),
            nodes=place.nodes,
            node_selector=place.node_selector,
            namespace=place.namespace,
            image=place.image,
        )
        self._loop = asyncio.Runner()
        self._stop: Stop | None = None
        self._pool: Pool | None = None

    def run(
        self, scenario: str, *, variant: str | None = None, sets: Mapping[str, str] | None = None
    ) -> DrillReport:
        """Run one variant of a scenario (by name or path) and return its report, whatever the verdict is."""
        chosen = _selected(self._config, [scenario], [variant] if variant else [], sets)
        if len(chosen) != 1:
            names = ", ".join(resolved.variant for _, resolved in chosen)
            msg = f"{scenario} has several variants ({names}); name one with variant="
            raise ValueError(msg)
        return self.run_plan(_plan(self._config, *chosen[0]))

    def run_plan(self, plan: Plan) -> DrillReport:
        """Run one plan; a signal ends the session after the drill has removed what it made."""
        report = self._loop.run(self._one(plan))
        if self._stop is not None and self._stop.event.is_set():
            pytest.exit(f"{self._stop.signal_name}: {report.verdict.sentence}", returncode=2)
        return report

    def must_pass(self, plan: Plan, request: pytest.FixtureRequest) -> DrillReport:
        """Run one plan and fail the test unless everything went as the scenario expects.

        Unsupported is skipped with its reason, never passed.
        """
        if plan.alone and plan.cluster != "embedded":
            pytest.skip(needs_own_cluster(plan))
        if plan.resolved.subject is not None and (why := no_pod(plan)):
            pytest.skip(why)
        try:
            report = self.run_plan(plan)
        except EXPECTED_ERRORS as error:
            pytest.fail(f"error: {explained(str(error))}", pytrace=False)
        path = self._options.out / plan.name.folder / artefacts.REPORT
        request.node.user_properties.append(("drill_verdict", "\n".join(drill_lines(report))))
        request.node.user_properties.append(("drill_report", str(path)))
        if report.verdict.outcome == "unsupported":
            pytest.skip(report.verdict.sentence)
        if report.verdict.exit_code:
            failed = [
                f"{f.id}: {f.outcome}: {f.evidence}"
                for f in report.findings
                if f.outcome != f.expected
            ]
            pytest.fail(
                "\n".join([report.verdict.sentence, *failed, f"report: {path}"]), pytrace=False
            )
        return report

    async def _one(self, plan: Plan) -> DrillReport:
        self._stop = self._stop or Stop()
        if self._pool is None:
            self._pool = await Pool(self._options, self._run, self._stop, _say).__aenter__()
        # Signals can only be handled in the main thread; elsewhere pytest's own handling has to do.
        if threading.current_thread() is not threading.main_thread():
            return await self._drill(plan)
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with handled(self._stop, _say):
                return await self._drill(plan)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def _drill(self, plan: Plan) -> DrillReport:
        assert self._pool is not None and self._stop is not None  # noqa: S101, PT018 - made by _one
        check(plan)
        subjects = await unless_stopped(self._stop, self._pool.casting.subjects(plan))
        try:
            if subjects:
                await subjects[0].warm_up()
            place = await unless_stopped(self._stop, self._pool.place(plan))
            if not subjects or place is None:
                pytest.exit(f"{self._stop.signal_name}: no drill had begun", returncode=2)
            first, *later = subjects
            folder = self._options.out / plan.name.folder
            return await run_drill(plan, place, first, folder, later=later)
        finally:
            for subject in subjects or ():
                await subject.stop()

    def close(self) -> None:
        """Remove the session's clusters and what its drills shared."""
        try:
            if self._pool is not None:
                self._loop.run(self._pool.__aexit__(None, None, None))
        finally:
            self._loop.close()


def _say(_line: str) -> None:
    """Progress has no place in pytest's output; the report has it all."""
