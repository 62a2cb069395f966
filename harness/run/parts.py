"""The parts of a drill under way, and how they are put together."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from harness import __version__
from harness.clusters.local.images import RESERVED
from harness.model.timeline import Header, SubjectState
from harness.run import artefacts
from harness.run.adapt import adapted
from harness.run.anonymise import Anonymiser
from harness.run.audit import AuditTrail, names_of
from harness.run.identity import labels, namespace_name
from harness.run.live import Live
from harness.run.namespace import make_namespace
from harness.run.objects import Maker
from harness.run.redact import Redactor
from harness.run.scoped import Visitor, enter
from harness.run.subjects import objects_of, runs_in_cluster, suffix
from harness.run.timeline_file import TimelineFile
from harness.scenario.manifests import DrillContext, render

if TYPE_CHECKING:
    from pathlib import Path

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON
    from harness.run.journal import Entry
    from harness.run.outside import Outside
    from harness.run.place import Place
    from harness.run.plan import Plan
    from harness.run.subjects import Subjects
    from harness.scenario.manifests import Manifest
    from harness.subjects.base import Subject, SubjectEvent


_IMAGE: Final = re.compile(r'"image": "([^"]+)"')


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that a drill works with."""

    plan: Plan
    place: Place
    client: KubeClient
    redactor: Redactor
    anonymiser: Anonymiser | None
    subjects: Subjects
    folder: Path
    """Where its outputs go."""
    namespace: Entry
    file: TimelineFile
    live: Live
    maker: Maker
    manifests: dict[str, list[JSON]]
    trail: AuditTrail | None
    """Counts the subject's requests, where the cluster tells."""
    outside: Outside
    """The stand-ins for what is outside the cluster."""
    own_credentials: bool = False
    """Whether the subject runs with the user's credentials, since it could be given none of its own."""

    @property
    def subject(self) -> Subject:
        """The current subject."""
        return self.subjects.current

    @property
    def log(self) -> Path:
        """The current subject's raw log, in the private folder."""
        return self.log_of(self.subjects.number)

    def log_of(self, number: int) -> Path:
        """Return the raw log of one of the subjects."""
        return self._private(number, "log")

    @property
    def kubeconfig(self) -> Path:
        """The current subject's kubeconfig, in the private folder."""
        return self.kubeconfig_of(self.subjects.number)

    def kubeconfig_of(self, number: int) -> Path:
        """Return the kubeconfig of one of the subjects."""
        return self._private(number, "kubeconfig")

    def _private(self, number: int, ending: str) -> Path:
        return self.place.private / f"{self.plan.name.folder}{suffix(number)}.{ending}"

    def notify(self, event: SubjectEvent, detail: str) -> None:
        """Note something about the subject's process."""
        if event == "forbidden" and (self.place.upgrading or self.subjects.removing):
            # An API server that has not read its roles yet refuses everything to everybody, and a namespace takes the rights in it
            # along when it goes, before the objects: neither says anything about rights.
            return
        if event == "exited" and self.subjects.removing and runs_in_cluster(self.subject):
            return  # its pod went with its namespace
        self.live.observe(SubjectState(self.live.now(), event, detail))

    def publishable(self, text: str) -> str:
        """Return a text as it may be published: without secrets, and without names where that was asked for."""
        clean = self.redactor.text(text)
        return clean if self.anonymiser is None else self.anonymiser.text(clean)


