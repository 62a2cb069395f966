"""Objects of Knative as its stand-in follows them, in an API server in memory."""

from __future__ import annotations

from harness.clusters.knative.dataplane import ACTIVATOR_SERVICE, ENDPOINTS, INGRESS, SERVICE
from harness.clusters.knative.names import CONCURRENCY, NAMESPACE, REVISION
from harness.kube.testing import FakeCluster


def cluster(concurrency: str | None = "20", **split: int) -> FakeCluster:
    """A Service whose requests go to web-00001, and a second without a word about any."""
    made = FakeCluster(SERVICE, INGRESS, ENDPOINTS)
    service(made, "web", concurrency)
    service(made, "quiet", None)
    routed(made, **(split or {"web_00001": 100}))
    routed(made, "quiet", quiet_00001=100)
    endpoints(made, NAMESPACE, ACTIVATOR_SERVICE, "10.1.0.1")
    return made


def service(made: FakeCluster, name: str, concurrency: str | None, **labels: str) -> None:
    notes = {} if concurrency is None else {CONCURRENCY: concurrency}
    meta = {"name": name, "namespace": "shop", "annotations": notes, "labels": labels}
    made.add({"apiVersion": SERVICE.api_version, "kind": SERVICE.kind, "metadata": meta})


def routed(made: FakeCluster, name: str = "web", /, **split: int) -> None:
    """An ingress sends requests to revisions; in their names `_` is for `-`."""
    rows = [
        {"serviceName": revision.replace("_", "-"), "percent": percent}
        for revision, percent in split.items()
    ]
    made.add(
        {
            "apiVersion": INGRESS.api_version,
            "kind": INGRESS.kind,
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"rules": [{"http": {"paths": [{"splits": rows}]}}]},
        }
    )


def pod(made: FakeCluster, name: str, revision: str, address: str, ready: str = "True") -> None:
    made.add(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "labels": {REVISION: revision}},
            "status": {"podIP": address, "conditions": [{"type": "Ready", "status": ready}]},
        }
    )


def endpoints(made: FakeCluster, namespace: str, name: str, *addresses: str) -> None:
    made.add(
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {"name": name, "namespace": namespace},
            "subsets": [{"addresses": [{"ip": address} for address in addresses]}],
        }
    )
