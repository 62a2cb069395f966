"""A cluster that asks something of pods: each sort of refusal in the API server's own words, and what a drill makes of one."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from harness.checks.refusals import refusal
from harness.clusters.survey import LIMITRANGE
from harness.kube.errors import ApiError
from harness.kube.resource import NAMESPACE, POD, RESOURCEQUOTA, SERVICEACCOUNT, Resource
from harness.run.adapt import Adaptation, adapted
from harness.tests.drilling import with_client

if TYPE_CHECKING:
    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.kube.client import KubeClient

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
ME = "somebody"
_GROUP = "admissionregistration.k8s.io"
WEBHOOK = Resource(
    _GROUP,
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
POLICY = Resource(
    _GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDING = Resource(
    _GROUP,
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)


def pod(**more: Any) -> JSON:
    container = {"name": "web", "image": "registry.k8s.io/pause:3.10"}
    spec = {"containers": [{**container, **more}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


async def namespace(client: KubeClient, labels: JSON) -> str:
    name = f"asks-{secrets.token_hex(3)}"
    await client.create(NAMESPACE, {"metadata": {"name": name, "labels": labels}}, field_manager=ME)
    async with asyncio.timeout(20):
        # Before there is one, pods are refused for that.
        while not await client.exists(SERVICEACCOUNT, "default", name):  # noqa: ASYNC110 - the server is what is waited for
            await asyncio.sleep(0.1)
    return name


async def words(client: KubeClient, where: str, obj: JSON, sort: str) -> str:
    """Return what a pod is answered, once it is refused for this; a policy is in force a moment after it was made."""
    async with asyncio.timeout(20):
        while True:
            try:
                await client.raw("POST", POD.path(where), {"dryRun": "All"}, obj)
            except ApiError as error:
                found = refusal(str(error))
                if found is not None and found.sort == sort:
                    return found.text
            await asyncio.sleep(0.2)


def refused(
    cluster: EmbeddedCluster, sort: str, labels: JSON, obj: JSON, *made: tuple[Resource, JSON]
) -> str:
    async def run(client: KubeClient) -> str:
        where = await namespace(client, labels)
        try:
            for resource, one in made:
                inside = where if resource.namespaced else None
                await client.create(resource, one, inside, field_manager=ME)
            return await words(client, where, obj, sort)
        finally:
            for resource, one in made:
                if not resource.namespaced:
                    await client.delete(resource, one["metadata"]["name"])
            await client.delete(NAMESPACE, where)

    found: str = with_client(cluster, run)
    return found


def test_a_quota_says_its_name(warm_cluster: EmbeddedCluster) -> None:
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}}
    text = refused(warm_cluster, "quota", {}, pod(), (RESOURCEQUOTA, quota))
    assert text.startswith(
        "refused by ResourceQuota few: pods=1 asked for, pods=0 used, pods=0 allowed"
    )


def test_a_limit_range_says_its_range(warm_cluster: EmbeddedCluster) -> None:
    row = {"type": "Container", "max": {"memory": "1Mi"}}
    limits = {"metadata": {"name": "small"}, "spec": {"limits": [row]}}
    big = pod(resources={"limits": {"memory": "2Mi"}})
    text = refused(warm_cluster, "limits", {}, big, (LIMITRANGE, limits))
    assert "maximum memory usage per Container is 1Mi, but limit is 2Mi" in text


def test_restricted_refuses_what_states_nothing_and_admits_what_the_harness_adds(
    warm_cluster: EmbeddedCluster,
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    text = refused(warm_cluster, "pod-security", labels, pod())
    assert text.startswith("refused by Pod Security (restricted:latest): allowPrivilegeEscalation")

    async def admitted(client: KubeClient) -> JSON:
        where = await namespace(client, labels)
        (obj,), _ = adapted([pod()], Adaptation(restricted=True))
        made = await client.raw("POST", POD.path(where), {"dryRun": "All"}, obj)
        await client.delete(NAMESPACE, where)
        return made

    assert with_client(warm_cluster, admitted)["metadata"]["name"] == "web"


def test_a_webhook_without_an_answer_and_a_policy_say_their_names(
    warm_cluster: EmbeddedCluster,
) -> None:
    mark = f"mark-{secrets.token_hex(3)}"
    selector = {"matchLabels": {mark: "yes"}}
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    hook = {
        "name": f"{mark}.example.com",
        "rules": [rule],
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "namespaceSelector": selector,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    webhook = {"metadata": {"name": mark}, "webhooks": [hook]}
    text = refused(warm_cluster, "webhook-silent", {mark: "yes"}, pod(), (WEBHOOK, webhook))
    assert text.startswith(f"refused by admission webhook {mark}.example.com, which gave no answer")

    constraints = {"resourceRules": [rule], "namespaceSelector": selector}
    denied = {"expression": "false", "message": "no pods here"}
    policy = {
        "metadata": {"name": mark},
        "spec": {"matchConstraints": constraints, "validations": [denied]},
    }
    bound = {
        "metadata": {"name": mark},
        "spec": {"policyName": mark, "validationActions": ["Deny"]},
    }
    text = refused(warm_cluster, "policy", {mark: "yes"}, pod(), (POLICY, policy), (BINDING, bound))
    assert text.startswith(f"refused by ValidatingAdmissionPolicy {mark}: no pods here.")
