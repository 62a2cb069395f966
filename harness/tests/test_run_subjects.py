"""The subjects of a drill: each with an identity of its own, and one after the other."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.clusters.base import Cluster
from harness.kube.testing import run_virtual
from harness.model.timeline import ClusterFacts, SubjectFacts
from harness.run import subjects
from harness.run.identity import labels
from harness.run.journal import Entry, Journal, ObjectKey
from harness.run.objects import Maker, RefusedError
from harness.run.outside import Outside
from harness.run.parts import Parts
from harness.run.place import Place
from harness.run.preconditions import lacking_features, right_version
from harness.run.redact import Redactor
from harness.run.subjects import Subjects
from harness.subjects.base import SubjectError
from harness.tests.test_run_crds import cluster_with, crd, fields_of

if TYPE_CHECKING:
    from pathlib import Path

    from harness.subjects.base import Access

NS = "drill-x"
FACTS = ClusterFacts("embedded", "run-1", "v1.35.4", ("n1",), exclusive=True)


class Actor:
    """A subject that notes what is done to it, together with what the cluster has by then."""

    def __init__(self, name: str, log: list[str], *fields: str, account: str | None = "") -> None:
        self.facts = SubjectFacts(name, "1.0", ("blue-green",))
        self.service_account = name if account == "" else account
        self.access: list[Access] = []
        self._log = log
        self._fields = fields

    def cluster_objects(self) -> list[dict[str, Any]]:
        self._log.append(f"crd of {self.facts.name}")
        return [crd(*self._fields)]

    def namespace_objects(self, namespace: str) -> list[dict[str, Any]]:
        del namespace
        self._log.append(f"rights of {self.facts.name}")
        return [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self.facts.name}}
        ]

    async def start(self, access: Access, notify: Any) -> None:
        del notify
        self.access.append(access)
        self._log.append(f"start {self.facts.name}")

    async def stop(self) -> None:
        self._log.append(f"stop {self.facts.name}")


class Trail:
    def __init__(self, log: list[str]) -> None:
        self._log = log

    def begin(self, namespace: str, account: str) -> None:
        self._log.append(f"count for {namespace}:{account}")

    def flush(self) -> None:
        self._log.append("told")


class Stage:
    def __init__(self, tmp_path: Path, *actors: Actor) -> None:
        self.cluster = cluster_with("phase")
        self.journal = Journal.open("run-1", "fake", tmp_path / "kubeconfig", None)
        admin = tmp_path / "admin"
        admin.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
                    "users": [{"name": "u", "user": {"token": "admin-token"}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        client = self.cluster.client()
        place = Place(
            cluster=Cluster("embedded:run-1", FACTS, admin, "x"),
            run="run-1",
            journal=self.journal,
            before=cast("Any", None),
            private=tmp_path,
            stop=cast("Any", None),
            say=print,
        )
        name = SimpleNamespace(folder="the-drill", title="the-drill", label="drill-1")
        resolved = SimpleNamespace(
            requires=("blue-green",),
            kubernetes=None,
            controller=None,
            traffic=None,
            to_json=lambda: {"steps": []},
        )
        self.parts = Parts(
            plan=cast("Any", SimpleNamespace(name=name, resolved=resolved)),
            place=place,
            client=client,
            redactor=Redactor(),
            anonymiser=None,
            subjects=Subjects(cast("Any", actors)),
            folder=tmp_path,
            namespace=Entry(ObjectKey("", "v1", "namespaces", "Namespace", NS), "drill-1"),
            file=cast("Any", None),
            live=cast("Any", SimpleNamespace(now=lambda: 1.0)),
            maker=Maker(client, self.journal, labels("run-1", "drill-1")),
            manifests={},
            trail=None,
            outside=Outside(cast("Any", resolved), tmp_path, print),
        )


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    return tmp_path


def upgraded(stage: Stage, log: list[str]) -> str:
    parts = replace(stage.parts, trail=cast("Any", Trail(log)))
    stage.parts = parts

    async def act() -> str:
        await subjects.install(parts)
        await subjects.start(parts)
        return await subjects.upgrade(parts, "after")

    return run_virtual(act())


def test_the_first_ends_before_anything_of_the_second_is_there(state: Path) -> None:
    log: list[str] = []
    stage = Stage(state, Actor("before", log, "phase"), Actor("after", log, "phase", "fence"))
    told = upgraded(stage, log)
    assert told == "before 1.0 → after 1.0"
    assert log == [
        *("rights of before", "count for drill-x:before", "start before"),
        *("stop before", "told", "crd of after", "rights of after"),
        *("count for drill-x:after", "start after"),
    ]
    assert fields_of(stage.cluster) == {"phase", "fence"}
    assert stage.parts.subject.facts.name == "after"


def test_teardown_knows_the_objects_of_both(state: Path) -> None:
    log: list[str] = []
    stage = Stage(state, Actor("before", log, "phase"), Actor("after", log, "phase", "fence"))
    upgraded(stage, log)
    journalled = {(entry.key.kind, entry.key.name) for entry in stage.journal.entries}
    assert journalled == {("ServiceAccount", "before"), ("ServiceAccount", "after")}
    assert [key[3] for key in stage.parts.place.shared] == ["canaries.flagger.app"]


def test_each_has_a_kubeconfig_and_a_log_of_its_own(state: Path) -> None:
    log: list[str] = []
    first, second = Actor("before", log, "phase"), Actor("after", log, "phase")
    stage = Stage(state, first, second)
    upgraded(stage, log)
    ((one,), (two,)) = first.access, second.access
    assert [one.log.name, two.log.name] == ["the-drill.log", "the-drill-2.log"]
    assert subjects.kubeconfigs(stage.parts) == [one.kubeconfig, two.kubeconfig]
    assert subjects.logs(stage.parts) == [one.log, two.log]
    accounts = [asked.path for asked in stage.cluster.asked("create", "serviceaccounts")]
    assert [path.split("/")[-2] for path in accounts] == ["before", "after"]
    for path in (one.kubeconfig, two.kubeconfig):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # What the subject was given is in no output.
    assert stage.parts.redactor.text("the token fake-token") == "the token [redacted]"


def test_one_that_is_only_observed_is_not_upgraded(state: Path) -> None:
    log: list[str] = []
    installed = Actor("installed", log, account=None)
    for actors in ((installed, Actor("after", log)), (Actor("before", log), installed)):
        stage = Stage(state, *actors)
        with pytest.raises(
            RefusedError, match="installed is in the cluster already and only observed"
        ):
            run_virtual(_upgrade(stage.parts))
    assert log == []


def test_without_a_service_account_there_is_neither_a_token_nor_a_count(state: Path) -> None:
    log: list[str] = []
    installed = Actor("installed", log, account=None)
    stage = Stage(state, installed)
    parts = replace(stage.parts, trail=cast("Any", Trail(log)))

    async def act() -> None:
        await subjects.install(parts)
        await subjects.start(parts)

    run_virtual(act())
    assert log == ["rights of installed", "start installed"]
    assert not parts.kubeconfig.exists()


async def _upgrade(parts: Parts) -> str:
    return await subjects.upgrade(parts, "after")


def test_what_is_required_is_asked_of_every_subject(state: Path) -> None:
    log: list[str] = []
    lacking = Actor("after", log)
    lacking.facts = replace(lacking.facts, capabilities=())
    stage = Stage(state, Actor("before", log), lacking, lacking)
    (missing,) = lacking_features(stage.parts)
    assert (missing.lacking, missing.features) == ("subject after", ("blue-green",))


def test_nodes_are_changed_on_clusters_of_ours_only(state: Path) -> None:
    stage = Stage(state, Actor("before", []))
    stage.parts.plan.resolved.requires = ("node-changes",)  # type: ignore[misc]
    (missing,) = lacking_features(stage.parts)
    assert missing.features == ("node-changes",)
    assert missing.lacking.startswith("cluster ")


@pytest.mark.parametrize(
    ("manifest", "needs"),
    [
        ({"image": "registry.example/web:2"}, ("revision-images",)),
        ({"image": "example.com/web:2"}, ()),
        ({"labels": {"rollout-drill/pod": "never-ready"}}, ("simulated-pods",)),
        ({"labels": {"rollout-drill/pod": "start"}}, ()),
    ],
)
def test_what_only_some_clusters_can_run_is_required_without_a_word(
    state: Path, manifest: dict[str, Any], needs: tuple[str, ...]
) -> None:
    stage = Stage(state, Actor("before", []))
    missing = lacking_features(replace(stage.parts, manifests={"a.yaml": [manifest]}))
    assert tuple(name for one in missing for name in one.features) == needs
    resolved = stage.parts.plan.resolved
    resolved.to_json = lambda: {"steps": [{"patch": manifest}]}  # type: ignore[method-assign]
    missing = lacking_features(stage.parts)
    assert tuple(name for one in missing for name in one.features) == needs


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [("v1.35", True), ("1.35.4", True), ("v1.3", False), ("v1.34.4", False), ("v1.35.40", False)],
)
def test_a_cluster_of_another_version_is_a_precondition_that_does_not_hold(
    state: Path, wanted: str, *, holds: bool
) -> None:
    stage = Stage(state, Actor("before", []))
    stage.parts.plan.resolved.kubernetes = wanted  # type: ignore[misc]
    precondition = right_version(stage.parts)
    assert precondition is not None
    assert precondition.holds is holds
    assert precondition.reason == f"Kubernetes v1.35.4, {wanted} needed"


def test_while_the_api_server_starts_refusals_say_nothing_about_rights(state: Path) -> None:
    seen: list[Any] = []
    stage = Stage(state, Actor("before", []))
    live = SimpleNamespace(now=lambda: 1.0, observe=seen.append)
    parts = replace(stage.parts, live=cast("Any", live))
    parts.place.upgrading = True
    parts.notify("forbidden", "watch /x")
    parts.notify("exited", "exit status 1")
    parts.place.upgrading = False
    parts.notify("forbidden", "watch /y")
    assert [(one.state, one.detail) for one in seen] == [
        ("exited", "exit status 1"),
        ("forbidden", "watch /y"),
    ]


def test_refusals_while_the_rights_are_removed_are_of_our_making(state: Path) -> None:
    seen: list[Any] = []
    stage = Stage(state, Actor("before", []))
    live = SimpleNamespace(now=lambda: 1.0, observe=seen.append)
    parts = replace(stage.parts, live=cast("Any", live))
    parts.notify("forbidden", "watch /x")
    parts.subjects.removing = True
    parts.notify("forbidden", "watch /y")
    assert [one.detail for one in seen] == ["watch /x"]


def test_without_a_further_subject_there_is_nothing_to_upgrade_to(state: Path) -> None:
    stage = Stage(state, Actor("before", []))
    with pytest.raises(RefusedError, match="no further subject to upgrade to 'after'"):
        run_virtual(_upgrade(stage.parts))


def test_one_that_runs_as_a_pod_gets_its_objects_and_no_token(state: Path) -> None:
    log: list[str] = []
    pod = Actor("bundled@in-cluster", log)
    stage = Stage(state, pod)

    async def act() -> None:
        await subjects.install(stage.parts)
        await subjects.start(stage.parts)

    run_virtual(act())
    assert log == ["rights of bundled@in-cluster", "start bundled@in-cluster"]
    assert stage.cluster.asked("create", "serviceaccounts") == []
    assert not stage.parts.kubeconfig.exists()


def test_one_that_runs_as_a_pod_needs_real_pods(state: Path) -> None:
    stage = Stage(state, Actor("bundled@in-cluster", []))
    (missing,) = lacking_features(stage.parts)
    assert missing.features == ("real-pods",)
    assert missing.lacking.startswith("cluster ")


def test_its_pod_that_goes_with_its_namespace_has_not_ended_by_itself(state: Path) -> None:
    seen: list[Any] = []
    live = SimpleNamespace(now=lambda: 1.0, observe=seen.append)
    for name in ("bundled@in-cluster", "bundled"):
        parts = replace(Stage(state, Actor(name, [])).parts, live=cast("Any", live))
        parts.notify("exited", f"{name} before")
        parts.subjects.removing = True
        parts.notify("exited", f"{name} then")
    assert [one.detail for one in seen] == [
        *("bundled@in-cluster before", "bundled before", "bundled then"),
    ]


def test_one_that_cannot_be_ended_keeps_nobody_else_from_it() -> None:
    log: list[str] = []

    class Stubborn(Actor):
        async def stop(self) -> None:
            msg = "the cluster does not answer"
            raise SubjectError(msg)

    run_virtual(Subjects(cast("Any", [Stubborn("a", log), Actor("b", log)])).stop())
    assert log == ["stop b"]
