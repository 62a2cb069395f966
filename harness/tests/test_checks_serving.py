"""What stands behind the apex Service, how it was when a step held, and a primary that is a ReplicaSet of the rollout's own."""

from __future__ import annotations

from typing import Any

import pytest

from harness.checks.expression import Expression, Unknown
from harness.checks.judge import judge
from harness.model.outcome import Outcome
from harness.tests.checking import holds, state_of
from harness.tests.timelines import Recording, check, scenario, step

OLD, NEW = "74cfdc4c74", "5f66c8d9fd"
TEMPLATE = "pod-template-hash"


def service(story: Recording, selector: dict[str, str], name: str = "web") -> Recording:
    return story.see(
        {"kind": "Service", "metadata": {"name": name}, "spec": {"selector": selector}}
    )


def pod(
    story: Recording,
    name: str,
    labels: dict[str, str],
    *,
    ready: bool = True,
    going: bool = False,
    uid: str = "",
    owner: str = "",
) -> Recording:
    metadata: dict[str, Any] = {"name": name, "uid": uid or f"uid-{name}", "labels": labels}
    if going:
        metadata["deletionTimestamp"] = "2026-10-29T11:22:35Z"
    if owner:
        metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return story.see(
        {
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": "zwolle-pi-1"},
            "status": {"phase": "Running", "conditions": conditions},
        }
    )


# The apex


def serving() -> Recording:
    story = Recording().at(1.0).synced().rollout("Initialized")
    service(story, {"app": "web", TEMPLATE: OLD})
    for number in (1, 2):
        pod(story, f"web-{OLD}-{number}", {"app": "web", TEMPLATE: OLD})
    return pod(story, f"web-{NEW}-1", {"app": "web", TEMPLATE: NEW})


def test_the_apex_counts_the_pods_that_its_selector_selects() -> None:
    assert holds(serving(), f'apex.exists && apex.ready == 2 && apex.hashes == ["{OLD}"]') is True
    told = f'apex.name == "web" && apex.pods == ["web-{OLD}-1", "web-{OLD}-2"]'
    assert holds(serving(), told) is True
    assert holds(serving(), f'apex.uids == ["uid-web-{OLD}-1", "uid-web-{OLD}-2"]') is True


def test_only_pods_that_get_traffic_count() -> None:
    story = serving().at(2.0)
    pod(story, f"web-{OLD}-1", {"app": "web", TEMPLATE: OLD}, ready=False)
    assert holds(story, "apex.ready == 1") is True
    pod(story.at(3.0), f"web-{OLD}-2", {"app": "web", TEMPLATE: OLD}, going=True)
    assert holds(story, "apex.ready == 0 && size(apex.uids) == 0") is True


def test_a_selector_that_is_switched_selects_others() -> None:
    story = service(serving().at(2.0), {"app": "web", TEMPLATE: NEW})
    assert holds(story, f'apex.ready == 1 && apex.hashes == ["{NEW}"]') is True
    story = service(serving().at(2.0), {})
    assert holds(story, "apex.exists && apex.ready == 0") is True
    story = service(serving().at(2.0), {"app": "other"}, name="other")
    assert holds(story, "apex.ready == 2") is True, "another Service is not the apex"
    story = serving().at(2.0).see({"kind": "Service", "metadata": {"name": "web"}}, "DELETED")
    assert holds(story, "!apex.exists && apex.ready == 0") is True


def test_without_services_or_pods_nothing_is_known_of_the_apex() -> None:
    for kinds in (("Canary", "Pod"), ("Canary", "Service"), ("Pod", "Service")):
        assert isinstance(holds(Recording().at(1.0).synced(*kinds), "apex.ready == 0"), Unknown)
    known = Recording().at(1.0).synced("Canary", "Pod", "Service")
    assert holds(known, "!apex.exists && apex.ready == 0") is True


def findings(story: Recording) -> dict[str, Any]:
    return {finding.id: finding for finding in judge(story.timeline()).findings}


def test_a_check_sees_each_moment_in_which_too_few_were_ready() -> None:
    """Two observations at the very same time are two moments."""
    enough = check("enough", "always", "apex.ready >= 2", **{"from": "initialise"})
    story = Recording(scenario(checks=[enough])).at(1.0).synced().rollout("Initialized")
    service(story, {"app": "web"})
    for number in (1, 2):
        pod(story, f"web-{number}", {"app": "web"})
    story.step("initialise").at(2.0)
    clean = findings(story.step("new revision", "started", "acted", "held").step("promote"))
    story.lines = [line for line in story.lines if line.t < 2.0]
    pod(story, "web-1", {"app": "web"}, ready=False)
    pod(story, "web-1", {"app": "web"})
    story.step("new revision", "started", "acted", "held").step("promote")
    found = findings(story)
    assert found["enough"].outcome is Outcome.FAIL
    assert "apex.ready = 1" in found["enough"].evidence
    assert clean["enough"].outcome is not Outcome.FAIL


# Moments


