"""One drill, from its namespace to its report.

    1. a fresh namespace; then the subject's service account and rights in it
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
from typing import TYPE_CHECKING, Final

from harness import __version__
from harness.checks.judge import judge
from harness.clusters.base import ClusterError
from harness.kube.client import KubeClient
from harness.kube.errors import KubeError
from harness.model.outcome import Outcome
from harness.model.timeline import HarnessError, Interrupted, Kept, Settled, Timeline
from harness.model.timeline_outside import StandIn
from harness.run import artefacts, cluster_logs, subjects
from harness.run.belonging import Belonging
from harness.run.beside import settle
from harness.run.installed import premises
from harness.run.objects import RefusedError
from harness.run.outside import Outside
from harness.run.parts import Parts, put_together
from harness.run.preconditions import can_reach, eligible_nodes, lacking_features, right_version
from harness.run.recorder import Recorder, WatchDied, served
from harness.run.removal import remove_drill
from harness.run.steps import run_steps
from harness.run.subjects import Subjects
from harness.run.traffic import TrafficProbe
from harness.run.verbs.context import Context
from harness.subjects.base import SubjectError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.model.report import DrillReport
    from harness.run.place import Place
    from harness.run.plan import Plan
    from harness.subjects.base import Subject

SYNCED_WITHIN: Final = 30.0
"""Seconds for the first list of every watched kind; it takes some tenths of one."""
COMPLETE_WITHIN: Final = 5.0
"""Seconds for the watches to catch up with the server at the end; beyond that it is recorded as a gap."""
PER_OBSERVATION: Final = 0.001
"""Seconds that each observation so far adds to that: hundreds of rollouts keep a busy machine behind for a while."""


async def run_drill(
    plan: Plan, place: Place, subject: Subject, folder: Path, *, later: Sequence[Subject] = ()
) -> DrillReport:
    """Run one drill and return its report; every output is in `folder` by then, and all subjects are stopped.

    `later` are the subjects that its steps upgrade to, one for each such step, in order; all are obtained already. Raises
    ScenarioError, KubeError or RefusedError only when not even a namespace could be made; then nothing was.
    """
    agent = f"rollout-drill/{__version__} {plan.name.title}"
    cluster = place.cluster
    client = await KubeClient.connect(cluster.kubeconfig, cluster.context, user_agent=agent)
    async with client:
        for one in (subject, *later):
            settle(plan, place, one)
            await one.look(client)
        data = place.private / f"{plan.name.folder}.prometheus"
        outside = Outside(plan.resolved, data, place.say)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(outside.close)
            await outside.open()
            every = Subjects((subject, *later))
            parts = await put_together(plan, place, every, folder, client, outside=outside)
            stack.enter_context(parts.file)
            live = parts.live
            outside.attach(live, parts.namespace.key.name)
            recorder = Recorder(
                client,
                live.header,
                live.observe,
                parts.redactor,
                live.now,
                missed=cluster.missed,
                others=await served(client),
                belonging=(
                    Belonging(place.run, parts.namespace.drill) if place.namespace else None
                ),
            )
            recording = [asyncio.create_task(recorder.run())]
            if parts.trail is not None:
                recording.append(asyncio.create_task(parts.trail.run()))
            try:
                await _guarded(parts, recorder)
            finally:
                for task in recording:
                    task.cancel()
                await asyncio.gather(*recording, return_exceptions=True)
                if parts.trail is not None:
                    parts.trail.close()
            return await _finish(parts)


async def _guarded(parts: Parts, recorder: Recorder) -> None:
    """Run the drill's own part until it is over, a signal comes or a watch dies; an early end becomes an observation."""
    live, stop = parts.live, parts.place.stop
    work = asyncio.create_task(_observe(parts, recorder))
    signalled = asyncio.create_task(stop.event.wait())
    died = asyncio.create_task(recorder.died())
    await asyncio.wait((work, signalled, died), return_when=asyncio.FIRST_COMPLETED)
    if not work.done():
        work.cancel()
        if signalled.done():
            live.observe(Interrupted(live.now(), stop.signal_name))
    signalled.cancel()
    died.cancel()
    (error, *_) = await asyncio.gather(work, signalled, died, return_exceptions=True)
    # A dead watch is in the recording already.
    if isinstance(error, Exception) and not isinstance(error, WatchDied):
        live.observe(HarnessError(live.now(), "; ".join(_messages(error))))


