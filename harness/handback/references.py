"""Which ConfigMaps and Secrets a pod template refers to (spec objects 6). Nothing is left out here; that Flagger itself chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.timeline import JSON

Reference = tuple[str, str]
"""Kind and name."""


def references(target: JSON) -> list[Reference]:
    """Return what the pods of a target refer to, each once; nothing for a target without a template."""
    pod: JSON = ((target.get("spec") or {}).get("template") or {}).get("spec") or {}
    found = [*_of_volumes(pod), *_of_containers(pod)]
    return list(dict.fromkeys((kind, name) for kind, name in found if name))


def _of_volumes(pod: JSON) -> Iterator[Reference]:
    for volume in pod.get("volumes") or ():
        yield "ConfigMap", _name(volume, "configMap", "name")
        yield "Secret", _name(volume, "secret", "secretName")
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield "ConfigMap", _name(source, "configMap", "name")
            yield "Secret", _name(source, "secret", "name")


def _of_containers(pod: JSON) -> Iterator[Reference]:
    for group in ("containers", "initContainers"):
        for container in pod.get(group) or ():
            for variable in container.get("env") or ():
                source = variable.get("valueFrom") or {}
                yield "ConfigMap", _name(source, "configMapKeyRef", "name")
                yield "Secret", _name(source, "secretKeyRef", "name")
            for source in container.get("envFrom") or ():
                yield "ConfigMap", _name(source, "configMapRef", "name")
                yield "Secret", _name(source, "secretRef", "name")


def _name(holder: JSON, key: str, field: str) -> str:
    return str((holder.get(key) or {}).get(field) or "")
