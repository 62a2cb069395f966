"""A drill in a namespace that others use: it enters only where nothing can be confused, and leaves nothing and everything of theirs."""

from __future__ import annotations

import asyncio
import copy
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters.base import ChoiceError
from harness.kube.resource import CANARY, DEPLOYMENT, POD
from harness.kube.testing import FakeCluster, run_virtual
from harness.model.timeline import RolloutKind
from harness.run.identity import labels
from harness.run.journal import Journal
from harness.run.objects import Maker
from harness.run.scoped import Entered, Gone, Visitor, enter, remove_family
from harness.run.sweep_cluster import Found, sweep_labelled

if TYPE_CHECKING:
    from pathlib import Path

    from harness.kube.client import KubeClient

TEAM = "team"
MARKS = labels("run-1", "drill-1")
OLD = "2020-01-01T00:00:00Z"


def manifest(resource: Any, name: str, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, **metadata},
        "spec": spec or {},
    }


def account(kind: str, name: str = "controller") -> dict[str, Any]:
    group = "v1" if kind == "ServiceAccount" else "rbac.authorization.k8s.io/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}}


WANTED = [manifest(DEPLOYMENT, "web"), manifest(CANARY, "web", {"targetRef": {"name": "web"}})]
IDENTITY = [account("ServiceAccount"), account("Role"), account("RoleBinding")]


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    return Journal.open("run-1", "fake", tmp_path / "kubeconfig", None)


def town() -> FakeCluster:
    """Return a cluster with a namespace full of things that are like the drill's."""
    cluster = FakeCluster()
    cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
    shop = cluster.add(manifest(DEPLOYMENT, "shop", namespace=TEAM, labels={"app": "shop"}))
    owner = {"kind": "Deployment", "name": "shop", "uid": shop["metadata"]["uid"]}
    cluster.add(manifest(POD, "shop-1", namespace=TEAM, ownerReferences=[owner]))
    cluster.add(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": TEAM}}
    )
    return cluster


def everything(cluster: FakeCluster) -> list[dict[str, Any]]:
    kinds = ("Namespace", "Deployment", "Pod", "Secret", "Canary", "ServiceAccount", "Role")
    return copy.deepcopy([obj for kind in kinds for obj in cluster.objects(kind)])


async def entering(
    client: KubeClient, journal: Journal, objects: Any = WANTED, **more: Any
) -> Entered:
    visitor = Visitor("drill-1", RolloutKind(), IDENTITY, "controller", **more)
    return await enter(Maker(client, journal, MARKS), journal, TEAM, objects, visitor)


def enters(cluster: FakeCluster, journal: Journal, objects: Any = WANTED, **more: Any) -> Entered:
    async def act() -> Entered:
        async with cluster.client() as client:
            return await entering(client, journal, objects, **more)

    return run_virtual(act())


def written(cluster: FakeCluster) -> list[str]:
    return [a.path for verb in ("create", "patch", "update", "delete") for a in cluster.asked(verb)]


def serve_tokens(cluster: FakeCluster) -> None:
    """Let the fake refuse a token in the way of a server that gave one: it has no such subresource."""
    cluster.fail_next(403, match=lambda asked: asked.path.endswith("/token"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda c: c.add(manifest(DEPLOYMENT, "web-primary", namespace=TEAM)),
            "Deployment web-primary",
        ),
        (lambda c: c.add(manifest(CANARY, "shop", namespace=TEAM)), "Canary shop of somebody else"),
        (lambda c: c.remove("Namespace", TEAM), "There is no namespace team"),
        (
            lambda c: c.update(
                "Namespace",
                TEAM,
                None,
                {"metadata": {"deletionTimestamp": OLD, "finalizers": ["x/y"]}},
            ),
            "Namespace team is being deleted",
        ),
    ],
)
def test_it_does_not_enter_and_makes_nothing(journal: Journal, change: Any, says: str) -> None:
    cluster = town()
    change(cluster)
    with pytest.raises(ChoiceError, match=says):
        enters(cluster, journal)
    assert written(cluster) == []
    assert journal.entries == []


def test_a_cluster_wide_object_is_refused(journal: Journal) -> None:
    role = account("ClusterRole", "mine")
    with pytest.raises(ChoiceError, match="ClusterRole mine belongs to no namespace"):
        enters(town(), journal, [*WANTED, role])


def test_without_rights_to_make_an_identity_the_users_own_are_used_and_said(
    journal: Journal,
) -> None:
    cluster = town()
    cluster.forbid("patch", "roles")
    cluster.forbid("get", "namespaces")
    cluster.forbid("list", "secrets")
    entered = enters(cluster, journal)
    assert entered.own_credentials
    assert any("user's own credentials" in note and "roles" in note for note in entered.notes)
    assert any("nothing is claimed about: secrets" in note for note in entered.notes)


def test_one_that_runs_in_a_pod_cannot_run_as_somebody_else(journal: Journal) -> None:
    from harness.kube.errors import Forbidden

    cluster = town()
    cluster.forbid("patch", "roles")
    with pytest.raises(Forbidden):
        enters(cluster, journal, bound=True)
    # What was made by then is gone again.
    assert cluster.objects("ServiceAccount") == []
    assert journal.entries == []


def test_an_identity_of_that_name_that_is_there_already_is_not_taken(journal: Journal) -> None:
    cluster = town()
    theirs = account("Role")
    theirs["metadata"]["namespace"] = TEAM
    before = cluster.add(theirs)
    with pytest.raises(ChoiceError, match=r"Role team/controller exists already"):
        enters(cluster, journal)
    assert cluster.get("Role", "controller", TEAM) == before
    assert cluster.objects("ServiceAccount") == []


