"""Metrics as the core sees them: order, queries, verdicts, and which entries cannot work."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.controller.core.analysis import metrics, render
from harness.controller.core.calls import Answer
from harness.tests.outside_server import canary

JSON = dict[str, Any]
RATE: JSON = {"name": "request-success-rate", "interval": "30s", "thresholdRange": {"min": 99}}
DURATION: JSON = {"name": "request-duration", "thresholdRange": {"max": 500}}
INLINE: JSON = {"name": "errors", "query": "sum(errors)", "threshold": 5}
TEMPLATE: JSON = {"name": "queue", "templateRef": {"name": "q"}, "thresholdRange": {"max": 10}}


def number(value: float) -> Answer:
    return metrics.answered(value, 0.0)


# -- order and keys ----------------------------------------------------------------------------------------------------------


def test_built_in_and_inline_entries_come_before_those_with_a_template() -> None:
    given = canary(metrics=[TEMPLATE, INLINE, TEMPLATE | {"name": "second"}, RATE])
    names = [entry["name"] for entry in metrics.entries(given)]
    assert names == ["errors", "request-success-rate", "queue", "second"]
    assert metrics.entries(canary(metrics=[])) == ()


def test_an_entry_that_asks_for_several_is_as_many_checks() -> None:
    every = RATE | {"query": "vector(1)", "templateRef": {"name": "q"}}
    found = metrics.entries(canary(metrics=[every]))
    assert [metrics.source(entry) for entry in found] == ["built-in", "query", "template"]
    keys = {metrics.call(canary(), entry, "o").key for entry in found}
    assert len(keys) == 3


def test_an_entry_that_asks_for_nothing_is_not_left_out() -> None:
    (entry,) = metrics.entries(canary(metrics=[{"name": "latency"}]))
    assert metrics.source(entry) == ""


def test_a_call_holds_what_its_query_may_ask_for() -> None:
    given = canary()
    given["spec"]["service"]["name"] = "front"
    entry = TEMPLATE | {"templateVariables": {"code": "5xx"}}
    call = metrics.call(given, entry, "o", revision="web-00002")
    assert (call.kind, call.name, call.entry) == ("metric", "queue", entry)
    assert call.payload == {
        "name": "web",
        "namespace": "n",
        "target": "web",
        "service": "front",
        "ingress": "web",
        "route": "web-00002",
        "interval": "1m",
        "variables": {"code": "5xx"},
    }
    assert call.key != metrics.call(given, entry, "p").key


# -- verdicts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "value", "passes"),
    [
        (RATE, 99.0, True),
        (RATE, 98.99, False),
        (DURATION, 500.0, True),
        (DURATION, 500.1, False),
        (TEMPLATE | {"thresholdRange": {"min": 1, "max": 2}}, 1.5, True),
        (TEMPLATE | {"thresholdRange": {"min": 1, "max": 2}}, 0.5, False),
        (TEMPLATE | {"thresholdRange": {}}, 1e9, True),
        (RATE | {"thresholdRange": None, "threshold": 99}, 99.5, True),
        (RATE | {"thresholdRange": None, "threshold": 99}, 90.0, False),
        (DURATION | {"thresholdRange": None, "threshold": 500}, 400.0, True),
        (DURATION | {"thresholdRange": None, "threshold": 500}, 600.0, False),
        (INLINE, 5.0, True),
        (INLINE, 6.0, False),
        (INLINE | {"threshold": None}, 0.0, True),
        (INLINE | {"threshold": None}, 0.1, False),
        # The range replaces the threshold.
        (INLINE | {"thresholdRange": {"max": 9}}, 8.0, True),
        (INLINE, math.inf, False),
    ],
)
def test_a_value_passes_within_its_bounds(entry: JSON, value: float, *, passes: bool) -> None:
    good, message = metrics.verdict(entry, number(value))
    assert good is passes
    assert bool(message) is not passes
    assert passes or f"metric {entry['name']}: " in message


def test_a_value_out_of_bounds_is_told_with_bound_and_unit() -> None:
    assert metrics.verdict(RATE, number(12.5))[1] == (
        "metric request-success-rate: 12.5 % is below the minimum of 99 %"
    )
    assert metrics.verdict(INLINE | {"threshold": None}, number(3))[1] == (
        "metric errors: 3 is above the maximum of 0 (neither threshold nor thresholdRange is set)"
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (metrics.answered(None, 0.0), "metric queue: no values: the query found nothing"),
        (number(math.nan), "metric queue: no values: the query's result is NaN"),
        (metrics.failed("p answered 500: x", 0.0), "metric queue: query failed: p answered 500: x"),
        (Answer(0.0, ok=True), "metric queue: no values"),
        (Answer(0.0, ok=True, value=math.nan), "metric queue: no values"),
    ],
)
def test_no_value_is_a_failed_check_that_says_which_kind(answer: Answer, said: str) -> None:
    assert metrics.verdict(TEMPLATE | {"thresholdRange": {}}, answer) == (False, said)


# -- entries that cannot work ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"name": "latency"}, "it has neither query nor templateRef, and its name is none of"),
        ({"query": "up"}, "name is missing"),
        (RATE | {"interval": "often"}, "interval: 'often' is not a duration above zero"),
        (RATE | {"thresholdRange": {"min": 5, "max": 1}}, "thresholdRange: min 5 is above max 1"),
        ({"name": "a", "templateRef": {"namespace": "n"}}, "templateRef.name is missing"),
        ({"name": "a", "query": "x{{ variables.y }}"}, "query: the query needs the variable 'y'"),
        ({"name": "a", "query": "x{{ if y }}"}, "query: {{ if y }} is not supported; possible:"),
    ],
)
def test_an_entry_that_cannot_work_is_named(entry: JSON, said: str) -> None:
    message = metrics.problem(canary(metrics=[RATE, entry]))
    assert message.startswith("spec.analysis.metrics[1]")
    assert said in message


def test_a_template_elsewhere_is_a_problem_only_where_it_is_not_allowed() -> None:
    entry = {"name": "a", "templateRef": {"name": "q", "namespace": "shared"}}
    given = canary(metrics=[RATE, DURATION, INLINE, TEMPLATE, entry])
    assert metrics.problem(given) == ""
    message = metrics.problem(given, cross_namespace=False)
    assert "[4] (a): templateRef.namespace: 'shared' is another namespace" in message
    entry["templateRef"] = {"name": "q", "namespace": "n"}
    assert metrics.problem(given, cross_namespace=False) == ""


# -- templates ---------------------------------------------------------------------------------------------------------------

KNOWN = render.values(
    canary(), {"interval": "2m", "templateVariables": {"code": "5xx", "a-b": "c"}}
)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ('rate(x{ns="{{ namespace }}"}[{{interval}}])', 'rate(x{ns="n"}[2m])'),
        ("{{ name }}/{{ target }}/{{ service }}/{{ ingress }}/{{ route }}", "web/web/web/web/web"),
        ("{{ variables.code }} {{ index variables `a-b` }}", "5xx c"),
        ('{{ index variables "a-b" }}', "c"),
        ("a  {{- name -}}  b", "awebb"),
        ("a {{/* why */}} b", "a  b"),
        ('{{ "{{ }}" }} {{ `\\d` }}', "{{ }} \\d"),
        ("a}} {% b %} {# c #} {{name}}\n", "a}} {% b %} {# c #} web\n"),
        ("", ""),
    ],
)
def test_a_template_is_rendered_as_go_does(template: str, expected: str) -> None:
    assert render.render(template, KNOWN) == expected


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ variables.nope }}", "the query needs the variable 'nope', and templateVariables has"),
        ('{{ index variables "nope" }}', "needs the variable 'nope'"),
        ("{{ nope }}", "{{ nope }} is not supported; possible: name, namespace"),
        ("{{ if name }}x{{ end }}", "{{ if name }} is not supported"),
        ('{{ name | printf "%s" }}', "is not supported"),
        ("{{ variables }}", "is not supported"),
        ("{{ variables.a.b }}", "is not supported"),
        ("sum(x{{ name }", "{{ name } is not closed with }}"),
        ("{{ name }} {{ name", "{{ name is not closed"),
        ("{{ }}", "is not supported"),
    ],
)
def test_what_is_not_supported_is_refused(template: str, said: str) -> None:
    with pytest.raises(render.QueryError) as refused:
        render.render(template, KNOWN)
    assert said in str(refused.value)


def test_an_entry_without_interval_gets_one_minute_with_a_template_too() -> None:
    assert render.render("[{{ interval }}]", render.values(canary(), TEMPLATE)) == "[1m]"


def test_references_name_ingress_and_route() -> None:
    given = canary()
    given["spec"] |= {"ingressRef": {"name": "ing"}, "routeRef": {"name": "rou"}}
    text = render.render("{{ ingress }} {{ route }}", render.values(given, {}))
    assert text == "ing rou"


# -- built-in queries --------------------------------------------------------------------------------------------------------


def built_in(entry: JSON, provider: str, kind: str = "Deployment", revision: str = "") -> str:
    given = canary()
    given["spec"]["provider"] = provider
    given["spec"]["targetRef"]["kind"] = kind
    return metrics.query(given, entry, render.values(given, entry, revision))


def test_providers_share_the_queries_of_their_kind() -> None:
    http = built_in(RATE, "kubernetes")
    assert built_in(RATE, "gatewayapi:v1") == built_in(RATE, "gatewayapi:v1beta1") == http
    assert 'kubernetes_pod_name=~"web-[0-9a-z]+-[0-9a-z]+"' in http
    assert "[30s]" in http
    assert "istio_requests_total" in built_in(RATE, "istio")
    assert 'envoy_cluster_name="n/web-00002"' in built_in(RATE, "knative", revision="web-00002")
    assert "[1m]" in built_in(DURATION, "istio")


def promtool() -> Path:
    """Return promtool, which Prometheus comes with; skip without one."""
    given = os.environ.get("DRILL_PROMETHEUS")
    if not given:
        pytest.skip("DRILL_PROMETHEUS names no prometheus, beside which promtool would be")
    return Path(given).with_name("promtool")


def requests(labels: str, grows: int, name: str = "http_request_duration_seconds_count") -> JSON:
    return {"series": f"{name}{{{labels}}}", "values": f"0+{grows}x20"}


def pod(name: str, **labels: str) -> str:
    every = {"kubernetes_namespace": "n", "kubernetes_pod_name": name, **labels}
    return ", ".join(f'{key}="{value}"' for key, value in every.items())


def bucket(le: str, grows: int, pod_name: str = "web-5d4f-x2x9z") -> JSON:
    return requests(pod(pod_name, le=le), grows, "http_request_duration_seconds_bucket")


PRIMARY = [requests(pod("web-primary-5d4f-x2x9z", status="500"), 60)]
WORLDS: list[tuple[str, str, list[JSON], float | None]] = [
    (
        built_in(RATE, "kubernetes"),
        "three of four succeed, and the primary's failures are not the canary's",
        [
            requests(pod("web-5d4f-x2x9z", status="200"), 30),
            requests(pod("web-5d4f-bbbbb", status="503"), 10),
            *PRIMARY,
        ],
        75.0,
    ),
    (
        built_in(RATE, "kubernetes"),
        "everything fails",
        [requests(pod("web-5d4f-x2x9z", status="500"), 10)],
        0.0,
    ),
    (
        built_in(RATE, "kubernetes"),
        "nothing fails",
        [requests(pod("web-5d4f-x2x9z", status="200"), 10)],
        100.0,
    ),
    (built_in(RATE, "kubernetes"), "no traffic but the primary's", PRIMARY, None),
    (
        built_in(RATE, "kubernetes", "DaemonSet"),
        "a DaemonSet's pods",
        [
            requests(pod("web-x2x9z", status="200"), 10),
            requests(pod("web-primary-x2x9z", status="500"), 10),
        ],
        100.0,
    ),
    (
        built_in(DURATION | {"interval": "5m"}, "kubernetes"),
        "99 % are faster than the bucket's end, in milliseconds",
        [bucket("0.1", 0), bucket("0.2", 100), bucket("+Inf", 100)],
        199.0,
    ),
    (
        built_in(DURATION | {"interval": "5m"}, "istio"),
        "Istio counts milliseconds",
        [
            requests(
                'reporter="destination", destination_workload_namespace="n",'
                f' destination_workload="web", le="{le}"',
                grows,
                "istio_request_duration_milliseconds_bucket",
            )
            for le, grows in (("100", 0), ("200", 100), ("+Inf", 100))
        ],
        199.0,
    ),
    (
        built_in(RATE, "knative", revision="web-00002"),
        "Envoy's counters of one revision",
        [
            requests(f'envoy_cluster_name="n/{name}", envoy_response_code="{code}"', 10, series)
            for series in ("envoy_cluster_upstream_rq",)
            for name, code in (("web-00002", "200"), ("web-00002", "503"), ("web-00001", "503"))
        ],
        50.0,
    ),
]


@pytest.mark.parametrize("world", WORLDS, ids=[world[1] for world in WORLDS])
def test_prometheus_itself_evaluates_the_built_in_queries(
    world: tuple[str, str, list[JSON], float | None], tmp_path: Path
) -> None:
    query, _, series, expected = world
    samples = [] if expected is None else [{"labels": "{}", "value": expected}]
    case = {
        "interval": "10s",
        "input_series": series,
        "promql_expr_test": [{"expr": query, "eval_time": "2m", "exp_samples": samples}],
    }
    file = tmp_path / "case.yaml"
    file.write_text(json.dumps({"evaluation_interval": "10s", "tests": [case]}), encoding="utf-8")
    done = subprocess.run(
        [promtool(), "test", "rules", file], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
