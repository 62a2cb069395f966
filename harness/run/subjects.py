"""The subjects of a drill: the one that runs, those that steps put in its place later, and their identities.

Each has its own service account, rights and kubeconfig, and keeps its log for itself. Only the current one is ever started; all are
stopped at the end, when no finalizer needs them any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.controller.flags import written
from harness.kube import access
from harness.model.standins import addressed
from harness.run.crds import replace_crds
from harness.run.objects import RefusedError
from harness.subjects.base import Access

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
            await subject.stop()


def suffix(number: int) -> str:
    """Return what tells the files of one subject from those of the first (number 0): nothing, then `-2`."""
    return f"-{number + 1}" if number else ""


async def install(parts: Parts) -> None:
    """Give the current subject its objects in the drill's namespace, and its kubeconfig. Raises KubeError, RefusedError."""
    namespace, subject = parts.namespace.key.name, parts.subject
    for obj in subject.namespace_objects(namespace):
        await parts.maker.apply(obj, namespace)
    if subject.service_account is None:
        return  # it is in the cluster already, with rights of its own
    cluster = parts.place.cluster
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
    return dict(written(name, value) for name, value in given.items())


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
