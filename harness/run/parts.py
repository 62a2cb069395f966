"""The parts of a drill under way, and how they are put together."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness import __version__
from harness.model.timeline import Header, SubjectState
from harness.run import artefacts
from harness.run.anonymise import Anonymiser
from harness.run.identity import labels
from harness.run.live import Live
from harness.run.namespace import make_namespace
from harness.run.objects import Maker
from harness.run.redact import Redactor
from harness.run.timeline_file import TimelineFile
from harness.scenario.manifests import DrillContext, render

if TYPE_CHECKING:
    from pathlib import Path

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON
    from harness.run.journal import Entry
    from harness.run.place import Place
    from harness.run.plan import Plan
    from harness.subjects.base import Subject, SubjectEvent


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that a drill works with."""

    plan: Plan
    place: Place
    client: KubeClient
    redactor: Redactor
    anonymiser: Anonymiser | None
    subject: Subject
    folder: Path
    """Where its outputs go."""
    namespace: Entry
    file: TimelineFile
    live: Live
    maker: Maker
    manifests: dict[str, list[JSON]]

    @property
    def log(self) -> Path:
        """The subject's raw log, in the private folder."""
        return self.place.private / f"{self.plan.name.folder}.log"

    @property
    def kubeconfig(self) -> Path:
        """The subject's kubeconfig, in the private folder."""
        return self.place.private / f"{self.plan.name.folder}.kubeconfig"

    def notify(self, event: SubjectEvent, detail: str) -> None:
        """Note something about the subject's process."""
        self.live.observe(SubjectState(self.live.now(), event, detail))

    def publishable(self, text: str) -> str:
        """Return a text as it may be published: without secrets, and without names where that was asked for."""
        clean = self.redactor.text(text)
        return clean if self.anonymiser is None else self.anonymiser.text(clean)


async def put_together(
    plan: Plan, place: Place, subject: Subject, folder: Path, client: KubeClient
) -> Parts:
    """Render the manifests, make the drill's namespace and begin its timeline.

    Raises ScenarioError before anything is made, and KubeError or RefusedError when there is no namespace to be had.
    """
    redactor = Redactor()
    # Rendered for a look before the namespace has its name, so that an invalid manifest leaves nothing behind.
    render(plan.resolved, plan.folder, DrillContext(run=place.run))
    marks = labels(place.run, plan.name.label)
    namespace = await make_namespace(client, place.journal, marks, plan.resolved.name)
    place.namespaces.add(namespace.key.name)
    manifests: dict[str, list[JSON]] = {}
    context = DrillContext(namespace.key.name, place.run)
    for manifest in render(plan.resolved, plan.folder, context):
        manifests.setdefault(manifest.file, []).append(manifest.object)
    objects = [obj for several in manifests.values() for obj in several]
    # Before anything is written, so that no secret of theirs reaches an output even once.
    redactor.learn(objects)
    anonymiser = _anonymiser(place, objects) if place.anonymise else None
    header = Header(
        run_id=place.run,
        drill_id=plan.name.title,
        namespace=namespace.key.name,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        harness=__version__,
        scenario=plan.resolved.to_json(),
        subject=subject.facts,
        cluster=place.cluster.facts,
        reproduce=plan.reproduce,
    )
    file = TimelineFile(folder / artefacts.TIMELINE, header, redactor, anonymiser)
    live = Live(header, file, time.monotonic())
    maker = Maker(client, place.journal, marks)
    return Parts(
        plan,
        place,
        client,
        redactor,
        anonymiser,
        subject,
        folder,
        namespace,
        file,
        live,
        maker,
        manifests,
    )


def _anonymiser(place: Place, objects: list[JSON]) -> Anonymiser:
    anonymiser = Anonymiser()
    anonymiser.learn(objects)
    for node in place.cluster.facts.nodes:
        anonymiser.learn_node(node)
    anonymiser.learn_cluster(place.cluster.facts.name)
    return anonymiser
