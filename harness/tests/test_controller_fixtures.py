"""The CRD and the roles that the controller ships."""

from __future__ import annotations

import asyncio
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from harness.controller.shell.schema import published
from harness.data import data_path
from harness.kube.resource import CANARY
from harness.kube.testing import run_virtual
from harness.tests.controller_sim import canary, merge
from harness.tests.test_controller_shell import Stage

JSON = dict[str, Any]


def documents(*parts: str) -> list[JSON]:
    with data_path("fixtures", *parts).open(encoding="utf-8") as file:
        return list(YAML(typ="safe", pure=True).load_all(file))


def version() -> JSON:
    (crd,) = documents("crds", "canaries.yaml")
    found: JSON = crd["spec"]["versions"][0]
    return found


def accepted(obj: JSON) -> bool:
    schema = version()["schema"]["openAPIV3Schema"]
    return bool(jsonschema.Draft7Validator(schema).is_valid(obj))


ANALYSIS: JSON = {"interval": "1m30s", "threshold": 2}
TARGET: JSON = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


@pytest.mark.parametrize(
    ("spec", "valid"),
    [
        ({}, True),
        ({"provider": "gatewayapi:v1"}, True),
        ({"provider": "haproxy"}, False),
        ({"targetRef": None}, False),
        ({"targetRef": TARGET | {"kind": "StatefulSet"}}, False),
        ({"analysis": None}, False),
        ({"service": {"port": None}}, False),
        ({"service": {"retries": {"anything": {"goes": 1}}}}, True),
        ({"analysis": ANALYSIS | {"iterations": None, "stepWeights": [1, 5]}}, True),
        ({"analysis": ANALYSIS | {"iterations": 1, "stepWeight": 5}}, False),
        ({"analysis": {"interval": "2h"}}, False),
        ({"service": {"trafficDistribution": "PreferSomewhere"}}, False),
    ],
)
def test_the_schema_knows_the_api(spec: JSON, *, valid: bool) -> None:
    assert accepted(merge(canary(), {"spec": spec})) is valid


def test_every_field_that_the_controller_writes_is_in_the_schema() -> None:
    async def story() -> JSON:
        stage = Stage()
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            stage.change("app:2")
            await stage.reaches("Succeeded")
            await asyncio.sleep(1)
        return stage.cluster.get("Canary", "web", "n") or {}

    seen = run_virtual(story())
    assert accepted(seen)
    known = version()["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert set(seen["status"]) <= set(known)
    assert {"lastTrackedRevision", "trackedConfigs"} <= set(known)
    condition = known["conditions"]["items"]["properties"]
    assert all(set(entry) <= set(condition) for entry in seen["status"]["conditions"])


def test_the_role_allows_what_is_done() -> None:
    async def story() -> Stage:
        stage = Stage()
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            stage.cluster.update("Service", "web", "n", {"spec": {"selector": {"app": "web"}}})
            stage.change("app:2")
            await stage.reaches("Succeeded")
            # A CRD that prunes the fence, and a status that another controller wrote.
            stage.cluster.prune("Canary", "status", "lastTrackedRevision")
            await stage.until(lambda: bool(stage.annotation), 60)
        stage.hand_over(lost=True)
        async with stage.controller():
            await stage.until(lambda: stage.status["lastAppliedSpec"].startswith("v2:"))
        return stage

    def done(path: str) -> str:
        parts = path.split("/namespaces/n/")[1].split("/")
        return "/".join([parts[0], *parts[2:]])

    stage = run_virtual(story())
    # The published schema is for everybody who may log in.
    asked = [each for each in stage.cluster.requests if each.path != published(CANARY)]
    used = {(done(each.path), each.verb) for each in asked}
    role = next(doc for doc in documents("rbac", "controller.yaml") if doc["kind"] == "Role")
    allowed = {
        (resource, verb)
        for entry in role["rules"]
        for resource in entry["resources"]
        for verb in entry["verbs"]
    }
    # That nothing else is allowed is shown from the code, in test_controller_manifest.
    assert used <= allowed
    assert {("deployments", "update"), ("canaries/status", "patch"), ("events", "create")} <= used