def drilled(cluster: FakeCluster, journal: Journal, act: Any) -> Gone:
    """Enter, make the scenario's objects and what a controller makes of them, `act`, and leave."""

    async def whole() -> Gone:
        async with cluster.client() as client:
            serve_tokens(cluster)
            await entering(client, journal)
            await Maker(client, journal, MARKS).apply_all(WANTED, TEAM)
            canary = cluster.get("Canary", "web", TEAM)
            assert canary is not None
            owner = {"kind": "Canary", "name": "web", "uid": canary["metadata"]["uid"]}
            primary = cluster.add(
                manifest(DEPLOYMENT, "web-primary", namespace=TEAM, ownerReferences=[owner])
            )
            uid = primary["metadata"]["uid"]
            owner = {"kind": "Deployment", "name": "web-primary", "uid": uid}
            cluster.add(manifest(POD, "web-primary-1", namespace=TEAM, ownerReferences=[owner]))
            later = asyncio.create_task(act())
            gone = await remove_family(
                client, journal, TEAM, list(journal.entries), "run-1", first_kinds=("Canary",)
            )
            await later
            return gone

    return run_virtual(whole())


async def nothing() -> None:
    """Do nothing."""


def test_it_leaves_nothing_and_touches_nothing_of_theirs(journal: Journal) -> None:
    cluster = town()
    before = everything(cluster)
    gone = drilled(cluster, journal, nothing)
    assert gone.left == []
    assert gone.explained == ()
    assert gone.removal.problems == []
    assert gone.removed == {
        "Canary": 1,
        "Deployment": 2,
        "Pod": 1,
        "Role": 1,
        "RoleBinding": 1,
        "ServiceAccount": 1,
    }
    assert everything(cluster) == before
    assert journal.entries == []
    deleted = [asked.path.rpartition("/")[2] for asked in cluster.asked("delete")]
    # The rollout first, for its finalizers; the subject's rights, made first, last.
    assert deleted[0] == "web"
    assert "canaries" in cluster.asked("delete")[0].path
    assert "serviceaccounts" in cluster.asked("delete")[-1].path


def test_what_is_collected_late_is_waited_for(journal: Journal) -> None:
    cluster = town()

    async def end() -> None:
        cluster.update("Pod", "web-primary-1", TEAM, {"metadata": {"finalizers": ["x/slow"]}})
        await asyncio.sleep(20)
        cluster.remove("Pod", "web-primary-1", TEAM)

    assert drilled(cluster, journal, end).left == []


def test_what_does_not_go_is_named_with_its_finalizer(journal: Journal) -> None:
    cluster = town()

    async def hold() -> None:
        held = {"finalizers": ["example.com/never"]}
        cluster.update("Deployment", "web-primary", TEAM, {"metadata": held})

    gone = drilled(cluster, journal, hold)
    rows = [(left["kind"], left["name"], left["why"]) for left in gone.left]
    assert rows == [
        ("Pod", "web-primary-1", "owned by Deployment web-primary"),
        ("Deployment", "web-primary", "owned by Canary web"),
    ]
    assert "waits for finalizer example.com/never" in gone.explained[1]
    assert gone.sentences == [
        "Pod team/web-primary-1 is left",
        "Deployment team/web-primary is left",
    ]


def sweeps(
    cluster: FakeCluster, tmp_path: Path, *, living: Any = (), dry_run: bool = False, **more: Any
) -> Found:
    result = Found()
    place: Any = SimpleNamespace(kubeconfig=tmp_path / "kubeconfig", context=None)

    async def act() -> None:
        async with cluster.client() as client:
            await sweep_labelled(
                client, place, living, result, 3600, dry_run=dry_run, namespace=TEAM, **more
            )

    run_virtual(act())
    return result


def abandoned(made: str = OLD) -> FakeCluster:
    """Return a namespace where a drill was killed; its Canary owns a primary, and its workload was `made` then."""
    cluster = town()
    canary = cluster.add(
        manifest(CANARY, "web", namespace=TEAM, labels=MARKS, creationTimestamp=OLD)
    )
    owner = {"kind": "Canary", "name": "web", "uid": canary["metadata"]["uid"]}
    cluster.add(
        manifest(DEPLOYMENT, "web-primary", namespace=TEAM, labels=MARKS, ownerReferences=[owner])
    )
    cluster.add(manifest(DEPLOYMENT, "web", namespace=TEAM, labels=MARKS, creationTimestamp=made))
    return cluster


@pytest.mark.usefixtures("journal")
def test_a_sweep_of_a_namespace_takes_what_a_dead_run_left_there_and_nothing_else(
    tmp_path: Path,
) -> None:
    cluster, theirs = abandoned(), everything(town())
    told = sweeps(cluster, tmp_path, dry_run=True)
    want = ["Canary team/web (run run-1)", "Deployment team/web (run run-1)"]
    assert sorted(told.removed) == want
    assert written(cluster) == []
    # Nothing cluster-wide is asked.
    assert all(TEAM in asked.path for asked in cluster.asked("list"))
    assert sweeps(cluster, tmp_path).removed == told.removed
    names = [(obj["kind"], obj["metadata"]["name"]) for obj in everything(cluster)]
    assert names == [(obj["kind"], obj["metadata"]["name"]) for obj in theirs]


@pytest.mark.usefixtures("journal")
@pytest.mark.parametrize(("living", "spared"), [({"run-1"}, 0), (set(), 2)])
def test_a_sweep_spares_the_living_and_the_young(
    tmp_path: Path, living: set[str], spared: int
) -> None:
    cluster = abandoned(OLD if living else "2999-01-01T00:00:00Z")
    told = sweeps(cluster, tmp_path, living=living)
    assert (told.removed, len(told.spared)) == ([], spared)
    assert written(cluster) == []
