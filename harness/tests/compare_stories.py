"""Promotions as recordings that can be compared: what happens (Shape) is apart from what every run does otherwise (Noise)."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from harness.model import timeline as tl
from harness.tests.timelines import NODES, Recording, check, scenario

BODY = scenario(
    name="spread",
    variant="plain",
    id="spread[plain]",
    checks=[
        check("never-blocked", "never", "pods.exists(p, p.unschedulable)"),
        check("served", "always", "primary.ready >= 1", **{"from": "initialise"}),
    ],
    record=[
        {
            "title": "The primary's template",
            "object": "primary",
            "path": "spec.template.metadata",
            "at": ["initialise", "end"],
        }
    ],
    values={"replicas": 2},
)


@dataclass(frozen=True)
class Shape:
    """What a subject does."""

    phases: tuple[str, ...] = ("Progressing", "Promoting", "Finalising", "Succeeded")
    """After Initialized."""
    iterations: tuple[int, ...] = (0, 1)
    """While Progressing."""
    weight: int = 0
    promoted: int = 2
    """Pods of the primary in the end."""
    blocked: bool = False
    """Whether one of the primary's new pods finds no node, which ends in Failed."""
    fence: bool = True
    message: str = "done"
    service: tuple[tuple[str, Any], ...] = ()
    """More fields of the apex Service's spec."""
    label: str = ""
    """Of the primary's template."""
    config: bool = False
    """Whether a ConfigMap is left beside the workload."""


@dataclass(frozen=True)
class Noise:
    """What is another one in every run."""

    nodes: tuple[str, str] = NODES
    hashes: tuple[str, ...] = ("6d4f9b7c58", "847c5dd6bf", "5f66c8d9fd", "7b9c6d5f48")
    suffixes: tuple[str, ...] = ("kx2lp", "w9ddz", "b6tnm", "r5j9s", "4zq8v", "hm77c", "c2x4v")
    namespace: str = "drill-spread-7k2mq5xa"
    uids: str = "a"
    tokens: tuple[str, str] = ("v2:1111111111111111", "v2:2222222222222222")
    """What the status calls the two revisions."""
    pace: float = 1.0
    lags: tuple[tuple[str, float], ...] = ()
    """Kind -> seconds by which its watch is late."""
    first_version: int = 100
    early: bool = False
    """Whether the target is scaled down before it was ever ready."""
    late: bool = False
    """Whether the pods of a target that is scaled down are told so before the status says anything."""


@dataclass
class _Workload:
    name: str
    generation: int = 0
    observed: int = 0
    replicas: int = 2
    revision: int = 0
    status: dict[str, int] = field(default_factory=dict)


