"""The controller beside a Flagger: everything of a Canary's group follows `--api-group`, and Flagger's Canaries are nobody's business."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core.configs.checksums import look
from harness.controller.core.configs.copies import copies
from harness.controller.core.names import names_of
from harness.controller.core.ownership import owner_reference
from harness.controller.options import OptionsError, parse
from harness.controller.shell.references import References
from harness.kube.resource import ALERTPROVIDER, CANARY, METRICTEMPLATE
from harness.kube.testing import run_virtual
from harness.run.adapt.group import moved, moved_resource
from harness.tests.controller_sim import canary, configmap, deployment, with_configmap
from harness.tests.test_controller_shell import Stage

JSON = dict[str, Any]
GROUP = "run-1.rollout-drill.dev"
VERSION = f"{GROUP}/v1beta1"


class Private(Stage):
    """A cluster with Canaries of both groups; those of the private one are what `stage.phase` and the others speak of."""

    def __init__(self) -> None:
        super().__init__()
        public = list(self.cluster.server.resources)
        private = [moved_resource(one, GROUP) for one in public]
        own = [one for one in private if one not in public]
        self.cluster.server.resources[:] = [*own, *public]

    def apply(self, **spec: Any) -> None:
        wanted = canary(**spec) | {"apiVersion": CANARY.api_version}
        theirs = {**wanted, "metadata": {**wanted["metadata"], "name": "theirs"}}
        for obj in (theirs, deployment(), moved(wanted, GROUP)):
            obj["metadata"] |= {"generation": 1}
            self.cluster.add(obj)


def test_a_release_of_another_group_touches_nothing_of_flaggers() -> None:
    async def story() -> Private:
        stage = Private()
        async with stage.controller(api_group=GROUP):
            await stage.until(lambda: bool(stage.events("ready")), 1)
            stage.apply()
            await stage.reaches("Initialized", 3)
            stage.change("app:2")
            await stage.reaches("Succeeded", 10)
        return stage

    stage = run_virtual(story())
    paths = {asked.path for asked in stage.cluster.requests}
    assert any(f"/apis/{VERSION}/namespaces/n/canaries/web/status" in path for path in paths)
    assert not any("/flagger.app/" in path for path in paths)
    owners = {
        owner["apiVersion"]
        for kind in ("Deployment", "Service")
        for obj in stage.cluster.objects(kind, "n")
        for owner in obj["metadata"].get("ownerReferences", [])
    }
    # One of Flagger's group would name an owner that is not there: the garbage collector would take the object away.
    assert owners == {VERSION}
    about = {event["involvedObject"]["apiVersion"] for event in stage.cluster.objects("Event", "n")}
    assert about == {VERSION}


def test_metrics_and_receivers_are_read_in_that_group() -> None:
    async def story() -> list[str]:
        stage = Private()
        for one in (METRICTEMPLATE, ALERTPROVIDER):
            meta = {"name": "x", "namespace": "n"}
            stage.cluster.add({"apiVersion": VERSION, "kind": one.kind, "metadata": meta})
        references = References(stage.cluster.client(), group=GROUP)
        await references.template("x", "n")
        await references.alert_provider("x", "n")
        return [asked.path for asked in stage.cluster.requests]

    paths = run_virtual(story())
    assert paths == [
        f"/apis/{VERSION}/namespaces/n/metrictemplates/x",
        f"/apis/{VERSION}/namespaces/n/alertproviders/x",
    ]


@pytest.mark.parametrize(("group", "foreign"), [("flagger.app", True), (GROUP, False)])
def test_a_copy_that_belongs_to_a_canary_of_another_group_is_foreign(
    group: str, *, foreign: bool
) -> None:
    target = with_configmap(deployment())
    mine = canary() | {"apiVersion": VERSION}
    mine["metadata"]["uid"] = "mine"
    original = configmap(colour="green")
    name = original["metadata"]["name"]
    owner = owner_reference(mine) | {"apiVersion": f"{group}/v1beta1", "name": "b", "uid": "b"}
    meta = {"name": f"{name}-primary", "ownerReferences": [owner], "resourceVersion": "1"}
    copy = {**configmap(colour="red"), "metadata": {**original["metadata"], **meta}}
    objects = {"configmaps": {name: original, f"{name}-primary": copy}, "secrets": {}}
    found = copies(mine, names_of(mine, target), look(target["spec"]["template"], objects), objects)
    assert ("belongs to Canary 'b'" in found.problem) is foreign
    assert bool(found.writes) is not foreign


def test_a_group_is_a_domain() -> None:
    given = ("--kubeconfig", "f", "--namespace", "n")
    assert parse(given, prog="x").api_group == "flagger.app"
    assert parse((*given, f"--api-group={GROUP}"), prog="x").api_group == GROUP
    with pytest.raises(OptionsError, match="'canaries' is not an API group"):
        parse((*given, "--api-group=canaries"), prog="x")
