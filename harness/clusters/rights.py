"""What a drill must be allowed to do on a cluster that is not ours, asked right by right before anything is made.

The list is data; `harness.clusters.survey` asks the API server (SelfSubjectAccessReview) and `missing` makes sentences of the answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from harness.kube import resource as kinds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from harness.kube.resource import Resource
    from harness.model.timeline import JSON


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one type of object, as the API server is asked for it."""

    namespace: str
    """Empty: on objects of the cluster, or in every namespace."""
    group: str
    resource: str
    """Plural, with a subresource behind a slash, e.g. `serviceaccounts/token`."""
    verb: str
    name: str = ""
    """Of the one object; empty: any."""

    @property
    def what(self) -> str:
        """The type as people write it, e.g. `deployments.apps`."""
        named = f" {self.name}" if self.name else ""
        return (f"{self.resource}.{self.group}" if self.group else self.resource) + named

    def review(self) -> dict[str, Any]:
        """Return the object that asks for it."""
        resource, _, sub = self.resource.partition("/")
        asked = {
            "namespace": self.namespace,
            "group": self.group,
            "resource": resource,
            "subresource": sub,
            "verb": self.verb,
            "name": self.name,
        }
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {key: value for key, value in asked.items() if value},
            },
        }


EVERYTHING: Final = Right("", "*", "*", "*")
"""Who may do this may do all of it, and need not be asked further."""


@dataclass(frozen=True, slots=True)
class Need:
    """A right, and what it is for."""

    right: Right
    why: str
    without: str = ""
    """What a drill does without it, in a sentence; empty: it cannot be run."""


_SEEN: Final = (kinds.POD, kinds.DEPLOYMENT, kinds.REPLICASET, kinds.DAEMONSET, kinds.SERVICE)
"""Types whose objects a drill records, all of them in its namespace."""
_SEEN_TOO: Final = (kinds.EVENT, kinds.RESOURCEQUOTA, kinds.CONFIGMAP, kinds.SECRET)
"""The same, but a drill in a namespace that its user was given goes on without."""
_OF_SOME: Final = (kinds.DAEMONSET, kinds.SERVICE, kinds.CONFIGMAP, kinds.SECRET, kinds.HPA)
"""Types of which some drills do."""
_IDENTITY: Final = (kinds.SERVICEACCOUNT, kinds.ROLE, kinds.ROLEBINDING)
_MAKING: Final = ("get", "create", "patch", "delete")
OPTIONAL_GROUPS: Final = frozenset(
    {
        "keda.sh",
        "gateway.networking.k8s.io",
        "networking.istio.io",
        "serving.knative.dev",
        "coordination.k8s.io",
    }
)
"""Groups whose rights a controller only needs for drills that use them; it is started without them where the user has none to give."""


def needs(
    namespace: str,
    roles: Sequence[JSON],
    absent: Collection[str] = (),
    *,
    group: str = kinds.CANARY.group,
) -> list[Need]:
    """Return what is needed for drills, the most important first.

    Args:
        namespace: That all drills use; empty: each makes one of its own.
        roles: The subject's objects in a drill's namespace (service account, Role, binding); none for a subject that is there already.
        absent: Names of those of its CRDs that the cluster lacks.
        group: API group of the rollout objects.
    """
    canary = replace(kinds.CANARY, group=group)
    found = [] if namespace else _of_cluster(absent)
    for kind in (*_SEEN, canary):
        found += _all(namespace, kind, ("list", "watch"), "what happens is recorded")
    for kind in _SEEN_TOO:
        without = f"{kind.plural} are not recorded" if namespace else ""
        found += _all(namespace, kind, ("list", "watch"), "what happens is recorded", without)
    for kind in (canary, kinds.DEPLOYMENT):
        found += _all(namespace, kind, _MAKING, "the objects of the scenario")
    found += _of_subject(namespace, roles)
    for kind in _OF_SOME:
        without = f"drills that make {kind.plural} cannot be run"
        found += _all(namespace, kind, ("create", "patch", "delete"), "some scenarios", without)
    without = "drills with traffic cannot be run"
    probe = "a pod sends requests, and its log is followed"
    found += _all(namespace, kinds.POD, ("get", "create", "patch", "delete"), probe, without)
    found.append(Need(Right(namespace, "", "pods/log", "get"), probe, without))
    nodes = "which nodes take pods is not known: name them with --nodes"
    found += _all("", kinds.NODE, ("list", "watch"), "nodes are counted", nodes)
    if not namespace:
        without = "drill pods have the cluster's default priority"
        found += _all("", kinds.PRIORITY_CLASS, _MAKING, "drill pods give way to others", without)
    first: dict[Right, Need] = {}
    for need in found:
        first.setdefault(need.right, need)
    return list(first.values())


