"""What a pod's status says about its one container, in words. Pure functions over raw objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness.model.timeline import JSON

HOPELESS: Final = frozenset(
    {
        "CreateContainerConfigError",
        "ErrImageNeverPull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
    }
)
"""Reasons for which a container waits and that time alone does not mend. The first failed pull (ErrImagePull) is none: it is repeated."""


def container_status(pod: JSON) -> JSON:
    """Return the status of the first container; empty before there is one."""
    rows = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((dict(row) for row in rows if isinstance(row, dict)), {})


def restarts(pod: JSON) -> int:
    """Return how often the container was started again."""
    return int(container_status(pod).get("restartCount") or 0)


def has_begun(pod: JSON) -> bool:
    """Return whether the container runs or ran, so that there is a log."""
    status = container_status(pod)
    state = status.get("state") or {}
    return "running" in state or "terminated" in state or restarts(pod) > 0


def ends(pod: JSON) -> dict[int, str]:
    """Return the ends of the container that its status still tells: number of the start (from 0) -> how it ended, in words."""
    status, count = container_status(pod), restarts(pod)
    found: dict[int, str] = {}
    before = (status.get("lastState") or {}).get("terminated")
    if before and count:
        found[count - 1] = _end(before)
    if last := (status.get("state") or {}).get("terminated"):
        found[count] = _end(last)
    return found


def trouble(pod: JSON) -> str:
    """Return why the container will not run without somebody's help; empty when it may."""
    waiting = (container_status(pod).get("state") or {}).get("waiting") or {}
    return standing(pod) if waiting.get("reason") in HOPELESS else ""


def standing(pod: JSON) -> str:
    """Return how a pod stands: why it is not placed, why its container waits and for which image, or that it runs."""
    name = pod["metadata"]["name"]
    status = container_status(pod)
    state = status.get("state") or {}
    if waiting := state.get("waiting"):
        reason = str(waiting.get("reason", "waiting"))
        image = f" of image {_image(pod)!r}" if "Image" in reason else ""
        return f"pod {name}: {reason}{image}{_said(waiting)}"
    if ended := state.get("terminated"):
        return f"pod {name}: its container ended with {_end(ended)}"
    if "running" in state:
        ready = "" if status.get("ready") else ", not ready yet"
        return f"pod {name} runs{ready}"
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"pod {name}: {condition.get('reason', 'not placed')}{_said(condition)}"
    return f"pod {name}: {(pod.get('status') or {}).get('phase', 'Pending')}"


def refused(deployment: JSON) -> str:
    """Return why a Deployment's pod could not even be made (quota, Pod Security, a webhook); empty when that did not happen."""
    for condition in (deployment.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            return str(condition.get("message") or condition.get("reason") or "")
    return ""


def _image(pod: JSON) -> str:
    containers: Any = (pod.get("spec") or {}).get("containers") or [{}]
    return str(containers[0].get("image", ""))


def _end(terminated: JSON) -> str:
    reason = terminated.get("reason")
    code = f"exit status {terminated.get('exitCode', '?')}"
    return code if reason in {None, "", "Completed", "Error"} else f"{code} ({reason})"


def _said(row: JSON) -> str:
    message = " ".join(str(row.get("message") or "").split())
    return f": {message}" if message else ""