def test_an_expression_can_compare_with_the_moment_of_a_step() -> None:
    story = serving().step("initialise").at(2.0)
    assert holds(story, 'apex.uids == at["initialise"].apex.uids') is True
    assert (
        holds(story, "at.initialise.t == 1.0 && at.initialise.rollout.phase == rollout.phase")
        is True
    )
    pod(story, f"web-{OLD}-1", {"app": "web", TEMPLATE: OLD}, uid="another")
    assert holds(story, 'apex.uids == at["initialise"].apex.uids') is False
    assert holds(story, "apex.ready == at.initialise.apex.ready") is True


def test_a_moment_that_has_not_come_is_not_known() -> None:
    story = serving().step("initialise", "started", "acted")
    assert isinstance(holds(story, 'at["initialise"].apex.ready == 2'), Unknown)
    assert holds(story, '"initialise" in at') is False


def test_a_recreated_target_has_another_uid() -> None:
    story = Recording().at(1.0).synced().rollout("Initialized").deployment("web", NEW)
    story.step("initialise")
    unchanged = "target.uid == at.initialise.target.uid"
    assert holds(story.deployment("web", NEW, number=2), unchanged) is True
    again = story._objects["Deployment", "web"] | {"metadata": {"name": "web", "uid": "new"}}
    assert holds(story.see(again), unchanged) is False


def test_a_moment_of_no_step_is_a_mistake() -> None:
    expression = Expression.compile('at["initialise"].apex.redy == 2')
    (finding,) = expression.findings()
    assert "has no field 'redy'; did you mean 'ready'?" in finding.message


# Routes


def test_a_check_sees_every_write_of_a_route() -> None:
    body = scenario(
        steps=[step("initialise", verb="apply"), step("watch", verb="wait")],
        checks=[check("kept", "always", "route.matched.canary == 100", **{"from": "initialise"})],
    )

    def route(primary: int) -> dict[str, Any]:
        backends = [
            {"name": "web-primary", "weight": primary},
            {"name": "web-canary", "weight": 100 - primary},
        ]
        rest = [{"name": "web-primary", "weight": 100}, {"name": "web-canary", "weight": 0}]
        rules = [{"backendRefs": backends, "matches": [{}]}, {"backendRefs": rest}]
        return {"kind": "HTTPRoute", "metadata": {"name": "web"}, "spec": {"rules": rules}}

    def story(*weights: int) -> Recording:
        made = Recording(body).at(1.0).synced().rollout("Frozen").see(route(0))
        made.step("initialise").step("watch", "started").at(2.0)
        for weight in weights:
            made.see(route(weight))
        return made.step("watch", "acted", "held").settle(3.0, 4.0)

    assert findings(story(0, 0))["kept"].outcome is Outcome.PASS
    found = findings(story(0, 100, 0))["kept"]
    assert found.outcome is Outcome.FAIL
    assert "route.matched = primary 100/canary 0" in found.evidence


# A ReplicaSet that is the primary itself


def replica_set(story: Recording, revision: str, owner: str, number: int = 0) -> Recording:
    owners = [{"kind": owner, "name": "web", "controller": True}] if owner else []
    labels = {"app": "web", TEMPLATE: revision}
    spec = {"containers": [{"name": "web", "image": f"web:{revision}"}]}
    return story.see(
        {
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"web-{revision}",
                "uid": f"rs-{revision}",
                "labels": labels,
                "annotations": {"rollout-drill/parked": str(number)} if number else {},
                "ownerReferences": owners,
            },
            "spec": {"replicas": 2, "template": {"metadata": {"labels": labels}, "spec": spec}},
        }
    )


def parked(phase: str = "Initialized", name: str = f"web-{OLD}") -> Recording:
    """A Canary keeps the promoted ReplicaSet of two pods; the target of the same name has no pods."""
    story = Recording().at(1.0).synced()
    story.deployment("web", OLD, replicas=0)
    replica_set(story, OLD, "Deployment")
    for number in (1, 2):
        pod(story, f"web-{OLD}-{number}", {"app": "web", TEMPLATE: OLD}, owner=f"web-{OLD}")
    story.at(2.0)
    replica_set(story, OLD, "Canary")
    return service(story, {"app": "web", TEMPLATE: OLD}).rollout(
        phase, parked={"name": name, "uid": f"rs-{OLD}", "hash": OLD}
    )


KEPT = f'primary.name == "web-{OLD}" && primary.exists && primary.ready == 2 && primary.hash == "{OLD}"'


def test_a_replica_set_that_the_rollout_keeps_is_the_primary() -> None:
    story = parked()
    assert holds(story, KEPT) is True
    assert holds(story, f'primary.images == ["web:{OLD}"] && size(primary.uids) == 2') is True
    assert holds(story, 'pods.all(p, p.role == "primary") && size(pods) == 2') is True
    assert holds(story, 'target.name == "web" && target.exists && target.replicas == 0') is True
    listed = f'workloads.exists(w, w.kind == "ReplicaSet" && w.name == "web-{OLD}" && w.role == "primary" && w.ready == 2)'
    assert holds(story, listed) is True
    assert holds(story, 'services.exists(s, s.role == "apex" && s.selects == "primary")') is True
    replica_set(story.at(3.0), NEW, "Deployment")
    service(story, {"app": "web", TEMPLATE: NEW}, "web-canary")
    assert (
        holds(story, 'services.exists(s, s.name == "web-canary" && s.selects == "target")') is True
    )


