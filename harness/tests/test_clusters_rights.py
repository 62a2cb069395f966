"""What drills must be allowed to do, what they do without it, and how that is told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from harness.clusters.rights import (
    EVERYTHING,
    Need,
    Right,
    missing,
    needs,
    rights_of,
    told,
    withheld,
)
from harness.clusters.survey import ask
from harness.kube.errors import Forbidden
from harness.subjects.bundled import Bundled

if TYPE_CHECKING:
    from collections.abc import Collection

    from harness.kube.client import KubeClient

ROLES = Bundled().namespace_objects("drill")
NAMESPACES = Right("", "", "namespaces", "create")


class Reviewer:
    """Answers access reviews as a cluster would for a user with these rights; None: nothing may even be asked."""

    def __init__(self, rights: Collection[Right] | None) -> None:
        self.rights = rights
        self.asked: list[Any] = []

    async def raw(self, method: str, path: str, _params: object, body: Any) -> Any:
        assert (method, path.rpartition("/")[2]) == ("POST", "selfsubjectaccessreviews")
        self.asked.append(body["spec"]["resourceAttributes"])
        if self.rights is None:
            raise Forbidden(403, "Forbidden", "no")
        return {"status": {"allowed": any(body == right.review() for right in self.rights)}}


def answers(rights: Collection[Right] | None, wanted: list[Right]) -> tuple[Any, int]:
    reviewer = Reviewer(rights)
    client: KubeClient = reviewer  # type: ignore[assignment]
    return asyncio.run(ask(client, wanted)), len(reviewer.asked)


def test_who_may_do_everything_is_asked_once() -> None:
    wanted = [need.right for need in needs("", ROLES)]
    got, asked = answers([EVERYTHING], wanted)
    assert asked == 1
    assert set(got.values()) == {True}
    assert len(got) == len(wanted) > 50


def test_everybody_else_is_asked_right_by_right() -> None:
    got, asked = answers([NAMESPACES], [NAMESPACES, Right("", "", "pods", "list")])
    assert asked == 3
    assert got[NAMESPACES] is True
    assert got[Right("", "", "pods", "list")] is False


def test_who_may_not_even_ask_lacks_nothing_that_is_known() -> None:
    got, _ = answers(None, [NAMESPACES])
    assert got == {}
    assert missing([Need(NAMESPACES, "")], got) == []


def test_a_review_names_subresource_and_name() -> None:
    right = Right("n", "", "serviceaccounts/token", "create", "x")
    assert right.review()["spec"]["resourceAttributes"] == {
        "namespace": "n",
        "resource": "serviceaccounts",
        "subresource": "token",
        "verb": "create",
        "name": "x",
    }


def test_drills_with_namespaces_of_their_own_need_rights_everywhere() -> None:
    rights = {need.right: need for need in needs("", ROLES, ["canaries.flagger.app"])}
    for resource, group in (
        ("namespaces", ""),
        ("customresourcedefinitions", "apiextensions.k8s.io"),
    ):
        assert rights[Right("", group, resource, "create")].without == ""
    assert rights[Right("", "apps", "deployments", "create")].without == ""
    # It gives them to the controller, and nobody can give what he has not.
    assert rights[Right("", "flagger.app", "canaries/status", "patch")].without == ""
    assert rights[Right("", "keda.sh", "scaledobjects", "list")].without
    assert rights[Right("", "", "nodes", "list")].without
    assert Right("", "apiextensions.k8s.io", "customresourcedefinitions", "create") not in {
        need.right for need in needs("", ROLES)
    }


def test_drills_in_one_namespace_need_nothing_outside_of_it() -> None:
    found = needs("mine", ROLES)
    assert {n.right.resource for n in found if not n.right.namespace} == {"nodes"}
    assert all(n.without for n in found if not n.right.namespace)
    identity = [n for n in found if n.right.resource in {"roles", "serviceaccounts"}]
    assert identity
    assert all(n.without == "the controller runs with your own credentials" for n in identity)
    assert not next(n for n in found if n.right.resource == "pods").without


def test_traffic_needs_a_log_and_drills_without_it_do_not() -> None:
    (log,) = (n for n in needs("", ROLES) if n.right.resource == "pods/log")
    assert log.right.verb == "get"
    assert "traffic" in log.without


def test_a_controller_that_is_there_already_needs_no_identity() -> None:
    assert not [n for n in needs("", []) if n.right.resource in {"roles", "serviceaccounts/token"}]


def test_rollout_objects_of_a_private_group_are_asked_for_there() -> None:
    groups = {
        n.right.group for n in needs("", [], group="x.example") if n.right.resource == "canaries"
    }
    assert groups == {"x.example"}


def test_missing_rights_are_told_by_type() -> None:
    needed = [
        Need(Right("", "", "namespaces", "create"), "each drill makes one"),
        Need(Right("", "", "namespaces", "delete"), "each drill makes one"),
        Need(Right("n", "apps", "deployments", "patch"), "the scenario"),
    ]
    lacking = missing(needed, {need.right: False for need in needed})
    assert told(lacking) == [
        "create, delete namespaces (each drill makes one)",
        "patch deployments.apps in n (the scenario)",
    ]
    assert missing(needed, {need.right: True for need in needed}) == []


def test_groups_that_cannot_be_given_are_withheld_where_that_does_no_harm() -> None:
    lacking = [n for n in needs("", ROLES) if n.right.group in {"keda.sh", "apps"}]
    assert withheld(lacking) == ("keda.sh",)


def test_a_rule_is_taken_apart() -> None:
    rule = {
        "apiGroups": ["a"],
        "resources": ["x", "x/status"],
        "verbs": ["get"],
        "resourceNames": ["n"],
    }
    assert list(rights_of("ns", rule)) == [
        Right("ns", "a", "x", "get", "n"),
        Right("ns", "a", "x/status", "get", "n"),
    ]
