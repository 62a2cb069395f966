"""Users' fields survive: whatever the API server keeps in a pod template arrives in the primary, known to us or not."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.templates import REVISION
from harness.kube.client import KubeClient
from harness.kube.resource import CANARY, DEPLOYMENT, NAMESPACE
from harness.tests.controller_sim import canary
from harness.tests.test_controller_embedded import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
ME = "rollout-drill"
OWN: JSON = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "Exists"}],
}
HOST = "kubernetes.io/hostname"
SMALL = {"cpu": "10m", "memory": "8Mi"}


def container(name: str, **more: Any) -> JSON:
    return {"name": name, "image": "registry.k8s.io/pause:3.10", **more}


def term(selector: JSON, **more: Any) -> JSON:
    return {"topologyKey": HOST, "labelSelector": selector, **more}


def pod_spec() -> JSON:
    """Return the fields that Kubernetes got last and some old ones; only those left out that keep pods from running."""
    other = {"matchLabels": {"app": "other"}}
    return {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    term(OWN, matchLabelKeys=["pod-template-hash"])
                ],
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 7,
                        "podAffinityTerm": term(
                            other, mismatchLabelKeys=["tier"], namespaceSelector={}
                        ),
                    }
                ],
            },
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": HOST, "operator": "Exists"}]}
                    ]
                }
            },
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 2,
                "whenUnsatisfiable": "DoNotSchedule",
                "minDomains": 2,
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["pod-template-hash"],
                **term(OWN),
            }
        ],
        "automountServiceAccountToken": False,
        "dnsPolicy": "None",
        "dnsConfig": {
            "nameservers": ["192.0.2.1"],
            "searches": [".", "_under.example"],
            "options": [{"name": "ndots", "value": "1"}, {"name": "rotate"}],
        },
        "enableServiceLinks": False,
        "hostAliases": [{"ip": "192.0.2.2", "hostnames": ["a.example"]}],
        "hostUsers": False,
        "hostnameOverride": "web.example",
        "imagePullSecrets": [{"name": "pull"}],
        "os": {"name": "linux"},
        "preemptionPolicy": "PreemptLowerPriority",
        "resources": {"requests": SMALL, "limits": {"cpu": "100m", "memory": "64Mi"}},
        "securityContext": {
            "appArmorProfile": {"type": "RuntimeDefault"},
            "fsGroup": 2000,
            "fsGroupChangePolicy": "OnRootMismatch",
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seLinuxChangePolicy": "Recursive",
            "seLinuxOptions": {"level": "s0:c1,c2"},
            "seccompProfile": {"type": "Localhost", "localhostProfile": "web.json"},
            "supplementalGroups": [3000],
            "supplementalGroupsPolicy": "Strict",
            "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
        },
        "shareProcessNamespace": True,
        "subdomain": "web",
        "terminationGracePeriodSeconds": 3,
        "tolerations": [
            {"key": "gone", "operator": "Exists", "tolerationSeconds": 0, "effect": "NoExecute"}
        ],
        "volumes": [
            {
                "name": "image",
                "image": {"reference": "registry.example/x:1", "pullPolicy": "Always"},
            },
            {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {
                "name": "tokens",
                "projected": {
                    "defaultMode": 256,
                    "sources": [
                        {
                            "serviceAccountToken": {
                                "audience": "a",
                                "expirationSeconds": 3600,
                                "path": "t",
                            }
                        },
                        {"configMap": {"name": "none", "optional": True}},
                        {
                            "downwardAPI": {
                                "items": [
                                    {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}
                                ]
                            }
                        },
                    ],
                },
            },
        ],
        "initContainers": [
            container(
                "sidecar",
                restartPolicy="Always",
                volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}],
                startupProbe={"exec": {"command": ["true"]}, "failureThreshold": 3},
            )
        ],
        "containers": [
            container(
                "web",
                args=["$(FROM_FILE)"],
                env=[
                    {"name": "odd name, allowed since 1.34", "value": " "},
                    {
                        "name": "FROM_FILE",
                        "valueFrom": {
                            "fileKeyRef": {
                                "volumeName": "scratch",
                                "path": "e",
                                "key": "K",
                                "optional": True,
                            }
                        },
                    },
                    {
                        "name": "CPU",
                        "valueFrom": {
                            "resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}
                        },
                    },
                ],
                envFrom=[{"prefix": "P_", "configMapRef": {"name": "none", "optional": True}}],
                lifecycle={"preStop": {"sleep": {"seconds": 0}}},
                livenessProbe={
                    "grpc": {"port": 8080, "service": "web"},
                    "terminationGracePeriodSeconds": 2,
                },
                ports=[{"name": "http", "containerPort": 8080, "protocol": "SCTP"}],
                readinessProbe={
                    "httpGet": {"port": "http", "httpHeaders": [{"name": "A", "value": "b"}]}
                },
                resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
                resources={"requests": SMALL},
                restartPolicy="Always",
                restartPolicyRules=[
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
                ],
                securityContext={
                    "appArmorProfile": {"type": "Unconfined"},
                    "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
                    "procMount": "Unmasked",
                    "readOnlyRootFilesystem": True,
                },
                terminationMessagePolicy="FallbackToLogsOnError",
                volumeMounts=[
                    {"name": "image", "mountPath": "/image", "subPath": "x", "readOnly": True},
                    {
                        "name": "tokens",
                        "mountPath": "/t",
                        "readOnly": True,
                        "recursiveReadOnly": "IfPossible",
                    },
                ],
            )
        ],
    }


def workload() -> JSON:
    template = {
        "metadata": {
            "labels": {"app": "web", "tier": "front"},
            "annotations": {"example.com/odd": '{"a": [1, "é"]}', "empty": ""},
        },
        "spec": pod_spec(),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "minReadySeconds": 1,
            "revisionHistoryLimit": 3,
            "progressDeadlineSeconds": 61,
            "strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}},
            "selector": {"matchLabels": {"app": "web", "tier": "front"}},
            "template": template,
        },
    }


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Return every scalar and every empty container of a JSON value, with its path."""
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            yield from leaves(item, f"{path}/{key}")
    else:
        yield path, value


