"""ScaledObjects: the pause, which is only ever the controller's own, and the queries; and what is warned about."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.controller.core.autoscalers.scaledobject import PAUSED, WAITING, for_primary
from harness.tests.controller_sim import merge
from harness.tests.test_controller_autoscalers import (
    HAND_OVER,
    HPA,
    KEDA,
    KINDS,
    SOURCES,
    after,
    hpa,
    made,
    scaled_object,
    scaler,
    web,
)

JSON = dict[str, Any]


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
    source = merge(SOURCES[kind](), {"spec": {field: value}})
    assert scaler(web(kind), source).least == least


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