class Play(Recording):
    """A recording whose objects have versions, uids and whole statuses."""

    def __init__(self, shape: Shape, noise: Noise, **header: Any) -> None:
        more = header.pop("body", {})
        facts = {
            "namespace": noise.namespace,
            "cluster": tl.ClusterFacts("embedded", "run-1", "v1.35.4", noise.nodes, "kwok", 1),
        }
        super().__init__({**BODY, **more}, **{**facts, **header})
        self.shape, self.noise = shape, noise
        self.version = noise.first_version
        self.workloads: dict[str, _Workload] = {}
        self.status: dict[str, Any] = {}

    def see(self, obj: dict[str, Any], change: str | None = None) -> Play:
        self.version += 1
        kind, metadata = obj["kind"], obj["metadata"]
        metadata.update(resourceVersion=str(self.version), namespace=self.noise.namespace)
        metadata.setdefault("uid", f"{kind}-{metadata['name']}-{self.noise.uids}")
        metadata["creationTimestamp"] = "2026-10-29T11:22:36Z"
        metadata["managedFields"] = [{"manager": self.noise.uids}]
        now = self.t
        self.t += dict(self.noise.lags).get(kind, 0.0)
        super().see(obj, change)
        self.t = now
        return self

    def gone(self, name: str, kind: str = "Pod") -> Play:
        obj = copy.deepcopy(self._objects[kind, name])
        del self._objects[kind, name]
        self.see(obj, "DELETED")
        del self._objects[kind, name]
        return self

    def at(self, t: float) -> Play:
        self.t = t * self.noise.pace
        return self

    # ---- objects

    def canary(self, phase: str = "", **status: Any) -> Play:
        if phase:
            condition = {
                "type": "Promoted",
                "status": {"Succeeded": "True", "Failed": "False"}.get(phase, "Unknown"),
                "reason": phase,
                "message": f"{self.shape.message}, web-primary-{self.noise.hashes[1]}",
                "lastUpdateTime": f"2026-10-29T11:2{self.version % 10}:36Z",
            }
            counters = {"canaryWeight": 0, "failedChecks": 0, "iterations": 0}
            self.status = {**counters, "conditions": [condition], "phase": phase, **status}
        return self.see(
            {
                "apiVersion": "flagger.app/v1beta1",
                "kind": "Canary",
                "metadata": {
                    "name": "web",
                    "generation": 1,
                    "labels": {"rollout-drill/run": self.noise.uids},
                },
                "spec": {"targetRef": {"kind": "Deployment", "name": "web"}},
                **({"status": copy.deepcopy(self.status)} if self.status else {}),
            }
        )

    def tracked(self, applied: int, promoted: int) -> dict[str, Any]:
        found = {
            "lastAppliedSpec": self.noise.tokens[applied - 1],
            "lastPromotedSpec": self.noise.tokens[promoted - 1],
        }
        if self.shape.fence:
            found["lastTrackedRevision"] = f"Deployment-web-{self.noise.uids}/{applied}/{applied}"
        return found

    def spec(self, name: str, revision: int, replicas: int) -> Play:
        """A workload's spec is written; its controller has not looked yet."""
        workload = self.workloads.setdefault(name, _Workload(name))
        workload.generation += 1
        workload.revision, workload.replicas = revision, replicas
        return self._deployment(workload)

    def observed(self, name: str, ready: int) -> Play:
        """A workload's controller has looked: so many pods are ready, all of its current revision."""
        workload = self.workloads[name]
        workload.observed = workload.generation
        count = workload.replicas
        keys = ("replicas", "updatedReplicas")
        workload.status = dict.fromkeys(keys, count) if count else {}
        workload.status.update({"availableReplicas": ready} if ready else {})
        return self._deployment(workload)

    def hash(self, name: str, revision: int) -> str:
        return self.noise.hashes[revision - 1 + (2 if name == "web" else 0)]

    def _deployment(self, workload: _Workload) -> Play:
        annotations = {"deployment.kubernetes.io/revision": str(workload.revision)}
        primary = workload.name != "web"
        template: dict[str, Any] = {
            "metadata": {"labels": {"app": workload.name}},
            "spec": {"containers": [{"name": "web", "image": f"web:{workload.revision}"}]},
        }
        if primary:
            template["metadata"]["annotations"] = {
                "flagger-id": self.noise.tokens[workload.revision - 1]
            }
            template["metadata"]["labels"].update(
                {"extra": self.shape.label} if self.shape.label else {}
            )
        owner = {"kind": "Canary", "name": "web", "uid": f"Canary-web-{self.noise.uids}"}
        self.see(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {
                    "name": workload.name,
                    "generation": workload.generation,
                    "annotations": annotations,
                    **({"ownerReferences": [owner]} if primary else {}),
                },
                "spec": {"replicas": workload.replicas, "template": template},
                "status": {"observedGeneration": workload.observed, **workload.status},
            }
        )
        revision = self.hash(workload.name, workload.revision)
        return self.see(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": f"{workload.name}-{revision}",
                    "annotations": annotations,
                    "labels": {"pod-template-hash": revision},
                    "ownerReferences": [
                        {"kind": "Deployment", "name": workload.name, "controller": True}
                    ],
                },
            }
        )

    def pods(self, name: str, revision: int, **state: Any) -> Play:
        """Both pods of a workload's revision are seen in a state, one on each node."""
        for number in (0, 1):
            self.one(name, revision, number, node=self.noise.nodes[number], **state)
        return self

    def one(self, name: str, revision: int, number: int, **state: Any) -> Play:
        self.pod(name, self.hash(name, revision), self._suffix(name, revision, number), **state)
        return self

    def left(self, name: str, revision: int) -> Play:
        """Both pods of a workload's revision are gone."""
        for number in (0, 1):
            suffix = self._suffix(name, revision, number)
            self.gone(f"{name}-{self.hash(name, revision)}-{suffix}")
        return self

    def _suffix(self, name: str, revision: int, number: int) -> str:
        place = number + 2 * (revision - 1) + (3 if name == "web" else 0)
        return self.noise.suffixes[place % len(self.noise.suffixes)]

    def service(self, name: str, role: str, **spec: Any) -> Play:
        address = f"10.96.0.{len(self.noise.uids) + self.version % 200}"
        return self.see(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "labels": {"app": name}},
                "spec": {
                    "clusterIP": address,
                    "clusterIPs": [address],
                    "selector": {"app": role},
                    "ports": [{"name": "http", "port": 80}],
                    **spec,
                },
            }
        )


