"""Which subject and which cluster a drill gets, and what is refused before anything is begun."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from harness.clusters.base import ChoiceError
from harness.model.scenario import Action, NodeStep, Resolved, Step, UpgradeStep
from harness.run.plan import Plan
from harness.run.pool import key_of
from harness.run.selection import SelectionError, check, no_pod, select, subject_of
from harness.subjects.base import SubjectError


def resolved(*upgrades: Action, **more: Any) -> Resolved:
    body = {"name": "x", "variant": "v", "id": "x[v]", **more}
    steps = tuple(Step(f"step {number}", action) for number, action in enumerate(upgrades))
    return dataclasses.replace(Resolved.from_json(body), steps=steps)


def plan(*upgrades: Action, cluster: str = "embedded", **more: Any) -> Plan:
    drill = resolved(*upgrades, **more)
    return Plan(drill, Path(), subject_of(drill, None), cluster, "drill run x")


TO_NEXT = UpgradeStep(subject="flagger@1.38.0")


def test_the_user_chooses_and_bundled_is_the_default() -> None:
    assert subject_of(resolved(), None) == "bundled"
    assert subject_of(resolved(), None, "installed") == "installed"
    assert subject_of(resolved(), "flagger@1.44.0") == "flagger@1.44.0"


def test_a_scenario_that_names_its_own_has_it_and_refuses_another() -> None:
    own = resolved(TO_NEXT, subject="flagger@1.37.0")
    assert subject_of(own, None, "bundled") == "flagger@1.37.0"
    with pytest.raises(SelectionError) as caught:
        subject_of(own, "bundled")
    assert str(caught.value) == (
        "x[v] names its subject itself (flagger@1.37.0, then flagger@1.38.0), so none can be chosen for it: "
        "leave out 'bundled'"
    )


def test_all_subjects_of_a_drill_are_known_before_it_begins() -> None:
    drill = plan(TO_NEXT, UpgradeStep(kubernetes="v1.36"), UpgradeStep(subject="bundled"))
    assert drill.subjects == ("bundled", "flagger@1.38.0", "bundled")
    assert drill.kubernetes == ("v1.36",)


def test_a_name_of_no_subject_is_refused_wherever_it_stands() -> None:
    with pytest.raises(SubjectError, match="allowed: bundled"):
        check(plan(UpgradeStep(subject="flagger@latest")))


@pytest.mark.parametrize("cluster", ["embedded:dev", "context:dev"])
def test_a_drill_that_upgrades_something_needs_a_cluster_of_its_own(cluster: str) -> None:
    with pytest.raises(
        ChoiceError, match=rf"x\[v\] upgrades .* --cluster embedded, not {cluster}\."
    ):
        check(plan(TO_NEXT, cluster=cluster))
    check(plan(TO_NEXT))


def test_an_unknown_version_of_kubernetes_is_refused_with_those_there_are() -> None:
    for drill in (plan(kubernetes="v1.20"), plan(UpgradeStep(kubernetes="v1.20"))):
        with pytest.raises(ChoiceError, match=r"v1\.20 .* allowed: .*v1\.35\.4"):
            check(drill)
    # Whatever an existing cluster has is found out when it is opened.
    check(plan(kubernetes="v1.20", cluster="context:dev"))


def test_drills_with_the_same_needs_share_a_cluster() -> None:
    assert key_of(plan(), "aaa") == key_of(plan(), "aaa")


@pytest.mark.parametrize(
    ("other", "crds"),
    [
        (plan(), "bbb"),
        (plan(kubernetes="v1.34"), "aaa"),
        (plan(nodes={"count": 3}), "aaa"),
        (plan(nodes={"taints": {"node-1": ["dedicated=batch:NoSchedule"]}}), "aaa"),
        (plan(nodes={"labels": {"node-1": {"disk": "ssd"}}}), "aaa"),
        (plan(NodeStep("node-2", "joined")), "aaa"),
        (plan(TO_NEXT), "aaa"),
    ],
)
def test_drills_with_other_needs_do_not(other: Plan, crds: str) -> None:
    assert key_of(other, crds) != key_of(plan(), "aaa")


def test_what_sets_nodes_apart_is_told_by_what_it_is_and_not_by_how_it_is_written() -> None:
    wanted = {"labels": {"node-2": {"b": "1", "a": "2"}, "node-1": {}}, "taints": {"node-1": []}}
    same = {"labels": {"node-2": {"a": "2", "b": "1"}}}
    assert key_of(plan(nodes=wanted), "aaa") == key_of(plan(nodes=same), "aaa")


@pytest.mark.parametrize("change", ["joined", "gone", "cordoned"])
def test_a_drill_whose_nodes_come_and_go_shares_no_cluster_and_changes_none_of_others(
    change: str,
) -> None:
    step = NodeStep("node-2", change)
    assert plan(step).alone
    with pytest.raises(
        ChoiceError, match=r"x\[v\] changes the nodes .* --cluster embedded, not embedded:dev\."
    ):
        check(plan(step, cluster="embedded:dev"))
    # There it is unsupported, since the cluster lacks the feature that the scenario has to require.
    check(plan(step, cluster="context:dev"))


def test_two_drills_that_upgrade_never_share_a_cluster() -> None:
    first, second = plan(TO_NEXT), plan(TO_NEXT, variant="w")
    assert key_of(first, "aaa") != key_of(second, "aaa")


@pytest.mark.parametrize(
    ("drill", "slow"),
    [
        (plan(), False),
        (plan(subject="bundled"), False),
        (plan(UpgradeStep(subject="bundled")), False),
        (plan(slow=True), True),
        (plan(subject="flagger@1.44.0"), True),
        (plan(TO_NEXT), True),
        (plan(UpgradeStep(kubernetes="v1.36")), True),
        (plan(kubernetes="v1.34"), True),
    ],
)
def test_what_needs_other_programs_is_slow(drill: Plan, *, slow: bool) -> None:
    assert drill.slow is slow


def test_a_subject_that_the_user_chose_makes_no_drill_slow() -> None:
    assert not dataclasses.replace(plan(), subject="flagger@1.44.0").slow


def test_a_scenario_may_be_named_several_times_with_a_variant_each() -> None:
    names = [
        "node-spread-blue-green[with-key]",
        "node-spread-blue-green[no-surge]",
        "crashing-image[good]",
    ]
    chosen = [resolved.id for _, resolved in select(names, [])]
    assert chosen == names
    assert [drill.id for _, drill in select([names[2], names[0]], [])] == [names[2], names[0]]


def test_a_scenario_that_is_named_alone_once_has_all_its_variants() -> None:
    chosen = select(["crashing-image[good]", "crashing-image"], [])
    assert [drill.variant for _, drill in chosen] == ["crashing", "good"]


def in_cluster(cluster: str, image: str = "", **more: Any) -> Plan:
    drill = plan(cluster=cluster, **more)
    subject = drill.subject if more else "bundled@in-cluster"
    return dataclasses.replace(drill, subject=subject, controller_image=image)


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        ("embedded", "on an embedded cluster no container runs: use --cluster kind"),
        ("embedded:dev", "on an embedded cluster no container runs: use --cluster kind"),
        ("context:dev", "needs an image that it can pull, or has: --controller-image IMAGE"),
    ],
)
def test_a_controller_that_runs_as_a_pod_needs_pods_and_an_image(cluster: str, why: str) -> None:
    with pytest.raises(ChoiceError, match=why):
        check(in_cluster(cluster))


def test_where_it_can_run_it_is_not_refused() -> None:
    check(in_cluster("kind"))
    check(in_cluster("k3s"))
    check(in_cluster("context:dev", "registry.example/c:1"))
    assert no_pod(plan()) == ""


def test_a_scenario_that_names_it_is_unsupported_where_no_container_runs_instead_of_refused() -> (
    None
):
    check(in_cluster("embedded", subject="bundled@in-cluster"))


def test_a_pod_that_the_drill_makes_makes_no_drill_slow() -> None:
    assert not plan(subject="bundled@in-cluster").slow
