"""Makes timelines for tests: a recording is told in the order in which things happened.

    story = Recording(scenario(checks=[…]))
    story.at(1.0).step("initialise").rollout("Initialized").pod("web-primary", "aaa", 1, node="north-1", ready=True)
    report = judge(story.timeline())

Objects are remembered, so that `pod(…, ready=True)` a second time is an update. Everything goes through the file format and back.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Self

from harness.checks.paths import kind_of
from harness.model import timeline as tl

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACE = "drill-node-spread-7k2mq5xa"
NODES = ("zwolle-pi-1", "zwolle-pi-2")
UNSCHEDULABLE = (
    "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. "
    "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
)


def check(check_id: str, kind: str, expression: str, **more: Any) -> dict[str, Any]:
    """Return a check in a scenario's JSON form."""
    return {
        "id": check_id,
        "title": more.pop("title", ""),
        "kind": kind,
        "expression": expression,
        **more,
    }


def step(
    name: str, *, verb: str | None = None, until: str | None = None, change: bool = False
) -> dict[str, Any]:
    """Return a step in a scenario's JSON form."""
    return {
        "name": name,
        "verb": verb,
        "action": {},
        "until": until,
        "within": 60.0,
        "change": change,
    }


STEPS = (
    step("initialise", verb="apply", until='rollout.phase == "Initialized"'),
    step("new revision", verb="patch", change=True),
    step("promote", until="rollout.ended"),
)


def scenario(**fields: Any) -> dict[str, Any]:
    """Return a scenario's JSON form: a promotion in three steps, with what is given changed."""
    body: dict[str, Any] = {
        "name": "node-spread",
        "variant": "default",
        "id": "node-spread[default]",
        "question": "Does it promote?",
        "setup": "Two replicas on two nodes.",
        "digest": "0123456789ab",
        "steps": [copy.deepcopy(s) for s in STEPS],
        "settle": 1.0,
        "checks": [],
        "record": [],
        "doneWhen": [],
        "expect": {"phase": "Succeeded", "fail": []},
        "values": {},
    }
    return {**body, **fields}


