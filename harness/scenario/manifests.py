"""Manifests: rendered to plain objects, each with the place that it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.scenario.locate import Path as At
from harness.scenario.locate import dotted
from harness.scenario.problem import Problem, ScenarioError, fold
from harness.scenario.reader import Document, read_text, read_yaml
from harness.scenario.template import Rendered, TemplateFault, inside, render_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.model.resolved import Resolved

TEMPLATE_SUFFIX: Final = ".j2"
CLUSTER_SCOPED: Final = frozenset(
    {
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("networking.k8s.io", "IngressClass"),
        ("gateway.networking.k8s.io", "GatewayClass"),
        ("node.k8s.io", "RuntimeClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
    }
)
"""Kinds of Kubernetes itself that are in no namespace. Of others only the cluster knows; the runner asks it."""
SIMULATED_IMAGE: Final = "registry.k8s.io/pause:3.10"
"""The image of workloads where no container runs: a name, and no more."""
ROLLOUT_KINDS: Final = frozenset({"Canary", "Rollout"})
"""Kinds that carry a promotion; of an adopted set they are applied last."""


@dataclass(frozen=True, slots=True)
class DrillContext:
    """What templates know of the drill, as `drill.namespace`, `drill.run`, `drill.image` and `drill.simulated`."""

    namespace: str = "drill-preview"
    run: str = "preview"
    image: str = SIMULATED_IMAGE
    """Of the workload's containers, on the cluster where the drill runs."""
    simulated: bool = True
    """Whether no container runs there, so that pods do what the label `rollout-drill/pod` says."""
    outside: Mapping[str, str] = field(default_factory=dict)
    """Addresses of the stand-ins by the names that templates have for them; while none runs, placeholders."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object, as it will be applied but for labels and namespace."""

    file: str
    """Name of the manifest in the scenario's `manifests`."""
    index: int
    """Position among the objects of that manifest, from 0."""
    line: int
    """Line in `source`, from 1."""
    object: dict[str, Any]
    source: str = ""
    """File that the object stands in; another than `file` when that one includes it."""


def render(resolved: Resolved, folder: Path, context: DrillContext | None = None) -> list[Manifest]:
    """Return all objects of a scenario's manifests, in the order of `resolved.manifests` and of the files.

    Raises ScenarioError with every problem found. Objects are plain JSON types and always have apiVersion, kind and
    metadata.name. Of an adopted set the rollout object comes last and namespaces are dropped.
    """
    context = context or DrillContext(outside=resolved.placeholders)
    found, problems = collect(
        folder, resolved.manifests, resolved.values, context, adopted=resolved.adopted
    )
    if problems:
        raise ScenarioError(problems)
    return found


def select(manifests: Iterable[Manifest], files: Sequence[str]) -> list[Manifest]:
    """Return the objects that a step applies: those of `files`, in that order; the rollout objects of an adopted set stay last."""
    wanted = list(manifests)
    return [item for name in files for item in wanted if item.file == name]


def collect(
    folder: Path,
    files: Sequence[str],
    values: Mapping[str, Any],
    context: DrillContext,
    *,
    adopted: bool = False,
    shown: str = "",
) -> tuple[list[Manifest], tuple[Problem, ...]]:
    """Return the objects of some manifests and everything that is wrong with them.

    `shown` is put before the names of files in problems, e.g. `scenarios/x/`.
    """
    prefix = shown or f"{folder}/"
    found: list[Manifest] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(files):
        reader = _Reader(folder, name, values, context, adopted=adopted, prefix=prefix)
        found += reader.objects()
        problems += reader.problems
    if adopted:
        found.sort(key=lambda item: item.object.get("kind") in ROLLOUT_KINDS)
    return found, fold(problems)


def group_of(api_version: str) -> str:
    """Return the group of an apiVersion; empty for the core group."""
    return api_version.rpartition("/")[0]


def is_namespace(obj: Mapping[str, Any]) -> bool:
    """Return whether an object is a Namespace."""
    return obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1"


