"""What every kind of cluster offers to the runner: facts for the report, and a way in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.kube.resource import Resource
    from harness.model.timeline import ClusterFacts

Progress = Callable[[str], None]
"""Takes one line for the person who waits, without a newline."""

MATCH_LABEL_KEYS: Final = "match-label-keys"
"""`matchLabelKeys` in pod (anti-)affinity terms, on by default since Kubernetes 1.31."""
SIMULATED_PODS: Final = "simulated-pods"
"""Pods obey the label `rollout-drill/pod`, and no container runs."""
REAL_PODS: Final = "real-pods"
"""Containers run, and answer requests."""
NETWORK: Final = "network"
"""Pods and Services can be reached from a pod of the same namespace."""
REVISION_IMAGES: Final = "revision-images"
"""Has the images of `registry.example` by which scenarios tell revisions: mere names on simulated nodes, ours where we load them."""
AUDIT: Final = "audit"
"""The API server logs who asks for what, where this process can read it."""
KUBERNETES_UPGRADE: Final = "kubernetes-upgrade"
"""The control plane can be replaced by another version's, with the same data."""
NODE_CHANGES: Final = "node-changes"
"""Its nodes are ours, and simulated: a drill may set them apart, let them join and let them leave."""

SIMULATED_IMAGE: Final = "registry.k8s.io/pause:3.10"
"""What workloads are said to run where no container runs."""
PUBLIC_IMAGE: Final = "registry.k8s.io/e2e-test-images/agnhost:2.53"
"""What they run on a cluster that can pull; `agnhost netexec` answers requests, with the pod's name at /hostname."""

_SINCE: Final = {MATCH_LABEL_KEYS: (1, 31)}
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")


class ClusterError(Exception):
    """A cluster cannot be made, opened or removed; the message is one sentence for the user."""


class ChoiceError(ClusterError):
    """An option names a cluster, or a source of its programs, that does not exist: the user's to mend, not the cluster's."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object, as a cluster's storage remembers it."""

    name: str
    version: int
    """The object's resourceVersion after it; that of its deletion, if it is one."""
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that answers, opened under a name that the user gave."""

    name: str
    """`embedded`, `embedded:NAME` or `context:NAME`, as it can be given again."""
    facts: ClusterFacts
    kubeconfig: Path
    """Readable by this user only where it was made by us."""
    context: str | None = None
    """The context to use in `kubeconfig`; None where the file has only one."""
    image: str = ""
    """What the user wants workloads to run on a cluster that is not ours; empty: the public image."""

    @property
    def workload_image(self) -> str:
        """The image that `drill.image` stands for in manifests; every node has it, or can pull it."""
        return self.image or (SIMULATED_IMAGE if self.facts.simulated else PUBLIC_IMAGE)

    @property
    def audit_log(self) -> Path | None:
        """Where the API server logs requests of service accounts (audit.k8s.io/v1, JSON lines); None when it does not."""
        return None

    async def missed(
        self, resource: Resource, namespace: str | None, after: int, until: int
    ) -> list[Change] | None:
        """Return all changes of a type behind resourceVersion `after`, up to and with `until`; None: it cannot be known."""
        del resource, namespace, after, until
        return None

    async def load(self, archive: Path, progress: Progress) -> None:
        """Put an image, as `docker save` writes it, where every node finds it. Raises ClusterError, where nodes cannot be loaded."""
        del progress
        msg = f"{self.name} is not ours, so no image is loaded into its nodes ({archive.name}); give one that it can pull."
        raise ChoiceError(msg)

    async def load_local(self, images: Sequence[str], progress: Progress) -> None:
        """Put those of these images that this machine's container engine has where nodes find them, on a cluster of this machine."""
        del images, progress

    async def with_addons(self, names: Sequence[str], progress: Progress) -> Cluster:
        """Return the cluster with add-ons among its facts, whose CRDs it serves by now (see `harness.clusters.addons`).

        One of ours plays from now on what is simulated of them; another has them itself. Raises ClusterError.
        """
        del progress
        has = self.facts.capabilities
        added = tuple(name for name in names if name not in has)
        return replace(self, facts=replace(self.facts, capabilities=(*has, *added)))

    async def save_logs(self, folder: Path) -> None:
        """Copy the logs of nodes and components into a folder, where the cluster is ours and has some. Raises ClusterError."""
        del folder

    def stand_ins(self, addons: Sequence[str]) -> list[tuple[str, str]]:
        """Return what stands in for parts of these add-ons, and who does, in words for a report; asked when a drill is over."""
        del addons
        return []

    async def upgrade(self, version: str, *, binaries: str, progress: Progress) -> Cluster:
        """Replace the control plane by that of another Kubernetes version; return the cluster with its new facts.

        Etcd's data stays, and so do the simulated nodes. `binaries` says where the programs come from, as for a new cluster.
        Returns when everything works again. Raises ClusterError.
        """
        del binaries, progress
        msg = f"Cluster {self.name} is not ours, so its control plane is not upgraded to {version}; use --cluster embedded."
        raise ChoiceError(msg)


def same_version(version: str, wanted: str) -> bool:
    """Return whether `version` (`v1.34.4`) is what was `wanted`: the same, or any patch of it (`v1.34`); with or without `v`."""
    have, want = version.removeprefix("v"), wanted.removeprefix("v")
    return have == want or have.startswith(f"{want}.")


def capabilities(
    kubernetes: str, *, simulated: bool, more: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return what a cluster of that version can do, in the words of a scenario's `requires`, `more` added."""
    found = _VERSION.match(kubernetes)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    features = [name for name, since in _SINCE.items() if version >= since]
    of_pods = (SIMULATED_PODS, REVISION_IMAGES) if simulated else (REAL_PODS, NETWORK)
    return (*features, *of_pods, *more)
