"""Autoscalers: the primary's copy, what of the original is never lost, and the pause."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from harness.controller.core import Write, autoscalers
from harness.controller.core.autoscalers.scaledobject import PAUSED
from harness.controller.core.ownership import owner_reference
from harness.data import data_path
from harness.kube.fake_patches import merge_patch
from harness.tests.controller_sim import canary, merge

JSON = dict[str, Any]

HPA, KEDA = "HorizontalPodAutoscaler", "ScaledObject"
PLURALS = {HPA: "horizontalpodautoscalers", KEDA: "scaledobjects"}
HAND_OVER = "scaledobject.keda.sh/transfer-hpa-ownership"


def web(kind: str, **ref: Any) -> JSON:
    given = {"apiVersion": "x/v1", "kind": kind, "name": "scale", **ref}
    owner: JSON = merge(canary(autoscalerRef=given), {"metadata": {"uid": "u-web"}})
    return owner


def hpa(name: str = "scale", target: str = "web", **spec: Any) -> JSON:
    labels = {"team": "shop", "kustomize.toolkit.fluxcd.io/name": "apps"}
    notes = {"note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    return {
        "metadata": {
            "name": name,
            "namespace": "n",
            "resourceVersion": "7",
            "labels": labels,
            "annotations": notes,
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": 2,
            "maxReplicas": 9,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "newField": 1}}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
            "fieldOfTomorrow": {"a": 1},
            **spec,
        },
        "status": {"currentReplicas": 3},
    }


def scaled_object(
    name: str = "scale", target: str = "web", paused: str | None = None, **spec: Any
) -> JSON:
    notes = {HAND_OVER: "true", "autoscaling.keda.sh/paused": "true"}
    return {
        "metadata": {
            "name": name,
            "namespace": "n",
            "resourceVersion": "7",
            "labels": {"team": "shop", "scaledobject.keda.sh/name": name},
            "annotations": notes | ({PAUSED: paused} if paused is not None else {}),
            "finalizers": ["finalizer.keda.sh"],
        },
        "spec": {
            "scaleTargetRef": {"name": target},
            "minReplicaCount": 3,
            "initialCooldownPeriod": 20,
            "fallback": {"failureThreshold": 3, "replicas": 4, "behavior": "static"},
            "advanced": {
                "horizontalPodAutoscalerConfig": {"name": "old-hpa"},
                "scalingModifiers": {"formula": "a + b"},
            },
            "triggers": [
                {
                    "type": "prometheus",
                    "name": "requests",
                    "useCachedMetrics": True,
                    "metadata": {
                        "serverAddress": "http://web:9090",
                        "query": 'sum(rate(web_hits{app="web"}[1m]))',
                    },
                }
            ],
            **spec,
        },
    }


SOURCES = {HPA: hpa, KEDA: scaled_object}
KINDS = pytest.mark.parametrize("kind", [HPA, KEDA])


def scaler(owner: JSON, *objects: JSON) -> autoscalers.Scaler:
    kind = owner["spec"]["autoscalerRef"]["kind"]
    held = {PLURALS[kind]: {obj["metadata"]["name"]: obj for obj in objects}}
    found = autoscalers.of(owner, held)
    assert found is not None
    return found


def made(owner: JSON, source: JSON) -> JSON:
    """The copy, as the server holds it."""
    (write,) = scaler(owner, source).keep()
    assert (write.verb, write.name, write.precondition) == ("create", "scale-primary", "")
    held: JSON = merge(write.body, {"metadata": {"resourceVersion": "3"}})
    return held


def after(obj: JSON, writes: tuple[Write, ...]) -> JSON:
    """The object after these writes, all to it; a precondition on what was read."""
    for write in writes:
        assert (write.verb, write.name) == ("patch", obj["metadata"]["name"])
        assert write.precondition == obj["metadata"]["resourceVersion"]
        obj = merge_patch(obj, write.body)
    return obj


# -- which, and whether ------------------------------------------------------------------------------------------------------


def test_without_a_reference_there_is_none() -> None:
    assert autoscalers.needs(canary()) is None
    assert autoscalers.of(canary(), {}) is None
    assert autoscalers.problem(canary()) == ""


@KINDS
def test_its_kind_is_read(kind: str) -> None:
    assert autoscalers.needs(web(kind)) == PLURALS[kind]
    assert autoscalers.problem(web(kind)) == ""


LEAST = "spec.autoscalerRef.primaryScalerReplicas.minReplicas: 0 is not possible; allowed for kind Horiz"


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        (
            web("Rocket"),
            "spec.autoscalerRef.kind: 'Rocket' is not implemented; allowed: HorizontalPodAutoscaler, Scal",
        ),
        (web(HPA, name=""), "spec.autoscalerRef.name is missing"),
        (web(HPA, name="a" * 246), "spec.autoscalerRef.name has 246 characters; at most 245"),
        (web(HPA, primaryScalerReplicas={"minReplicas": 0}), LEAST),
        (
            web(KEDA, primaryScalerReplicas={"minReplicas": -1}),
            "spec.autoscalerRef.primaryScalerReplicas.minRep",
        ),
        (
            web(KEDA, primaryScalerReplicas={"minReplicas": 1.5}),
            "spec.autoscalerRef.primaryScalerReplicas.minRep",
        ),
        (
            web(KEDA, primaryScalerReplicas={"maxReplicas": 0}),
            "spec.autoscalerRef.primaryScalerReplicas.maxRep",
        ),
        (
            web(HPA, primaryScalerReplicas={"minReplicas": 3, "maxReplicas": 2}),
            "spec.autoscalerRef.primaryScalerRep",
        ),
        (
            merge(web(HPA), {"spec": {"targetRef": {"kind": "DaemonSet"}}}),
            "spec.autoscalerRef: a target of kind Daem",
        ),
        (
            merge(web(KEDA), {"spec": {"targetRef": {"kind": "Service"}}}),
            "spec.autoscalerRef: a target of kind Serv",
        ),
    ],
)
def test_what_cannot_work_is_said(owner: JSON, text: str) -> None:
    assert autoscalers.problem(owner).startswith(text)


@pytest.mark.parametrize(
    "owner",
    [
        web(KEDA, primaryScalerReplicas={"minReplicas": 0}),
        web(HPA, primaryScalerReplicas={"minReplicas": 2, "maxReplicas": 2}),
        web(HPA, primaryScalerReplicas={"minReplicas": 2.0}),
        web(HPA, name="a" * 245),
    ],
)
def test_what_can_work_is_not_refused(owner: JSON) -> None:
    """O13."""
    assert autoscalers.problem(owner) == ""


def test_the_schema_lets_a_minimum_of_zero_through() -> None:
    """O13: which kinds can have it is said on the Canary."""
    with data_path("fixtures", "crds", "canaries.yaml").open(encoding="utf-8") as file:
        (version,) = YAML(typ="safe", pure=True).load(file)["spec"]["versions"]
    schema = jsonschema.Draft7Validator(version["schema"]["openAPIV3Schema"])
    assert schema.is_valid(web(KEDA, primaryScalerReplicas={"minReplicas": 0}))
    assert not schema.is_valid(web(KEDA, primaryScalerReplicas={"minReplicas": -1}))


@KINDS
def test_a_missing_original_is_said_and_nothing_is_written(kind: str) -> None:
    held = scaler(web(kind))
    assert held.problem == f"{kind} 'scale' (spec.autoscalerRef) does not exist"
    assert (held.keep(), held.promote(), held.pause(), held.resume(), held.least) == (
        (),
        (),
        (),
        (),
        1,
    )


# -- the copy ----------------------------------------------------------------------------------------------------------------


@KINDS
def test_the_copy_is_the_original_for_the_primary(kind: str) -> None:
    """O2: what nobody here knows arrives. O11, O14: and so do labels and annotations."""
    source = SOURCES[kind]()
    before = copy.deepcopy(source)
    body = made(web(kind), source)
    assert source == before
    meta = body["metadata"]
    assert (meta["name"], meta["namespace"], meta["labels"]) == (
        "scale-primary",
        "n",
        {"team": "shop"},
    )
    assert meta["annotations"] == ({"note": "x"} if kind == HPA else {HAND_OVER: "true"})
    assert meta["ownerReferences"] == [owner_reference(web(kind))]
    assert "finalizers" not in meta
    assert "status" not in body
    expected = copy.deepcopy(source["spec"])
    expected["scaleTargetRef"]["name"] = "web-primary"
    if kind == KEDA:
        expected["advanced"]["horizontalPodAutoscalerConfig"]["name"] = "old-hpa-primary"
        expected["triggers"][0]["metadata"]["query"] = 'sum(rate(web_hits{app="web-primary"}[1m]))'
    assert body["spec"] == expected


@KINDS
def test_a_copy_that_is_there_is_left_alone_until_the_promotion(kind: str) -> None:
    owner, source = web(kind), SOURCES[kind]()
    held = made(owner, source)
    changed = merge(source, {"spec": {"behavior": {"x": 1}}})
    assert scaler(owner, changed, held).keep() == ()
    assert scaler(owner, source, held).promote() == ()


@KINDS
def test_a_promotion_brings_spec_and_metadata_up_to_date(kind: str) -> None:
    owner, source = web(kind), SOURCES[kind]()
    held = made(owner, source)
    least = "minReplicas" if kind == HPA else "minReplicaCount"
    labels = {"team": None, "squad": "a"}
    changed = merge(
        source,
        {
            "metadata": {"labels": labels, "annotations": {"new": "1"}},
            "spec": {least: 4, "fresh": [1]},
        },
    )
    changed["spec"].pop("behavior", None)
    changed["spec"].pop("fallback", None)
    current = after(held, scaler(owner, changed, held).promote())
    fresh = made(owner, changed)
    assert current == fresh
    assert scaler(owner, changed, current).promote() == ()


def test_only_what_differs_is_written() -> None:
    owner, held = web(HPA), made(web(HPA), hpa())
    (write,) = scaler(owner, hpa(maxReplicas=12), held).promote()
    assert write == Write(
        "patch", "horizontalpodautoscalers", "scale-primary", {"spec": {"maxReplicas": 12}}, "3"
    )


@KINDS
def test_a_copy_that_is_gone_is_made_at_a_promotion(kind: str) -> None:
    held = scaler(web(kind), SOURCES[kind]())
    assert held.promote() == held.keep() != ()


def test_keys_that_are_the_copy_s_own_stay() -> None:
    owner, held = web(KEDA), made(web(KEDA), scaled_object())
    own = {"labels": {"scaledobject.keda.sh/name": "scale-primary"}, "annotations": {PAUSED: "5"}}
    held = merge(held, {"metadata": own})
    assert scaler(owner, scaled_object(), held).promote() == ()
    assert scaler(owner, scaled_object(), held).keep() == ()


@pytest.mark.parametrize(
    ("kind", "given", "bounds"),
    [
        (HPA, {"minReplicas": 4}, (4, 9)),
        (HPA, {"minReplicas": 1.0, "maxReplicas": 30}, (1, 30)),
        (KEDA, {"maxReplicas": 7}, (3, 7)),
        (KEDA, {"minReplicas": 0}, (0, None)),
    ],
)
def test_the_primary_can_have_bounds_of_its_own(
    kind: str, given: JSON, bounds: tuple[int, int | None]
) -> None:
    spec = made(web(kind, primaryScalerReplicas=given), SOURCES[kind]())["spec"]
    fields = (
        ("minReplicas", "maxReplicas") if kind == HPA else ("minReplicaCount", "maxReplicaCount")
    )
    assert tuple(spec.get(field) for field in fields) == bounds


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        (HPA, {"minReplicas": 10}, "at least 10 and at most 9 replicas"),
        (HPA, {"maxReplicas": 1}, "at least 2 and at most 1 replicas"),
        (KEDA, {"minReplicas": 101}, "at least 101 and at most 100 replicas"),
    ],
)
def test_bounds_that_do_not_fit_the_original_are_said(kind: str, given: JSON, text: str) -> None:
    owner = web(kind, primaryScalerReplicas=given)
    assert autoscalers.problem(owner) == ""
    held = scaler(owner, SOURCES[kind]())
    assert text in held.problem
    assert (held.keep(), held.promote()) == ((), ())


def test_a_minimum_of_zero_makes_an_idle_count_needless() -> None:
    source = scaled_object(idleReplicaCount=0)
    assert made(web(KEDA), source)["spec"]["idleReplicaCount"] == 0
    assert (
        "idleReplicaCount"
        not in made(web(KEDA, primaryScalerReplicas={"minReplicas": 0}), source)["spec"]
    )


# -- whose it is -------------------------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize(
    ("owners", "target", "problem"),
    [
        (
            [{"kind": "App", "name": "a", "uid": "1", "controller": True}],
            "web-primary",
            "belongs to App/a: left alone",
        ),
        (
            [{"kind": "Canary", "name": "web", "uid": "1", "controller": True}],
            "web-primary",
            "belongs to Canary/web",
        ),
        ([], "web", "belongs to no Canary and scales 'web', not 'web-primary'"),
        ([], "web-primary", ""),
    ],
)
def test_a_foreign_copy_is_left_alone(
    kind: str, owners: list[JSON], target: str, problem: str
) -> None:
    owner, source = web(kind), SOURCES[kind]()
    held = SOURCES[kind]("scale-primary", target)
    held["metadata"]["ownerReferences"] = owners
    found = scaler(owner, source, held)
    assert problem in found.problem
    assert bool(found.problem) is bool(problem)
    assert found.keep() == ()
    assert bool(found.promote()) is not bool(problem)
    if not problem:
        assert after(held, found.promote())["metadata"]["ownerReferences"] == [
            owner_reference(owner)
        ]