class _Reader:
    """Reads one manifest."""

    def __init__(
        self,
        folder: Path,
        name: str,
        values: Mapping[str, Any],
        context: DrillContext,
        *,
        adopted: bool,
        prefix: str,
    ) -> None:
        self.problems: list[Problem] = []
        self._folder = folder
        self._name = name
        self._values = values
        self._context = context
        self._adopted = adopted
        self._prefix = prefix
        self._rendered = Rendered("", ())

    def objects(self) -> list[Manifest]:
        path = inside(self._folder, self._name)
        if path is None or not path.is_file():
            why = "there is no such file" if path else "lies outside of the scenario's folder"
            self.problems.append(Problem(f"{self._prefix}{self._name}", None, None, "", why))
            return []
        try:
            self._rendered = self._render(path)
            documents = read_yaml(self._rendered.text, self._name, octal=True)
        except TemplateFault as fault:
            file = f"{self._prefix}{fault.file or self._name}"
            self.problems.append(Problem(file, fault.line, None, "", fault.message, fault.allowed))
            return []
        except ScenarioError as error:
            self.problems += [self._moved(problem) for problem in error.problems]
            return []
        return self._check(documents)

    def _render(self, path: Path) -> Rendered:
        if self._adopted or not self._name.endswith(TEMPLATE_SUFFIX):
            return Rendered(read_text(path, self._name), ())
        context = self._context
        drill = {
            "namespace": context.namespace,
            "run": context.run,
            "image": context.image,
            "simulated": context.simulated,
        }
        outside = self._context.outside
        scope = {**self._values, "values": dict(self._values), "drill": drill, **outside}
        return render_file(self._folder, self._name, scope)

    def _moved(self, problem: Problem) -> Problem:
        """Return a problem of the rendered text where it belongs: in the file that the line came from."""
        file, line = self._name, problem.line
        if line is not None:
            file, line = self._rendered.origin(line, self._name)
        return Problem(
            f"{self._prefix}{file}", line, None, problem.field, problem.message, problem.allowed
        )

    def _report(self, document: Document, path: At, message: str, *, key: bool = False) -> None:
        where = document.positions.of_key(path) if key else document.positions.of(path)
        line = where.line if where else document.line
        self.problems.append(self._moved(Problem(self._name, line, None, dotted(path), message)))

    def _check(self, documents: list[Document]) -> list[Manifest]:
        found: list[Manifest] = []
        seen: dict[tuple[str, str, str], int] = {}
        for document in documents:
            for at, obj in self._unlisted(document):
                if not self._well_formed(document, at, obj):
                    continue
                if self._adopted and is_namespace(obj):
                    continue  # the drill's own namespace takes its place
                self._check_place(document, at, obj)
                key = (group_of(obj["apiVersion"]), obj["kind"], obj["metadata"]["name"])
                where = document.positions.of(at)
                file, line = self._rendered.origin(where.line if where else 1, self._name)
                if key in seen:
                    self._report(
                        document,
                        (*at, "metadata", "name"),
                        f"{key[1]} {key[2]!r} is in this manifest twice (first in line {seen[key]})",
                    )
                seen.setdefault(key, line)
                found.append(Manifest(self._name, len(found), line, obj, file))
        return found

    def _unlisted(self, document: Document) -> list[tuple[At, dict[str, Any]]]:
        """Return the objects of a document; a List stands for its items."""
        data = document.data
        if not isinstance(data, dict):
            self._report(document, (), "must be an object with apiVersion, kind and metadata")
            return []
        items = data.get("items")
        if data.get("kind") == "List" and isinstance(items, list):
            return [(("items", i), item) for i, item in enumerate(items) if isinstance(item, dict)]
        return [((), data)]

    def _well_formed(self, document: Document, at: At, obj: dict[str, Any]) -> bool:
        good = True
        for key in ("apiVersion", "kind"):
            if not isinstance(obj.get(key), str) or not obj[key]:
                self._report(
                    document, (*at, key), "is missing" if key not in obj else "must be a text"
                )
                good = False
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str) or not name:
            path = (*at, "metadata", "name")
            generated = isinstance(metadata, dict) and "generateName" in metadata
            hint = "; a generated name cannot be referred to" if generated else ""
            message = "is missing" if name is None else f"must be a text, not {name!r}"
            self._report(document, path, message + hint)
            good = False
        return good

    def _check_place(self, document: Document, at: At, obj: dict[str, Any]) -> None:
        kind = obj["kind"]
        if is_namespace(obj):
            message = "a Namespace is refused; the drill makes its own and everything goes there"
            self._report(document, (*at, "kind"), message)
            return
        if (group_of(obj["apiVersion"]), kind) in CLUSTER_SCOPED:
            message = (
                f"{kind} is cluster-scoped and would outlive the drill's namespace; it is refused"
            )
            self._report(document, (*at, "kind"), message)
            return
        namespace = obj["metadata"].get("namespace")
        if self._adopted:
            obj["metadata"].pop("namespace", None)
        elif namespace is not None and namespace != self._context.namespace:
            message = f"{namespace!r} is refused; leave it out, everything goes to the drill's own namespace"
            self._report(document, (*at, "metadata", "namespace"), message)