def _of_cluster(absent: Collection[str]) -> list[Need]:
    why = "each drill makes a namespace of its own"
    found = _all("", kinds.NAMESPACE, ("create", "get", "list", "delete"), why)
    if absent:
        found += _all("", kinds.CRD, _MAKING, f"missing here: {', '.join(sorted(absent))}")
    return found


def _of_subject(namespace: str, roles: Sequence[JSON]) -> list[Need]:
    """Return what its identity needs; in a namespace that the user was given it goes on as the user himself."""
    if not roles:
        return []
    without = "the controller runs with your own credentials" if namespace else ""
    why = "the controller has an identity of its own"
    found = [need for kind in _IDENTITY for need in _all(namespace, kind, _MAKING, why, without)]
    token = Right(namespace, "", "serviceaccounts/token", "create")
    found += [Need(token, why, without), *_granted(namespace, roles, without)]
    if any(obj.get("kind") == "Deployment" for obj in roles):
        log = Right(namespace, "", "pods/log", "get")
        found.append(Need(log, "it runs as a pod", "the report has no log of the controller's"))
    return found


def _all(
    namespace: str, kind: Resource, verbs: Iterable[str], why: str, without: str = ""
) -> list[Need]:
    where = namespace if kind.namespaced else ""
    return [Need(Right(where, kind.group, kind.plural, verb), why, without) for verb in verbs]


def _granted(namespace: str, roles: Sequence[JSON], without: str) -> Iterator[Need]:
    """Yield what the subject is given: nobody can give more than he has (Kubernetes prevents escalation)."""
    for role in roles:
        for rule in role.get("rules") or () if role.get("kind") == "Role" else ():
            for right in rights_of(namespace, rule):
                lacks = without
                if right.group in OPTIONAL_GROUPS:
                    lacks = f"the controller is started without rights on {right.what}"
                yield Need(right, "the controller is given it", lacks)


def rights_of(namespace: str, rule: Mapping[str, Any]) -> Iterator[Right]:
    """Yield the rights in one rule of a Role."""
    for group in rule.get("apiGroups") or ("",):
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                for name in rule.get("resourceNames") or ("",):
                    yield Right(namespace, group, resource, verb, name)


def missing(needed: Iterable[Need], allowed: Mapping[Right, bool]) -> list[Need]:
    """Return the needs whose right is refused; one that could not be asked for is not."""
    return [need for need in needed if not allowed.get(need.right, True)]


def withheld(refused: Iterable[Need]) -> tuple[str, ...]:
    """Return the groups whose rights are taken out of a controller's Role, so that a user who lacks them can make it at all."""
    groups = {need.right.group for need in refused if need.without}
    return tuple(sorted(groups & OPTIONAL_GROUPS))


def told(needed: Iterable[Need]) -> list[str]:
    """Return rights in words, verbs of one type together: `create, delete namespaces (each drill makes …)`."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for need in needed:
        key = need.right.namespace, need.right.what, need.why
        verbs = grouped.setdefault(key, [])
        if need.right.verb not in verbs:
            verbs.append(need.right.verb)
    return [
        f"{', '.join(verbs)} {what}{f' in {namespace}' if namespace else ''} ({why})"
        for (namespace, what, why), verbs in grouped.items()
    ]
