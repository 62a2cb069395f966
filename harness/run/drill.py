"""One drill, from its namespace to its report.

    1. a fresh namespace, the subject's service account and rights in it
    2. the recorder's watches, and the subject, both under way at the same time
    3. preconditions: features, number of nodes
    4. the steps, then the settle time
    5. a first report, as soon as there is something to read
    6. teardown, with the subject still alive for its finalizers, and the listing that proves it
    7. the report, whole

Whatever happens from 2 on, a signal included, 5 to 7 follow.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from harness import __version__
from harness.checks.judge import judge
from harness.kube.client import KubeClient
from harness.kube.errors import KubeError
from harness.model.features import FEATURES
from harness.model.timeline import (
    Header,
    HarnessError,
    Interrupted,
    Missing,
    Precondition,
    Settled,
    SubjectState,
    Timeline,
)
from harness.run import access, artefacts
from harness.run.identity import labels
from harness.run.live import Live
from harness.run.namespace import make_namespace
from harness.run.objects import Maker, RefusedError
from harness.run.recorder import Recorder
from harness.run.redact import Redactor
from harness.run.removal import remove_drill
from harness.run.steps import run_steps
from harness.run.timeline_file import TimelineFile
from harness.run.verbs.context import Context
from harness.scenario.manifests import DrillContext, render
from harness.scenario.problem import ScenarioError
from harness.subjects.base import Access, Subject, SubjectError, SubjectEvent
from harness.subjects.select import make_subject

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.report import DrillReport
    from harness.model.timeline import JSON
    from harness.run.journal import Entry
    from harness.run.place import Place
    from harness.run.plan import Plan

SYNCED_WITHIN: Final = 30.0
"""Seconds for the first list of every watched kind; it takes some tenths of one."""


@dataclass(slots=True)
class _Drill:
    """The parts of a drill under way."""

    plan: Plan
    place: Place
    client: KubeClient
    redactor: Redactor
    subject: Subject
    folder: Path
    namespace: Entry
    live: Live
    maker: Maker
    manifests: dict[str, list[JSON]] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        """The subject's raw log, in the private folder."""
        return self.place.private / f"{self.plan.name.folder}.log"

    def notify(self, event: SubjectEvent, detail: str) -> None:
        """Note something about the subject's process."""
        self.live.observe(SubjectState(self.live.now(), event, detail))


async def run_drill(plan: Plan, place: Place, folder: Path) -> DrillReport:
    """Run one drill and return its report; every output is in `folder` by then.

    Raises KubeError or RefusedError only when not even a namespace could be made; then nothing was.
    """
    agent = f"rollout-drill/{__version__} {plan.name.title}"
    cluster = place.cluster
    client = await KubeClient.connect(cluster.kubeconfig, cluster.context, user_agent=agent)
    async with client:
        drill = await _open(plan, place, folder, client)
        recorder = Recorder(
            client, drill.live.header, drill.live.observe, drill.redactor, drill.live.now
        )
        recording = asyncio.create_task(recorder.run())
        try:
            await _guarded(drill, recorder)
        finally:
            recording.cancel()
            await asyncio.gather(recording, return_exceptions=True)
        return await _finish(drill)


async def _open(plan: Plan, place: Place, folder: Path, client: KubeClient) -> _Drill:
    marks = labels(place.run, plan.name.label)
    namespace = await make_namespace(client, place.journal, marks, plan.resolved.name)
    place.namespaces.add(namespace.key.name)
    redactor = Redactor(salt=namespace.key.name)
    context = DrillContext(namespace.key.name, place.run)
    manifests: dict[str, list[JSON]] = {}
    for manifest in render(plan.resolved, plan.folder, context):
        manifests.setdefault(manifest.file, []).append(manifest.object)
    # Before anything is written, so that no secret of theirs reaches an output even once.
    redactor.learn([obj for objects in manifests.values() for obj in objects])
    subject = make_subject(plan.subject)
    header = Header(
        run_id=place.run,
        drill_id=plan.name.title,
        namespace=namespace.key.name,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        harness=__version__,
        scenario=redactor.json(plan.resolved.to_json()),
        subject=subject.facts,
        cluster=place.cluster.facts,
        reproduce=redactor.text(plan.reproduce),
    )
    file = TimelineFile(folder / artefacts.TIMELINE, header, redactor)
    live = Live(header, file, time.monotonic())
    maker = Maker(client, place.journal, marks)
    return _Drill(
        plan, place, client, redactor, subject, folder, namespace, live, maker, manifests
    )