async def put_together(
    plan: Plan,
    place: Place,
    subjects: Subjects,
    folder: Path,
    client: KubeClient,
    *,
    outside: Outside,
) -> Parts:
    """Render the manifests, make the drill's namespace and begin its timeline; `outside` is open already.

    Raises ScenarioError before anything is made, and KubeError or RefusedError when there is no namespace to be had.
    """
    redactor = Redactor()
    marks = labels(place.run, plan.name.label)
    maker = Maker(client, place.journal, marks, api_group=place.adaptation.api_group)
    # Rendered before there is a namespace, so that an invalid manifest leaves nothing behind.
    wanted = place.namespace or namespace_name(plan.resolved.name)
    manifests, notes = await _manifests(plan, place, wanted, outside)
    await place.cluster.load_local(_images(plan, manifests), place.say)
    objects = [obj for several in manifests.values() for obj in several]
    own_credentials = False
    if place.namespace:
        visitor = _visitor(plan, place, subjects.current)
        entered = await enter(maker, place.journal, place.namespace, objects, visitor)
        namespace, own_credentials = entered.namespace, entered.own_credentials
        notes += entered.notes
    else:
        names = itertools.chain([wanted], iter(lambda: namespace_name(plan.resolved.name), None))
        namespace = await make_namespace(
            client, place.journal, marks, plan.resolved.name, draw=lambda _: next(names)
        )
    place.namespaces.add(namespace.key.name)
    if namespace.key.name != wanted:
        manifests, notes = await _manifests(plan, place, namespace.key.name, outside)
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
        subject=subjects.current.facts,
        cluster=replace(place.cluster.facts, notes=(*place.cluster.facts.notes, *notes)),
        reproduce=plan.reproduce,
    )
    file = TimelineFile(folder / artefacts.TIMELINE, header, redactor, anonymiser)
    live = Live(header, file, time.monotonic())
    return Parts(
        plan,
        place,
        client,
        redactor,
        anonymiser,
        subjects,
        folder,
        namespace,
        file,
        live,
        maker,
        manifests,
        _trail(place, live, objects),
        outside,
        own_credentials,
    )


def _images(plan: Plan, manifests: dict[str, list[JSON]]) -> list[str]:
    """Return the images that manifests and steps name, those that only stand for a revision left out."""
    text = json.dumps([manifests, plan.resolved.to_json()["steps"]])
    return sorted({image for image in _IMAGE.findall(text) if not image.startswith(f"{RESERVED}/")})


async def _manifests(
    plan: Plan, place: Place, namespace: str, outside: Outside
) -> tuple[dict[str, list[JSON]], list[str]]:
    """Return the rendered objects as this cluster gets them, by file, and what was changed in them."""
    rendered = await _rendered(plan, place, namespace, outside)
    changed, notes = adapted([one.object for one in rendered], place.adaptation)
    manifests: dict[str, list[JSON]] = {}
    for manifest, obj in zip(rendered, changed, strict=True):
        manifests.setdefault(manifest.file, []).append(obj)
    return manifests, notes


def _visitor(plan: Plan, place: Place, subject: Subject) -> Visitor:
    return Visitor(
        plan.name.label,
        subject.facts.rollout,
        objects_of(subject, place.namespace, place.adaptation),
        subject.service_account,
        bound=runs_in_cluster(subject),
    )


async def _rendered(plan: Plan, place: Place, namespace: str, outside: Outside) -> list[Manifest]:
    context = DrillContext(
        namespace,
        place.run,
        place.cluster.workload_image,
        bool(place.cluster.facts.simulated),
        outside.addresses,
    )
    # In a thread: thousands of objects take seconds, and other drills go on meanwhile.
    return await asyncio.to_thread(render, plan.resolved, plan.folder, context)


def _trail(place: Place, live: Live, objects: list[JSON]) -> AuditTrail | None:
    path = place.cluster.audit_log
    if path is None:
        return None
    kind = live.header.subject.rollout
    rollouts = [obj for obj in objects if obj.get("kind") == kind.kind]
    return AuditTrail(path, names_of(rollouts, kind), live.observe, live.now)


def _anonymiser(place: Place, objects: list[JSON]) -> Anonymiser:
    anonymiser = Anonymiser()
    anonymiser.learn(objects)
    for node in place.cluster.facts.nodes:
        anonymiser.learn_node(node)
    for names in place.node_names:
        anonymiser.learn_node(*names)
    anonymiser.learn_cluster(place.cluster.facts.name)
    return anonymiser
