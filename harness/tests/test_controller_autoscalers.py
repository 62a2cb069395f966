"""Autoscalers: the primary's copy, what of the original is never lost, and the pause."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from harness.controller.core import Write, autoscalers
from harness.controller.core.autoscalers.scaledobject import PAUSED, WAITING, for_primary
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
    return merge(canary(autoscalerRef=given), {"metadata": {"uid": "u-web"}})


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
    return merge(write.body, {"metadata": {"resourceVersion": "3"}})


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


# -- the pause ---------------------------------------------------------------------------------------------------------------


def test_an_hpa_is_never_paused() -> None:
    held = scaler(web(HPA), hpa())
    assert (held.pause(), held.resume()) == ((), ())


def test_only_the_one_annotation_is_written_and_taken_back() -> None:
    """O2: everything else of the user's object stays."""
    owner, source = web(KEDA), scaled_object()
    paused = after(source, scaler(owner, source).pause())
    assert paused == merge(source, {"metadata": {"annotations": {PAUSED: "0"}}})
    assert scaler(owner, paused).pause() == ()
    resumed = after(paused, scaler(owner, paused).resume())
    assert resumed == source
    assert scaler(owner, resumed).resume() == ()


@pytest.mark.parametrize("paused", ["0", "5"])
def test_a_pause_is_never_copied(paused: str) -> None:
    """O12, C14: neither at creation nor at a promotion, and the hand-over annotation is."""
    owner = web(KEDA)
    source = merge(scaled_object(paused=paused), {"metadata": {"annotations": {WAITING: "5"}}})
    held = made(owner, source)
    assert held["metadata"]["annotations"] == {HAND_OVER: "true"}
    changed = merge(source, {"spec": {"minReplicaCount": 5}})
    current = after(held, scaler(owner, changed, held).promote())
    assert current["metadata"]["annotations"] == {HAND_OVER: "true"}


def test_a_copy_that_another_controller_paused_at_zero_is_healed() -> None:
    owner, source = web(KEDA), scaled_object(paused="0")
    held = merge(made(owner, scaled_object()), {"metadata": {"annotations": {PAUSED: "0"}}})
    healed = after(held, scaler(owner, source, held).keep())
    assert PAUSED not in healed["metadata"]["annotations"]
    assert scaler(owner, source, healed).keep() == ()
    for more in ({}, {"metadata": {"annotations": {"new": "1"}}}, {"spec": {"minReplicaCount": 9}}):
        changed = merge(source, more)
        promoted = after(held, scaler(owner, changed, held).promote())
        assert PAUSED not in promoted["metadata"]["annotations"]
        assert scaler(owner, changed, promoted).promote() == ()


def test_a_user_s_own_pause_survives() -> None:
    owner, source = web(KEDA), scaled_object(paused="5")
    resting = after(source, scaler(owner, source).pause())
    notes = resting["metadata"]["annotations"]
    assert (notes[PAUSED], notes[WAITING]) == ("0", "5")
    assert after(resting, scaler(owner, resting).resume()) == source


@pytest.mark.parametrize("theirs", ["7", None])
def test_what_a_user_sets_while_the_target_rests_wins(theirs: str | None) -> None:
    owner, source = web(KEDA), scaled_object(paused="5")
    resting = after(source, scaler(owner, source).pause())
    changed = merge(resting, {"metadata": {"annotations": {PAUSED: theirs}}})
    notes = after(changed, scaler(owner, changed).resume())["metadata"]["annotations"]
    assert (notes.get(PAUSED), WAITING in notes) == (theirs, False)
    again = after(changed, scaler(owner, changed).pause())
    assert (
        again["metadata"]["annotations"].get(WAITING),
        again["metadata"]["annotations"][PAUSED],
    ) == (theirs, "0")


