"""Knative's objects as a recording has them: shapes taken from Knative Serving 0.49.1 on an embedded cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.tests.timelines import Recording

SERVICE = "web"
PRIMARY = "flagger.app/primary-revision"


def name(number: int) -> str:
    """Name of a revision."""
    return f"{SERVICE}-{number:05}"


def rows(traffic: Mapping[int, int]) -> list[dict[str, Any]]:
    """Entries of status.traffic, or of spec.traffic with names throughout."""
    return [
        {"revisionName": name(number), "percent": percent} for number, percent in traffic.items()
    ]


def service(
    story: Recording,
    *,
    created: int,
    traffic: Mapping[int, int],
    ready: int | None = None,
    primary: int | None = None,
    asked: list[dict[str, Any]] | None = None,
) -> None:
    """The Service is seen: status.traffic is `traffic`, and the spec asks for the same unless told otherwise."""
    notes = {} if primary is None else {PRIMARY: name(primary)}
    story.see(
        {
            "apiVersion": "serving.knative.dev/v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "uid": "ksvc", "annotations": notes},
            "spec": {"traffic": rows(traffic) if asked is None else asked},
            "status": {
                "latestCreatedRevisionName": name(created),
                "latestReadyRevisionName": name(created if ready is None else ready),
                "traffic": rows(traffic),
            },
        }
    )


def revision(
    story: Recording,
    number: int,
    *,
    ready: str = "True",
    active: str = "True",
    reason: str = "",
) -> None:
    """A revision and the Deployment that Knative makes for it are seen."""
    labels = {
        "serving.knative.dev/service": SERVICE,
        "serving.knative.dev/revision": name(number),
        "serving.knative.dev/configurationGeneration": str(number),
    }
    image = f"registry.example/web:{number}"
    story.see(
        {
            "apiVersion": "serving.knative.dev/v1",
            "kind": "Revision",
            "metadata": {"name": name(number), "uid": f"rev-{number}", "labels": labels},
            "spec": {"containers": [{"image": image}]},
            "status": {
                "conditions": [
                    {"type": "Ready", "status": ready, **({"reason": reason} if reason else {})},
                    {"type": "Active", "status": active},
                ]
            },
        }
    )
    story.see(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": f"{name(number)}-deployment",
                "uid": f"d-{number}",
                "labels": labels,
            },
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": image}]}}},
        }
    )


def pod(story: Recording, number: int, *, node: str, ready: bool = True) -> None:
    """A pod of a revision is seen."""
    deployment = f"{name(number)}-deployment"
    story.see(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{deployment}-{'a' * 5}",
                "uid": f"p-{number}",
                "labels": {
                    "serving.knative.dev/revision": name(number),
                    "pod-template-hash": f"h{number}",
                },
                "ownerReferences": [
                    {"kind": "ReplicaSet", "name": f"{deployment}-h{number}", "controller": True}
                ],
            },
            "spec": {"nodeName": node, "containers": [{"image": f"registry.example/web:{number}"}]},
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Ready", "status": "True" if ready else "False"},
                ],
            },
        }
    )


def ingress(story: Recording, split: Mapping[int, int]) -> None:
    """The ingress is seen."""
    splits = [{"serviceName": name(number), "percent": share} for number, share in split.items()]
    story.see(
        {
            "apiVersion": "networking.internal.knative.dev/v1alpha1",
            "kind": "Ingress",
            "metadata": {"name": SERVICE, "uid": "king"},
            "spec": {"rules": [{"http": {"paths": [{"splits": splits}]}}]},
        }
    )
