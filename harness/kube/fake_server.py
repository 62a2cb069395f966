"""The requests that a fake API server understands (see `harness.kube.testing`)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.kube import fake_patches as patches
from harness.kube.fake_storage import CREATED, Key, Refusal, Storage, selected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.kube.resource import Resource
    from harness.kube.transport import Request
    from harness.model.timeline import JSON

_PATCHES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "application/merge-patch+json": patches.merge_patch,
    "application/json-patch+json": patches.json_patch,
    "application/strategic-merge-patch+json": patches.strategic,
}
_VERBS: Final = ("create", "delete", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Place:
    """What a path means."""

    resource: Resource
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        """Where the object is stored."""
        return (self.resource.label, self.namespace, self.name)


class Server(Storage):
    """Everything a request can do to what is stored."""

    def names_collection(self, path: str) -> bool:
        """Return whether `path` is that of a list."""
        try:
            return not self.place(path).name
        except Refusal:
            return False

    def plural(self, path: str) -> str:
        """Return the plural in a path, or ""."""
        try:
            return self.place(path).resource.plural
        except Refusal:
            return ""

    def handle(self, method: str, path: str, params: Mapping[str, str], request: Request) -> JSON:
        """Answer a request other than a watch; Refusal for a refusal."""
        if path == "/version":
            return {"gitVersion": "v1.35.4", "major": "1", "minor": "35"}
        if (answer := self._discovery(path)) is not None:
            return answer
        if path.startswith("/openapi/v3/apis/"):
            return self._schemas(path)
        place = self.place(path)
        if method == "GET":
            return self._present(place) if place.name else self._list(place, params)
        if method == "POST":
            return self._create(place, request.body, dry=params.get("dryRun") == "All")
        if method == "DELETE":
            return self._delete(place, request.body or {})
        return self._change(place, params, request)

    def _change(self, place: Place, params: Mapping[str, str], request: Request) -> JSON:
        content, body = request.headers.get("Content-Type", ""), request.body
        if "apply" in content:
            return self._apply(place, body, params)
        old = self._present(place)
        if params.get("dryRun") == "All":
            # Only what a merge patch would leave; nothing is checked and nothing is stored.
            return self.pruned(place.resource.kind, patches.merge_patch(old, body))
        if request.method == "PUT":
            if params.get("dryRun") == "All":
                return {**copy.deepcopy(body), "status": old.get("status", {})}
            return self._write(place, copy.deepcopy(body), old)
        try:
            new: JSON = _PATCHES[content](copy.deepcopy(old), body)
        except ValueError as error:
            raise Refusal(422, "Invalid", str(error)) from error
        # Without a version in the patch there is no precondition on it.
        if not isinstance(body, dict) or "resourceVersion" not in body.get("metadata", {}):
            new["metadata"].pop("resourceVersion", None)
        return self._write(place, new, old)

    def _list(self, place: Place, params: Mapping[str, str]) -> JSON:
        objects = self._objects
        if params.get("resourceVersionMatch") == "Exact":
            objects = self.objects_at(int(params["resourceVersion"]))
        rows = [
            obj
            for key, obj in sorted(objects.items())
            if key[0] == place.resource.label
            and place.namespace in ("", key[1])
            and selected(obj, params)
        ]
        start = int(params.get("continue") or 0)
        limit = int(params.get("limit") or len(rows) + 1)
        metadata = {"resourceVersion": str(self.version)}
        if start + limit < len(rows):
            metadata["continue"] = str(start + limit)
        # As the real server: the items of a list lack apiVersion and kind.
        items = [
            {k: v for k, v in obj.items() if k not in ("apiVersion", "kind")}
            for obj in rows[start : start + limit]
        ]
        kind = f"{place.resource.kind}List"
        return {
            "apiVersion": place.resource.api_version,
            "kind": kind,
            "metadata": metadata,
            "items": copy.deepcopy(items),
        }

    def _create(self, place: Place, body: JSON, *, dry: bool = False) -> JSON:
        if place.subresource or place.resource.group == "authorization.k8s.io":
            return {**body, "status": {"allowed": True, "token": "fake-token"}}
        obj = copy.deepcopy(body)
        metadata = obj.setdefault("metadata", {})
        if not metadata.get("name") and metadata.get("generateName"):
            self._serial += 1
            metadata["name"] = f"{metadata['generateName']}{self._serial:05d}"
        if place.resource.namespaced:
            metadata["namespace"] = place.namespace
            self._namespace_open(place.namespace)
        key = (place.resource.label, place.namespace, metadata["name"])
        if key in self._objects:
            message = f'{place.resource.label} "{metadata["name"]}" already exists'
            raise Refusal(409, "AlreadyExists", message)
        for field_ in ("uid", "resourceVersion", "generation", "creationTimestamp"):
            metadata.pop(field_, None)
        obj.pop("status", None)
        return obj if dry else self._store(place.resource, key, obj)

    def _namespace_open(self, name: str) -> None:
        namespace = self._objects.get(("namespaces", "", name))
        if namespace and namespace["metadata"].get("deletionTimestamp"):
            message = f"namespace {name} is being terminated"
            raise Refusal(403, "Forbidden", message)

    def _write(self, place: Place, new: JSON, old: JSON) -> JSON:
        """Update `old` to `new`, status and the rest apart as the subresource says."""
        metadata = new.setdefault("metadata", {})
        for field_ in ("uid", "resourceVersion"):
            given = metadata.get(field_) or old["metadata"][field_]
            if given != old["metadata"][field_]:
                message = f'{place.resource.label} "{place.name}": the object has been modified'
                raise Refusal(409, "Conflict", message)
        if place.subresource == "status":
            new = {**old, "status": new.get("status", {})}
        else:
            new = {k: v for k, v in new.items() if k != "status"}
            if "status" in old:
                new["status"] = old["status"]
            kept = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "namespace")
            new["metadata"].update({k: v for k, v in old["metadata"].items() if k in kept})
        return self._store(place.resource, place.key, new)

    def _apply(self, place: Place, body: JSON, params: Mapping[str, str]) -> JSON:
        manager = params.get("fieldManager", "")
        managers = self._applied.setdefault(place.key, {})
        wanted = patches.leaves({k: v for k, v in body.items() if k not in ("apiVersion", "kind")})
        old = self._objects.get(place.key)
        foreign = {m: patches.leaves(a) for m, a in managers.items() if m != manager}
        if params.get("force") != "true":
            for other, owned in foreign.items():
                for path, value in wanted.items():
                    if path in owned and owned[path] != value:
                        message = f'conflict with "{other}": .{".".join(path)}'
                        raise Refusal(409, "Conflict", message)
        if old is None:
            created = {**body, "metadata": {**body["metadata"], "name": place.name}}
            managers[manager] = copy.deepcopy(body)
            return self._create(place, created)
        base: Any = old
        for path in patches.leaves(managers.get(manager, {})):
            if path and path not in wanted and not any(path in owned for owned in foreign.values()):
                base = patches.without(base, path)
        new = patches.strategic(base, body)
        answer = self._write(place, new, old)
        managers[manager] = copy.deepcopy(body)
        return answer

    def _delete(self, place: Place, options: JSON) -> JSON:
        obj = self._present(place)
        for key, wanted in (options.get("preconditions") or {}).items():
            if wanted and wanted != obj["metadata"][key]:
                message = (
                    f"precondition failed: {key} in precondition: {wanted}, in object meta: other"
                )
                raise Refusal(409, "Conflict", message)
        if obj["metadata"].get("finalizers"):
            obj["metadata"].setdefault("deletionTimestamp", CREATED)
            return self._store(place.resource, place.key, obj)
        self._remove(place.resource, place.key, options.get("propagationPolicy") == "Orphan")
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def _present(self, place: Place) -> JSON:
        try:
            return copy.deepcopy(self._objects[place.key])
        except KeyError:
            message = f'{place.resource.label} "{place.name}" not found'
            raise Refusal(404, "NotFound", message) from None

    def place(self, path: str) -> Place:
        """Return what a path means; Refusal 404 for a type that is not served."""
        parts = path.strip("/").split("/")
        group, version, *rest = ["", *parts[1:], ""] if parts[0] == "api" else [*parts[1:], "", ""]
        rest = [part for part in rest if part]
        namespace = ""
        if rest[:1] == ["namespaces"] and rest[2:] and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        for resource in self.resources:
            if rest and (group, version, rest[0]) == (
                resource.group,
                resource.version,
                resource.plural,
            ):
                name, subresource, *_ = [*rest[1:], "", ""]
                return Place(resource, namespace, name, subresource)
        raise Refusal(404, "NotFound", "the server could not find the requested resource")

    def _schemas(self, path: str) -> JSON:
        """Return the schemas of one version of a group, as they are published for CRDs."""
        group, version = path.split("/")[-2:]
        schemas = {}
        for crd in self.all("CustomResourceDefinition", None):
            spec = crd["spec"]
            for one in spec["versions"]:
                kind = {
                    "group": spec["group"],
                    "version": one["name"],
                    "kind": spec["names"]["kind"],
                }
                if (spec["group"], one["name"]) == (group, version):
                    schema = (one.get("schema") or {}).get("openAPIV3Schema") or {}
                    schemas[kind["kind"]] = {**schema, "x-kubernetes-group-version-kind": [kind]}
        return {"components": {"schemas": schemas}}

    def _discovery(self, path: str) -> JSON | None:
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        versions = dict.fromkeys((r.group, r.version) for r in self.resources if r.group)
        if path == "/apis":
            groups: dict[str, list[str]] = {}
            for group, version in versions:
                groups.setdefault(group, []).append(version)
            rows = [
                {
                    "name": group,
                    "versions": [{"version": v} for v in names],
                    "preferredVersion": {"version": names[0]},
                }
                for group, names in groups.items()
            ]
            return {"kind": "APIGroupList", "groups": rows}
        for group, version in [("", "v1"), *versions]:
            if path != (f"/apis/{group}/{version}" if group else "/api/v1"):
                continue
            if group in self.broken_groups:
                raise Refusal(503, "ServiceUnavailable", "the aggregated API does not answer")
            types: list[JSON] = [
                {"name": name, "kind": r.kind, "namespaced": r.namespaced, "verbs": list(_VERBS)}
                for r in self.resources
                if (r.group, r.version) == (group, version)
                for name in (r.plural, f"{r.plural}/status")
            ]
            return {"kind": "APIResourceList", "resources": types}
        return None