def differences(one: Any, other: Any) -> dict[str, tuple[Any, Any]]:
    """Return the leaves in which two JSON values differ; None stands for a leaf that is not there."""
    left, right = dict(leaves(one)), dict(leaves(other))
    return {
        path: (left.get(path), right.get(path))
        for path in sorted(left.keys() | right.keys())
        if left.get(path) != right.get(path)
    }


async def release(place: Place, change: JSON) -> tuple[tuple[JSON, JSON], tuple[JSON, JSON]]:
    """Return target and primary after the first deployment, and after the promotion of a change."""
    client, namespace = place.client, place.namespace
    analysis = {"interval": "1s", "threshold": 1, "iterations": 1}
    rollout = canary(analysis=analysis, progressDeadlineSeconds=60)
    rollout["metadata"]["namespace"] = namespace
    await client.create(DEPLOYMENT, workload(), namespace, field_manager=ME)
    await client.create(CANARY, rollout, namespace, field_manager=ME)
    pairs = []
    for phase, patch in (("Initialized", None), ("Succeeded", change)):
        if patch is not None:
            await client.patch(DEPLOYMENT, "web", namespace, patch, field_manager=ME)
        async with asyncio.timeout(60):
            while ((await place.canary()).get("status") or {}).get("phase") != phase:  # noqa: ASYNC110 - the server is what is waited for
                await asyncio.sleep(0.1)
        target, primary = [
            await client.get(DEPLOYMENT, name, namespace) for name in ("web", "web-primary")
        ]
        pairs.append((target, primary))
    return pairs[0], pairs[1]


def test_every_field_of_the_template_reaches_the_primary(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    # The promotion changes a value, adds a field and removes two; what is removed has to go from the primary too.
    change = {
        "spec": {
            "template": {
                "metadata": {"annotations": {"empty": "no more"}},
                "spec": {"hostAliases": None, "dnsConfig": {"options": None}, "hostname": "added"},
            }
        }
    }

    async def story() -> tuple[tuple[JSON, JSON], tuple[JSON, JSON]]:
        connected = await KubeClient.connect(
            warm_cluster.kubeconfig, warm_cluster.context, user_agent="rollout-drill/test"
        )
        async with connected as client:
            place = Place(client, f"fields-{secrets.token_hex(3)}")
            try:
                await place.prepare(warm_cluster.kubeconfig, warm_cluster.context, tmp_path)
                await place.start()
                return await release(place, change)
            finally:
                await place.subject.kill()
                await client.delete(NAMESPACE, place.namespace)

    first, second = asyncio.run(story())
    # The control: the server knows all these fields and keeps what was given.
    given, kept = dict(leaves(workload())), dict(leaves(first[0]))
    assert {path for path, value in given.items() if kept.get(path) != value} == {"/spec/replicas"}
    selector = "spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0"
    renamed = ("web", "web-primary")
    for target, primary in (first, second):
        revision = primary["spec"]["template"]["metadata"]["annotations"][REVISION]
        assert differences(target["spec"]["template"], primary["spec"]["template"]) == {
            "/metadata/labels/app": renamed,
            f"/metadata/annotations/{REVISION}": (None, revision),
            f"/{selector}/labelSelector/matchLabels/app": renamed,
            "/spec/topologySpreadConstraints/0/labelSelector/matchLabels/app": renamed,
        }
        around = [{**obj["spec"], "template": 0, "replicas": 0} for obj in (target, primary)]
        assert differences(*around) == {"/selector/matchLabels/app": renamed}
    assert second[1]["spec"]["template"]["spec"]["hostname"] == "added"
    assert "hostAliases" not in second[1]["spec"]["template"]["spec"]