async def _guarded(drill: _Drill, recorder: Recorder) -> None:
    """Run the drill's own part until it is over or a signal comes; whatever ends it early becomes an observation."""
    live, stop = drill.live, drill.place.stop
    work = asyncio.create_task(_observe(drill, recorder))
    signalled = asyncio.create_task(stop.event.wait())
    await asyncio.wait((work, signalled), return_when=asyncio.FIRST_COMPLETED)
    signalled.cancel()
    if not work.done():
        work.cancel()
        live.observe(Interrupted(live.now(), stop.signal_name))
    try:
        await asyncio.gather(work)
    except asyncio.CancelledError:
        pass
    except Exception as error:  # noqa: BLE001 - reported as what it is: the harness or the cluster broke
        message = "; ".join(_messages(error))
        live.observe(HarnessError(live.now(), message))


def _messages(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [text for part in error.exceptions for text in _messages(part)]
    told = isinstance(error, KubeError | RefusedError | SubjectError | ScenarioError)
    return [str(error) if told else f"{type(error).__name__}: {error}"]


async def _observe(drill: _Drill, recorder: Recorder) -> None:
    live = drill.live
    resolved = drill.plan.resolved
    if missing := _missing(drill):
        for observation in missing:
            live.observe(observation)
        return
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_prepare_subject(drill))
        tasks.create_task(_synced(recorder))
    if not _precondition(drill):
        return
    context = Context(
        client=drill.client,
        maker=drill.maker,
        live=live,
        namespace=drill.namespace.key.name,
        manifests=drill.manifests,
        subject=drill.subject,
        start_subject=lambda: _start_subject(drill),
    )
    if await run_steps(context, resolved.steps):
        live.observe(Settled(live.now(), "begin"))
        await asyncio.sleep(resolved.settle)
        live.observe(Settled(live.now(), "end"))


def _missing(drill: _Drill) -> list[Missing]:
    """Return what the scenario requires and the subject or the cluster has not."""
    cluster, subject = drill.place.cluster.facts, drill.subject.facts
    having = {
        "subject": (subject.capabilities, f"subject {subject.name}"),
        "cluster": (cluster.capabilities, f"cluster {cluster.name}"),
    }
    missing = []
    for side, (capabilities, who) in having.items():
        needed = [f for f in drill.plan.resolved.requires if side in FEATURES[f].of]
        lacking = tuple(f for f in needed if f not in capabilities)
        if lacking:
            missing.append(Missing(drill.live.now(), lacking, who))
    return missing


async def _synced(recorder: Recorder) -> None:
    async with asyncio.timeout(SYNCED_WITHIN):
        await recorder.synced()


def _precondition(drill: _Drill) -> bool:
    live = drill.live
    seen = [n["name"] for n in live.state.world().get("nodes", []) if n["ready"] and n["schedulable"]]
    # Without the right to list nodes, what the cluster said at the start must do.
    eligible = seen or list(drill.place.cluster.facts.nodes)
    wanted = drill.plan.resolved.nodes
    reason = f"{len(eligible)} eligible nodes"
    holds = True
    if wanted.count is not None:
        holds = len(eligible) == wanted.count
        reason += f", exactly {wanted.count} needed"
    elif wanted.min is not None:
        holds = len(eligible) >= wanted.min
        reason += f", at least {wanted.min} needed"
    live.observe(Precondition(live.now(), holds, reason))
    return holds


async def _prepare_subject(drill: _Drill) -> None:
    namespace = drill.namespace.key.name
    for obj in drill.subject.namespace_objects(namespace):
        await drill.maker.apply(obj, namespace)
    cluster = drill.place.cluster
    await access.write_kubeconfig(
        drill.client,
        admin=cluster.kubeconfig,
        context=cluster.context,
        namespace=namespace,
        service_account=drill.subject.service_account,
        target=_kubeconfig(drill),
    )
    await _start_subject(drill)


def _kubeconfig(drill: _Drill) -> Path:
    return drill.place.private / f"{drill.plan.name.folder}.kubeconfig"


async def _start_subject(drill: _Drill) -> None:
    given = Access(_kubeconfig(drill), drill.namespace.key.name, drill.log)
    await drill.subject.start(given, drill.notify)


async def _finish(drill: _Drill) -> DrillReport:
    """Write the first report, remove everything, and write the report again with what was left."""
    report = _judge(drill)
    artefacts.write_drill(drill.folder, report)
    if not (report.verdict.outcome == "pass"):
        artefacts.write_evidence(drill.folder, drill.live.observations, drill.log, drill.redactor)
    if drill.place.keep:
        await drill.subject.stop()
        return report
    try:
        drill.live.observe(await remove_drill(drill.client, drill.place, drill.namespace, drill.live))
    finally:
        await drill.subject.stop()
        with contextlib.suppress(OSError):
            _kubeconfig(drill).unlink(missing_ok=True)
    report = _judge(drill)
    artefacts.write_drill(drill.folder, report)
    return report


def _judge(drill: _Drill) -> DrillReport:
    return judge(Timeline(drill.live.header, tuple(drill.live.observations)))
