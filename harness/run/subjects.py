"""The subjects of a drill: the one that runs, those that steps put in its place later, and their identities.

Each has its own service account, rights and kubeconfig, and keeps its log for itself. Only the current one is ever started; all are
stopped at the end, when no finalizer needs them any more.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.controller.flags import written
from harness.kube import access
from harness.kube.own_access import write_own
from harness.model.names import IN_CLUSTER
from harness.model.standins import addressed
from harness.run.adapt import adapted
from harness.run.adapt.roles import without_groups
from harness.run.crds import replace_crds
from harness.run.objects import RefusedError
from harness.subjects.base import Access, SubjectError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.model.timeline import JSON
    from harness.run.adapt import Adaptation
    from harness.run.parts import Parts
    from harness.subjects.base import Subject


@dataclass(slots=True)
class Subjects:
    """All subjects of one drill, in the order in which their turns come."""

    every: Sequence[Subject]
    """The first, and one for each step that upgrades to another."""
    number: int = 0
    """Which of them is the current one."""
    removing: bool = False
    """Whether the drill's namespace is being removed, and their rights with it."""

    @property
    def current(self) -> Subject:
        """The one whose turn it is, running or not."""
        return self.every[self.number]

    async def stop(self) -> None:
        """End them all; no error for one that does not run."""
        for subject in self.every:
            # One that runs in the cluster cannot be ended where that does not answer; what is left then is told by the teardown.
            with contextlib.suppress(SubjectError):
                await subject.stop()


def runs_in_cluster(subject: Subject) -> bool:
    """Return whether a subject runs where Service names are known: it was there before the drill, or its pod is the drill's."""
    return subject.service_account is None or subject.facts.name == IN_CLUSTER


def suffix(number: int) -> str:
    """Return what tells the files of one subject from those of the first (number 0): nothing, then `-2`."""
    return f"-{number + 1}" if number else ""


def objects_of(subject: Subject, namespace: str, adaptation: Adaptation) -> list[JSON]:
    """Return the objects that a subject needs in a drill's namespace, as this cluster gets them."""
    objects, _ = adapted(subject.namespace_objects(namespace), adaptation)
    return without_groups(objects, adaptation.withheld)


async def install(parts: Parts) -> None:
    """Give the current subject its objects in the drill's namespace, and its kubeconfig. Raises KubeError, RefusedError."""
    namespace, subject = parts.namespace.key.name, parts.subject
    cluster = parts.place.cluster
    if parts.own_credentials:
        for secret in write_own(cluster.kubeconfig, cluster.context, namespace, parts.kubeconfig):
            parts.redactor.learn_value(secret)
        return
    for obj in objects_of(subject, namespace, parts.place.adaptation):
        await parts.maker.apply(obj, namespace)
    if subject.service_account is None or runs_in_cluster(subject):
        return  # it was there already, with rights of its own, or has those of its pod
    token = await access.write_kubeconfig(
        parts.client,
        admin=cluster.kubeconfig,
        context=cluster.context,
        namespace=namespace,
        service_account=subject.service_account,
        target=parts.kubeconfig,
    )
    # The subject knows it and may log it; no output of ours may.
    parts.redactor.learn_value(token)


async def start(parts: Parts) -> None:
    """Start the current subject, and wait until it is ready. Raises SubjectError."""
    namespace, subject = parts.namespace.key.name, parts.subject
    if parts.trail is not None and subject.service_account is not None:
        parts.trail.begin(namespace, subject.service_account)
    server = parts.outside.metrics_address
    access = Access(
        parts.kubeconfig, namespace, parts.log, metrics_server=server, flags=_flags(parts)
    )
    await subject.start(access, parts.notify)


def _flags(parts: Parts) -> dict[str, str | bool]:
    """Return the flags that the scenario has for the bundled controller, with the real addresses of the stand-ins."""
    given = addressed(parts.plan.resolved.controller or {}, parts.outside.addresses)
    flags = dict(written(name, value) for name, value in given.items())
    group = parts.place.adaptation.api_group
    return {**flags, "api_group": group} if group else flags


async def upgrade(parts: Parts, name: str) -> str:
    """Put the next subject in the place of the current one, as a user would; return what came of it, for the timeline.

    The current one is stopped, the next one's CRDs replace what is there, its rights are applied, and it is started. Raises
    RefusedError, KubeError or SubjectError.
    """
    subjects, place = parts.subjects, parts.place
    before = parts.subject.facts
    for one in subjects.every[subjects.number : subjects.number + 2]:
        if one.service_account is None:
            msg = f"{one.facts.name} is in the cluster already and only observed: it is neither upgraded nor upgraded to"
            raise RefusedError(msg)
    if subjects.number + 1 >= len(subjects.every):
        msg = f"there is no further subject to upgrade to {name!r}"
        raise RefusedError(msg)
    await parts.subject.stop()
    if parts.trail is not None:
        parts.trail.flush()
    subjects.number += 1
    crds = parts.subject.cluster_objects()
    place.shared |= await replace_crds(parts.client, crds, exclusive=place.cluster.facts.exclusive)
    await install(parts)
    await start(parts)
    now = parts.subject.facts
    return f"{before.name} {before.version} → {now.name} {now.version}"


def logs(parts: Parts) -> list[Path]:
    """Return the log of each subject that has had its turn."""
    return [parts.log_of(number) for number in range(parts.subjects.number + 1)]


def kubeconfigs(parts: Parts) -> list[Path]:
    """Return the kubeconfig of each subject that has had its turn."""
    return [parts.kubeconfig_of(number) for number in range(parts.subjects.number + 1)]
