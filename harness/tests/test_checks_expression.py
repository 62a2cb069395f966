"""CEL: compiled once, evaluated to true, false or unknown, checked before anything runs."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest

from harness.checks.expression import Expression, ExpressionError, Unknown
from harness.checks.state import State
from harness.checks.syntax import parse
from harness.checks.vocabulary import OBJECTS, VARIABLES, sample_world
from harness.model.timeline import (
    ClusterFacts,
    Header,
    ObjectSeen,
    SubjectFacts,
    WatchState,
)

_BLOCKED = "pods.exists(p, p.unschedulable || p.gated) || workloads.exists(w, w.createFailed)"


def _world(**changes: Any) -> dict[str, Any]:
    return {**sample_world({"size": 2, "name": "web"}), **changes}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (_BLOCKED, False),
        ('rollout.phase == "Progressing"', True),
        ("canary.ended", False),
        ("primary.ready >= 1 && target.exists", True),
        ("pods.filter(p, p.ready).size() == 1", True),
        ("pods.map(p, p.node).exists(n, n == 'node-0')", True),
        ("pods.exists(p, pods.exists(q, q.name != p.name))", False),
        ('services.exists(s, s.selector["app"] == "web-primary" && s.selects != "both")', True),
        ("size(nodes) == values.size - 1", True),
        ("t > 5 && since_change + 1.0 < 5", True),
        ("has(primary.ready) ? primary.ready == 2 : false", True),
        ('rollout.phase in ["Succeeded", "Failed"]', False),
        ("workloads == workloads && primary != target || true", True),
        ("pods[0].ready", True),
        ('primary["ready"] == 2', True),
        ("values.name.startsWith('we') // a comment", True),
    ],
)
def test_expressions_are_decided_and_have_no_findings(text: str, *, result: bool) -> None:
    expression = Expression.compile(text)
    assert expression.evaluate(_world()) is result
    assert expression.findings({"size": 2, "name": "web"}) == []


@pytest.mark.parametrize(
    ("text", "world", "reason"),
    [
        ("primary.ready >= 1", {"primary": {}}, "ready is not known"),
        ("primary.ready >= 1", {}, "primary is not known"),
        ("pods.exists(p, p.gated)", {"pods": [{}]}, "gated is not known"),
        ("primary.ready >= 1", {"primary": {"ready": "1"}}, "No such overload"),
        ("pods[2].ready", {"pods": []}, "index out of bounds"),
        ("1 / primary.ready == 1", {"primary": {"ready": 0}}, "division by zero"),
        ('rollout.name.matches("(")', {"rollout": {"name": "a"}}, "not a valid regex"),
        ("primary.ready", {"primary": {"ready": 1}}, "the result is int"),
    ],
)
def test_what_cannot_be_decided_is_unknown_with_the_reason(
    text: str, world: dict[str, Any], reason: str
) -> None:
    result = Expression.compile(text).evaluate(world)
    assert isinstance(result, Unknown)
    assert reason in result.reason


def test_what_is_decided_without_the_missing_part_is_decided() -> None:
    assert Expression.compile("rollout.ended || primary.ready > 0").evaluate(
        {"rollout": {"ended": True}}
    )
    assert Expression.compile("primary.ready > 0 || rollout.ended").evaluate(
        {"rollout": {"ended": True}}
    )
    assert Expression.compile("pods.exists(p, p.gated)").evaluate({"pods": []}) is False


def test_unknown_is_not_taken_for_false() -> None:
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(Unknown("x"))


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("pods.exists(p,", "is not CEL: mismatched input end of the expression", 15),
        ("primary.ready >= 1 &&& true", "is not CEL: token recognition error", 22),
        ('"open', "is not CEL: token recognition error", 1),
        ("", "is empty", None),
        ("x" * 5000, "is longer than 4000 characters", None),
        ("a.?b", "is not CEL", 2),
    ],
)
def test_a_syntax_error_has_its_column(text: str, message: str, column: int | None) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression.compile(text)
    assert message in str(caught.value)
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("text", "offset", "message", "allowed"),
    [
        ("primary.redy >= 1", 8, "primary has no field 'redy'; did you mean 'ready'?", "ready"),
        ("pods.exists(p, p.rady)", 17, "p has no field 'rady'", "ready"),
        ("rolout.ended", 0, "there is no 'rolout'; did you mean 'rollout'?", "rollout"),
        ("values.sise == 2", 7, "there is no value 'sise'; did you mean 'size'?", "size"),
        ('rollout.phase == "Done"', 17, "is never 'Done'", "Succeeded"),
        ('rollout.phase in ["Suceeded"]', 18, "is never 'Suceeded'; did you mean", "Succeeded"),
        ("pods.ready", 5, "pods is a list", ""),
        ("primary.exists(p, p.ready)", 8, "exists() needs a list", ""),
        ("pods.exists(p, p.age)", 5, "needs true or false, not a double", ""),
        ("primary.ready", 0, "is an int, not true or false", ""),
        ('primary.ready >= "1"', 14, ">= cannot compare an int with a string", ""),
        ('primary.ready == "1"', 14, "which are never equal", ""),
        ("primary.ready && true", 14, "&& needs true or false", ""),
        ("t + 1 > 2.0", 2, "+ cannot combine a double and an int", ""),
        ('rollout.phase.upper() == "x"', 14, "there is no function 'upper'", "matches"),
        ('primary.ready.contains("1")', 14, "works on strings, not on an int", ""),
        ('rollout.phase.name == "x"', 14, "rollout.phase is a string and has no fields", ""),
        ('rollout["phas"] == "x"', 8, "there is no field 'phas'", "phase"),
        ('"x" in rollout.phase', 4, "in needs a list or a map", ""),
    ],
)
def test_the_static_check_finds_what_cannot_be_right(
    text: str, offset: int, message: str, allowed: str
) -> None:
    finding = Expression.compile(text).findings({"size": 2})[0]
    assert finding.offset == offset
    assert message in finding.message
    assert allowed in finding.allowed if allowed else True


def test_values_are_checked_only_when_they_are_given() -> None:
    assert Expression.compile("values.anything == 1").findings() == []


@pytest.mark.parametrize(
    "text",
    [
        "pods.exists(p, p.ready)",
        "pods.exists(p, p == p && p.ready)",
        "pods.map(p, p).exists(q, q.ready)",
        "(rollout.ended ? primary : target).ready == 2",
        "pods.filter(p, p.ready)[0].node == 'node-0'",
        "pods.exists(pods, pods.ready)",
        "workloads.all(w, pods.exists(p, p.app == w.name))",
        "[primary, target].exists(x, x.ready == 2)",
        "{'a': primary}['a'].ready == 2",
    ],
)
def test_handing_over_only_what_is_used_gives_the_same_result(text: str) -> None:
    whole = Expression.compile(
        f"({text}) || pods == [] || primary == target && target == primary && false"
    )
    assert Expression.compile(text).evaluate(_world()) is True
    assert whole.evaluate(_world()) is True


def test_the_sample_world_has_every_word_in_its_type() -> None:
    kinds = {"bool": bool, "int": int, "double": float, "string": str}
    world = sample_world()
    assert set(world) == set(VARIABLES)
    for name, word in VARIABLES.items():
        inner = word.type.removeprefix("list(").removesuffix(")")
        if inner in OBJECTS:
            row = world[name][0] if inner != word.type else world[name]
            assert set(row) == set(OBJECTS[inner])
            for key, item in OBJECTS[inner].items():
                if item.type in kinds:
                    assert type(row[key]) is kinds[item.type], f"{name}.{key}"
                if item.choices:
                    assert row[key] in item.choices


def test_evaluating_is_fast_enough_for_every_observation() -> None:
    expression = Expression.compile(_BLOCKED)
    world = _world()
    world["pods"] *= 8
    world["workloads"] *= 3
    best = min(_seconds(expression, world) for _ in range(5))
    assert best < 0.001, "far above the usual 0.05 ms"


def _seconds(expression: Expression, world: dict[str, Any]) -> float:
    begin = time.perf_counter()
    for _ in range(20):
        expression.evaluate(world)
    return (time.perf_counter() - begin) / 20


def test_nesting_without_end_is_not_read_and_does_no_harm() -> None:
    text = "(" * 150 + "true" + ")" * 150
    try:
        expression = Expression.compile(text)
    except ExpressionError:
        return
    assert expression.findings() == []
    assert expression.evaluate({}) is True


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a || b && c == d + e * f", "a || (b && (c == (d + (e * f))))"),
        ("a - b - c", "(a - b) - c"),
        ("!a.b && -c < d", "(!(a.b)) && ((-c) < d)"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("a.b(c)[d].e", "((a.b(c))[d]).e"),
    ],
)
def test_the_reader_keeps_the_precedence_of_operators(text: str, grouped: str) -> None:
    assert _shape(parse(text)) == _shape(parse(grouped))


def _shape(node: Any) -> Any:
    """Return a tree without the offsets of its nodes."""
    if not dataclasses.is_dataclass(node):
        return tuple(_shape(item) for item in node) if isinstance(node, tuple) else node
    names = [f.name for f in dataclasses.fields(node) if f.name != "offset"]
    return (type(node).__name__, *(_shape(getattr(node, name)) for name in names))


def test_the_world_of_a_drill_has_exactly_the_words_of_the_vocabulary() -> None:
    header = Header(
        run_id="r",
        drill_id="d",
        namespace="ns",
        started_at="2026-01-01T00:00:00Z",
        harness="1",
        scenario={"values": {"size": 1}},
        subject=SubjectFacts(name="bundled", version="1"),
        cluster=ClusterFacts(kind="embedded", name="x", kubernetes="v1", nodes=("n",)),
        reproduce="",
    )
    state = State(header)
    for i, obj in enumerate(_OBJECTS):
        meta = {"name": obj["name"], "uid": f"u{i}", "namespace": "ns", **obj.get("meta", {})}
        body = {"apiVersion": obj["api"], "kind": obj["kind"], "metadata": meta}
        seen = {**body, "spec": obj.get("spec", {}), "status": obj.get("status", {})}
        state.apply(ObjectSeen(t=0.5, change="ADDED", object=seen))
    for kind in {obj["kind"] for obj in _OBJECTS}:
        state.apply(WatchState(t=1.0, kind=kind, state="synced"))
    world = state.world(1.5)
    assert set(world) <= set(VARIABLES)
    for name in ("rollout", "canary", "primary", "target"):
        kind = VARIABLES[name].type
        assert set(world[name]) <= set(OBJECTS[kind]), name
    for name in ("pods", "workloads", "services", "nodes"):
        assert world[name], name
        for row in world[name]:
            assert set(row) == set(OBJECTS[VARIABLES[name].type[5:-1]]), name
    for name in ("t", "since_change"):
        assert type(world[name]) is float
    assert type(world["pods"][0]["age"]) is float


_LABELS = {"app": "web"}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"image": "web:1"}]}}
_DEPLOYMENT = {"replicas": 1, "selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}
_OBJECTS: list[dict[str, Any]] = [
    {
        "api": "flagger.app/v1beta1",
        "kind": "Canary",
        "name": "web",
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}},
        "status": {"phase": "Initialized"},
    },
    {"api": "apps/v1", "kind": "Deployment", "name": "web", "spec": _DEPLOYMENT},
    {"api": "apps/v1", "kind": "Deployment", "name": "web-primary", "spec": _DEPLOYMENT},
    {"api": "v1", "kind": "Service", "name": "web", "spec": {"selector": _LABELS}},
    {"api": "v1", "kind": "Node", "name": "n"},
    {"api": "v1", "kind": "Pod", "name": "web-1", "meta": {"labels": _LABELS}},
]