@given(
    st.lists(st.sampled_from(["pause", "resume"]), max_size=6), st.sampled_from([None, "1", "5"])
)
def test_whatever_the_controller_does_the_user_s_object_comes_back(
    steps: list[str], theirs: str | None
) -> None:
    owner = web(KEDA)
    source = now = scaled_object(paused=theirs)
    for step in [*steps, "resume"]:
        now = after(now, getattr(scaler(owner, now), step)())
        assert getattr(scaler(owner, now), step)() == ()
    assert now == source


# -- numbers and queries -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "least"),
    [(HPA, 4, 4), (HPA, None, 1), (KEDA, 3, 3), (KEDA, 0, 1), (KEDA, None, 1)],
)
def test_a_run_starts_with_the_minimum(kind: str, value: int | None, least: int) -> None:
    field = "minReplicas" if kind == HPA else "minReplicaCount"
    assert scaler(web(kind), SOURCES[kind](**{field: value})).least == least


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('x{app="web"}', 'x{app="web-primary"}'),
        ('x{app="web-canary"}', 'x{app="web-primary"}'),
        ('x{app=~"web|web-canary"}', 'x{app=~"web-primary|web-primary"}'),
        ('x{pod=~"web-[0-9a-z]+-.*"}', 'x{pod=~"web-primary-[0-9a-z]+-.*"}'),
        ('web_hits{app="web-primary"}', 'web_hits{app="web-primary"}'),
        ("webhook + hits_web", "webhook + hits_web"),
        ("sum(web)", "sum(web-primary)"),
    ],
)
def test_queries_speak_of_the_primary(query: str, expected: str) -> None:
    assert for_primary(query, "web") == expected


@given(
    st.lists(
        st.sampled_from(["web", "-", "canary", "primary", "_", ".", " ", "a"]), max_size=8
    ).map("".join)
)
def test_a_query_that_speaks_of_the_primary_stays(query: str) -> None:
    once = for_primary(query, "web")
    assert for_primary(once, "web") == once


def test_a_dot_in_a_name_is_a_dot() -> None:
    assert for_primary("a.b axb", "a.b") == "a.b-primary axb"


def test_given_queries_replace_those_of_their_triggers_and_no_others() -> None:
    source = scaled_object()
    source["spec"]["triggers"] += [
        {"type": "prometheus", "name": "other", "metadata": {"query": 'x{app="web"}'}},
        {"type": "cpu", "metadata": {"value": "60"}},
        {"type": "cron"},
    ]
    owner = web(KEDA, primaryScalerQueries={"requests": "q"})
    first, *others = made(owner, source)["spec"]["triggers"]
    assert first["metadata"] == {"serverAddress": "http://web:9090", "query": "q"}
    assert others == source["spec"]["triggers"][1:]
    assert scaler(owner, source).warning == ""


@pytest.mark.parametrize(
    ("owner", "source", "text"),
    [
        (
            web(HPA),
            hpa(target="api"),
            "HorizontalPodAutoscaler 'scale' (spec.autoscalerRef) scales 'api', not the target",
        ),
        (
            web(KEDA),
            scaled_object(target="api"),
            "ScaledObject 'scale' (spec.autoscalerRef) scales 'api', not the tar",
        ),
        (
            web(KEDA, primaryScalerQueries={"reqs": "q"}),
            scaled_object(),
            "spec.autoscalerRef.primaryScalerQueries names 'r",
        ),
        (
            web(HPA, primaryScalerQueries={"a": "q"}),
            hpa(),
            "spec.autoscalerRef.primaryScalerQueries is ignored",
        ),
    ],
)
def test_what_can_hardly_be_meant_is_a_warning(owner: JSON, source: JSON, text: str) -> None:
    found = scaler(owner, source)
    assert found.warning.startswith(text)
    assert found.problem == ""
    assert found.keep()


@KINDS
def test_nothing_to_warn_about(kind: str) -> None:
    assert scaler(web(kind), SOURCES[kind]()).warning == ""
    assert scaler(web(kind)).warning == ""
