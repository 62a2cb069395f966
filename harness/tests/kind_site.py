"""A cluster of kind as tests use it: as its administrator, and as one of somebody else behind a context of a kubeconfig."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.data import data_path
from harness.tests.drill_process import command

if TYPE_CHECKING:
    from pathlib import Path

    from harness.clusters.local.cluster import LocalCluster

CONTEXT: Final = "acme-dev"
CRDS: Final = ("canaries", "metrictemplates", "alertproviders")
PATIENCE: Final = 180.0


@dataclass(frozen=True)
class Site:
    """The cluster, and a user's kubeconfig that leads to it."""

    cluster: LocalCluster
    config: Path
    """With `CONTEXT`, which is not the current one."""

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """Do something as the cluster's administrator, and return what is printed."""
        done = subprocess.run(
            ["kubectl", "--kubeconfig", str(self.cluster.kubeconfig), *arguments],  # noqa: S607 - that of PATH, as kind uses it
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        """Apply objects as somebody whom the harness does not know."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", given=json.dumps(listed))

    def everything(self, namespace: str) -> dict[str, str]:
        """Return all that is in a namespace but events, as text, by kind and name."""
        kinds = self.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").split()
        kinds = [kind for kind in kinds if not kind.startswith("events")]
        listed = json.loads(self.kubectl("get", ",".join(kinds), "-n", namespace, "-o", "json"))
        return {
            f"{one['kind']}/{one['metadata']['name']}": json.dumps(one, sort_keys=True)
            for one in listed["items"]
        }

    def install_crds(self) -> None:
        """Install the CRDs as somebody's, who has them for himself."""
        for name in CRDS:
            self.kubectl("apply", "-f", str(data_path("fixtures", "crds", f"{name}.yaml")))
        self.kubectl("wait", "--for=condition=Established", "crd", "canaries.flagger.app")

    def remove_crds(self) -> None:
        """Remove them again."""
        names = [f"{name}.flagger.app" for name in CRDS]
        self.kubectl("delete", "crd", *names, "--ignore-not-found")

    def ours(self) -> list[str]:
        """Return the namespaces that carry a run's label."""
        return self.kubectl("get", "namespaces", "-l", "rollout-drill/run", "-o", "name").split()

    def run(self, *arguments: str, config: Path | None = None) -> tuple[int, str]:
        """Run `drill` against the context; return exit status and output."""
        given = config or self.config
        before = _checksum(given)
        where = ("--cluster", f"context:{CONTEXT}")
        result = command(*arguments, *where, within=2 * PATIENCE, KUBECONFIG=str(given))
        assert _checksum(given) == before, "the user's kubeconfig was written to"
        return result


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def users_config(kubeconfig: Path, target: Path, token: str = "") -> Path:
    """Write a user's kubeconfig whose current context leads nowhere; with `token` another identity than the administrator's."""
    from ruamel.yaml import YAML

    document = YAML(typ="safe", pure=True).load(kubeconfig.read_text(encoding="utf-8"))
    (one,) = document["contexts"]
    user = one["context"]["user"]
    if token:
        document["users"] = [{"name": user, "user": {"token": token}}]
    document["contexts"] = [
        {"name": "elsewhere", "context": {"cluster": "elsewhere", "user": user}},
        {"name": CONTEXT, "context": one["context"]},
    ]
    document["clusters"].append({"name": "elsewhere", "cluster": {"server": "https://127.0.0.1:9"}})
    document["current-context"] = "elsewhere"
    target.write_text(json.dumps(document), encoding="utf-8")
    return target


def namespace(name: str) -> dict[str, Any]:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def neighbours(where: str, image: str) -> list[dict[str, Any]]:
    """Return somebody's objects that look just like a drill's: the same names, labels and kinds, a Canary too."""
    labels = {"app": "web"}
    container = {"name": "web", "image": image, "args": ["netexec", "--http-port=8080"]}
    workloads: list[dict[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": where, "labels": {"app": name}},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [container]},
                },
            },
        }
        for name in ("web", "web-primary")
    ]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": where},
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    data = {name: base64.b64encode(b"theirs").decode() for name in ("key",)}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "web", "namespace": where},
        "data": data,
    }
    canary = {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "web", "namespace": where},
        "spec": {
            "provider": "kubernetes",
            "suspend": True,
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "service": {"port": 80},
            "analysis": {"interval": "1m", "threshold": 1, "iterations": 1},
        },
    }
    return [*workloads, service, secret, canary]
