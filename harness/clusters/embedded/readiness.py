"""When an embedded cluster is ready: it answers, its nodes take pods, and deleted things go away."""

from __future__ import annotations

import http
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from harness.clusters.base import ClusterError
from harness.clusters.embedded import kwokctl, ports, processes
from harness.clusters.embedded.api import Api
from harness.clusters.embedded.nodes import ALIKE, node, takes_pods

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from harness.clusters.embedded.records import Record
    from harness.model.nodes import Nodes

POLL_SECONDS: Final = 0.05
"""Nothing can be watched before there is a server."""
ANSWER_SECONDS: Final = 60.0
READY_SECONDS: Final = 60.0
COLLECTORS_SECONDS: Final = 15.0
"""The namespace controller waits 5 s by itself (spec cases, namespaces that stay for ever)."""
RESTARTS: Final = 3
COMPONENTS: Final = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok-controller",
)


class PortTakenError(ClusterError):
    """A component found its port in use; another set of ports may do."""


class CancelledError(ClusterError):
    """Whoever wanted the cluster does not want it any more."""


def check_cancelled(name: str, cancelled: threading.Event | None) -> None:
    """Raise CancelledError when whoever wanted the cluster does not want it any more."""
    if cancelled is not None and cancelled.is_set():
        msg = f"Making embedded cluster {name!r} was cancelled."
        raise CancelledError(msg)


class Waiter:
    """Waits for a cluster's answers, and looks after its processes meanwhile."""

    def __init__(self, record: Record, cancelled: threading.Event | None = None) -> None:
        self.record = record
        self.api = Api(record)
        self._cancelled = cancelled
        self._restarts = 0

    def until(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        """Return when `holds` does; ClusterError says `what` did not come in time.

        A component that ended before the API server answered is started again, a few times.
        """
        deadline = time.monotonic() + seconds
        looked = time.monotonic()
        while not holds():
            check_cancelled(self.record.name, self._cancelled)
            now = time.monotonic()
            if now > deadline:
                msg = (
                    f"Embedded cluster {self.record.name!r}: {what} within {seconds:.0f} s; "
                    f"its logs are in {self._logs}."
                )
                raise ClusterError(msg)
            if now - looked > 10 * POLL_SECONDS:
                looked = now
                self._revive()
            time.sleep(POLL_SECONDS)

    def answers(self) -> None:
        """Return when the API server is ready."""

        def ready() -> bool:
            port = self.record.ports["kubeApiserverPort"]
            return (
                ports.answers(port) and self.api.request("GET", "/readyz")[0] == http.HTTPStatus.OK
            )

        self.until("the API server was not ready", ready, ANSWER_SECONDS)

    def nodes_ready(self, wanted: Nodes = ALIKE) -> None:
        """Make the nodes with what sets them apart, and return when each takes pods and pods may be made."""
        # kwok sleeps a whole second when the namespace of its leases is not there yet.
        for namespace in ("kube-node-lease", "default"):
            path = f"/api/v1/namespaces/{namespace}"
            self.until(
                f"namespace {namespace} was not there",
                lambda path=path: self.api.exists(path),  # type: ignore[misc]
                READY_SECONDS,
            )
        for number in range(1, self.record.nodes + 1):
            name = f"node-{number}"
            made = node(name, wanted.labels.get(name), wanted.taints.get(name, ()))
            self.api.create("/api/v1/nodes", made)
        self.until("its nodes were not ready", lambda: self._nodes_take_pods(wanted), READY_SECONDS)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.until(
            "the default service account was not there",
            lambda: self.api.exists(account),
            READY_SECONDS,
        )

    def plant_orphan(self) -> str:
        """Create an object whose owner does not exist, and return its path."""
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": str(uuid.uuid4())}
        metadata = {"generateName": "collector-proof-", "ownerReferences": [owner]}
        made = self.api.create(
            "/api/v1/namespaces/kube-public/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata},
        )
        return f"/api/v1/namespaces/kube-public/configmaps/{made['metadata']['name']}"

    def orphan_collected(self, path: str) -> None:
        """Return when the garbage collector has taken the orphan away."""
        self.until(
            "the garbage collector of the controller manager did not work",
            lambda: not self.api.exists(path),
            READY_SECONDS,
        )

    def prove_collectors(self) -> float:
        """Delete a namespace with an object and one that it owns; return the seconds until all was gone.

        Raises ClusterError when something is left after 15 s (spec cases, namespaces that stay for ever).
        """
        name = f"collector-proof-{uuid.uuid4().hex[:8]}"
        path = f"/api/v1/namespaces/{name}"
        self.api.create(
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        )
        owner = self.api.create(f"{path}/configmaps", _config_map("owner"))
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
        }
        self.api.create(f"{path}/configmaps", _config_map("owned", [reference]))
        started = time.monotonic()
        self.api.request("DELETE", path)
        self.until(
            "a deleted namespace was not gone",
            lambda: not self.api.exists(path),
            COLLECTORS_SECONDS,
        )
        return time.monotonic() - started

    def check_processes(self) -> None:
        """Raise ClusterError, in one plain sentence, when a component does not run."""
        running = processes.running(self.record)
        missing = [name for name in COMPONENTS if name not in running]
        if not missing:
            return
        lacking = missing[0]
        consequence = _CONSEQUENCES.get(lacking, "nothing can be drilled")
        msg = (
            f"The {lacking} of embedded cluster {self.record.name!r} is not running, so {consequence}; "
            f"its log is {self._logs / f'{lacking}.log'}."
        )
        raise ClusterError(msg)

    def version(self) -> str:
        """Return the version that the API server states, e.g. `v1.35.4`; empty when it does not."""
        _, answer = self.api.request("GET", "/version")
        return str(answer.get("gitVersion", "")) if isinstance(answer, dict) else ""

    @property
    def _logs(self) -> Path:
        return self.record.log("any").parent if self.record.ready else self.record.kept_logs

    def _revive(self) -> None:
        running = processes.running(self.record)
        missing = [name for name in COMPONENTS if name not in running]
        if not missing:
            return
        for name in missing:
            if "address already in use" in last_words(self.record, name):
                msg = f"A port of the {name} of embedded cluster {self.record.name!r} was taken."
                raise PortTakenError(msg)
        # On a busy machine the controller manager gives up before the API server answers.
        if self._restarts == RESTARTS:
            self.check_processes()
        self._restarts += 1
        processes.drop_strange_pid_files(self.record)
        kwokctl.start(self.record)

    def _nodes_take_pods(self, wanted: Nodes) -> bool:
        status, answer = self.api.request("GET", "/api/v1/nodes")
        items = answer.get("items", []) if status == http.HTTPStatus.OK else []
        return len(items) == self.record.nodes and all(takes_pods(one, wanted) for one in items)


_CONSEQUENCES: Final = {
    "kube-controller-manager": "nothing that is deleted would ever go away",
    "kube-scheduler": "no pod would be placed on a node",
    "kwok-controller": "no pod would ever start",
}


def last_words(record: Record, component: str, lines: int = 20) -> str:
    """Return the end of a component's log; empty when there is none."""
    try:
        text = record.log(component).read_text("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _config_map(name: str, owners: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    metadata = {"name": name, "ownerReferences": owners or []}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
