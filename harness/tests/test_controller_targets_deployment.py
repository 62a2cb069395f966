"""Deployments as targets: whose number of replicas it is, with and without an autoscaler."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.names import MANAGER
from harness.tests.controller_sim_make import deployment, merge
from harness.tests.controller_targets import applied, kind_of, made, pair_of, stored

if TYPE_CHECKING:
    from harness.controller.core.targets.base import Pair

JSON = dict[str, Any]
WHAT = kind_of("Deployment")
ROLLED = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}


def sized(name: str, replicas: int, manager: str = "user") -> JSON:
    obj = stored(deployment(name, replicas=replicas))
    entry = {"manager": manager, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    obj["metadata"]["managedFields"] = [entry]
    return obj


def pair(target: int, primary: int | None, manager: str = "user", **more: Any) -> Pair:
    peer = None if primary is None else sized("web-primary", primary)
    return pair_of("Deployment", sized("web", target, manager), peer, **more)


def replicas(writes: Any) -> int | None:
    if not writes:
        return None
    (write,) = writes
    found: int = write.body["spec"]["replicas"]
    return found


@pytest.mark.parametrize(
    ("target", "primary", "more", "expected"),
    [
        (2, 5, {}, None),
        (0, 5, {}, 5),
        (0, 0, {}, 1),
        (0, None, {}, 1),
        (0, 5, {"scaled": True, "least": 2}, 2),
        (0, 5, {"scaled": True, "least": 0}, 1),
        (3, 5, {"scaled": True, "least": 4}, None),
    ],
)
def test_a_run_starts_with_as_many_pods_as_serve_or_as_few_as_the_autoscaler_allows(
    target: int, primary: int | None, more: JSON, expected: int | None
) -> None:
    assert replicas(WHAT.to_run(pair(target, primary, **more))) == expected


@pytest.mark.parametrize(
    ("target", "manager", "scaled", "expected"),
    [
        (4, "user", False, 4),
        (4, MANAGER, False, 2),
        (4, "user", True, 2),
        (0, "user", False, 2),
    ],
)
def test_a_promotion_takes_a_users_number_and_never_the_autoscalers(
    target: int, manager: str, *, scaled: bool, expected: int
) -> None:
    """Deviation A11."""
    found = pair(target, 2, manager, scaled=scaled)
    assert replicas(WHAT.promote(found)) == expected


@pytest.mark.parametrize(
    ("manifest", "manager", "expected"),
    [
        ('{"spec": {"selector": {}}}', "kubectl-client-side-apply", None),
        ('{"spec": {"replicas": 1}}', "kubectl-client-side-apply", 1),
        ('{"spec": {"selector": {}}}', "kubectl-scale", 1),
        ("no JSON", "kubectl-client-side-apply", 1),
        ("[]", "kubectl-client-side-apply", 1),
    ],
)
def test_a_default_is_not_a_users_number_where_the_manifest_that_lost_it_is_known(
    manifest: str, manager: str, expected: int | None
) -> None:
    """Case C13: `kubectl apply` removes the number, and the API server puts 1 there."""
    found = pair(1, 4, manager)
    found.target["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": manifest
    }
    (write,) = WHAT.promote(found)
    assert write.body["spec"]["replicas"] == (expected or 4)


def test_under_an_autoscaler_even_an_unset_number_stays_as_it_is() -> None:
    found = pair(4, 2, scaled=True)
    assert found.primary is not None
    del found.primary["spec"]["replicas"]
    (write,) = WHAT.promote(found)
    assert "replicas" not in write.body["spec"]


@pytest.mark.parametrize(
    ("target", "manager", "expected"), [(0, "user", 0), (0, MANAGER, 1), (4, "user", 4)]
)
def test_a_primary_is_made_with_the_targets_number(
    target: int, manager: str, expected: int
) -> None:
    """Deviation A12: only a zero that somebody chose is copied."""
    assert replicas(WHAT.create(pair(target, None, manager))) == expected


@pytest.mark.parametrize(
    ("target", "primary", "more", "expected"),
    [
        (0, 3, {}, 3),
        (2, 3, {}, 3),
        (5, 3, {}, None),
        (3, 3, {}, None),
        (0, 0, {}, None),
        (0, None, {"manager": MANAGER}, 1),
        (0, None, {"manager": MANAGER, "scaled": True, "least": 4}, 4),
        (0, None, {}, None),
        (1, None, {"scaled": True, "least": 4}, None),
    ],
)
def test_giving_the_target_back_never_takes_pods_away(
    target: int, primary: int | None, more: JSON, expected: int | None
) -> None:
    """Deviation A8."""
    found = pair(target, primary, **more)
    writes = WHAT.revert(found)
    assert replicas(writes) == expected
    assert WHAT.revert(applied(found, writes)) == ()


@pytest.mark.parametrize(
    ("target", "primary", "rests", "empty", "ready"),
    [
        (0, 0, False, True, True),
        (0, 0, True, False, True),
        (1, 0, False, False, False),
        (1, 0, True, False, True),
        (0, 3, False, False, True),
    ],
)
def test_a_primary_at_zero_is_ready_only_where_zero_is_meant(
    target: int, primary: int, *, rests: bool, empty: bool, ready: bool
) -> None:
    """Deviations P12 and A12; an autoscaler that may go to zero means it, too."""
    found = pair(target, primary, rests=rests, scaled=rests)
    assert found.primary is not None
    status = dict.fromkeys(ROLLED, primary) | {"observedGeneration": 1}
    found = replace(found, primary=merge(found.primary, {"status": status}))
    assert WHAT.empty(found) is empty
    assert WHAT.primary_ready(found, 100).ready is ready


def test_readiness_counts_pods_by_the_threshold() -> None:
    status = {"observedGeneration": 1, **ROLLED, "availableReplicas": 2}
    found = pair_of("Deployment", merge(sized("web", 3), {"status": status}))
    assert "2 of 3 pods are available" in WHAT.canary_ready(found, 100).message
    assert WHAT.canary_ready(found, 60).ready
    assert WHAT.rolled_out(found.target, 60).ready
    assert WHAT.problem(found.target) == ""


def test_a_paused_target_does_not_pause_its_primary() -> None:
    found = made("Deployment", stored(deployment(paused=True)))
    assert found.primary is not None
    assert "paused" not in found.primary["spec"]
    held = merge(found.primary, {"spec": {"paused": True, "minReadySeconds": 4}})
    (write,) = WHAT.promote(replace(found, primary=held))
    assert write.body["spec"]["paused"] is True
    assert "minReadySeconds" not in write.body["spec"]


def test_the_deployment_controllers_notes_are_neither_copied_nor_removed() -> None:
    target = stored(deployment())
    note = "deployment.kubernetes.io/revision"
    target["metadata"]["annotations"] = {note: "7"}
    found = made("Deployment", target)
    assert found.primary is not None
    assert found.primary["metadata"]["annotations"] == {}
    held = merge(found.primary, {"metadata": {"annotations": {note: "2", "other": "x"}}})
    (write,) = WHAT.promote(replace(found, primary=held, revision="v2:01"))
    assert write.body["metadata"]["annotations"] == {note: "2"}
    assert "managedFields" not in write.body["metadata"]
