"""Add-ons: where their CRDs come from, which cluster gets them, what is simulated of them, and what a report says."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from ruamel.yaml import YAML

from harness.checks.judge import judge
from harness.cli import main
from harness.clusters import addons
from harness.clusters.base import ChoiceError, Cluster, ClusterError
from harness.clusters.embedded import addons as played
from harness.clusters.embedded import cluster as embedded
from harness.clusters.embedded import kwokctl, ports, processes, records, stages
from harness.clusters.embedded.readiness import COMPONENTS
from harness.clusters.knative import site
from harness.clusters.knative.component import Component
from harness.kube.resource import CRD, Resource
from harness.kube.testing import FakeCluster, run_virtual
from harness.model.features import FEATURES
from harness.model.outcome import ExitCode, Outcome
from harness.model.timeline import ClusterFacts, parse
from harness.programs.modules import Module
from harness.report.markdown import markdown
from harness.run.addons import provide
from harness.run.casting import Casting
from harness.run.pool import key_of
from harness.tests.fake_go import FakeGo
from harness.tests.test_run_selection import plan
from harness.tests.test_run_shared import ESTABLISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GATEWAY: Final = addons.ADDONS["gateway-api"]
THING: Final = addons.AddOn(
    "thing",
    "Thing",
    Module("example.com/thing", "v1.2.3"),
    ("crds/all.yaml",),
    ("things.example.com",),
    "nothing runs",
)


def crd(name: str) -> dict[str, Any]:
    plural, _, group = name.partition(".")
    return {
        "apiVersion": CRD.api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.title()},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeGo:
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'go'}:/usr/bin:/bin")
    return FakeGo(tmp_path / "go")


def serve(go: FakeGo, *names: str) -> None:
    text = "\n---\n".join(json.dumps(crd(name)) for name in names)
    go.serve(THING.module.path, THING.module.version, {"crds/all.yaml": text})


def command(*arguments: str) -> object:
    """Return the exit code of `drill`."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


# Where they come from


def test_every_add_on_is_a_feature_of_a_cluster_with_a_version_and_types() -> None:
    for name, addon in addons.ADDONS.items():
        assert FEATURES[name].of == "cluster"
        assert all(FEATURES[given].of == "cluster" for given in addon.gives)
        assert addon.module.version.startswith("v")
        assert addon.crds
        assert addon.module.version in addon.says
    assert "no traffic is routed" in GATEWAY.says
    assert "no request reaches a pod" in addons.ADDONS[addons.KNATIVE].says


def test_only_the_named_types_are_taken_and_a_second_time_nothing_is_fetched(go: FakeGo) -> None:
    serve(go, "others.example.com", "things.example.com")
    said: list[str] = []
    assert [one["metadata"]["name"] for one in addons.crds(THING, said.append)] == [*THING.crds]
    assert "Getting the CRDs of Thing v1.2.3 (a Go module, once)." in said
    go.refuse(THING.module.path, THING.module.version, "gone")
    said.clear()
    assert addons.crds(THING, said.append) == [crd("things.example.com")]
    assert said == []


def test_a_module_without_a_named_type_is_one_sentence(go: FakeGo) -> None:
    serve(go, "others.example.com")
    with pytest.raises(
        ClusterError,
        match=r"The add-on thing cannot be had: example.com/thing v1.2.3 has no .* things.example.com\.",
    ):
        addons.crds(THING, print)


def test_a_module_that_is_not_served_is_one_sentence(go: FakeGo) -> None:
    go.refuse(THING.module.path, THING.module.version, "reading x: 404 Not Found")
    with pytest.raises(ClusterError, match=r"thing cannot be had: .* no version v1.2.3"):
        addons.crds(THING, print)


def test_an_unknown_add_on_is_refused_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(ChoiceError, match=r"no add-on 'kedda'; allowed: gateway-api, istio, keda"):
        addons.chosen(["keda", "kedda"])
    assert command("cluster", "build", "--addon", "kedda") == ExitCode.USAGE
    assert "allowed: gateway-api" in capsys.readouterr().err


