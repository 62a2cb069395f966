"""What checks and the report see of calls, gates, routes, autoscalers and configs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.checks.expression import Unknown
from harness.checks.judge import judge
from harness.checks.routes import route_view
from harness.model.timeline_outside import Call, GateChanged, StandIn
from harness.report.json_report import json_report
from harness.report.markdown import markdown
from harness.run.anonymise import Anonymiser
from harness.tests.checking import holds, state_of
from harness.tests.timelines import Recording, check, scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

RECEIVER = {
    "gates": {"approve": {"answer": "closed", "first": ["503"]}, "web": {"answer": "open"}},
    "alerts": {"team": {"answer": "open"}},
}


def called(story: Recording, gate: str, status: int = 200, **more: Any) -> Recording:
    fields = {"sort": "gate", "seconds": 0.1, "phase": "Progressing", "rollout": "web", **more}
    return story.add(Call, gate=gate, status=status, **fields)


def receiving(**more: Any) -> Recording:
    return Recording(scenario(receiver=RECEIVER, **more)).at(1.0)


# Calls and gates


def test_calls_and_gates_are_told_with_what_was_answered_last() -> None:
    story = receiving()
    assert holds(story, "size(calls) == 0 && gates.all(g, g.calls == 0 && g.status == 0)") is True
    called(story.at(2.0), "approve", 503)
    called(story.at(3.0), "approve", 403, message="held")
    story.at(4.0).add(GateChanged, gate="approve", answer="open", detail="open")
    called(story.at(5.0), "", 404, sort="other")
    assert holds(story, 'gates.exists(g, g.name == "approve" && g.calls == 2)') is True
    assert holds(story, 'gates.exists(g, g.status == 403 && g.answer == "open")') is True
    assert holds(story, 'calls.exists(c, c.name == "approve 2" && c.message == "held")') is True
    assert holds(story, 'calls.exists(c, c.sort == "other" && c.gate == "")') is True
    assert holds(story, "calls.exists(c, c.at == 3.0) && size(calls) == 3") is True


def test_without_a_receiver_nothing_can_be_said_of_calls() -> None:
    story = Recording().at(1.0).rollout("Initialized")
    assert isinstance(holds(story, "size(calls) == 0"), Unknown)
    assert isinstance(holds(story, "gates.all(g, g.calls == 0)"), Unknown)


def test_a_call_that_should_not_have_been_is_the_witness() -> None:
    never = check("not-asked", "never", 'calls.exists(c, c.gate == "approve")')
    story = receiving(checks=[never]).synced().step("initialise")
    called(story.at(2.0), "approve", 403)
    story.at(3.0).step("new revision").step("promote").rollout("Succeeded")
    finding = judge(story.timeline()).finding("not-asked")
    assert finding is not None
    assert finding.outcome == "fail"
    assert "call approve 1 answered 403 since" in finding.evidence


# Routes


def http_route(*rules: Mapping[str, Any], name: str = "web") -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name},
        "spec": {"rules": list(rules)},
    }


def backends(primary: int, canary: int, **more: Any) -> dict[str, Any]:
    refs = [{"name": "web-primary", "weight": primary}, {"name": "web-canary", "weight": canary}]
    return {"backendRefs": refs, **more}


def test_the_route_of_the_rollout_is_found_by_its_apex_and_followed() -> None:
    story = Recording().at(1.0).rollout("Progressing")
    assert isinstance(holds(story, "route.exists"), Unknown)
    story.at(2.0).see(http_route(backends(100, 0), name="other"))
    assert holds(story, "!route.exists") is True
    story.at(3.0).see(http_route(backends(90, 10)))
    assert holds(story, 'route.exists && route.kind == "HTTPRoute" && !route.mirror') is True
    assert holds(story, "route.weights.primary == 90 && route.weights.canary == 10") is True
    story.at(4.0).gone("web", "HTTPRoute")
    assert holds(story, "!route.exists") is True


def test_a_row_of_the_report_tells_of_requests_that_match_too() -> None:
    story = Recording().at(1.0).rollout("Progressing")
    story.at(2.0).see(http_route(backends(0, 100), backends(100, 0)))
    told = [row.route for row in judge(story.timeline()).rows]
    assert told[-1] == "primary 100, canary 0; requests that match: primary 0, canary 100"


def test_a_route_that_came_before_its_rollout_is_found_too() -> None:
    story = Recording().at(1.0).see(http_route(backends(90, 10)))
    assert isinstance(holds(story, "route.exists"), Unknown)
    assert holds(story.at(2.0).rollout("Progressing"), "route.weights.canary == 10") is True


def test_matched_rules_and_mirrors_are_told_apart() -> None:
    filters = [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "web-canary"}}}]
    view = route_view(
        "HTTPRoute", http_route(backends(0, 100), backends(1, 0, filters=filters)), "web", "-primary"
    )  # fmt: skip
    assert view["matched"] == {"primary": 0, "canary": 100}
    assert view["weights"] == {"primary": 100, "canary": 0}
    assert view["mirror"] is True


def test_a_route_to_somebody_else_has_no_weights() -> None:
    view = route_view("HTTPRoute", http_route({"backendRefs": [{"name": "x"}]}), "web", "-primary")
    assert (view["exists"], view["weights"], view["matched"]) == (True, {}, {})


def test_a_virtual_service_is_read_with_hosts_of_any_length() -> None:
    rows = [
        {"destination": {"host": "web-primary.ns.svc.cluster.local"}, "weight": 75},
        {"destination": {"host": "web-canary"}, "weight": 25},
    ]
    http = [
        {"match": [{}], "route": [{"destination": {"host": "web-canary"}}]},
        {"route": rows, "mirror": {"host": "web-canary"}},
    ]
    raw = {"kind": "VirtualService", "metadata": {"name": "web"}, "spec": {"http": http}}
    view = route_view("VirtualService", raw, "web", "-primary")
    assert view["weights"] == {"primary": 75, "canary": 25}
    assert view["matched"] == {"primary": 0, "canary": 100}
    assert view["mirror"] is True


@pytest.mark.parametrize("weight", [{}, {"weight": 0}, {"weight": 100}])
def test_the_only_destination_of_a_rule_gets_everything(weight: dict[str, int]) -> None:
    http = [{"route": [{"destination": {"host": "web-primary"}, **weight}]}]
    raw = {"kind": "VirtualService", "metadata": {"name": "web"}, "spec": {"http": http}}
    assert route_view("VirtualService", raw, "web", "-primary")["weights"] == {
        "primary": 100,
        "canary": 0,
    }


def test_a_knative_service_is_no_core_service() -> None:
    traffic = [
        {"revisionName": "web-00001", "percent": 80},
        {"latestRevision": True, "percent": 20},
    ]
    knative = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "web", "uid": "k"},
        "spec": {"traffic": traffic},
        "status": {"traffic": traffic[:1]},
    }
    core = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "uid": "c"},
        "spec": {"selector": {"app": "x"}},
    }
    story = Recording().at(1.0).rollout("Progressing").see(core)
    story.see(knative)
    assert holds(story, 'size(services) == 1 && services.all(s, s.selector["app"] == "x")') is True
    assert holds(story, 'route.kind == "KnativeService" && route.weights.canary == 20') is True
    assert holds(story, "route.served.primary == 80 && route.served.canary == 0") is True


# Autoscalers and configs


def scaler(name: str, target: str, kind: str = "HorizontalPodAutoscaler", **marks: str) -> Any:
    least, most = ("minReplicas", "maxReplicas") if kind[0] == "H" else ("minReplicaCount", "maxReplicaCount")  # fmt: skip
    return {
        "kind": kind,
        "metadata": {"name": name, "annotations": marks},
        "spec": {"scaleTargetRef": {"name": target}, least: 2, most: 4},
    }


def test_autoscalers_have_the_role_of_what_they_scale_whenever_that_is_known() -> None:
    story = Recording().at(1.0)
    assert isinstance(holds(story, "size(autoscalers) == 0"), Unknown)
    story.see(scaler("web", "web")).see(scaler("web-primary", "web-primary"))
    assert holds(story, 'autoscalers.all(a, a.role == "other" && a.min == 2 && a.max == 4)') is True
    story.at(2.0).rollout("Initialized")
    assert holds(story, 'autoscalers.exists(a, a.role == "target" && a.name == "web")') is True
    assert holds(story, 'autoscalers.exists(a, a.role == "primary")') is True
    assert holds(story.at(3.0).gone("web", "HorizontalPodAutoscaler"), "size(autoscalers) == 1") is True  # fmt: skip


@pytest.mark.parametrize(("mark", "paused"), [("0", True), ("false", False)])
def test_a_paused_scaled_object_is_told(mark: str, paused: bool) -> None:  # noqa: FBT001
    marks = {"autoscaling.keda.sh/paused-replicas": mark}
    story = Recording().at(1.0).see(scaler("web", "web", "ScaledObject", **marks))
    assert holds(story, "autoscalers.exists(a, a.paused)") is paused


def test_equal_configs_have_equal_digests_and_no_values() -> None:
    def config(name: str, value: str, kind: str = "ConfigMap") -> dict[str, Any]:
        return {"kind": kind, "metadata": {"name": name}, "data": {"app.conf": value}}

    story = Recording().at(1.0)
    for obj in (config("a", "[sha256:1]"), config("a-primary", "[sha256:1]"), config("b", "[sha256:2]")):  # fmt: skip
        story.see(obj)
    story.see(config("kube-root-ca.crt", "x"))
    assert isinstance(holds(story, "size(configs) == 3"), Unknown)  # no Secret was listed yet
    story.see(config("s", "[sha256:1]", "Secret"))
    assert holds(story, "size(configs) == 4") is True
    same = 'configs.exists(a, a.name == "a" && configs.exists(b, b.name == "{}" && a.digest == b.digest))'
    assert holds(story, same.format("a-primary")) is True
    assert holds(story, same.format("b")) is False
    assert "sha256:1" not in str(state_of(story).world()["configs"])


# Conditions


def test_conditions_are_asked_for_by_type() -> None:
    story = Recording().at(1.0).rollout("Progressing")
    assert holds(story, 'rollout.conditions.Promoted.status == "Unknown"') is True
    held = '"Held" in rollout.conditions && rollout.conditions.Held.reason == "ConfirmRollout"'
    assert holds(story, held) is False
    raw = story._objects["Canary", "web"]
    raw["status"]["conditions"] = [{"type": "Held", "status": "True", "reason": "ConfirmRollout"}]
    assert holds(story.at(2.0).see(raw), held) is True
    assert isinstance(holds(story, 'rollout.conditions.Absent.status == "True"'), Unknown)


# The report


def told() -> Recording:
    story = receiving().synced().step("initialise").rollout("Progressing")
    story.add(StandIn, part="webhooks and alerts", by="an HTTP server of the harness")
    story.add(StandIn, part="metrics", by="a stand-in: no | pipe", exact=False)
    called(story.at(2.0), "approve", 403)
    called(story.at(2.5), "approve", 0, phase="Waiting")
    story.at(3.0).add(GateChanged, gate="approve", answer="open", detail="open")
    called(story.at(4.0), "approve", 200)
    story.at(5.0).see(http_route(backends(90, 10)))
    return story.at(6.0).step("new revision").step("promote").rollout("Succeeded")


def test_the_report_has_a_table_of_calls_the_weights_and_who_stood_in() -> None:
    report = judge(told().timeline())
    approve, web, team = report.calls
    assert (approve.name, approve.calls) == ("approve", 3)
    assert approve.answered == {"200": 1, "403": 1, "given up": 1}
    assert approve.answers == ("503, then closed", "open")
    assert approve.phases == ("Progressing", "Waiting")
    assert (approve.first, approve.last) == (2.0, 4.0)
    assert (web.calls, web.first, team.sort) == (0, None, "alert")
    text = markdown(report)
    assert "# Who was called" in text
    assert "| `approve` | gate | 503, then closed → open | 3 | 200 (1), 403 (1), given up (1) |" in text  # fmt: skip
    assert "primary 90, canary 10" in text
    assert "(not the program that people run)" in text
    body = json.loads(json_report(report))
    assert [row["by"] for row in body["stand_ins"]] == [
        "an HTTP server of the harness",
        "a stand-in: no | pipe",
    ]
    assert [row["route"] for row in body["rows"] if "route" in row]


def test_a_report_without_any_of_it_has_no_word_about_it() -> None:
    story = Recording().at(1.0).synced().step("initialise").rollout("Succeeded")
    report = judge(story.timeline())
    text = markdown(report)
    assert not report.calls
    assert "Who was called" not in text
    assert "| route |" not in text
    body = json.loads(json_report(report))
    assert not {"calls", "stand_ins"} & body.keys()
    assert not any("route" in row for row in body["rows"])


def test_gates_keep_belonging_to_their_calls_when_names_are_replaced() -> None:
    anonymiser = Anonymiser()
    anonymiser.learn([{"kind": "Deployment", "metadata": {"name": "web-shop"}}])
    receiver = {"gates": {"web-shop": {"answer": "open"}}, "alerts": {}}
    story = Recording(scenario(receiver=receiver)).at(1.0)
    header = anonymiser.header(story.header())
    call = anonymiser.observation(Call(1.0, "gate", "web-shop", 200, 0.1, rollout="web-shop"))
    assert isinstance(call, Call)
    assert list(header.scenario["receiver"]["gates"]) == [call.gate] == ["app-1"]
    assert call.rollout == "app-1"
