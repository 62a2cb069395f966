"""What `--cluster` means, and that whatever was opened is closed."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters import select
from harness.clusters.base import ChoiceError, Cluster, ClusterError
from harness.clusters.embedded import binaries, cluster, components, records

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("embedded", select.Choice("embedded")),
        ("embedded:warm", select.Choice("embedded", "warm")),
        ("context:kind-dev", select.Choice("context", "kind-dev")),
        ("context:arn:aws:eks:eu", select.Choice("context", "arn:aws:eks:eu")),
    ],
)
def test_known_values_are_understood(text: str, choice: select.Choice) -> None:
    assert select.parse(text) == choice


@pytest.mark.parametrize("text", ["", "minikube", "embedded:", "embeded", "Context:x"])
def test_anything_else_is_refused_with_the_allowed_values(text: str) -> None:
    with pytest.raises(
        ClusterError,
        match="allowed: embedded, embedded:NAME, kind, kind:NAME, k3s, k3s:NAME, context:NAME",
    ):
        select.parse(text)


def test_a_context_must_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("contexts: [{name: dev}, {name: prod}]\n", encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(config))
    with pytest.raises(ClusterError, match="there are: dev, prod"):
        select.parse("context:")


class Machine:
    """Stands for the embedded clusters of a machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.said: list[str] = []
        self.up: list[str] = []
        self.down: list[str] = []
        self.warm: list[records.Record] = []
        self.got: list[str | None] = []
        """Versions whose programs were asked for."""
        self.hold: Callable[[threading.Event], None] = lambda _: None
        monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
        monkeypatch.setattr(binaries, "ensure_binaries", self._resolve)
        monkeypatch.setattr(cluster, "up", self._up)
        monkeypatch.setattr(cluster, "down", self.down.append)
        monkeypatch.setattr(cluster, "listing", self._listing)
        monkeypatch.setattr(cluster, "find", self._find)

    def record(
        self, name: str, nodes: int = 2, seed: int = 1, *, bound: bool = False, kubernetes: str = ""
    ) -> None:
        made = records.Record(
            name,
            nodes,
            seed,
            1,
            0.0,
            bound,
            "kwokctl",
            {},
            kubernetes=kubernetes or "v1.35.4",
            default_version=not kubernetes,
        )
        made.folder.mkdir(parents=True)
        self.warm.append(made)

    def open(self, choice: str, **options: Any) -> Any:
        return select.open_cluster(
            choice,
            **{
                "nodes": 2,
                "seed": 1,
                "binaries_source": "auto",
                "progress": self.said.append,
                **options,
            },
        )

    def _resolve(self, *_: Any, **options: Any) -> components.Binaries:
        self.got.append(options.get("kubernetes"))
        return components.Binaries(*[Path("/nowhere")] * 6)

    def _up(self, name: str, **options: Any) -> cluster.EmbeddedCluster:
        self.up.append(name)
        self.hold(options["cancelled"])
        made = records.Record(
            name, options["nodes"], options["seed"], 1, 0.0, options["owner_pid_bound"], "", {}
        )
        return cluster.opened(made, exclusive=True)

    def _listing(self) -> list[cluster.Listed]:
        return [
            cluster.Listed(one.name, one.nodes, one.seed, True, 1, one.owner_bound, 0.0)  # noqa: FBT003
            for one in self.warm
        ]

    def _find(self, name: str) -> cluster.EmbeddedCluster | None:
        return next(
            (cluster.opened(one, exclusive=False) for one in self.warm if one.name == name), None
        )


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    return Machine(monkeypatch, tmp_path)


def test_without_a_warm_one_a_cluster_is_made_and_removed(machine: Machine) -> None:
    async def run() -> None:
        async with machine.open("embedded") as made:
            assert made.facts.exclusive
            assert made.record.owner_bound
            assert machine.down == []

    asyncio.run(run())
    assert machine.down == machine.up
    assert len(machine.up) == 1


def test_a_cluster_is_removed_when_its_run_fails(machine: Machine) -> None:
    async def run() -> None:
        async with machine.open("embedded"):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        asyncio.run(run())
    assert machine.down == machine.up


