"""Recordings of many rollouts: a whole upgrade drill, as large as is wanted.

    story = upgrade(100, Behaviour(started=98))
    report = judge(story.timeline())

Every rollout has a Canary, three Services, target and primary Deployments with their ReplicaSets, and pods that come and go.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.model import timeline as tl
from harness.tests.timelines import Recording, check, scenario, step

if TYPE_CHECKING:
    from collections.abc import Iterable

REVISION = "deployment.kubernetes.io/revision"
STEPS = (
    step("initialise", verb="apply", until="rollouts.all(r, r.phase == 'Initialized')"),
    step("old subject ends", verb="stop"),
    {
        **step("upgrade", verb="upgrade"),
        "action": {"subject": "flagger@1.38.0", "kubernetes": None},
    },
    step("quiet", verb="wait"),
    step("real change", verb="patch", change=True),
    step("promote", until="rollouts.all(r, r.ended)"),
)
CHECKS = (
    check(
        "no-start",
        "always",
        "rollouts.all(r, r.starts == 0)",
        title="No analysis was started",
        **{"from": "upgrade", "until": "quiet"},
    ),
    check(
        "primaries-kept",
        "always",
        "rollouts.all(r, r.primary_rolls == 0)",
        title="No primary was rolled out again",
        **{"from": "upgrade", "until": "quiet"},
    ),
    check(
        "looked-at",
        "eventually",
        "rollouts.all(r, r.looks >= values.looks)",
        title="The new subject looked at every rollout",
        otherwise="unknown",
        **{"from": "upgrade", "until": "quiet"},
    ),
    check(
        "once",
        "eventually",
        "rollouts.all(r, r.starts_after_change == 1)",
        **{"from": "real change"},
    ),
    check("served", "never", "pods.exists(p, p.unschedulable || p.gated)"),
)


@dataclass(frozen=True)
class Behaviour:
    """How the new subject behaves."""

    started: int = 0
    """So many analyses start without reason."""
    looks: int = 3
    """So often it looks at each rollout."""
    ignored: int = 0
    """So many rollouts it never looks at."""
    audit: bool = True
    writes: int = 0
    """So often it writes the tracking fields of each."""


def names(count: int) -> list[str]:
    """Return the names of so many rollouts."""
    return [f"web-{number:03d}" for number in range(count)]


class PopulationStory(Recording):
    """A recording of many rollouts."""

    def canary(self, name: str, phase: str, cell: str = "", **status: Any) -> PopulationStory:
        """A rollout object is in a phase."""
        condition = {"type": "Promoted", "status": "Unknown", "reason": phase, "message": phase}
        labels = {"drill/cell": cell} if cell else {}
        self.see(
            {
                "apiVersion": "flagger.app/v1beta1",
                "kind": "Canary",
                "metadata": {"name": name, "uid": f"canary-{name}", "labels": labels},
                "spec": {"targetRef": {"kind": "Deployment", "name": name}},
                "status": {
                    "phase": phase,
                    "canaryWeight": 0,
                    "iterations": 0,
                    "conditions": [condition],
                    "lastAppliedSpec": "5d7f8",
                    "lastPromotedSpec": "5d7f8",
                    **status,
                },
            }
        )
        return self

    def service(self, name: str, app: str) -> PopulationStory:
        """A Service is seen."""
        self.see(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "uid": f"service-{name}"},
                "spec": {"selector": {"app": app}},
            }
        )
        return self

    def revise(self, app: str, number: int, replicas: int = 1) -> PopulationStory:
        """A Deployment is at a revision, as its controller tells it in several steps."""
        for _ in range(2):
            self.deployment(app, f"r{number}", number=number, replicas=replicas)
        return self

    def run_pod(self, app: str, number: int) -> PopulationStory:
        """A pod is made, placed, and becomes ready."""
        self.pod(app, f"r{number}", "a")
        self.t += 0.01
        self.pod(app, f"r{number}", "a", node="north-1")
        self.t += 0.01
        self.pod(app, f"r{number}", "a", node="north-1", ready=True)
        return self

    def end_pod(self, app: str, number: int) -> PopulationStory:
        """A pod is on its way out, and gone."""
        self.pod(app, f"r{number}", "a", node="north-1", ready=True, terminating=True)
        self.t += 0.01
        self.gone(f"{app}-r{number}-a")
        return self

    def initialise(self, everyone: Iterable[str], cell: str = "") -> PopulationStory:
        """Every rollout is applied and initialised."""
        for name in everyone:
            self.t += 0.01
            self.canary(name, "", cell).revise(name, 1).run_pod(name, 1)
            self.canary(name, "Initializing", cell)
            for service, app in (
                (name, name),
                (f"{name}-canary", name),
                (f"{name}-primary", app_of(name)),
            ):
                self.service(service, app)
            self.revise(app_of(name), 1).run_pod(app_of(name), 1)
            self.service(name, app_of(name))
            self.canary(name, "Initialized", cell).revise(name, 1, replicas=0).end_pod(name, 1)
        return self

    def promote(self, name: str, number: int, **status: Any) -> PopulationStory:
        """A rollout is promoted to a revision."""
        self.canary(name, "Progressing", **status).revise(name, number).run_pod(name, number)
        for iterations in (1, 2):
            self.canary(name, "Progressing", iterations=iterations, **status)
            self.t += 0.05
        self.canary(name, "Promoting", iterations=2, **status)
        self.revise(app_of(name), number).run_pod(app_of(name), number)
        self.end_pod(app_of(name), number - 1)
        self.canary(name, "Finalising", **status).revise(name, number, replicas=0)
        self.end_pod(name, number).canary(name, "Succeeded", **status)
        return self


def app_of(name: str) -> str:
    """Return the name of a rollout's primary."""
    return f"{name}-primary"


