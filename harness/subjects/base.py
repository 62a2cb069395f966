"""What a subject is: the controller under test, as the runner sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.model.timeline import JSON, SubjectFacts

SubjectEvent = Literal["started", "stopped", "killed", "exited", "forbidden"]


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


class Subject(Protocol):
    """A controller under test. It is started once per drill, and never shares a namespace."""

    @property
    def facts(self) -> SubjectFacts:
        """Name, version, capabilities, and which object carries the promotion."""

    @property
    def service_account(self) -> str:
        """Name of the service account among `namespace_objects` that it runs under."""

    def cluster_objects(self) -> list[JSON]:
        """Return the cluster-scoped objects it needs (its CRDs)."""

    def namespace_objects(self, namespace: str) -> list[JSON]:
        """Return the objects it needs in the drill's namespace (service account, role, binding)."""

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
