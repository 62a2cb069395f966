"""The pod that asks: its manifest, and what keeps it from running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.model.traffic import PART_LABEL, PROBE

if TYPE_CHECKING:
    from harness.model.timeline import JSON
    from harness.model.traffic import Traffic

CONTAINER: Final = "probe"
_USER: Final = 65532
_MEMORY: Final = "64Mi"


def probe_pod(name: str, image: str, url: str, traffic: Traffic) -> JSON:
    """Return the manifest of a pod that asks `url`, and may run under Pod Security's `restricted`."""
    arguments = [
        "probe",
        f"--url={url}",
        f"--rate={traffic.rate}",
        f"--timeout={round(traffic.timeout * 1000)}ms",
    ]
    if traffic.host:
        arguments.append(f"--host={traffic.host}")
    if traffic.keep_alive:
        arguments.append("--keep-alive")
    container = {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments,
        # No limit of CPU: being throttled would look like a slow answer.
        "resources": {
            "requests": {"cpu": "20m", "memory": _MEMORY},
            "limits": {"memory": _MEMORY},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {PART_LABEL: PROBE}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }


def address(service: str, port: int, path: str) -> str:
    """Return the URL of a Service, by a name that pods of the same namespace can use."""
    return f"http://{service}:{port}{path}"


def first_port(service: JSON) -> int:
    """Return the port of a Service that is asked unless another one is said; 0 where it has none."""
    ports = (service.get("spec") or {}).get("ports") or [{}]
    return int(ports[0].get("port", 0))


def ran(pod: JSON | None) -> bool:
    """Return whether a pod's container was started."""
    return _status(pod).get("phase") in {"Running", "Succeeded", "Failed"}


def trouble(pod: JSON | None) -> str:
    """Return in words why a pod does not run, or runs no more; empty where it says nothing."""
    status = _status(pod)
    if pod is None:
        return "it was not seen"
    for row in status.get("containerStatuses") or ():
        for state in (row.get("state") or {}).values():
            told = [str(state.get(key, "")) for key in ("reason", "message")]
            if any(told):
                return ": ".join(text for text in told if text)
    for condition in status.get("conditions") or ():
        if condition.get("status") == "False" and condition.get("message"):
            return str(condition["message"])
    return f"phase {status.get('phase', '')}"


def _status(pod: JSON | None) -> dict[str, Any]:
    return (pod or {}).get("status") or {}