def test_cluster_build_gets_all_those_asked_for_or_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    got: list[str] = []

    class Found:
        kube_apiserver = Path("/b/kube-apiserver")

    monkeypatch.setattr(
        "harness.clusters.embedded.binaries.ensure_binaries", lambda *_, **__: Found
    )
    monkeypatch.setattr(
        "harness.run.addons.needed", lambda some, _: got.extend(a.name for a in some)
    )
    for chosen, expected in (
        ([], list(addons.ADDONS)),
        (["--addon", "none"], []),
        (["--addon", "keda", "--addon", "istio"], ["istio", "keda"]),
    ):
        got.clear()
        assert command("cluster", "build", *chosen) == ExitCode.OK
        assert got == expected
    said = capsys.readouterr().out
    assert "the CRDs of KEDA v2.21.0 are in the cache" in said
    assert "the CRDs and programs of Knative Serving v0.49.1 are in the cache" in said


# Which cluster


def test_drills_share_a_cluster_when_they_need_the_same_add_ons() -> None:
    def key(*requires: str) -> object:
        return key_of(plan(requires=list(requires)), "aaa")

    assert key("istio", "blue-green", "keda") == key("keda", "istio")
    assert key("istio") != key("keda")
    assert key("istio") != key()
    assert key("blue-green") == key()


def test_nothing_is_fetched_for_a_cluster_that_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[str] = []

    def fetch(addon: addons.AddOn, *_: object) -> list[dict[str, Any]]:
        got.append(addon.name)
        return [crd(name) for name in addon.crds]

    monkeypatch.setattr("harness.run.addons.crds", fetch)

    async def obtain(cluster: str) -> int:
        casting = Casting(print)
        drill = plan(requires=["keda"], cluster=cluster)
        await casting.obtain(drill)
        await casting.obtain(drill)
        return len(casting.addon_crds(drill))

    assert run_virtual(obtain("context:dev")) == 0
    assert got == []
    assert run_virtual(obtain("embedded:dev")) == 1
    assert got == ["keda"]


def provided(server: FakeCluster, kind: str, names: Sequence[str]) -> ClusterFacts:
    cluster = Cluster("x", ClusterFacts(kind, "x", "v1.35.4", ("n1",)), Path("/nowhere"))

    async def establish() -> None:
        await asyncio.sleep(1)
        for made in server.objects("CustomResourceDefinition"):
            name = made["metadata"]["name"]
            server.update("CustomResourceDefinition", name, None, {"status": ESTABLISHED})

    async def act() -> ClusterFacts:
        async with server.client() as client:
            serving = asyncio.create_task(establish())
            wanted = [crd(name) for one in addons.chosen(names) for name in one.crds]
            found = await provide(client, cluster, names, wanted, print)
            await serving
            return found.facts

    return run_virtual(act())


def serving(*names: str) -> FakeCluster:
    split = [name.partition(".") for name in names]
    return FakeCluster(*(Resource(group, "v1", plural, plural) for plural, _, group in split))


def test_an_existing_cluster_has_what_it_serves_and_gets_nothing() -> None:
    server = serving("scaledobjects.keda.sh", "virtualservices.networking.istio.io")
    facts = provided(server, "existing", ["istio", "keda"])
    assert facts.capabilities == ("keda",), "of Istio it has one type, not both"
    assert facts.addons == ()
    assert not {asked.verb for asked in server.requests} & {"create", "patch", "update", "delete"}


def test_an_embedded_cluster_gets_what_it_lacks_and_keeps_what_it_has() -> None:
    server = FakeCluster()
    there, missing = addons.ADDONS["istio"].crds
    server.add({**crd(there), "status": ESTABLISHED, "spec": {**crd(there)["spec"], "x": 1}})
    facts = provided(server, "embedded", ["istio"])
    assert facts.capabilities == ("istio",)
    assert [asked.body["metadata"]["name"] for asked in server.asked("create")] == [missing]
    kept = server.get("CustomResourceDefinition", there)
    assert kept is not None
    assert kept["spec"]["x"] == 1


