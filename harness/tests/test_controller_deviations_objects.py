"""Faults in what is made and given back that this controller must not have (O rows of known-deviations).

Here stands what no test of a concern shows yet; which test shows which row is in the controller's README.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from harness.controller.core import services
from harness.controller.core.names import names_of
from harness.tests.controller_sim import Sim, canary, deployment, merge
from harness.tests.controller_targets import stored

JSON = dict[str, Any]
ROLES = Path(__file__).parents[2] / "fixtures" / "rbac" / "controller.yaml"
OWN = {"app": "web", "tier": "front"}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def own_service(**annotations: str) -> JSON:
    """A Service that was there before its Canary, with a selector of two keys."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "n", "annotations": dict(annotations)},
        "spec": {"selector": dict(OWN), "ports": [{"name": "http", "port": 80, "targetPort": 80}]},
    }


def front() -> JSON:
    target = deployment()
    target["spec"]["template"]["metadata"]["labels"] = dict(OWN)
    return target


# -- O8: a Service that was there before gets its selector back ----------------------------------------------------------------


def test_o8_the_first_selector_is_kept_through_releases_and_given_back_in_the_end() -> None:
    sim = Sim()
    sim.add("services", own_service())
    sim.add("deployments", front())
    sim.add("canaries", canary(revertOnDeletion=True))
    sim.run(until="Initialized")
    taken = sim.objects["services", "web"]
    assert taken["spec"]["selector"] == {"app": "web-primary"}
    assert json.loads(taken["metadata"]["annotations"][services.ORIGINAL]) == OWN
    assert "ownerReferences" not in taken["metadata"]
    # Somebody puts the manifest back; what is kept is still what was there first.
    sim.edit("services", "web", {"spec": {"selector": {"app": "web"}}})
    sim.settle()
    sim.remove("canaries", "web")
    sim.run(until="gone")
    sim.settle()
    given = sim.objects["services", "web"]
    assert given["spec"]["selector"] == OWN
    assert services.ORIGINAL not in given["metadata"]["annotations"]
    assert sim.behind("web") == 3


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({services.ORIGINAL: json.dumps(OWN)}, OWN),
        ({LAST_APPLIED: json.dumps({"spec": {"selector": OWN}})}, OWN),
        (
            {services.ORIGINAL: json.dumps(OWN), LAST_APPLIED: '{"spec":{"selector":{"x":"y"}}}'},
            OWN,
        ),
        ({services.ORIGINAL: "{", LAST_APPLIED: "[]"}, {"app": "web"}),
        ({}, {"app": "web"}),
    ],
    ids=["ours", "kubectl's", "ours goes first", "unreadable", "none"],
)
def test_o8_where_the_first_selector_is_found(annotations: JSON, expected: JSON) -> None:
    names = names_of(canary(), deployment())
    held = stored(own_service(**annotations))
    held["spec"]["selector"] = {"app": "web-primary", "left": "over"}
    (write,) = services.give_back(names, held)
    after = merge(held, write.body)
    assert after["spec"]["selector"] == expected
    assert services.give_back(names, after) == ()


# -- O20: budgets stay their owner's business -----------------------------------------------------------------------------------


def test_o20_budgets_are_neither_read_nor_written() -> None:
    rules = [
        rule
        for document in YAML(typ="safe").load_all(ROLES.read_text("utf-8"))
        for rule in (document or {}).get("rules") or ()
    ]
    assert rules
    named = {resource for rule in rules for resource in rule["resources"]}
    assert "poddisruptionbudgets" not in named
