"""What a subject is: the controller under test, as the runner sees it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON, SubjectFacts

SubjectEvent = Literal["started", "stopped", "killed", "exited", "forbidden", "looked"]
"""What `notify` is told, with a detail: of `looked` "NAME ROW", of `forbidden` "VERB WHAT", of `started` "NAME VERSION"."""

SUBJECT_LABEL: Final = "rollout-drill/subject"
"""On pods of a subject that runs in the drill's namespace, and on what makes them: they are no part of what is drilled."""
_DIGITS: Final = 12


class SubjectError(Exception):
    """The subject could not be started, or is not what was asked for; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a started subject gets: its own identity, fenced to one namespace."""

    kubeconfig: Path
    """Holds the token of the subject's service account; mode 0600, outside the reports."""
    namespace: str
    log: Path
    """Where its log goes; redacted when it is copied into a report."""
    metrics_server: str = ""
    """Address of the metrics server that it should ask by default; empty: there is none."""
    flags: Mapping[str, str | bool] = field(default_factory=dict)
    """Flags of the bundled controller, without dashes (`max_concurrent_analyses`); other subjects leave them alone."""


class Subject(Protocol):
    """A controller under test. It is started once per drill, and never shares a namespace."""

    @property
    def facts(self) -> SubjectFacts:
        """Name, version, capabilities, and which object carries the promotion; complete after `obtain` and `look`."""

    @property
    def service_account(self) -> str | None:
        """Name of the service account among `namespace_objects` that it runs under.

        None: it is in the cluster already and only observed. It has no objects of ours, and no drill starts, ends or replaces it.
        """

    async def obtain(self, progress: Callable[[str], None]) -> None:
        """Get its programs and what belongs to them. Called before everything else; takes minutes when they are built.

        Raises SubjectError.
        """

    async def look(self, client: KubeClient) -> None:
        """Find out about itself in the cluster, where it is there already. Called once, before the drill begins."""

    def cluster_objects(self) -> list[JSON]:
        """Return the cluster-scoped objects it needs (its CRDs); only after `obtain`."""

    def namespace_objects(self, namespace: str) -> list[JSON]:
        """Return the objects it needs in the drill's namespace (service account, role, binding); only after `obtain`."""

    async def warm_up(self) -> None:
        """Begin what takes time and needs nothing of a cluster yet; `start` goes on from there. May do nothing."""

    async def start(self, access: Access, notify: Callable[[SubjectEvent, str], None]) -> None:
        """Start it and return once it says that it is ready; start it again after `stop` or `kill`.

        Raises SubjectError when it ends or stays silent instead.
        """

    async def stop(self) -> None:
        """End it in an orderly way (SIGTERM, then SIGKILL); no error when it does not run."""

    async def kill(self) -> None:
        """End it with SIGKILL, in the middle of whatever it does."""


@runtime_checkable
class Movable(Protocol):
    """A subject whose rollout objects can be of another API group, so that no other controller acts on them."""

    def move(self, api_group: str) -> None:
        """State the group in its facts from now on; `Access.flags` has it as `api_group` when the subject is started."""


def in_group(facts: SubjectFacts, group: str) -> SubjectFacts:
    """Return facts whose rollout objects are of another API group."""
    version = facts.rollout.api_version.rpartition("/")[2]
    return replace(facts, rollout=replace(facts.rollout, api_version=f"{group}/{version}"))


def crd_digest(subject: Subject) -> str:
    """Return twelve hex digits that subjects with the same cluster-scoped objects have in common; only after `obtain`."""
    text = json.dumps(subject.cluster_objects(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
