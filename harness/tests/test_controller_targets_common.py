"""What holds for every kind of target: nothing is lost, nothing is written twice, and nothing is changed in place."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.controller.core.canonical import SCALE_TO_ZERO, same
from harness.controller.core.names import names_of
from harness.controller.core.targets.registry import KINDS, target_for
from harness.tests.controller_sim_make import canary, merge
from harness.tests.controller_targets import (
    COPIES,
    MAKERS,
    PODS,
    applied,
    kind_of,
    knative,
    made,
    owner,
    pair_of,
    stored,
)

JSON = dict[str, Any]

KEYS = st.text("abcdefXYZ/.-", min_size=1, max_size=8).map(lambda key: "x" + key)
"""Fields of the future: none of them is one that exists."""
VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
EXTRA = st.dictionaries(KEYS, VALUES, max_size=4)


def with_extra(kind: str, everywhere: list[JSON], edited: str = "1") -> JSON:
    """A target with unknown fields at every level that it has."""
    target = stored(knative() if kind == "Knative" else MAKERS[kind]())
    spec = target["spec"]
    spec |= everywhere[0]
    if kind == "Service":
        spec["ports"][0] |= everywhere[1]
        spec["selector"]["edited"] = edited
        return target
    template = spec["template"]
    template.setdefault("metadata", {}).update(everywhere[1])
    template["spec"] |= everywhere[2]
    template["spec"]["containers"][0] |= everywhere[3]
    template["spec"]["affinity"] = {"podAntiAffinity": {"xTerm": everywhere[0]}, **everywhere[1]}
    template["spec"]["containers"][0]["image"] = f"app:{edited}"
    return target


LEVELS = st.tuples(EXTRA, EXTRA, EXTRA, EXTRA).map(list)


def unknown(value: Any, path: str = "") -> dict[str, Any]:
    """Every unknown field of an object, by path."""
    found: dict[str, Any] = {}
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        here = f"{path}.{key}"
        if isinstance(key, str) and key.startswith("x"):
            found[here] = item
        elif isinstance(item, dict | list):
            found |= unknown(item, here)
    return found


@pytest.mark.parametrize("kind", COPIES)
@settings(max_examples=40, deadline=None)
@given(first=LEVELS, second=LEVELS)
def test_unknown_fields_reach_the_primary_and_leave_it_with_a_promotion(
    kind: str, first: list[JSON], second: list[JSON]
) -> None:
    pair = made(kind, with_extra(kind, first))
    assert pair.primary is not None
    assert same(unknown(pair.primary["spec"]), unknown(pair.target["spec"]))
    assert kind_of(kind).holds(pair)
    changed = stored(with_extra(kind, second, edited="2"))
    pair = replace(pair, target=changed, revision="v2:01")
    assert not kind_of(kind).holds(pair)
    pair = applied(pair, kind_of(kind).promote(pair))
    assert pair.primary is not None
    assert same(unknown(pair.primary["spec"]), unknown(changed["spec"]))
    assert kind_of(kind).holds(pair)
    assert kind_of(kind).promote(pair) == ()
    assert kind_of(kind).differences(pair) == ()
    assert kind_of(kind).revision_of(pair) == "v2:01"


@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=40, deadline=None)
@given(extra=LEVELS)
def test_unknown_fields_of_the_target_survive_everything_that_is_written_to_it(
    kind: str, extra: list[JSON]
) -> None:
    target = with_extra(kind, extra)
    pair = made(kind, target)
    what = kind_of(kind)
    for act in (what.to_zero, what.to_run, what.promote, what.keep, what.revert):
        pair = applied(pair, act(pair))
        assert same(unknown(pair.target), unknown(target)), act.__name__
    after = copy.deepcopy(pair.target)
    for obj in (after, target):
        obj["metadata"].pop("annotations", None)
        obj["metadata"].pop("resourceVersion")
    after["spec"].get("template", {}).get("spec", {}).pop("nodeSelector", None)
    assert same(after, target), "something else of the target was changed"


@pytest.mark.parametrize("kind", PODS)
def test_zero_and_back_are_written_once_and_move_nothing_else(kind: str) -> None:
    what, pair = kind_of(kind), made(kind)
    before = copy.deepcopy(pair.target)
    hashes = {what.snapshot(pair.target).hash}
    assert not what.idle(pair)
    assert what.to_run(pair) == ()
    (write,) = what.to_zero(pair)
    assert (write.verb, write.name) == ("patch", "web")
    pair = applied(pair, (write,))
    hashes.add(what.snapshot(pair.target).hash)
    assert what.idle(pair)
    assert not what.empty(pair)
    assert what.to_zero(pair) == ()
    assert "scaled to zero" in what.canary_ready(pair, 100).message
    pair = applied(pair, what.to_run(pair))
    hashes.add(what.snapshot(pair.target).hash)
    assert not what.idle(pair)
    assert what.to_run(pair) == ()
    assert len(hashes) == 1, "zero and back is no new revision"
    assert pair.target["spec"].get("replicas") == before["spec"].get("replicas")
    assert what.promote(pair) == ()


@pytest.mark.parametrize("kind", ["Service", "Knative"])
def test_what_cannot_be_put_to_zero_is_left_alone(kind: str) -> None:
    what, pair = kind_of(kind), made(kind, knative() if kind == "Knative" else None)
    assert (what.pods, what.scales) == (False, False)
    assert what.idle(pair)
    assert not what.empty(pair)
    assert what.to_zero(pair) == what.to_run(pair) == ()


@pytest.mark.parametrize("kind", MAKERS)
def test_a_promotion_of_what_is_there_writes_nothing(kind: str) -> None:
    pair = made(kind, knative(primary=None) if kind == "Knative" else None)
    what = kind_of(kind)
    assert what.exists(pair)
    assert what.holds(pair)
    assert what.promote(pair) == ()
    assert what.differences(pair) == ()


@pytest.mark.parametrize("kind", MAKERS)
def test_nothing_that_was_read_is_changed_in_place(kind: str) -> None:
    what, target = kind_of(kind), knative() if kind == "Knative" else stored(MAKERS[kind]())
    pair = made(kind, target)
    edited = merge(target, {"spec": {"selector": {"a": "b"}} if kind == "Service" else {}})
    edited["metadata"]["annotations"] = {"note": "x"}
    pair = replace(pair, target=edited, revision="v2:01")
    before = json.dumps([pair.canary, pair.target, pair.primary, pair.objects])
    for act in (what.create, what.keep, what.promote, what.to_zero, what.to_run, what.revert):
        for write in act(pair):
            # Whoever carries it out may do so in place.
            write.body.setdefault("spec", {})["written"] = True
            write.body.setdefault("metadata", {})["written"] = True
            (write.body["spec"].get("selector") or {})["written"] = True
    for look in (what.canary_ready, what.primary_ready):
        look(pair, 100)
    for ask in (what.holds, what.differences, what.empty, what.idle, what.revision_of):
        ask(pair)
    assert json.dumps([pair.canary, pair.target, pair.primary, pair.objects]) == before


@pytest.mark.parametrize("kind", COPIES)
def test_a_primary_has_its_own_name_and_belongs_to_the_canary(kind: str) -> None:
    target = stored(MAKERS[kind]())
    target["metadata"] |= {
        "labels": {"kustomize.toolkit.fluxcd.io/name": "apps"},
        "annotations": {"kustomize.toolkit.fluxcd.io/prune": "x", "note": "kept"},
        "ownerReferences": [{"kind": "App", "name": "a", "uid": "a", "controller": True}],
        "finalizers": ["somebody/waits"],
    }
    pair = pair_of(kind, target)
    (write,) = kind_of(kind).create(pair)
    meta = write.body["metadata"]
    assert write.body["kind"] == target["kind"]
    assert write.body["apiVersion"] == target["apiVersion"]
    assert (write.name, meta["name"], meta["namespace"]) == ("web-primary", "web-primary", "n")
    assert [one["uid"] for one in meta["ownerReferences"]] == [pair.canary["metadata"]["uid"]]
    assert not [key for key in meta["labels"] | meta["annotations"] if "toolkit" in key]
    assert meta["annotations"]["note"] == "kept"
    assert not {"uid", "resourceVersion", "generation", "finalizers", "status"} & {
        *meta,
        *write.body,
    }


@pytest.mark.parametrize("kind", PODS)
def test_configs_are_pointed_at_by_the_primary_alone(kind: str) -> None:
    def rewrite(spec: JSON) -> None:
        spec["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings-primary"}}]

    target = stored(MAKERS[kind]())
    container = target["spec"]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    pair = made(kind, target, rewrite=rewrite)
    assert pair.primary is not None
    held = pair.primary["spec"]["template"]["spec"]["containers"][0]["envFrom"]
    assert held == [{"configMapRef": {"name": "settings-primary"}}]
    assert container["envFrom"] == [{"configMapRef": {"name": "settings"}}]
    assert kind_of(kind).holds(pair)
    assert kind_of(kind).differences(pair) == ()
    assert not kind_of(kind).holds(replace(pair, rewrite=lambda _: None))


@pytest.mark.parametrize("kind", PODS)
def test_a_digest_of_configs_alone_is_a_revision_of_its_own(kind: str) -> None:
    pair = made(kind, revision="v2:00.aa")
    what = kind_of(kind)
    assert what.revision_of(pair) == "v2:00.aa"
    pair = replace(pair, revision="v2:00.bb")
    (write,) = what.promote(pair)
    assert what.revision_of(applied(pair, (write,))) == "v2:00.bb"


@pytest.mark.parametrize("kind", PODS)
def test_the_terms_of_a_primary_name_the_primary(kind: str) -> None:
    """Deviations O3 and O4, and O6: all keys of the selector are kept."""
    target = stored(MAKERS[kind]())
    target["spec"]["selector"]["matchLabels"] = {"app": "front", "tier": "t"}
    target["spec"]["template"]["metadata"]["labels"] = {"app": "front", "tier": "t"}
    term = {"labelSelector": {"matchLabels": {"app": "front"}}, "topologyKey": "zone"}
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    target["spec"]["template"]["spec"] |= {
        "affinity": {"podAffinity": {key: [term]}},
        "topologySpreadConstraints": [term],
    }
    pair = made(kind, target)
    assert pair.primary is not None
    assert pair.primary["spec"]["selector"]["matchLabels"] == {"app": "front-primary", "tier": "t"}
    pod = pair.primary["spec"]["template"]
    assert pod["metadata"]["labels"] == {"app": "front-primary", "tier": "t"}
    terms = (
        pod["spec"]["affinity"]["podAffinity"][key][0],
        pod["spec"]["topologySpreadConstraints"][0],
    )
    for one in terms:
        assert one["labelSelector"] == {"matchLabels": {"app": "front-primary"}}


@pytest.mark.parametrize("kind", PODS)
def test_a_primary_of_another_maker_names_no_revision(kind: str) -> None:
    pair = made(kind, revision="5b1d31a8-4b5f-4c22-a3a5-a3fb41f0dbd8")
    assert kind_of(kind).revision_of(pair) == ""
    assert kind_of(kind).holds(pair)
    assert kind_of(kind).revision_of(replace(pair, primary=None)) == ""


@pytest.mark.parametrize("kind", COPIES)
def test_without_a_primary_there_is_nothing_to_promote_to(kind: str) -> None:
    pair = pair_of(kind)
    what = kind_of(kind)
    assert not what.exists(pair)
    assert not what.holds(pair)
    with pytest.raises(LookupError, match="web-primary"):
        what.promote(pair)


# -- which kind --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "kind", "found"),
    [
        ("apps/v1", "Deployment", "Deployment"),
        (None, "Deployment", "Deployment"),
        ("apps/v1", "DaemonSet", "DaemonSet"),
        ("v1", "Service", "Service"),
        ("core/v1", "Service", "Service"),
        ("serving.knative.dev/v1", "Service", "Knative Service"),
        ("apps.kruise.io/v1alpha1", "DaemonSet", None),
        ("example.com/v1", "Service", None),
        ("apps/v1", "StatefulSet", None),
        (None, None, None),
    ],
)
def test_the_group_decides_as_much_as_the_kind(
    version: str | None, kind: str | None, found: str | None
) -> None:
    reference = {"name": "web"} | ({"kind": kind} if kind else {})
    reference |= {"apiVersion": version} if version else {}
    what = target_for(canary(targetRef=reference))
    assert (what.kind if what else None) == found


def test_every_kind_is_among_the_allowed_values() -> None:
    plurals = {kind_of(name).plural for name in MAKERS}
    assert plurals == {"deployments", "daemonsets", "services", "kservices"}
    assert all(kind_of(name).kind.removeprefix("Knative ") in KINDS for name in MAKERS)
    assert "serving.knative.dev/v1" in KINDS


@pytest.mark.parametrize("kind", MAKERS)
def test_the_apex_of_a_target_that_is_a_service_is_the_target(kind: str) -> None:
    names = names_of(owner(kind, service={"port": 80, "name": "front"}), stored(MAKERS[kind]()))
    assert names.apex == ("front" if kind in PODS else "web")


def test_the_key_that_stands_for_zero_is_the_one_that_is_not_hashed() -> None:
    pair = made("DaemonSet")
    (write,) = kind_of("DaemonSet").to_zero(pair)
    assert write.body == {"spec": {"template": {"spec": {"nodeSelector": {SCALE_TO_ZERO: "true"}}}}}


@pytest.mark.parametrize("kind", PODS)
def test_a_label_that_the_selector_needs_stays_whoever_invented_it(kind: str) -> None:
    target = stored(MAKERS[kind]())
    labels = {"app": "web", "kustomize.toolkit.fluxcd.io/name": "apps"}
    target["spec"]["selector"]["matchLabels"] = labels
    target["spec"]["template"]["metadata"]["labels"] = labels | {"toolkit.fluxcd.io/other": "x"}
    pair = made(kind, target)
    assert pair.primary is not None
    expected = labels | {"app": "web-primary"}
    assert pair.primary["spec"]["selector"]["matchLabels"] == expected
    assert pair.primary["spec"]["template"]["metadata"]["labels"] == expected