def test_cancelling_while_it_is_made_stops_the_making_and_removes_it(machine: Machine) -> None:
    begun = threading.Event()

    def hold(cancelled: threading.Event) -> None:
        begun.set()
        assert cancelled.wait(10)
        msg = "cancelled"
        raise ClusterError(msg)

    machine.hold = hold

    async def enter() -> None:
        async with machine.open("embedded"):
            pytest.fail("it was never made")

    async def run() -> None:
        task = asyncio.create_task(enter())
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert machine.down == machine.up


def test_a_warm_cluster_with_as_many_nodes_is_used_and_stays(machine: Machine) -> None:
    machine.record("three", nodes=3)
    machine.record("other-seed", seed=9)
    machine.record("of-a-run", bound=True)
    machine.record("fits")

    async def run() -> None:
        async with machine.open("embedded") as opened:
            assert opened.name == "embedded:fits"
            assert not opened.facts.exclusive

    asyncio.run(run())
    assert machine.up == machine.down == []


def test_a_warm_cluster_is_given_to_one_run_at_a_time(machine: Machine) -> None:
    machine.record("warm")

    async def run() -> None:
        async with machine.open("embedded") as first, machine.open("embedded") as second:
            assert first.facts.name == "warm"
            assert second.facts.exclusive
        async with machine.open("embedded") as again:
            assert again.facts.name == "warm"

    asyncio.run(run())


def test_without_a_seed_any_warm_one_fits(machine: Machine) -> None:
    machine.record("warm", seed=77)

    async def run() -> None:
        async with machine.open("embedded", seed=None) as opened:
            assert opened.facts.seed == 77

    asyncio.run(run())


def test_a_named_warm_cluster_is_used_whatever_its_size(machine: Machine) -> None:
    machine.record("warm", nodes=5)

    async def run() -> None:
        async with machine.open("embedded:warm") as opened:
            assert len(opened.facts.nodes) == 5
            async with machine.open("embedded:warm"):
                pass

    asyncio.run(run())
    assert machine.said == ["Embedded cluster 'warm' is used by another run at the same time."]


def test_a_named_cluster_that_is_missing_is_answered_with_those_there_are(
    machine: Machine,
) -> None:
    machine.record("warm")
    records.write(dataclasses.replace(machine.warm[0], ready=True))

    async def run() -> None:
        async with machine.open("embedded:cold"):
            pass

    with pytest.raises(ClusterError, match="no embedded cluster 'cold'; there are: warm"):
        asyncio.run(run())


def name_of(machine: Machine, choice: str = "embedded", **options: Any) -> str:
    """Return the name of the warm cluster that is opened, or `own`."""

    async def run() -> str:
        async with machine.open(choice, **options) as opened:
            return "own" if opened.facts.exclusive else str(opened.facts.name)

    return asyncio.run(run())


def test_a_warm_one_of_another_version_is_used_by_who_asks_for_that_only(machine: Machine) -> None:
    machine.record("older", kubernetes="v1.34.4")
    assert name_of(machine) == "own"
    assert name_of(machine, kubernetes="v1.34") == "older"
    assert name_of(machine, kubernetes="v1.34.4") == "older"
    assert name_of(machine, kubernetes="v1.36") == "own"
    assert machine.got == [None, "v1.36"]


def test_who_upgrades_gets_a_cluster_of_its_own_and_all_programs_before(machine: Machine) -> None:
    machine.record("warm")
    assert name_of(machine, alone="x[v]", kubernetes="v1.34", later=("v1.35", "v1.36")) == "own"
    assert machine.got == ["v1.35", "v1.36", "v1.34"]


@pytest.mark.parametrize("choice", ["embedded:warm", "context:dev"])
def test_who_upgrades_is_not_let_into_a_cluster_of_others(machine: Machine, choice: str) -> None:
    machine.record("warm")
    with pytest.raises(ChoiceError, match=r"x\[v\] needs a cluster of its own"):
        name_of(machine, choice, alone="x[v]")


def test_a_warm_one_that_does_not_suit_is_passed_over_or_refused_by_name(machine: Machine) -> None:
    machine.record("flaggers")
    machine.record("ours")

    async def suits(found: Cluster) -> str:
        return "its CRD is another's" if found.facts.name == "flaggers" else ""

    assert name_of(machine, suits=suits) == "ours"
    with pytest.raises(ChoiceError, match="embedded:flaggers cannot be used: its CRD is another's"):
        name_of(machine, "embedded:flaggers", suits=suits)
    assert name_of(machine, "embedded:ours", suits=suits) == "ours"