def told(shape: Shape | None = None, noise: Noise | None = None, **header: Any) -> Play:
    """A promotion, from apply to the end of the settle time."""
    shape, noise = shape or Shape(), noise or Noise()
    play = Play(shape, noise, **header)
    play.at(0.2).synced().add(tl.SubjectState, state="started", detail="s")
    play.add(tl.Precondition, holds=True, reason="2 nodes")
    play.at(0.4).step("initialise", "started")
    play.see(
        {"kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}, "data": {"a": noise.uids}}
    )
    play.at(0.5).spec("web", 1, 2).at(0.6).canary().step("initialise", "acted")
    play.at(1.0).canary("Initializing")
    play.observed("web", 0).pods("web", 1).at(1.5)
    if not noise.early:
        play.pods("web", 1, ready=True).observed("web", 2)
    play.at(2.0).spec("web-primary", 1, 2).observed("web-primary", 0).pods("web-primary", 1)
    play.at(4.0).pods("web-primary", 1, ready=True).observed("web-primary", 2)
    play.service("web-primary", "web-primary").service("web", "web-primary", **dict(shape.service))
    play.at(4.1).spec("web", 1, 0)
    if not noise.late:
        play.at(4.2).canary("Initialized", **play.tracked(1, 1))
    play.at(4.3).observed("web", 0).pods("web", 1, terminating=True)
    if noise.late:
        play.at(4.4).canary("Initialized", **play.tracked(1, 1))
    play.at(6.0).left("web", 1).step("initialise", "held")
    play.at(7.0).step("new revision", "started").spec("web", 2, 0).step(
        "new revision", "acted", "held"
    )
    play.step("promote", "started")
    if shape.config:
        play.see({"kind": "ConfigMap", "metadata": {"name": "extra"}, "data": {"a": "b"}})
    _phases(play, shape)
    play.at(31.0).step("promote", "held")
    play.at(31.1).add(tl.Settled, state="begin").at(32.1).add(tl.Settled, state="end")
    return play


def _phases(play: Play, shape: Shape) -> None:
    play.at(8.0).spec("web", 2, 2)
    for phase in shape.phases:
        step = _PHASES.get(phase)
        if step is None:
            play.at(play.t / play.noise.pace + 0.5).canary(phase, **play.tracked(2, 1))
        else:
            step(play, shape)


def _progressing(play: Play, shape: Shape) -> None:
    play.at(8.1).canary("Progressing", **play.tracked(2, 1))
    play.observed("web", 0).pods("web", 2)
    play.at(10.0).pods("web", 2, ready=True).observed("web", 2)
    for number in shape.iterations:
        play.at(11.0 + number).canary(
            "Progressing", iterations=number, canaryWeight=shape.weight, **play.tracked(2, 1)
        )


def _promoting(play: Play, shape: Shape) -> None:
    play.at(20.0).spec("web-primary", 2, 2)
    play.at(20.05).canary("Promoting", iterations=2, **play.tracked(2, 1))
    if shape.blocked:
        play.at(20.1).one("web-primary", 2, 0, refused="0/2 nodes are available")
        play.at(29.0).canary("Failed", iterations=2, **play.tracked(2, 1))
        return
    play.at(21.0).observed("web-primary", 0).pods("web-primary", 2)
    play.at(22.0).pods("web-primary", 2, ready=True)
    play.pods("web-primary", 1, ready=True, terminating=True)
    if shape.promoted != 2:
        play.one("web-primary", 2, 1, node=play.noise.nodes[0], ready=True)
    play.observed("web-primary", 2)


def _finalising(play: Play, shape: Shape) -> None:
    del shape
    play.at(24.0).canary("Finalising", iterations=2, **play.tracked(2, 1))
    play.left("web-primary", 1)


def _succeeded(play: Play, shape: Shape) -> None:
    del shape
    play.at(25.0).spec("web", 2, 0).at(25.1).canary("Succeeded", **play.tracked(2, 2))
    play.observed("web", 0).pods("web", 2, ready=True, terminating=True)
    play.at(27.0).left("web", 2)


_PHASES = {
    "Progressing": _progressing,
    "Promoting": _promoting,
    "Finalising": _finalising,
    "Succeeded": _succeeded,
}
