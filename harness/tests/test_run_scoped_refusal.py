"""When a drill does not enter a namespace that others use: one sentence, before anything is made."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model.timeline import RolloutKind
from harness.run.scoped_refusal import refusal

ROLLOUT = RolloutKind()


def obj(kind: str, name: str, spec: Any = None, **labels: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "labels": labels}, "spec": spec or {}}


def workload(name: str = "web", **labels: str) -> dict[str, Any]:
    own = {"app": name}
    template = {"metadata": {"labels": {**own, **labels}}}
    return obj("Deployment", name, {"selector": {"matchLabels": own}, "template": template})


WANTED = [
    workload(team="a"),
    obj("ConfigMap", "settings"),
    obj("Canary", "rollout", {"targetRef": {"name": "web"}, "service": {"name": "shop"}}),
]


def why(*there: dict[str, Any], acts: bool = True) -> str:
    return refusal("team", WANTED, there, ROLLOUT, acts=acts)


@pytest.mark.parametrize(
    ("there", "says"),
    [
        (obj("Deployment", "web"), "Deployment web is in it, and a manifest of the scenario"),
        (obj("Deployment", "web-primary"), "and the controller of this drill makes one"),
        (obj("Service", "shop-canary"), "Service shop-canary is in it"),
        (obj("ConfigMap", "settings-primary"), "ConfigMap settings-primary is in it"),
        (obj("Canary", "theirs"), "Canary theirs of somebody else is in it"),
        (
            obj("Service", "x", {"selector": {"app": "web"}}),
            "Service x of somebody else selects app=web",
        ),
        (obj("Service", "x", {"selector": {"team": "a"}}), "selects team=a"),
        (
            obj("Service", "x", {"selector": {"app": "web-primary", "team": "a"}}),
            "app=web-primary,team=a",
        ),
        (obj("Pod", "p", app="web"), "Pod p of somebody else has app=web"),
        (
            obj("Pod", "p", app="web-primary", more="x"),
            "has app=web-primary, which the drill's objects select",
        ),
    ],
)
def test_what_would_be_confused_is_named(there: dict[str, Any], says: str) -> None:
    sentence = why(there)
    assert sentence.startswith(
        "Namespace team cannot be used by this drill, and nothing was made there: "
    )
    assert says in sentence
    assert sentence.endswith(".")
    assert sentence.count("\n") == 0


@pytest.mark.parametrize(
    "there",
    [
        obj("Deployment", "other"),
        obj("Job", "web-primary"),
        obj("Service", "x", {"selector": {"app": "other"}}),
        obj("Service", "x", {"selector": {"app": "web", "team": "b"}}),
        obj("Service", "everything", {}),
        obj("Pod", "p", app="other", team="a"),
    ],
)
def test_what_is_only_near_is_no_reason(there: dict[str, Any]) -> None:
    assert why(there) == ""


def test_a_controller_that_is_there_already_acts_on_others_anyway() -> None:
    assert why(obj("Canary", "theirs"), acts=False) == ""
    assert why(obj("Canary", "rollout"), acts=False) != ""