# What is simulated


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> records.Record:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    chosen = dict.fromkeys(ports.LISTENERS, 0)
    made = records.Record(
        "one", 2, 7, 1, 0.0, owner_bound=True, kwokctl="", ports=chosen, kubernetes="v1.35.4"
    )
    records.write(made)
    made.workdir.mkdir(parents=True)
    (made.workdir / "kwok.yaml").write_text("kind: KwokctlConfiguration\n", encoding="utf-8")
    return made


class FakeApi:
    def __init__(self, log: list[str]) -> None:
        self._log = log

    def request(self, method: str, path: str) -> None:
        self._log.append(f"{method} {path.rpartition('/')[2]}")

    def exists(self, path: str) -> bool:
        return "start" in self._log and path.startswith(played.LEASES)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    log: list[str] = []

    def end(_: object, names: Sequence[str], __: float) -> list[str]:
        log.append(f"end {' '.join(names)}")
        return []

    monkeypatch.setattr(processes, "end", end)
    monkeypatch.setattr(kwokctl, "start", lambda _: log.append("start"))
    monkeypatch.setattr(ports, "answers", lambda _: True)
    monkeypatch.setattr("harness.clusters.embedded.readiness.Api", lambda _: FakeApi(log))
    return log


def stage_names(record: records.Record) -> list[str]:
    text = (record.workdir / "kwok.yaml").read_text(encoding="utf-8")
    return [one["metadata"]["name"] for one in YAML(typ="safe").load_all(text) if "spec" in one]


def test_a_cluster_without_add_ons_has_no_stage_of_theirs(record: records.Record) -> None:
    assert "gateway.networking" not in stages.render(record.seed)
    facts = embedded.opened(record, exclusive=True).facts
    assert facts.addons == ()
    assert "gateway-api" not in facts.capabilities


def test_kwok_is_started_again_once_with_the_stages_of_routes(
    record: records.Record, started: list[str]
) -> None:
    cluster = embedded.opened(record, exclusive=True)
    cluster = played.play(cluster, ["gateway-api"], print)
    # Leases of the ended one would keep the new one from the nodes until they run out.
    assert started == ["end kwok-controller", "DELETE node-1", "DELETE node-2", "start"]
    assert stage_names(record) == ["route-accepted", "route-refused", "gateway-programmed"]
    assert {"gateway-api", "simulated-routes"} <= set(cluster.facts.capabilities)
    assert cluster.facts.addons == (GATEWAY.says,)
    assert cluster.facts.exclusive
    again = records.read("one")
    assert again is not None, "the next run on a warm cluster knows it"
    assert again.addons == ["gateway-api"]
    assert played.play(cluster, ["gateway-api"], print) is cluster
    assert started.count("start") == 1


def test_stages_that_an_interrupted_attempt_wrote_are_not_written_twice(
    record: records.Record, started: list[str]
) -> None:
    cluster = embedded.opened(record, exclusive=True)
    played.play(cluster, ["gateway-api"], print)
    played.play(cluster, ["gateway-api"], print)  # of the first attempt nothing was remembered
    assert started.count("start") == 2
    assert len(stage_names(record)) == 3


def test_kwok_goes_on_where_nothing_is_simulated(
    record: records.Record, started: list[str]
) -> None:
    cluster = played.play(embedded.opened(record, exclusive=False), ["istio", "keda"], print)
    assert started == []
    assert len(cluster.facts.addons) == 2
    assert "simulated-routes" not in cluster.facts.capabilities


