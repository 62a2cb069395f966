"""The pod that asks: started, listened to, and what is said where that does not work."""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.clusters.base import Cluster
from harness.clusters.workload import IMAGE
from harness.kube.errors import Forbidden, Unreachable
from harness.model.timeline import ClusterFacts, HarnessError, ObjectSeen, WatchState
from harness.model.timeline_traffic import TrafficBegan, TrafficWindow
from harness.model.traffic import PART_LABEL, PROBE, Traffic
from harness.run import traffic as running
from harness.run.adapt import Adaptation
from harness.run.live import Live
from harness.run.objects import RefusedError
from harness.run.preconditions import lacking_probe
from harness.run.traffic import TrafficProbe
from harness.run.traffic_pod import probe_pod, trouble
from harness.tests.timelines import Recording, scenario

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from harness.model.timeline import JSON, Missing, Observation

NS = "drill-x"
Connection = list[Any]
"""What one connection to the log brings: lines, and perhaps an error at its end. The last one goes on for ever."""


def lines(first: int, last: int, *, answered: bool = True, ahead: float = 0.0) -> list[JSON]:
    """Return lines of a probe, as if all were written a second ago and later; windows go on for `ahead` seconds."""
    began = time.time() - 1
    told: list[JSON] = []
    for number in range(first, last + 1):
        at = round((began + number / 1e5) * 1e6)
        line: JSON = {"seq": number, "at": at}
        if number == 0:
            line |= {"kind": "hello"}
        elif answered:
            window = {"from": at, "to": at + round(ahead * 1e6), "sent": 2, "failures": []}
            answers = [{"pod": "web-a", "took": [900, 950]}]
            line |= {"kind": "window", "answers": answers, **window}
        else:
            line |= {"kind": "waiting", "error": "refused", "status": 0}
        told.append(line)
    return told


class Drill:
    """A client, a maker and a file in one: what there is of a drill."""

    def __init__(self, *connections: Connection, phase: str = "Running", **status: Any) -> None:
        story = Recording(scenario(traffic={"rate": 20}))
        self.live = Live(story.header(), cast("Any", self), time.monotonic())
        self.made: list[JSON] = []
        self.asked: list[tuple[str, dict[str, str], str]] = []
        self.refusal: Exception | None = None
        self._connections = list(connections)
        self._status = {"phase": phase, **status}
        self.see("Canary", "web", spec={"targetRef": {"name": "web"}})
        self.see("Service", "web", spec={"ports": [{"port": 8081}]})

    def see(self, kind: str, name: str, **parts: Any) -> None:
        obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "uid": name}, **parts}
        self.live.observe(ObjectSeen(self.live.now(), "ADDED", obj))

    def append(self, observation: Observation) -> Observation:
        return observation

    async def apply(self, obj: JSON, namespace: str) -> None:
        assert namespace == NS
        if self.refusal is not None:
            raise self.refusal
        self.made.append(obj)
        metadata = {**obj["metadata"], "uid": "p"}
        pod = {**obj, "metadata": metadata, "status": self._status}
        self.live.observe(ObjectSeen(self.live.now(), "ADDED", pod))

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, silence: float, accept: str
    ) -> AsyncIterator[AsyncIterator[JSON]]:
        assert silence > 1
        self.asked.append((path, dict(params), accept))
        yield self._read(self._connections.pop(0) if self._connections else [])

    async def _read(self, brings: Connection) -> AsyncIterator[JSON]:
        for one in brings:
            if isinstance(one, Exception):
                raise one
            yield one
            await asyncio.sleep(0)
        if not self._connections:
            await asyncio.Event().wait()

    def probe(self, **more: Any) -> TrafficProbe:
        return TrafficProbe(
            Traffic(after="initialise", **more),
            client=cast("Any", self),
            maker=cast("Any", self),
            live=self.live,
            namespace=NS,
            image=IMAGE,
            adaptation=Adaptation(nodes=("n1",), priority_class="meek"),
        )

    def run(self, act: Callable[[TrafficProbe], Awaitable[Any]], **more: Any) -> Any:
        async def whole() -> Any:
            probe = self.probe(**more)
            try:
                return await act(probe)
            finally:
                await probe.close()

        return asyncio.run(whole())

    def of(self, kind: type[Any]) -> list[Any]:
        return [one for one in self.live.observations if isinstance(one, kind)]


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "RUNS_WITHIN", 0.05)
    monkeypatch.setattr(running, "ANSWERED_WITHIN", 0.2)
    monkeypatch.setattr(running, "COMPLETE_WITHIN", -1.95)
    monkeypatch.setattr(running, "PATIENCE", 0.0)
    monkeypatch.setattr(running, "_PAUSES", (0.001, 0.002))
    monkeypatch.setattr("harness.run.traffic_lines.SETTING", 0.0)


def begins(probe: TrafficProbe) -> Awaitable[bool]:
    return probe.flows("initialise")


def test_it_begins_with_its_step_and_no_other() -> None:
    drill = Drill(lines(0, 3))
    assert drill.run(lambda probe: probe.flows("promote")) is True
    assert drill.made == []


def test_the_apex_is_asked_by_a_pod_that_is_adapted_and_its_log_is_followed() -> None:
    drill = Drill(lines(0, 3))
    assert drill.run(begins) is True
    (pod,) = drill.made
    assert pod["metadata"]["labels"] == {PART_LABEL: PROBE}
    assert "--url=http://web:8081/hostname" in pod["spec"]["containers"][0]["args"]
    assert pod["spec"]["priorityClassName"] == "meek"
    assert "nodeAffinity" in pod["spec"]["affinity"]
    ((path, params, accept),) = drill.asked
    assert path == f"/api/v1/namespaces/{NS}/pods/{pod['metadata']['name']}/log"
    # The API server answers logs as text only, so that nothing else may be insisted on.
    assert (params, accept) == ({"container": "probe", "follow": "true"}, "*/*")
    assert len(drill.of(TrafficBegan)) == 1
    assert drill.live.state.world()["traffic"]["answered"] >= 2


