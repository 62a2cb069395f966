"""What whoever runs the controller has chosen for every Canary: it arrives in the decisions, and the defaults change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.controller.core import World, configs, decide
from harness.controller.core.names import names_of
from harness.controller.core.ownership import included
from harness.controller.core.policy import Policy
from harness.controller.core.support import refusal
from harness.controller.options import Options
from harness.controller.shell.cache import CANARIES, DEPLOYMENTS, Cache
from harness.tests.controller_sim import canary, configmap, deployment, image, merge, running
from harness.tests.controller_sim_make import with_configmap
from harness.tests.controller_targets import applied, kind_of, pair_of, stored

JSON = dict[str, Any]


def test_options_become_a_policy_and_the_defaults_are_the_same() -> None:
    assert Options(namespace="n").policy == Policy()
    given = Options(
        namespace="n",
        selector_labels=("tier",),
        include_label_prefix=("team/",),
        cross_namespace_refs=False,
        no_verdict_timeout=7,
    )
    expected = Policy(("tier",), ("team/",), cross_namespace_refs=False, no_verdict_timeout=7)
    assert given.policy == expected


def test_the_cache_gives_it_to_every_world() -> None:
    policy = Policy(("tier",))
    cache = Cache(policy=policy)
    cache.put(CANARIES, stored(canary()))
    cache.put(DEPLOYMENTS, stored(deployment()))
    assert cache.world(stored(canary())).policy is policy


# -- the selector label ------------------------------------------------------------------------------------------------------


def two_labels() -> JSON:
    target = deployment()
    labels = {"app": "web", "tier": "front"}
    target["spec"]["selector"]["matchLabels"] = labels
    target["spec"]["template"]["metadata"]["labels"] = dict(labels)
    return target


@pytest.mark.parametrize(
    ("keys", "label"),
    [
        (("app", "tier"), ("app", "web")),
        (("tier", "app"), ("tier", "front")),
        (("name",), ("", "")),
    ],
)
def test_the_first_key_that_the_target_has_counts(
    keys: tuple[str, ...], label: tuple[str, str]
) -> None:
    names = names_of(canary(), two_labels(), Policy(keys))
    assert (names.label, names.value) == label


def test_primary_and_services_go_by_the_chosen_label() -> None:
    world = World(stored(two_labels()), policy=Policy(("tier",)))
    owner = stored(canary(), status={})
    owner["status"] = {"phase": "Initializing"}
    made = {(w.resource, w.name): w.body["spec"] for w in decide(world, owner, 0.0).writes}
    selected = {"matchLabels": {"app": "web", "tier": "front-primary"}}
    assert made["deployments", "web-primary"]["selector"] == selected
    assert made["services", "web-primary"]["selector"] == {"tier": "front-primary"}
    assert made["services", "web-canary"]["selector"] == {"tier": "front"}


def test_a_target_without_any_of_them_is_refused_and_they_are_named() -> None:
    world = World(stored(deployment()), policy=Policy(("tier", "team")))
    owner = stored(canary())
    found = refusal(owner, names_of(owner, world.target, world.policy), world)
    assert found is not None
    assert found.reason == "NoSelectorLabel"
    assert "tier, team" in found.message


def test_another_label_does_not_take_the_traffic_from_an_existing_primary() -> None:
    """Its selector is for life: Services that select by the new label would find no pod of it."""
    sim = running(target=two_labels())
    world = replace(sim.world(), policy=Policy(("tier",)))
    decision = decide(world, sim.canary, sim.now)
    assert (decision.row, decision.writes) == ("refused", ())
    assert "does not select tier=front-primary" in decision.notes[0].message
    assert decide(sim.world(), sim.canary, sim.now).row == "idle"


# -- labels and annotations by prefix ------------------------------------------------------------------------------------------

META = {
    "team/owner": "us",
    "other": "x",
    "kustomize.toolkit.fluxcd.io/name": "k",
    "kubectl.kubernetes.io/last-applied-configuration": "{}",
}


@pytest.mark.parametrize(
    ("prefixes", "expected"),
    [
        ((), set()),
        (("team/",), {"team/owner"}),
        (("nobody/", "o"), {"other"}),
        (("*",), {"team/owner", "other"}),
    ],
)
def test_keys_are_included_by_prefix_but_never_those_that_speak_of_the_original(
    prefixes: tuple[str, ...], expected: set[str]
) -> None:
    assert set(included(META, Policy(include_label_prefix=prefixes))) == expected


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet"])
def test_a_primary_gets_them_at_its_creation_and_with_every_promotion(kind: str) -> None:
    pair = pair_of(kind, policy=Policy(include_label_prefix=("team/",)))
    pair.target["metadata"] |= {"labels": {"team/owner": "us", "x": "y"}, "annotations": {}}
    pair = applied(pair, kind_of(kind).create(pair))
    assert pair.primary is not None
    assert pair.primary["metadata"]["labels"] == {"app": "web-primary", "team/owner": "us"}
    assert kind_of(kind).promote(pair) == ()
    change = {
        "labels": {"team/owner": None, "team/tier": "1"},
        "annotations": {"team/on-call": "me"},
    }
    pair = replace(pair, target=merge(pair.target, {"metadata": change}))
    pair = applied(pair, kind_of(kind).promote(pair))
    assert pair.primary is not None
    assert pair.primary["metadata"]["labels"] == {"app": "web-primary", "team/tier": "1"}
    assert pair.primary["metadata"]["annotations"]["team/on-call"] == "me"
    assert kind_of(kind).promote(pair) == ()


def test_copies_of_configs_get_labels_by_prefix_and_keep_those_of_others() -> None:
    owner, target = stored(canary()), with_configmap(deployment())
    source = stored(configmap(colour="red"))
    source["metadata"]["labels"] = {"team/owner": "us", "x": "y"}
    policy = Policy(include_label_prefix=("team/",))

    def written(*held: JSON, policy: Policy = policy) -> tuple[Any, ...]:
        objects = {"configmaps": {one["metadata"]["name"]: one for one in (source, *held)}}
        seen = configs.look(target["spec"]["template"], objects | {"secrets": {}})
        made = configs.copies(owner, names_of(owner, target), seen, objects, policy)
        return made.writes

    (create,) = written()
    assert create.body["metadata"]["labels"] == {"team/owner": "us"}
    (plain,) = written(policy=Policy())
    assert "labels" not in plain.body["metadata"]
    held = stored(plain.body)
    held["metadata"]["labels"] = {"theirs": "1"}
    (patch,) = written(held)
    assert patch.body == {"metadata": {"labels": {"team/owner": "us"}}}
    assert written(merge(held, patch.body)) == ()
    assert written(held, policy=Policy()) == ()


# -- other namespaces ----------------------------------------------------------------------------------------------------------

TEMPLATE = {"metrics": [{"name": "m", "templateRef": {"name": "t", "namespace": "monitoring"}}]}
PROVIDER = {"alerts": [{"name": "a", "providerRef": {"name": "p", "namespace": "monitoring"}}]}


@pytest.mark.parametrize(
    ("analysis", "field"),
    [(TEMPLATE, "templateRef.namespace"), (PROVIDER, "providerRef.namespace")],
)
def test_references_to_other_namespaces_are_refused_only_where_they_are_not_allowed(
    analysis: JSON, field: str
) -> None:
    sim = running()
    sim.edit("canaries", "web", {"spec": {"analysis": analysis}})
    sim.edit("deployments", "web", image("app:2"))
    strict = replace(sim.world(), policy=Policy(cross_namespace_refs=False))
    decision = decide(strict, sim.canary, sim.now)
    assert (decision.row, decision.writes) == ("refused", ())
    assert field in decision.notes[0].message
    assert decide(sim.world(), sim.canary, sim.now).row == "start"
