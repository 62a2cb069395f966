"""Does the primary run what the target holds? Both templates compared, with the primary's rewriting reversed (D11).

A primary that another controller made differs from its target on purpose: in the value of the selector label, in the names of its
ConfigMaps and Secrets (`X-primary`), in an annotation that names the revision, and in the terms that name the workload, which
every version rewrites in places of its own. All that is levelled here. What is left is told with its path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.canonical import without_nulls
from harness.controller.core.names import PRIMARY_SUFFIX
from harness.controller.core.ownership import without_toolkit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.controller.core.decision import JSON
    from harness.controller.core.names import Names

REVISION: Final = "flagger-id"
"""Pod annotation of a primary that names its revision; never part of what is compared."""

_REFERENCES: Final = frozenset(
    {"configMap", "secret", "configMapKeyRef", "secretKeyRef", "configMapRef", "secretRef"}
)
_REFERENCE_NAMES: Final = frozenset({"name", "secretName"})
_SELECTOR: Final = "labelSelector"
_LABELS: Final = ("metadata", "labels")
_ABSENT: Final = object()
_SHOWN: Final = 3

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the templates differ."""

    path: Path
    lost: bool = False
    """The target has a field there and the primary has none: what a client that does not know the field loses (O1)."""

    def __str__(self) -> str:
        return ".".join(self.path)


def differences(names: Names, target: JSON, primary: JSON) -> tuple[Difference, ...]:
    """Return where the pod templates of a target and its primary differ in more than the rewriting."""
    selected = frozenset(target["spec"]["selector"].get("matchLabels") or {})
    wanted, present = (
        _levelled(workload["spec"]["template"], selected) for workload in (target, primary)
    )
    return tuple(_walk((), wanted, present, names))


def summary(found: tuple[Difference, ...]) -> str:
    """Return the first places in words."""
    shown = ", ".join(str(difference) for difference in found[:_SHOWN])
    more = len(found) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def images_differ(one: JSON, other: JSON) -> bool:
    """Whether two pod specs differ in the image of any container, by name, or in the set of names (B4)."""
    return _images(one) != _images(other)


def _images(pod_spec: JSON) -> dict[tuple[str, str], str]:
    return {
        (group, container["name"]): container.get("image", "")
        for group in ("initContainers", "containers")
        for container in pod_spec.get(group) or []
    }


def _levelled(template: JSON, selected: frozenset[str]) -> JSON:
    """Return a template without what is never copied, and without maps that hold nothing."""
    template = without_nulls(template)
    meta = template.get("metadata") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    kept = without_toolkit(labels) | {key: labels[key] for key in selected if key in labels}
    notes = {key: value for key, value in without_toolkit(annotations).items() if key != REVISION}
    meta = {**meta, "labels": kept, "annotations": notes}
    spec = {key: value for key, value in (template.get("spec") or {}).items() if value != {}}
    return {**template, "metadata": meta, "spec": spec}


def _walk(path: Path, wanted: Any, present: Any, names: Names) -> Iterator[Difference]:
    if isinstance(wanted, dict) and isinstance(present, dict):
        for key in sorted({*wanted, *present}):
            inner = wanted.get(key, _ABSENT), present.get(key, _ABSENT)
            yield from _walk((*path, key), *inner, names)
    elif isinstance(wanted, list) and isinstance(present, list):
        for index, (one, other) in enumerate(zip(wanted, present, strict=False)):
            yield from _walk((*path, _name(one, index)), one, other, names)
        if len(wanted) != len(present):
            # Clients lose fields, never items of a list.
            yield Difference(path)
    elif wanted != present and not _rewritten(path, wanted, present, names):
        yield Difference(path, lost=present is _ABSENT)


def _name(item: Any, index: int) -> str:
    return str(item["name"]) if isinstance(item, dict) and "name" in item else str(index)


def _rewritten(path: Path, wanted: Any, present: Any, names: Names) -> bool:
    """Whether a value differs only because it stands in a primary."""
    if not isinstance(wanted, str) or present != wanted + PRIMARY_SUFFIX:
        return False
    if path == (*_LABELS, names.label):
        return True
    if _SELECTOR in path:
        return wanted in (names.value, names.target)
    reference = path[-2:-1] and (path[-2] in _REFERENCES)
    return bool(reference) and path[-1] in _REFERENCE_NAMES
