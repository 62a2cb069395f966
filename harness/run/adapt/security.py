"""Containers that pass the Pod Security standard `restricted`, where they say nothing about it themselves.

Everything is stated for the container, never for the pod: a user that the pod states would be that of every other container, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.run.adapt.pods import containers, label, listed, pod_spec

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from harness.model.timeline import JSON

USER: Final = 65532
"""The user of images that are built to run without root."""
_SHARED: Final[dict[str, Any]] = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What a pod may state for all of its containers; then that counts."""
_OWN: Final[dict[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def unprivileged(objects: Sequence[JSON], images: Collection[str] | None) -> list[str]:
    """Give containers of `objects`, in place, a security context that `restricted` admits; return sentences about it.

    Args:
        objects: Raw objects.
        images: Only containers that run one of these, which are known to need no root; None: all of them, where anything else would
            not be admitted. A container that states a security context is left as it is, whatever it states.
    """
    changed: list[str] = []
    for obj in objects:
        spec = pod_spec(obj)
        if spec is None or (spec.get("os") or {}).get("name") == "windows":
            continue
        stated = spec.get("securityContext") or {}
        if stated.get("runAsUser") == 0 or stated.get("runAsNonRoot") is False:
            continue  # it wants root
        for container in containers(spec):
            known = images is None or container.get("image") in images
            if container.get("securityContext") or not known:
                continue
            shared = {key: value for key, value in _SHARED.items() if key not in stated}
            if "runAsNonRoot" in stated:
                shared.pop("runAsUser", None)  # then the image has a user of its own
            container["securityContext"] = {
                **{key: _copied(value) for key, value in shared.items()},
                **{key: _copied(value) for key, value in _OWN.items()},
            }
            changed.append(label(obj))
    if not changed:
        return []
    text = (
        f"Containers of {listed(changed)} that state no security context have one that the Pod Security standard restricted admits "
        f"(user {USER}, no root, no privilege escalation, no capabilities, the runtime's seccomp profile)."
    )
    return [text]


def _copied(value: Any) -> Any:
    return {**value} if isinstance(value, dict) else value
