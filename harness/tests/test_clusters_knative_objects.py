"""Knative's manifests on an embedded cluster: what is added to them, what stays, and how its programs are started."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from harness.clusters.knative import names, site
from harness.clusters.knative.components import components
from harness.clusters.knative.names import INGRESS_CLASS, NAMESPACE
from harness.clusters.knative.objects import (
    CONFIG,
    REGISTRIES,
    called_at,
    configured,
    registrations,
    simulated,
)
from harness.clusters.knative.programs import Programs

JSON = dict[str, Any]
PORT: Final = 41234
MAPS: Final[list[JSON]] = [
    {"kind": "ConfigMap", "metadata": {"name": name}, "data": {"_example": "shown"}}
    for name in (*CONFIG, "config-logging")
]
HOOKS: Final[list[JSON]] = [
    {"kind": "Secret", "metadata": {"name": "webhook-certs"}},
    {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "validation"},
        "webhooks": [
            {"clientConfig": {"service": {"name": "webhook", "namespace": NAMESPACE}}},
            {"clientConfig": {"service": {"name": "webhook", "namespace": NAMESPACE}}},
        ],
    },
]
ACTIVATOR: Final[list[JSON]] = [
    {
        "kind": "Deployment",
        "metadata": {"name": "activator"},
        "spec": {
            "template": {
                "spec": {
                    "terminationGracePeriodSeconds": 600,
                    "containers": [{"image": "ko://x", "resources": {"requests": {"cpu": "9"}}}],
                }
            }
        },
    },
    {"kind": "Service", "metadata": {"name": "activator-service"}},
]


def by_name(documents: list[JSON]) -> dict[str, JSON]:
    return {one["metadata"]["name"]: one for one in documents}


def test_keys_are_added_to_configmaps_and_everything_else_stays() -> None:
    found = by_name(configured([*MAPS, {"kind": "Namespace", "metadata": {"name": "x"}}]))
    assert set(found) == {*CONFIG, "config-logging"}
    for name, added in CONFIG.items():
        assert found[name]["data"] == {"_example": "shown", **added}
    assert found["config-logging"]["data"] == {"_example": "shown"}
    assert all("lease-duration" not in one["data"] for one in MAPS), "documents are kept and shared"


def test_a_configmap_without_data_gets_some_and_a_missing_one_is_noticed() -> None:
    bare = [{k: v for k, v in one.items() if k != "data"} for one in MAPS]
    assert by_name(configured(bare))["config-gc"]["data"] == CONFIG["config-gc"]
    with pytest.raises(KeyError, match="config-gc"):
        configured(one for one in MAPS if one["metadata"]["name"] != "config-gc")


def test_what_drills_rely_on_is_configured() -> None:
    assert CONFIG["config-network"]["ingress-class"] == INGRESS_CLASS
    skipped = CONFIG["config-deployment"]["registries-skipping-tag-resolving"].split(",")
    # The images of the scenarios, of Knative's own objects here, and names without a registry.
    assert {"registry.example", "dev.local", "index.docker.io"} <= {*skipped} == {*REGISTRIES}


def test_every_webhook_is_called_at_our_port_by_a_name_for_localhost() -> None:
    service, secret, validation = called_at(HOOKS, PORT)
    assert service["spec"] == {"type": "ExternalName", "externalName": "localhost"}
    assert (service["metadata"]["namespace"], service["metadata"]["name"]) == (NAMESPACE, "webhook")
    assert secret == HOOKS[0]
    for hook in validation["webhooks"]:
        assert hook["clientConfig"]["service"] == {
            "name": "webhook",
            "namespace": NAMESPACE,
            "port": PORT,
        }
    assert "port" not in HOOKS[1]["webhooks"][0]["clientConfig"]["service"]
    assert registrations([service, secret, validation]) == ["validation"]


def test_the_activator_is_one_pod_that_fits_any_node_and_goes_at_once() -> None:
    deployment, service = simulated(ACTIVATOR)
    assert deployment["spec"]["replicas"] == 1
    pod = deployment["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 1
    assert pod["containers"] == [{"image": "dev.local/activator:simulated"}]
    assert service == ACTIVATOR[1]
    assert "replicas" not in ACTIVATOR[0]["spec"]


def test_each_program_is_started_with_knatives_identity_and_nothing_leads_out() -> None:
    programs = Programs(Path("/b/webhook"), Path("/b/controller"), Path("/b/autoscaler"))
    made = {one.name: one for one in components(programs, Path("/k"))}
    assert {name: str(one.program) for name, one in made.items()} == {
        "knative-webhook": "/b/webhook",
        "knative-controller": "/b/controller",
        "knative-autoscaler": "/b/autoscaler",
    }
    for one in made.values():
        assert one.args[:2] == ("-kubeconfig", "/k")
        assert one.env["SYSTEM_NAMESPACE"] == NAMESPACE
        assert one.env["HTTP_PROXY"] == f"http://{names.HOST}:{site.DATAPLANE_PORT}"
        assert one.env["HTTPS_PROXY"] == "http://127.0.0.1:9"
    # Ports that would meet in one namespace.
    assert len({one.env["PROFILING_PORT"] for one in made.values()}) == len(made)
    assert made["knative-webhook"].env["WEBHOOK_PORT"] == str(site.INNER_WEBHOOK_PORT)
    assert not made["knative-autoscaler"].env["POD_IP"].startswith("127.")
    assert [name for name, one in made.items() if "-disable-ha" in one.args] == ["knative-webhook"]
