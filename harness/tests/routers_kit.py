"""A Canary and an API server for routes, for the tests of the routers: patches, defaults, generations; no cluster."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from harness.controller.core.names import names_of
from harness.controller.core.routers.base import Split, Wish
from harness.controller.core.routers.registry import router_for
from harness.tests.controller_sim import merge

if TYPE_CHECKING:
    from harness.controller.core.decision import Write
    from harness.controller.core.routers.base import Router

JSON = dict[str, Any]
GATEWAY = "gatewayapi:v1"
EVERY = (GATEWAY, "gatewayapi:v1beta1", "istio", "knative", "kubernetes")
SPLITTING = (GATEWAY, "istio", "knative")
MESHES = (GATEWAY, "istio")
PRIMARY, CANARY, APEX = "web-primary", "web-canary", "web"


def canary(provider: str | None = GATEWAY, *, analysis: JSON | None = None, **service: Any) -> JSON:
    """A Canary as the API server has it."""
    spec: JSON = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "service": {"port": 80, **service},
        "analysis": {"interval": "30s", "threshold": 1, "stepWeight": 10, **(analysis or {})},
    }
    if provider:
        spec["provider"] = provider
    if provider and provider.startswith("gatewayapi"):
        spec["service"].setdefault("gatewayRefs", [{"name": "gw", "namespace": "infra"}])
    if provider == "knative":
        spec["targetRef"] = {
            "apiVersion": "serving.knative.dev/v1",
            "kind": "Service",
            "name": "web",
        }
    return {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "web", "namespace": "n", "uid": "uid-1", "generation": 1},
        "spec": spec,
        "status": {"phase": "Progressing", "lastAppliedSpec": "v2:0123456789abcdef"},
    }


def kservice() -> JSON:
    """A Knative Service with two revisions; the second is the newest."""
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {
            "name": "web",
            "namespace": "n",
            "uid": "uid-k",
            "resourceVersion": "1",
            "generation": 1,
            "annotations": {"flagger.app/primary-revision": "web-00001", "other": "kept"},
        },
        "spec": {"template": {"spec": {"containers": [{"image": "app:2"}]}}, "invented": {"a": 1}},
        "status": {"observedGeneration": 1, "latestCreatedRevisionName": "web-00002"},
    }


class Server:
    """Keeps the objects of one namespace, with the defaults of the CRDs that routes have."""

    def __init__(self, owner: JSON) -> None:
        self.canary = owner
        self.objects: dict[str, dict[str, JSON]] = {}
        self.writes: list[Write] = []
        router = router_for(owner)
        assert router is not None
        self.router: Router = router
        if self.router.name == "knative":
            self.objects["kservices"] = {"web": kservice()}

    def wish(self, share: int = 0, *, mirror: bool = False) -> Wish:
        """What the router is asked for now."""
        target = copy.deepcopy(self.objects.get("kservices", {}).get("web"))
        return Wish(
            canary=copy.deepcopy(self.canary),
            names=names_of(self.canary, None),
            split=Split(share, mirror=mirror),
            objects=copy.deepcopy(self.objects),
            target=target,
            running=True,
        )

    def put(self, plural: str, obj: JSON) -> JSON:
        """Create an object as somebody else."""
        meta = {"uid": f"uid-{plural}", "resourceVersion": "1", "generation": 1, **obj["metadata"]}
        stored = defaulted(plural, merge(obj, {"metadata": {**meta}}))
        self.objects.setdefault(plural, {})[obj["metadata"]["name"]] = stored
        return stored

    def edit(self, plural: str, name: str, patch: JSON) -> None:
        """Change an object as somebody else."""
        self._store(plural, name, merge(self.objects[plural][name], patch))

    def _store(self, plural: str, name: str, new: JSON) -> None:
        old = self.objects[plural][name]
        new = defaulted(plural, new)
        if new == old:
            return
        meta = new["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        if new.get("spec") != old.get("spec"):
            meta["generation"] += 1
        self.objects[plural][name] = new

    def carry_out(self, writes: tuple[Write, ...]) -> tuple[Write, ...]:
        """Do what a router returned, as an API server would."""
        for write in writes:
            self.writes.append(write)
            if write.verb == "create":
                assert write.name not in self.objects.get(write.resource, {})
                assert write.body["metadata"]["name"] == write.name
                self.put(write.resource, copy.deepcopy(write.body))
            else:
                assert write.verb == "patch"
                held = self.objects[write.resource][write.name]
                assert write.precondition == held["metadata"]["resourceVersion"]
                self._store(write.resource, write.name, merge(held, write.body))
        return writes

    def route(
        self, share: int = 0, *, mirror: bool = False, twice: bool = True
    ) -> tuple[Write, ...]:
        """Route, write the status, and see that a second pass has nothing to do."""
        done = self.carry_out(self.router.route(self.wish(share, mirror=mirror)))
        wish = self.wish(share, mirror=mirror)
        self.canary["status"] = merge(self.canary["status"], self.router.status(wish))
        if twice:
            after = self.wish(share, mirror=mirror)
            assert self.router.route(after) == ()
            assert self.router.status(after) == {}
        return done

    def revert(self) -> tuple[Write, ...]:
        """Undo, and see that a second pass has nothing to do."""
        done = self.carry_out(self.router.revert(self.wish()))
        assert self.router.revert(self.wish()) == ()
        return done

    @property
    def http_route(self) -> JSON:
        return self.objects["httproutes"][APEX]

    @property
    def virtual_service(self) -> JSON:
        return self.objects["virtualservices"][APEX]

    def rules(self) -> list[list[tuple[str, int]]]:
        """Backends and weights of every rule, in order, whatever the mesh."""
        if "httproutes" in self.objects:
            return [
                [(ref["name"], ref["weight"]) for ref in rule["backendRefs"]]
                for rule in self.http_route["spec"]["rules"]
            ]
        if "virtualservices" in self.objects:
            return [
                [(one["destination"]["host"], one["weight"]) for one in rule["route"]]
                for rule in self.virtual_service["spec"].get("http")
                or self.virtual_service["spec"]["tcp"]
            ]
        traffic = self.objects["kservices"]["web"]["spec"]["traffic"]
        return [[(one.get("revisionName", "newest"), one["percent"]) for one in traffic]]

    def accept(self, **change: Any) -> None:
        """Answer for every parent of the HTTPRoute, as a gateway does."""
        route = self.http_route
        generation = route["metadata"]["generation"]
        condition = {"status": "True", "reason": "Accepted", "observedGeneration": generation}
        route["status"] = {
            "parents": [
                {
                    "parentRef": copy.deepcopy(reference),
                    "controllerName": "example.com/gateway",
                    "conditions": [{"type": "Accepted", **condition, **change}],
                }
                for reference in route["spec"]["parentRefs"]
            ]
        }


def defaulted(plural: str, obj: JSON) -> JSON:
    """Return a copy with what the API server fills in, written from the CRD and apart from what the routers compare with."""
    obj = copy.deepcopy(obj)
    if plural == "httproutes":
        for parent in obj["spec"].get("parentRefs", []):
            parent.setdefault("group", "gateway.networking.k8s.io")
            parent.setdefault("kind", "Gateway")
        for rule in obj["spec"].setdefault("rules", [{}]):
            _default_rule(rule)
    if plural == "kservices":
        for entry in obj["spec"].get("traffic", []):
            entry.setdefault("latestRevision", "revisionName" not in entry)
    return obj


def _default_rule(rule: JSON) -> None:
    for match in rule.setdefault("matches", [{}]):
        path = match.setdefault("path", {})
        path.setdefault("type", "PathPrefix")
        path.setdefault("value", "/")
        for one in match.get("headers", []) + match.get("queryParams", []):
            one.setdefault("type", "Exact")
    for backend in rule.get("backendRefs", []):
        _default_backend(backend)
        backend.setdefault("weight", 1)
    for one in rule.get("filters", []):
        if "requestMirror" in one:
            _default_backend(one["requestMirror"]["backendRef"])
        if "cors" in one:
            one["cors"].setdefault("maxAge", 5)


def _default_backend(backend: JSON) -> None:
    backend.setdefault("group", "")
    backend.setdefault("kind", "Service")