def _messages(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [text for part in error.exceptions for text in _messages(part)]
    told = isinstance(error, ClusterError | KubeError | RefusedError | SubjectError)
    return [str(error) if told else f"{type(error).__name__}: {error}"]


async def _observe(parts: Parts, recorder: Recorder) -> None:
    live = parts.live
    if missing := lacking_features(parts):
        for observation in missing:
            live.observe(observation)
        return
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_prepare_subject(parts))
        tasks.create_task(_synced(recorder))
    near = can_reach(parts)
    usual = (eligible_nodes(parts), right_version(parts), near)
    preconditions = [*(one for one in usual if one), *premises(parts)]
    for precondition in preconditions:
        live.observe(precondition)
    if not all(precondition.holds for precondition in preconditions):
        return
    context = Context(
        client=parts.client,
        maker=parts.maker,
        live=live,
        namespace=parts.namespace.key.name,
        manifests=parts.manifests,
        subjects=parts.subjects,
        start_subject=lambda: subjects.start(parts),
        upgrade_subject=lambda name: subjects.upgrade(parts, name),
        upgrade_kubernetes=lambda version: _upgrade_kubernetes(parts, version),
        say=lambda line: parts.place.say(f"{parts.plan.name.title}: {line}"),
        outside=parts.outside,
        traffic=_traffic(parts),
    )
    try:
        await _run(context, parts, recorder)
    finally:
        if context.traffic is not None:
            await context.traffic.close()
        for part, by in parts.place.cluster.stand_ins(parts.plan.addons):
            live.observe(StandIn(live.now(), part, by))


def _traffic(parts: Parts) -> TrafficProbe | None:
    given = parts.plan.resolved.traffic
    if given is None:
        return None
    place = parts.place
    return TrafficProbe(
        given,
        client=parts.client,
        maker=parts.maker,
        live=parts.live,
        namespace=parts.namespace.key.name,
        image=place.cluster.workload_image,
        adaptation=place.adaptation,
    )


async def _run(context: Context, parts: Parts, recorder: Recorder) -> None:
    """Take the steps, and wait until it is known that nothing follows."""
    live = parts.live
    if await run_steps(context, parts.plan.resolved.steps):
        live.observe(Settled(live.now(), "begin"))
        await asyncio.sleep(parts.plan.resolved.settle)
        # Before the end is noted: what is still on its way happened within the settle time, and has to be judged.
        await recorder.complete(COMPLETE_WITHIN + PER_OBSERVATION * len(live.observations))
        if parts.trail is not None:
            parts.trail.flush()
        await parts.outside.complete()
        if context.traffic is not None:
            await context.traffic.complete()
        live.observe(Settled(live.now(), "end"))


async def _synced(recorder: Recorder) -> None:
    async with asyncio.timeout(SYNCED_WITHIN):
        await recorder.synced()


async def _prepare_subject(parts: Parts) -> None:
    await subjects.install(parts)
    await parts.outside.ready()
    await subjects.start(parts)


async def _upgrade_kubernetes(parts: Parts, version: str) -> str:
    place = parts.place
    before = place.cluster.facts.kubernetes
    place.upgrading = True
    try:
        place.cluster = await place.cluster.upgrade(
            version, binaries=place.binaries, progress=place.say
        )
    finally:
        place.upgrading = False
    return f"Kubernetes {before} → {place.cluster.facts.kubernetes}"


async def _finish(parts: Parts) -> DrillReport:
    """Write the first report, remove everything, and write the report again with what was left."""
    report = _judge(parts)
    artefacts.write_drill(parts.folder, report)
    if report.verdict.outcome is not Outcome.PASS:
        observations = parts.live.observations
        logs = subjects.logs(parts)
        artefacts.write_evidence(parts.folder, observations, logs, parts.publishable)
    if not report.verdict.as_expected:
        place = parts.place
        await cluster_logs.keep(place.cluster, parts.folder, parts.publishable, place.say)
    title, outcome = parts.plan.name.title, report.verdict.outcome
    try:
        if parts.place.keep:
            parts.live.observe(Kept(parts.live.now()))
        else:
            parts.place.say(f"{title}: {outcome}, report written; removing what it made")
            parts.subjects.removing = True
            left = await remove_drill(parts.client, parts.place, parts.namespace, parts.live)
            parts.live.observe(left)
    finally:
        await parts.subjects.stop()
        await parts.outside.close()
        for path in subjects.kubeconfigs(parts):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    report = _judge(parts)
    artefacts.write_drill(parts.folder, report)
    parts.place.say(
        f"{title}: {'as expected' if report.verdict.as_expected else 'not as expected'}"
    )
    return report


def _judge(parts: Parts) -> DrillReport:
    return judge(Timeline(parts.file.header, tuple(parts.live.observations)))