class Recording:
    """A recording in the making."""

    def __init__(self, body: dict[str, Any] | None = None, **header: Any) -> None:
        self.t = 0.0
        self.lines: list[tl.Observation] = []
        self.scenario = scenario() if body is None else body
        self._header = header
        self._objects: dict[tuple[str, str], dict[str, Any]] = {}

    def header(self) -> tl.Header:
        """Return the header."""
        fields: dict[str, Any] = {
            "run_id": "20261029T112235Z-4f1c",
            "drill_id": "q7d2",
            "namespace": NAMESPACE,
            "started_at": "2026-10-29T11:22:35Z",
            "harness": "0.1.0",
            "scenario": self.scenario,
            "subject": tl.SubjectFacts("bundled", "0.1.0", ("blue-green",)),
            "cluster": tl.ClusterFacts("existing", "homelab", "v1.35.2", NODES),
            "reproduce": "drill run node-spread --cluster context:homelab",
        }
        return tl.Header(**{**fields, **self._header})

    def timeline(self) -> tl.Timeline:
        """Return the recording as it is read from a file."""
        return tl.parse(self.text().splitlines())

    def text(self) -> str:
        """Return the recording as a file's text; what was told afterwards is put where its time says."""
        lines = sorted(self.lines, key=lambda line: line.t)
        rows = [tl.dump_header(self.header()), *(tl.dump(line) for line in lines)]
        return "\n".join(rows) + "\n"

    # ---- what happens

    def at(self, t: float) -> Self:
        """Go on to a time, in seconds."""
        self.t = t
        return self

    def add(self, observation_type: type[Any], **fields: Any) -> Self:
        """Add an observation of any type, now."""
        self.lines.append(observation_type(t=self.t, **fields))
        return self

    def synced(self, *kinds: str) -> Self:
        """The watches of some kinds, by default of all of them, have their first list."""
        for kind in kinds or (
            "Pod",
            "Deployment",
            "ReplicaSet",
            "DaemonSet",
            "Service",
            "Canary",
            "Event",
        ):
            self.add(tl.WatchState, kind=kind, state="synced")
        return self

    def gap(self, kind: str, since: float) -> Self:
        """A watch may have missed something."""
        return self.add(tl.WatchState, kind=kind, state="gap", since=since, reason="410 Gone")

    def step(self, name: str, *states: str, detail: str = "") -> Self:
        """A step goes through states, by default all of them."""
        for state in states or ("started", "acted", "held"):
            self.add(tl.StepState, step=name, state=state, detail=detail)
        return self

    def settle(self, begin: float, end: float) -> Self:
        """The settle time, with nothing happening in it; use `add` for one in which something does."""
        self.at(begin).add(tl.Settled, state="begin")
        return self.at(end).add(tl.Settled, state="end")

    def clean(self, t: float) -> Self:
        """Teardown removed everything and the listing proves it."""
        removed = {"Namespace": 1}
        self.at(t).add(tl.Leftovers, items=(), kinds_listed=61, removed=removed, seconds=6.0)
        return self

    def see(self, obj: dict[str, Any], change: str | None = None) -> Self:
        """An object is seen, as it is given."""
        key = kind_of(obj), obj["metadata"]["name"]
        known = key in self._objects
        self._objects[key] = obj
        return self.add(
            tl.ObjectSeen,
            change=change or ("MODIFIED" if known else "ADDED"),
            object=copy.deepcopy(obj),
        )

    def rollout(self, phase: str, **status: Any) -> Self:
        """The rollout object is in a phase."""
        promoted = {"Initialized": "True", "Succeeded": "True", "Failed": "False"}.get(
            phase, "Unknown"
        )
        condition = {
            "type": "Promoted",
            "status": promoted,
            "reason": phase,
            "message": status.pop("message", ""),
        }
        return self.see(
            {
                "apiVersion": "flagger.app/v1beta1",
                "kind": "Canary",
                "metadata": {"name": "web", "uid": "canary-web"},
                "spec": {"targetRef": {"kind": "Deployment", "name": "web"}},
                "status": {"phase": phase, "canaryWeight": 0, "conditions": [condition], **status},
            }
        )

    def deployment(
        self,
        name: str,
        revision: str,
        *,
        replicas: int = 2,
        number: int = 1,
        affinity: Mapping[str, Any] | None = None,
        conditions: list[dict[str, Any]] | None = None,
        strategy: Mapping[str, Any] | None = None,
    ) -> Self:
        """A Deployment is seen, and the ReplicaSet of its revision (after it; order across kinds is nobody's promise)."""
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "containers": [{"name": "web", "image": f"web:{number}"}],
                "affinity": affinity or {},
            },
        }
        common = {"deployment.kubernetes.io/revision": str(number)}
        self.see(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {
                    "name": name,
                    "uid": f"deploy-{name}",
                    "generation": number,
                    "annotations": common,
                },
                "spec": {
                    "replicas": replicas,
                    "strategy": dict(strategy or {"type": "RollingUpdate"}),
                    "template": template,
                },
                "status": {
                    "observedGeneration": number,
                    "replicas": replicas,
                    "conditions": conditions or [],
                },
            }
        )
        return self.see(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": f"{name}-{revision}",
                    "uid": f"rs-{name}-{revision}",
                    "annotations": common,
                    "labels": {"app": name, "pod-template-hash": revision},
                    "ownerReferences": [{"kind": "Deployment", "name": name, "controller": True}],
                },
            }
        )

    def pod(
        self,
        app: str,
        revision: str,
        suffix: str,
        *,
        node: str = "",
        ready: bool = False,
        refused: str = "",
        gated: bool = False,
        terminating: bool = False,
        affinity: Mapping[str, Any] | None = None,
    ) -> Self:
        """A pod of a Deployment is seen. `refused`: the scheduler's message."""
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        if refused or gated:
            reason = "SchedulingGated" if gated else "Unschedulable"
            conditions.append(
                {"type": "PodScheduled", "status": "False", "reason": reason, "message": refused}
            )
        elif node:
            conditions.append({"type": "PodScheduled", "status": "True"})
        name = f"{app}-{revision}-{suffix}"
        meta: dict[str, Any] = {
            "name": name,
            "uid": name,
            "labels": {"app": app, "pod-template-hash": revision},
            "ownerReferences": [
                {"kind": "ReplicaSet", "name": f"{app}-{revision}", "controller": True}
            ],
        }
        if terminating:
            meta["deletionTimestamp"] = "2026-10-29T11:30:00Z"
        return self.see(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": meta,
                "spec": {
                    "containers": [{"name": "web", "image": "web:1"}],
                    "affinity": dict(affinity or {}),
                    **({"nodeName": node} if node else {}),
                },
                "status": {"phase": "Running" if node else "Pending", "conditions": conditions},
            }
        )

    def gone(self, name: str, kind: str = "Pod") -> Self:
        """An object is deleted."""
        obj = self._objects.pop((kind, name))
        return self.add(tl.ObjectSeen, change="DELETED", object=copy.deepcopy(obj))