def body(**fields: Any) -> dict[str, Any]:
    """Return the scenario of the upgrade."""
    base = scenario(
        name="flagger-upgrade",
        variant="default",
        id="flagger-upgrade[default]",
        steps=[copy.deepcopy(one) for one in STEPS],
        checks=[copy.deepcopy(one) for one in CHECKS],
        values={"looks": 2},
        subject="flagger@1.37.0",
    )
    return {**base, **fields}


def upgrade(count: int, behaviour: Behaviour | None = None, **fields: Any) -> PopulationStory:
    """Return an upgrade drill: initialise, stop, upgrade, quiet time, a real change of every target, promotion."""
    how = behaviour or Behaviour()
    everyone = names(count)
    story = PopulationStory(body(**fields), subject=tl.SubjectFacts("flagger@1.37.0", "1.37.0"))
    story.at(0.1).synced().add(tl.SubjectState, state="started", detail="flagger@1.37.0 1.37.0")
    story.at(0.4).step("initialise", "started", "acted").initialise(everyone)
    story.at(story.t + 1).step("initialise", "held").step("old subject ends", "started")
    story.add(tl.SubjectState, state="stopped").step("old subject ends", "acted", "held")
    story.at(story.t + 1).step("upgrade", "started")
    story.add(tl.SubjectState, state="started", detail="flagger@1.38.0 1.38.0")
    story.step("upgrade", "acted", "held").step("quiet", "started")
    for name in everyone[: how.started]:
        story.t += 0.01
        story.canary(name, "Progressing")
        story.canary(name, "Succeeded")
    for number in range(1, how.writes + 1):
        for name in everyone:
            story.t += 0.001
            story.canary(name, "Initialized", lastAppliedSpec=f"v2:{number}")
    looked = everyone[: count - how.ignored]
    for turn in range(1, how.looks + 1):
        story.t += 0.5
        if how.audit:
            counts = dict.fromkeys(looked, (turn, how.writes))
            story.add(tl.Requests, rollouts=counts, total=turn * count, watches=4)
        else:
            for name in looked:
                story.add(tl.SubjectState, state="looked", detail=f"{name} unchanged")
    story.step("quiet", "acted", "held").step("real change", "started")
    story.step("real change", "acted", "held").step("promote", "started")
    for name in everyone:
        story.t += 0.01
        story.promote(name, 2)
    end = story.t + 0.1
    story.at(end).step("promote", "held").settle(end + 0.1, end + 1.1)
    return story
