"""The CRDs of metric templates and alert providers on a real API server, and calls that read through it."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from harness.controller.core.analysis import metrics
from harness.controller.core.decision import Alert
from harness.controller.shell.alerting import Alerting
from harness.controller.shell.calls import Calls
from harness.data import data_path
from harness.kube.client import KubeClient
from harness.kube.errors import Invalid, NotFound
from harness.kube.resource import ALERTPROVIDER, CRD, METRICTEMPLATE, NAMESPACE, SECRET
from harness.tests.outside_server import NOW, Log, canary, served

if TYPE_CHECKING:
    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
ME = "rollout-drill"
SPACE = "outside"


def crds() -> list[JSON]:
    found = []
    for plural in ("alertproviders", "metrictemplates"):
        with data_path("fixtures", "crds", f"{plural}.yaml").open(encoding="utf-8") as file:
            found.append(YAML(typ="safe", pure=True).load(file))
    return found


def made(kind: str, name: str, spec: JSON) -> JSON:
    meta = {"name": name, "namespace": SPACE}
    return {"apiVersion": "flagger.app/v1beta1", "kind": kind, "metadata": meta, "spec": spec}


async def served_by_now(client: KubeClient) -> None:
    """Wait until both types are served."""
    async with asyncio.timeout(20):
        for resource in (ALERTPROVIDER, METRICTEMPLATE):
            while True:
                try:
                    await client.list(resource, SPACE)
                except NotFound:
                    await asyncio.sleep(0.1)
                else:
                    break


def test_templates_and_providers_are_kept_and_used(warm_cluster: EmbeddedCluster) -> None:
    async def story(client: KubeClient) -> None:
        for crd in crds():
            await client.apply(CRD, crd, field_manager=ME, force=True)
        await client.create(NAMESPACE, {"metadata": {"name": SPACE}}, field_manager=ME)
        await served_by_now(client)
        await asked_and_told(client)
        bad = made("AlertProvider", "bad", {"type": "pager", "address": "http://a"})
        with pytest.raises(Invalid, match=r"spec\.type"):
            await client.create(ALERTPROVIDER, bad, field_manager=ME)

    async def whole() -> None:
        async with await KubeClient.connect(
            warm_cluster.kubeconfig, warm_cluster.context, user_agent="test"
        ) as client:
            try:
                await story(client)
            finally:
                for crd in crds():
                    await client.delete(CRD, crd["metadata"]["name"])
                await client.delete(NAMESPACE, SPACE)

    asyncio.run(whole())


async def asked_and_told(client: KubeClient) -> None:
    vector = [{"metric": {}, "value": [NOW, "7"]}]
    answer = {"status": "success", "data": {"resultType": "vector", "result": vector}}
    async with served((200, answer)) as source, served(200) as chat:
        token = base64.b64encode(b"t0ken").decode()
        meta = {"name": "s", "namespace": SPACE}
        await client.create(SECRET, {"metadata": meta, "data": {"token": token}}, field_manager=ME)
        provider = {
            "type": "prometheus",
            "address": source.url,
            "secretRef": {"name": "s"},
            "headers": {"X-Scope": ["a"]},
        }
        query = "q{{ variables.v }}"
        template = made("MetricTemplate", "t", {"provider": provider, "query": query})
        await client.create(METRICTEMPLATE, template, field_manager=ME)
        slack = made("AlertProvider", "chat", {"type": "slack", "address": chat.url})
        await client.create(ALERTPROVIDER, slack, field_manager=ME)

        given = canary(
            metrics=[{"name": "m", "templateRef": {"name": "t"}, "templateVariables": {"v": "1"}}],
            alerts=[{"name": "a", "providerRef": {"name": "chat"}}],
        )
        given["metadata"]["namespace"] = SPACE
        log = Log()
        async with Calls(client, log.to, lambda: NOW) as calls:
            (entry,) = metrics.entries(given)
            found = await calls.carry_out(metrics.call(given, entry, "o"), given)
            assert await calls.unsupported(given) == ""
        async with Alerting(client, log.to, lambda: NOW) as alerting:
            await alerting.send(given, Alert("info", "New revision"))
        assert (found.value, source.seen[0].query) == (7.0, {"query": "q1"})
        assert source.seen[0].headers["authorization"] == "Bearer t0ken"
        assert source.seen[0].headers["x-scope"] == "a"
        assert chat.seen[0].body["attachments"][0]["text"] == "New revision"
        assert "t0ken" not in log.text
