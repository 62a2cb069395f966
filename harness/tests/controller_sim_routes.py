"""Who plays the gateway and Knative in the simulated cluster, and where traffic goes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from harness.tests.controller_sim_workloads import Workloads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JSON = dict[str, Any]
MESH_DELAY = 0.2
"""Seconds until a gateway has accepted a new generation of a route, and until Knative makes a revision."""


class Routes(Workloads):
    """A namespace in which HTTPRoutes get accepted and Knative Services get revisions."""

    def __init__(self, delay: Callable[[str, JSON, int], float | None]) -> None:
        super().__init__(delay)
        self.gateway_delay: float | None = MESH_DELAY
        """None: the gateway is down."""
        self.gateway_refuses: Callable[[JSON], str] | None = None
        """Gets a route; a reason (`NotAllowedByListeners`) leaves it unaccepted."""
        self.knative_delay = MESH_DELAY
        """Until Knative has seen a change of a Service."""
        self.configuration_delay = 0.0
        """From then on until the change has a revision: the Service's own generation counts as seen before."""
        self.idle_after: float | None = None
        """Seconds after which a ready revision loses its pods, since nobody asks for anything."""
        self._seen: dict[tuple[str, int], float] = {}
        self._pending: dict[tuple[str, int], float] = {}
        """When (UID, generation) is taken up."""
        self._numbers: dict[str, int] = {}

    def play_routes(self) -> None:
        """Let the gateway and Knative act once."""
        for resource, name in list(self.objects):
            if resource == "httproutes":
                self._accept(name)
            elif resource == "kservices":
                self._serve(name)

    def route_times(self) -> Iterator[float]:
        """When the gateway or Knative act next."""
        times = [*self._pending.values(), *self._seen.values()]
        return (time for time in times if time > self.now)

    def _due(self, obj: JSON, delay: float | None) -> bool:
        """Whether this generation of an object has been there for so long."""
        if delay is None:
            return False
        key = (obj["metadata"]["uid"], obj["metadata"]["generation"])
        return self.now >= self._pending.setdefault(key, self.now + delay)

    # -- Gateway API -------------------------------------------------------------------------------------------------

    def _accept(self, name: str) -> None:
        route = self.objects["httproutes", name]
        generation = route["metadata"]["generation"]
        held = (route.get("status") or {}).get("parents") or []
        current = bool(held) and all(
            condition["observedGeneration"] == generation
            for parent in held
            for condition in parent["conditions"]
        )
        if current or not self._due(route, self.gateway_delay):
            return
        reason = self.gateway_refuses(route) if self.gateway_refuses else ""
        parents = [
            {
                "parentRef": copy.deepcopy(reference),
                "controllerName": "example.com/gateway",
                "conditions": [
                    self._condition("Accepted", reason, generation),
                    self._condition("ResolvedRefs", "", generation),
                ],
            }
            for reference in route["spec"].get("parentRefs") or []
        ]
        self.observe("httproutes", name, {"parents": parents})

    def _condition(self, kind: str, reason: str, generation: int) -> JSON:
        return {
            "type": kind,
            "status": "False" if reason else "True",
            "reason": reason or kind,
            "message": "",
            "observedGeneration": generation,
            "lastTransitionTime": self._second(),
        }

    # -- Knative -----------------------------------------------------------------------------------------------------

    def _serve(self, name: str) -> None:
        """Make a revision for a new template, and let status.traffic follow spec.traffic."""
        obj = self.objects["kservices", name]
        if not self._due(obj, self.knative_delay):
            return
        status = copy.deepcopy(obj.get("status") or {})
        status["observedGeneration"] = obj["metadata"]["generation"]
        key = (obj["metadata"]["uid"], obj["metadata"]["generation"])
        if self.now < self._seen.setdefault(key, self.now + self.configuration_delay):
            status["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "OutOfDate"}]
            self.observe("kservices", name, status)
            return
        newest = self.get("krevisions", status.get("latestCreatedRevisionName", ""))
        if newest is None or newest["spec"] != obj["spec"]["template"]["spec"]:
            self._numbers[name] = self._numbers.get(name, 0) + 1
            revision = f"{name}-{self._numbers[name]:05d}"
            self.add("krevisions", _revision(obj, revision), "knative")
            self.pods[revision] = [] if _starts_empty(obj) else [self._new_pod(revision, obj, 0)]
            status["latestCreatedRevisionName"] = revision
        for revision in list(self.of("krevisions")):
            self._judge(revision)
        created = str(status["latestCreatedRevisionName"])
        if _ready(self.objects["krevisions", created]):
            status["latestReadyRevisionName"] = created
        ready = status.get("latestReadyRevisionName")
        if ready:
            status["traffic"] = [_entry(entry, ready) for entry in obj["spec"]["traffic"]]
        state = "True" if ready == created else "Unknown"
        status["conditions"] = [{"type": "Ready", "status": state}]
        self.observe("kservices", name, status)

    def _judge(self, revision: str) -> None:
        """Ready for good once it had its first pods, which may be none; active as long as it has any."""
        obj = self.objects["krevisions", revision]
        count = self.ready_pods(revision)
        ready = _ready(obj) or count > 0 or not self.pods[revision]
        if count and self._due(obj, self.idle_after):
            self.pods[revision], count = [], 0
        active = "True" if count else "False" if ready else "Unknown"
        states = {"Ready": "True" if ready else "Unknown", "Active": active}
        held = {c["type"]: c for c in (obj.get("status") or {}).get("conditions") or []}
        conditions = [
            held[kind]
            if (held.get(kind) or {}).get("status") == state
            else {"type": kind, "status": state, "lastTransitionTime": self._second()}
            for kind, state in states.items()
        ]
        status = {"conditions": conditions, "observedGeneration": 1, "actualReplicas": count}
        self.observe("krevisions", revision, status)

    def _store(self, resource: str, obj: JSON) -> None:
        if resource == "kservices":  # what the webhook fills in
            spec = obj["spec"] = copy.deepcopy(obj["spec"])
            spec["traffic"] = spec.get("traffic") or [{"latestRevision": True, "percent": 100}]
            for entry in spec["traffic"]:
                entry.setdefault("latestRevision", not entry.get("revisionName"))
        super()._store(resource, obj)

    # -- where traffic goes ------------------------------------------------------------------------------------------

    def traffic(self, apex: str = "web") -> dict[str, int]:
        """Percent by backend: a Service or a Knative revision. Match rules and copies for mirroring aside."""
        route = self.get("httproutes", apex)
        if route is not None:
            rule = route["spec"]["rules"][-1]
            return {ref["name"]: ref.get("weight", 1) for ref in rule.get("backendRefs") or []}
        virtual = self.get("virtualservices", apex)
        if virtual is not None:
            shares = virtual["spec"]["http"][-1]["route"]
            return {
                entry["destination"]["host"].split(".")[0]: entry.get("weight", 100)
                for entry in shares
            }
        knative = self.get("kservices", apex)
        if knative is not None:
            found: dict[str, int] = {}
            for entry in (knative.get("status") or {}).get("traffic") or []:
                name = entry["revisionName"]
                found[name] = found.get(name, 0) + int(entry.get("percent") or 0)
            return found
        return {apex: 100} if self.get("services", apex) else {}

    def backing(self, backend: str) -> int:
        """Ready pods behind a backend."""
        if ("krevisions", backend) in self.objects:
            return self.ready_pods(backend)
        return self.behind(backend) or 0

    def serving(self, apex: str = "web") -> int | None:
        """Ready pods that get some of the traffic; None when nothing routes any yet."""
        shares = self.traffic(apex)
        if not shares:
            return None
        return sum(self.backing(backend) for backend, share in shares.items() if share > 0)


def _revision(service: JSON, name: str) -> JSON:
    owner = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "name": service["metadata"]["name"],
        "uid": service["metadata"]["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Revision",
        "metadata": {
            "name": name,
            "namespace": "n",
            "labels": {"serving.knative.dev/service": service["metadata"]["name"]},
            "ownerReferences": [owner],
        },
        "spec": copy.deepcopy(service["spec"]["template"]["spec"]),
    }


def _starts_empty(service: JSON) -> bool:
    notes = (service["spec"]["template"].get("metadata") or {}).get("annotations") or {}
    return bool(notes.get("autoscaling.knative.dev/initial-scale") == "0")


def _entry(entry: JSON, ready: str) -> JSON:
    """One entry of spec.traffic as status.traffic shows it."""
    resolved = copy.deepcopy(entry)
    if entry.get("latestRevision") or not entry.get("revisionName"):
        resolved |= {"latestRevision": True, "revisionName": ready}
    return resolved


def _ready(revision: JSON) -> bool:
    conditions = (revision.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