def test_knative_is_started_behind_its_stages_and_keeps_its_port(
    record: records.Record, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(given: records.Record, *_: object) -> None:
        started.append("install")
        records.write(dataclasses.replace(given, ports={**given.ports, site.WEBHOOK_PORT: 4711}))

    monkeypatch.setattr(played, "install", install)
    cluster = played.play(embedded.opened(record, exclusive=True), ["knative"], print)
    assert started[-2:] == ["start", "install"]
    assert stage_names(record)
    assert cluster.facts.addons == (addons.ADDONS[addons.KNATIVE].says,)
    assert "knative" in cluster.facts.capabilities
    again = records.read("one")
    assert again == cluster.record
    assert again.ports[site.WEBHOOK_PORT] == 4711
    assert played.play(cluster, ["knative"], print) is cluster
    assert started.count("install") == 1


def test_a_knative_that_does_not_answer_is_not_remembered_and_its_logs_are_kept(
    record: records.Record, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(given: records.Record, *_: object) -> None:
        given.log("knative-webhook").parent.mkdir()
        given.log("knative-webhook").write_text("no", encoding="utf-8")
        msg = "The webhook did not answer."
        raise ClusterError(msg)

    monkeypatch.setattr(played, "install", install)
    with pytest.raises(ClusterError) as told:
        played.play(embedded.opened(record, exclusive=True), ["knative"], print)
    assert str(told.value) == (
        f"The webhook did not answer. The cluster's logs are in {record.kept_logs}."
    )
    assert (record.kept_logs / "knative-webhook.log").read_text(encoding="utf-8") == "no"
    assert records.read("one") == record
    assert "start" in started


def test_logs_of_knative_are_there_where_it_was_started(
    record: records.Record, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("cluster", "logs", "one", "knative-webhook") == ExitCode.ERROR
    assert capsys.readouterr().err.rstrip().endswith("allowed: " + ", ".join(COMPONENTS) + ".")
    record.log("knative-webhook").parent.mkdir()
    record.log("knative-webhook").write_text("served\n", encoding="utf-8")
    known = [Component(f"knative-{name}", Path("/b")).plain() for name in ("webhook", "controller")]
    (record.folder / "knative.json").write_text(json.dumps(known), encoding="utf-8")
    assert command("cluster", "logs", "one", "knative-webhook") == ExitCode.OK
    assert capsys.readouterr().out == "served\n"
    assert command("cluster", "logs", "one", "webhook") == ExitCode.ERROR
    assert (
        "kwok-controller, knative, knative-webhook, knative-controller." in capsys.readouterr().err
    )


def test_the_delays_of_routes_depend_on_the_seed() -> None:
    files = list(stages.ADDON_FILES.values())
    assert stages.render(1, files) == stages.render(1, files)
    assert stages.render(1, files) != stages.render(2, files)


# What a report says


def recorded(change: Callable[[dict[str, Any]], None], *more: dict[str, Any]) -> Any:
    from harness.data import data_path

    lines = (data_path("fixtures", "timelines") / "node-spread-with-key.jsonl").read_text("utf-8")
    header, *rest = lines.splitlines()
    row = json.loads(header)
    change(row)
    rest = [*(json.dumps(one) for one in more), *rest]
    return judge(parse([json.dumps(row), *rest]))


def test_a_report_names_add_ons_and_that_nothing_is_routed() -> None:
    def add(header: dict[str, Any]) -> None:
        header["cluster"]["addons"] = [GATEWAY.says]

    text = markdown(recorded(add))
    (nodes,) = [line for line in text.splitlines() if line.startswith("Nodes:")]
    assert "Gateway API v1.4.1: route status played by a kwok stage; no gateway runs" in nodes
    assert "| add-on | Gateway API v1.4.1" in text
    assert "add-on" not in markdown(recorded(lambda _: None))


def test_a_cluster_that_lacks_an_add_on_makes_the_drill_unsupported() -> None:
    missing = {"type": "missing", "t": 0.1, "features": ["gateway-api"], "lacking": "cluster dev"}
    report = recorded(lambda _: None, missing)
    assert report.verdict.outcome is Outcome.UNSUPPORTED
    assert "cluster dev lacks gateway-api" in markdown(report)


def test_a_record_of_an_earlier_version_has_none(record: records.Record) -> None:
    file = record.folder / "record.json"
    row = json.loads(file.read_text(encoding="utf-8"))
    del row["addons"]
    file.write_text(json.dumps(row), encoding="utf-8")
    assert records.read("one") == dataclasses.replace(record, addons=[])