@pytest.mark.parametrize("first", ["status", "owner"])
def test_it_is_the_primary_whichever_is_seen_first(first: str) -> None:
    story = Recording().at(1.0).synced().deployment("web", OLD, replicas=0)
    steps = {
        "status": lambda: story.rollout("Initialized", parked={"name": f"web-{OLD}"}),
        "owner": lambda: replica_set(story, OLD, "Canary"),
    }
    for name in sorted(steps, key=lambda name: name != first):
        steps[name]()
    for number in (1, 2):
        pod(story, f"web-{OLD}-{number}", {"app": "web", TEMPLATE: OLD}, owner=f"web-{OLD}")
    assert holds(story, KEPT) is True
    assert holds(story, 'pods.all(p, p.role == "primary")') is True


def test_after_a_restoration_the_targets_pods_are_still_the_primarys() -> None:
    story = parked().step("initialise").at(3.0)
    again = story._objects["Deployment", "web"] | {"metadata": {"name": "web", "uid": "again"}}
    story.see(again)
    replica_set(story, OLD, "")
    replica_set(story, OLD, "Deployment")
    assert holds(story, KEPT) is True
    assert holds(story, 'pods.all(p, p.role == "primary" && p.app == "web")') is True
    assert holds(story, 'services.exists(s, s.role == "apex" && s.selects == "primary")') is True
    adopted = "target.ready == 2 && target.uids == at.initialise.apex.uids && target.uid != at.initialise.target.uid"
    assert holds(story, adopted) is True
    assert holds(story, "!workloads.exists(w, w.kind == 'ReplicaSet')") is True, (
        "it is told with its Deployment"
    )
    pod(
        story.at(4.0),
        f"web-{OLD}-1",
        {"app": "web", TEMPLATE: OLD},
        owner=f"web-{OLD}",
        ready=False,
    )
    assert holds(story, "primary.ready == 1 && target.ready == 1") is True
    story.gone(f"web-{OLD}-2")
    assert holds(story, "primary.replicas == 1 && target.replicas == 1") is True


def test_a_promotion_makes_another_replica_set_the_primary() -> None:
    story = parked("Promoting")
    replica_set(story.at(3.0), NEW, "Deployment")
    pod(story, f"web-{NEW}-1", {"app": "web", TEMPLATE: NEW}, owner=f"web-{NEW}")
    assert holds(story, f'pods.exists(p, p.hash == "{NEW}" && p.role == "target")') is True
    replica_set(story, NEW, "Canary")
    story.rollout("Succeeded", parked={"name": f"web-{NEW}", "hash": NEW})
    assert holds(story, f'primary.name == "web-{NEW}" && primary.ready == 1') is True
    entry = state_of(story).population.section.rows[0]
    assert entry["primary_hash"] == NEW
    assert entry["primary_rolls"] == 1
    assert holds(story, f'pods.all(p, p.role == (p.hash == "{NEW}" ? "primary" : "other"))') is True
    # The apex may still lead to the former one, which was promoted, too.
    assert holds(story, 'services.exists(s, s.role == "apex" && s.selects == "primary")') is True
    # That is drained: what still happens to it is no roll of the primary.
    replica_set(story.at(4.0), OLD, "Canary")
    pod(story, f"web-{OLD}-1", {"app": "web", TEMPLATE: OLD}, owner=f"web-{OLD}", going=True)
    assert state_of(story).population.section.rows[0]["primary_rolls"] == 1


def test_between_two_writes_a_newly_parked_one_serves_and_a_former_one_does_not() -> None:
    story = parked("Promoting")
    replica_set(story.at(3.0), OLD, "Canary", number=2)
    for revision, number, role in (("newer", 3, "primary"), ("older", 1, "other")):
        replica_set(story, revision, "Canary", number)
        labels = {"app": "web", TEMPLATE: revision}
        pod(story, f"web-{revision}-1", labels, owner=f"web-{revision}")
        told = f'pods.all(p, p.hash != "{revision}" || p.role == "{role}")'
        assert holds(story, told) is True, revision
    assert holds(story, KEPT) is True


def test_the_settle_time_is_judged_by_the_pods_that_serve() -> None:
    def story(*, restart: bool) -> Recording:
        made = parked("Failed")
        replica_set(made.at(3.0), OLD, "Deployment")
        made.step("initialise").step("new revision").step("promote").settle(4.0, 6.0)
        if restart:
            made.at(5.0).gone(f"web-{OLD}-1")
        return made

    assert findings(story(restart=False))["settled"].outcome is Outcome.PASS
    found = findings(story(restart=True))["settled"]
    assert found.outcome is Outcome.FAIL
    assert f"pod web-{OLD}-1 vanished" in found.evidence
