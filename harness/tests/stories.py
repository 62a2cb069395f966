"""Whole drills as recordings: the promotion of a workload that is spread across nodes, clean and blocked.

`python -m harness.tests.stories` writes the recorded timelines in fixtures/timelines again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.data import data_path
from harness.model import timeline as tl
from harness.tests.timelines import NODES, UNSCHEDULABLE, Recording, check, scenario

if TYPE_CHECKING:
    from collections.abc import Callable

OLD, NEW, TARGET = "6d4f9b7c58", "847c5dd6bf", "5f66c8d9fd"
HOSTNAME = "kubernetes.io/hostname"
TERM = "podAntiAffinity"
NORTH, SOUTH = NODES

CHECKS = [
    check(
        "never-blocked",
        "never",
        "pods.exists(p, p.unschedulable || p.gated) || workloads.exists(w, w.createFailed)",
        title="No pod was ever blocked",
    ),
    check(
        "primary-served-throughout",
        "always",
        "primary.ready >= 1",
        title="The primary was served throughout",
        **{"from": "initialise"},
    ),
]
RECORD = [
    {
        "title": "The term on the primary",
        "object": "primary",
        "path": f"spec.template.spec.affinity.{TERM}",
        "at": ["initialise", "end"],
    },
    {
        "title": "The term on its pod after admission",
        "object": "primary-pod",
        "path": f"spec.affinity.{TERM}",
        "at": ["initialise"],
    },
]
DONE = [
    {"text": "The term on the primary is recorded.", "by": ["recorded"]},
    {"text": "One promotion is observed from start to finish.", "by": ["steps-completed"]},
    {"text": "The result can be posted.", "by": ["verdict"]},
    {"text": "Nothing that the drill created is left.", "by": ["nothing-left"]},
]


def affinity(app: str, revision: str = "", *, keyed: bool) -> dict[str, Any]:
    """Return a required anti-affinity term on the hostname; with a revision it is a pod's, as admission completed it."""
    selector: dict[str, Any] = {"matchLabels": {"app": app}}
    term: dict[str, Any] = {"labelSelector": selector, "topologyKey": HOSTNAME}
    if keyed:
        term["matchLabelKeys"] = ["pod-template-hash"]
        if revision:
            expression = {"key": "pod-template-hash", "operator": "In", "values": [revision]}
            selector["matchExpressions"] = [expression]
    return {TERM: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def body(**fields: Any) -> dict[str, Any]:
    """Return the scenario of the stories."""
    base = scenario(
        name="node-spread-blue-green",
        variant="with-key",
        id="node-spread-blue-green[with-key]",
        question="Does a blue-green promotion complete when there are as many replicas as nodes?",
        setup=(
            "A two-replica Deployment held to two nodes, with a required anti-affinity term on kubernetes.io/hostname "
            "carrying matchLabelKeys: [pod-template-hash], under a blue-green Canary."
        ),
        checks=CHECKS,
        record=RECORD,
        doneWhen=DONE,
        values={"replicas": 2, "revisionKey": True},
    )
    return {**base, **fields}


def primary(story: Recording, revision: str, number: int, *, keyed: bool) -> Recording:
    """The primary Deployment is at a revision."""
    return story.deployment(
        "web-primary", revision, number=number, affinity=affinity("web-primary", keyed=keyed)
    )


def primary_pod(
    story: Recording, revision: str, suffix: str, *, keyed: bool, **state: Any
) -> Recording:
    """A pod of the primary is seen."""
    term = affinity("web-primary", revision, keyed=keyed)
    return story.pod("web-primary", revision, suffix, affinity=term, **state)


def initialised(story: Recording, *, keyed: bool) -> Recording:
    """Up to the moment of the change: initialised at +2:14, changed at +2:29."""
    story.at(0.2).synced().add(tl.SubjectState, state="started", detail="bundled 0.1.0")
    story.at(0.3).add(tl.Precondition, holds=True, reason="2 schedulable nodes, 2 wanted")
    story.at(0.4).step("initialise", "started").at(0.9).step("initialise", "acted")
    story.rollout("Initializing").deployment("web", TARGET, replicas=0)
    primary(story.at(3.0), OLD, 1, keyed=keyed)
    for suffix, node in (("kx2lp", NORTH), ("w9ddz", SOUTH)):
        primary_pod(story.at(3.2), OLD, suffix, keyed=keyed)
        primary_pod(story.at(3.5), OLD, suffix, keyed=keyed, node=node)
    for suffix, node in (("kx2lp", NORTH), ("w9ddz", SOUTH)):
        primary_pod(story.at(130.0), OLD, suffix, keyed=keyed, node=node, ready=True)
    story.at(134.0).rollout("Initialized").at(134.1).step("initialise", "held")
    story.at(148.9).step("new revision", "started")
    return story.at(149.0).step("new revision", "acted", "held").step("promote", "started")


def analysed(story: Recording, *, keyed: bool) -> Recording:
    """From the change to the promotion: Progressing at +2:29, Promoting at +4:54."""
    story.at(149.02).rollout("Progressing")
    targets = (("4zq8v", NORTH), ("hm77c", SOUTH))
    for suffix, node in targets:
        story.at(149.05).pod("web", TARGET, suffix, node=node)
    for suffix, node in targets:
        story.at(170.0).pod("web", TARGET, suffix, node=node, ready=True)
    story.at(294.0).rollout("Promoting", iterations=2)
    return primary(story, NEW, 2, keyed=keyed)


def promotion(body_: dict[str, Any] | None = None, **header: Any) -> Recording:
    """A clean promotion with the revision key: the surge pod is placed beside the old one. Ends at +8:42."""
    story = analysed(initialised(Recording(body_ or body(), **header), keyed=True), keyed=True)
    primary_pod(story.at(294.04), NEW, "b6tnm", keyed=True, node=NORTH)
    primary_pod(story.at(395.0), NEW, "b6tnm", keyed=True, node=NORTH, ready=True)
    primary_pod(
        story.at(395.02), OLD, "kx2lp", keyed=True, node=NORTH, ready=True, terminating=True
    )
    story.at(396.0).gone(f"web-primary-{OLD}-kx2lp")
    primary_pod(story.at(396.03), NEW, "r5j9s", keyed=True, node=SOUTH)
    primary_pod(story.at(500.0), NEW, "r5j9s", keyed=True, node=SOUTH, ready=True)
    story.at(501.0).gone(f"web-primary-{OLD}-w9ddz")
    story.at(506.0).rollout("Finalising", iterations=2)
    story.at(520.96).gone(f"web-{TARGET}-4zq8v").gone(f"web-{TARGET}-hm77c")
    story.at(521.0).rollout(
        "Succeeded", message="Canary analysis completed successfully, promotion finished."
    )
    story.at(521.1).step("promote", "held").settle(521.2, 522.2)
    return story


def blocked(body_: dict[str, Any] | None = None, **header: Any) -> Recording:
    """A promotion without the key: the surge pod finds no node, and the rollout is given up at +6:00."""
    story = analysed(initialised(Recording(body_ or body(), **header), keyed=False), keyed=False)
    primary_pod(story.at(294.1), NEW, "b6tnm", keyed=False)
    primary_pod(story.at(294.3), NEW, "b6tnm", keyed=False, refused=UNSCHEDULABLE)
    story.at(360.0).rollout("Failed", message="Deployment web-primary not ready within 60 s")
    story.at(360.1).step("promote", "held").settle(360.2, 361.2)
    return story


def control() -> dict[str, Any]:
    """Return the scenario's variant without the key, which says that it is blocked."""
    return body(
        variant="without-key",
        id="node-spread-blue-green[without-key]",
        description="The control: without the key the surge pod has nowhere to go.",
        expect={"phase": "Failed", "fail": ["never-blocked"]},
        values={"replicas": 2, "revisionKey": False},
    )


def write() -> None:
    """Write the fixtures."""
    folder = data_path("fixtures", "timelines")
    folder.mkdir(parents=True, exist_ok=True)
    for name, story in FIXTURES.items():
        (folder / f"{name}.jsonl").write_text(story(), encoding="utf-8")


FIXTURES: dict[str, Callable[[], str]] = {
    "node-spread-with-key": lambda: promotion().clean(529.0).text(),
    "node-spread-without-key": lambda: blocked(control()).clean(368.0).text(),
}

if __name__ == "__main__":
    write()