def test_a_connection_that_breaks_is_followed_by_another_and_nothing_counts_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "PATIENCE", 60.0)
    drill = Drill([*lines(0, 3), Unreachable("reset")], lines(2, 6))

    async def act(probe: TrafficProbe) -> None:
        await begins(probe)
        await drill.live.wait_for(lambda: len(drill.of(TrafficWindow)) >= 6, 5)

    drill.run(act)
    assert len(drill.of(TrafficWindow)) == 6
    assert drill.of(WatchState) == []
    assert "sinceSeconds" in drill.asked[1][1]


def test_what_is_not_known_in_the_end_is_a_gap() -> None:
    drill = Drill(lines(0, 3))

    async def act(probe: TrafficProbe) -> None:
        await begins(probe)
        await probe.complete()

    drill.run(act)
    (gap,) = drill.of(WatchState)
    assert (gap.kind, gap.state) == ("traffic", "gap")
    assert gap.since == pytest.approx(drill.of(TrafficWindow)[-1].until)


def test_what_is_known_up_to_the_end_is_no_gap() -> None:
    drill = Drill(lines(0, 30, ahead=60.0))

    async def act(probe: TrafficProbe) -> None:
        await begins(probe)
        await drill.live.wait_for(lambda: len(drill.of(TrafficWindow)) == 30, 5)
        await probe.complete()

    drill.run(act)
    assert drill.of(WatchState) == []


def test_nobody_who_answers_is_what_came_of_the_step() -> None:
    drill = Drill(lines(0, 5, answered=False))
    with pytest.raises(
        RefusedError, match=r"http://web:8081/hostname was answered .*last: refused"
    ):
        drill.run(begins)


def test_nobody_to_ask_is_what_came_of_the_step() -> None:
    drill = Drill()
    with pytest.raises(RefusedError, match="no Service shop to ask"):
        drill.run(begins, service="shop")
    assert drill.made == []


def test_another_namespaces_gateway_is_asked_by_its_port_and_for_a_host() -> None:
    drill = Drill(lines(0, 3))
    drill.run(begins, service="gate.istio", port=80, path="/", host="web.example", keep_alive=True)
    arguments = drill.made[0]["spec"]["containers"][0]["args"]
    assert arguments[1:] == [
        "--url=http://gate.istio:80/",
        "--rate=20",
        "--timeout=2000ms",
        "--host=web.example",
        "--keep-alive",
    ]


def test_a_container_that_never_starts_is_the_clusters_fault() -> None:
    waiting = {"state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}
    drill = Drill(phase="Pending", containerStatuses=[waiting])
    assert drill.run(begins) is False
    (error,) = drill.of(HarnessError)
    assert "was not started within 0.05 s: ErrImagePull: no such image" in error.message


def test_a_log_that_may_not_be_read_is_the_clusters_fault_and_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "ANSWERED_WITHIN", 600.0)
    drill = Drill([Forbidden(403, "Forbidden", "cannot get pods/log", request="GET log")])
    assert drill.run(begins) is False
    (error,) = drill.of(HarnessError)
    assert "cannot get pods/log" in error.message


def test_a_cluster_that_refuses_the_pod_is_no_failure_of_the_subject() -> None:
    drill = Drill()
    drill.refusal = Forbidden(403, "Forbidden", "exceeded quota: pods", request="PATCH pods")
    assert drill.run(begins) is False
    (error,) = drill.of(HarnessError)
    assert "is refused" in error.message
    assert "exceeded quota" in error.message


def test_a_pod_says_why_it_does_not_run() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
    assert trouble({"status": {"conditions": [condition]}}) == "0/2 nodes are available"
    assert trouble({"status": {"phase": "Pending"}}) == "phase Pending"
    assert trouble(None) == "it was not seen"


def test_the_pod_may_run_where_pod_security_is_restricted() -> None:
    pod = probe_pod("p", IMAGE, "http://web:80/", Traffic())
    (container,) = pod["spec"]["containers"]
    context = container["securityContext"]
    assert context["runAsNonRoot"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert not context["allowPrivilegeEscalation"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod["spec"]["automountServiceAccountToken"]


def _lacking(image: str, *features: str, traffic: Traffic | None) -> Missing | None:
    facts = ClusterFacts("existing", "dev", "v1.35.4", ("n1",), capabilities=features)
    parts = SimpleNamespace(
        place=SimpleNamespace(
            cluster=Cluster("context:dev", facts, cast("Any", None), image=image)
        ),
        plan=SimpleNamespace(resolved=SimpleNamespace(traffic=traffic)),
        live=SimpleNamespace(now=lambda: 1.0),
    )
    return lacking_probe(cast("Any", parts))


def test_an_image_without_the_probe_is_unsupported_and_says_what_to_do() -> None:
    missing = _lacking("", "network", traffic=Traffic())
    assert missing is not None
    assert "agnhost" in missing.lacking
    assert "--image" in missing.features[0]
    assert _lacking(IMAGE, "network", traffic=Traffic()) is None
    assert _lacking("", "network", traffic=None) is None
    # Simulated nodes lack the network, which is all that there is to say.
    assert _lacking("", traffic=Traffic()) is None
