"""Resource types of the API: where they are served, and how their objects are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource type in one version. Two are equal whatever their verbs.

    `group` is empty for the core group. `verbs` is what discovery says can be done with it; it is
    empty on the constants below, which does not mean that nothing can.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    verbs: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects, e.g. `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def label(self) -> str:
        """The type as people write it, e.g. `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the URL path; without `namespace` that of all namespaces together.

        Raises ValueError for a namespaced object that is named without its namespace, since the
        server would answer it with a 404 that says nothing.
        """
        parts = ["apis", self.group] if self.group else ["api"]
        parts.append(self.version)
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        elif self.namespaced and name:
            msg = f"{self.kind} {name!r} is namespaced, but no namespace was given"
            raise ValueError(msg)
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/" + "/".join(quote(part, safe="") for part in parts)


def _core(plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource("", "v1", plural, kind, namespaced)


POD: Final = _core("pods", "Pod")
NODE: Final = _core("nodes", "Node", namespaced=False)
NAMESPACE: Final = _core("namespaces", "Namespace", namespaced=False)
SERVICE: Final = _core("services", "Service")
SECRET: Final = _core("secrets", "Secret")
CONFIGMAP: Final = _core("configmaps", "ConfigMap")
EVENT: Final = _core("events", "Event")
SERVICEACCOUNT: Final = _core("serviceaccounts", "ServiceAccount")
RESOURCEQUOTA: Final = _core("resourcequotas", "ResourceQuota")
DEPLOYMENT: Final = Resource("apps", "v1", "deployments", "Deployment")
REPLICASET: Final = Resource("apps", "v1", "replicasets", "ReplicaSet")
DAEMONSET: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
STATEFULSET: Final = Resource("apps", "v1", "statefulsets", "StatefulSet")
JOB: Final = Resource("batch", "v1", "jobs", "Job")
HPA: Final = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LEASE: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
ROLE: Final = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLEBINDING: Final = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTERROLE: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False
)
CLUSTERROLEBINDING: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
CRD: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
PRIORITY_CLASS: Final = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
CANARY: Final = Resource("flagger.app", "v1beta1", "canaries", "Canary")
METRICTEMPLATE: Final = Resource("flagger.app", "v1beta1", "metrictemplates", "MetricTemplate")
ALERTPROVIDER: Final = Resource("flagger.app", "v1beta1", "alertproviders", "AlertProvider")

KNOWN: Final[tuple[Resource, ...]] = (
    POD,
    NODE,
    NAMESPACE,
    SERVICE,
    SECRET,
    CONFIGMAP,
    EVENT,
    SERVICEACCOUNT,
    RESOURCEQUOTA,
    DEPLOYMENT,
    REPLICASET,
    DAEMONSET,
    STATEFULSET,
    JOB,
    HPA,
    LEASE,
    ROLE,
    ROLEBINDING,
    CLUSTERROLE,
    CLUSTERROLEBINDING,
    CRD,
    CANARY,
    METRICTEMPLATE,
    ALERTPROVIDER,
)


def parse_api_version(api_version: str) -> tuple[str, str]:
    """Return group and version of an `apiVersion`; the core group is the empty string."""
    group, _, version = api_version.rpartition("/")
    return group, version
