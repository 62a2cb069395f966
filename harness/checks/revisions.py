"""What checks see of a Knative Service's revisions: readiness, pods, and the share that is asked for, served and routed.

Worked out when it is asked for. Facts of Knative's API: the newest revision is `status.latestCreatedRevisionName` of the Service, a
revision's pods and its Deployment carry its name as a label, and the ingress splits by the names of revisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.checks.objects import POD
from harness.checks.paths import (
    KNATIVE_INGRESS,
    KNATIVE_REVISION,
    KNATIVE_SERVICE,
    condition,
    dig,
    images_of,
    labels_of,
    whole,
)
from harness.checks.section import Section

if TYPE_CHECKING:
    from harness.checks.objects import Objects
    from harness.model.timeline import JSON

LABEL: Final = "serving.knative.dev/revision"
PRIMARY: Final = "flagger.app/primary-revision"
"""Annotation of a Service under promotion: the revision that serves (spec objects 10)."""
_GENERATION: Final = "serving.knative.dev/configurationGeneration"
_CREATED: Final = "latestCreatedRevisionName"
_READY: Final = "latestReadyRevisionName"
_KINDS: Final = frozenset({POD, KNATIVE_SERVICE, KNATIVE_REVISION, KNATIVE_INGRESS})
_ALL: Final = 100


class Revisions:
    """The section `revisions`: those of the Knative Service under promotion, the oldest first."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._service = ""
        self._stale = True
        self._views = Section(order=self._number)

    def named(self, service: str) -> None:
        """The rollout's target has this name."""
        self._stale |= service != self._service
        self._service = service

    def see(self, kind: str) -> None:
        """An object is in a new state, or gone."""
        self._stale |= kind in _KINDS

    @property
    def section(self) -> Section:
        """The views."""
        if self._stale:
            self._refresh()
            self._stale = False
        return self._views

    def deployments(self) -> dict[str, str]:
        """Return the Deployments that Knative made for the revisions of a rollout, by name, with their roles; others are left out."""
        service = self._objects.get(KNATIVE_SERVICE, self._service)
        if service is None:
            return {}
        found = {
            name: self._role(service, labels_of(obj).get(LABEL, ""))
            for name, obj in self._objects.of("Deployment").items()
        }
        return {name: role for name, role in found.items() if role}

    def _role(self, service: JSON, revision: str) -> str:
        primary = str(dig(service, "metadata.annotations", {}).get(PRIMARY) or "")
        if not revision:
            return ""
        if revision == primary:
            return "primary"
        return "target" if revision == dig(service, f"status.{_CREATED}") else ""

    def _refresh(self) -> None:
        service = self._objects.get(KNATIVE_SERVICE, self._service)
        found = self._objects.of(KNATIVE_REVISION) if service is not None else {}
        own = {name: one for name, one in found.items() if _service_of(one) == self._service}
        for name in self._views.keys() - own.keys():
            self._views.drop(name)
        if service is None:
            return
        asked = _shares(dig(service, "spec.traffic", []), dig(service, f"status.{_READY}", ""))
        served = _shares(dig(service, "status.traffic", []), "")
        routed = _split(self._objects.get(KNATIVE_INGRESS, self._service))
        pods: dict[str, list[JSON]] = {}
        for pod in self._objects.of(POD).values():
            if dig(pod, "metadata.deletionTimestamp") is None:
                pods.setdefault(labels_of(pod).get(LABEL, ""), []).append(pod)
        for name, revision in own.items():
            running = pods.get(name, [])
            ready, active = condition(revision, "Ready"), condition(revision, "Active")
            self._views.put(
                name,
                {
                    "name": name,
                    "role": self._role(service, name),
                    "newest": dig(service, f"status.{_CREATED}") == name,
                    "latest_ready": dig(service, f"status.{_READY}") == name,
                    "ready": ready.get("status") == "True",
                    "failed": ready.get("status") == "False",
                    "reason": str(ready.get("reason") or active.get("reason") or ""),
                    "active": active.get("status") == "True",
                    "image": next(iter(images_of(dig(revision, "spec", {}))), ""),
                    "pods": len(running),
                    "ready_pods": sum(
                        1 for pod in running if condition(pod, "Ready").get("status") == "True"
                    ),
                    "nodes": sorted(
                        {node for pod in running if (node := dig(pod, "spec.nodeName"))}
                    ),
                    "asked": asked.get(name, 0),
                    "served": served.get(name, 0),
                    "routed": routed.get(name, 0),
                },
            )

    def _number(self, name: str) -> tuple[int, str]:
        revision = self._objects.of(KNATIVE_REVISION).get(name, {})
        text = str(labels_of(revision).get(_GENERATION, "0"))
        return (int(text) if text.isdigit() else 0), name


def _service_of(revision: JSON) -> str:
    return str(labels_of(revision).get("serving.knative.dev/service", ""))


def _shares(rows: Any, latest: str) -> dict[str, int]:
    """Return percent by revision; `latest` stands for the newest that is ready."""
    shares: dict[str, int] = {}
    for row in rows if isinstance(rows, list) else ():
        name = str(dig(row, "revisionName", "")) or latest
        if name:
            shares[name] = shares.get(name, 0) + whole(dig(row, "percent"))
    return shares


def _split(ingress: JSON | None) -> dict[str, int]:
    """Return percent by revision of the first path of an ingress, which is that of everybody's requests."""
    rules = dig(ingress, "spec.rules", [])
    rows = dig(rules[0], "http.paths[0].splits", []) if rules else []
    shares: dict[str, int] = {}
    for row in rows:
        name = str(dig(row, "serviceName", ""))
        shares[name] = shares.get(name, 0) + whole(dig(row, "percent", _ALL))
    return shares
