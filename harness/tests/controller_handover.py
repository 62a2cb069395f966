"""Namespaces as another controller leaves them: its primary, its status, and then ours takes over."""

from __future__ import annotations

import copy
from typing import Any

from harness.controller.core.names import MANAGER
from harness.tests.controller_sim import Sim, canary, deployment, image, merge

JSON = dict[str, Any]

LEGACY = "6849403941"
"""A hash as Flagger writes it: of a dump of its own types, so nobody else can compute it."""
FLAGGER = "flagger"
TRACKING = ("lastAppliedSpec", "lastPromotedSpec", "lastTrackedRevision")
KEYED_TERM: JSON = {
    "labelSelector": {"matchLabels": {"app": "web"}},
    "topologyKey": "kubernetes.io/hostname",
    "matchLabelKeys": ["pod-template-hash"],
}


def keyed() -> JSON:
    """A target whose anti-affinity term has matchLabelKeys."""
    target = deployment()
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [copy.deepcopy(KEYED_TERM)]}
    target["spec"]["template"]["spec"]["affinity"] = {"podAntiAffinity": terms}
    return target


class HandOver(Sim):
    """A Sim in which Flagger has worked for a minute. `take_over()` lets ours go on.

    `phase` is the one it leaves. `target` is the user's Deployment, `lost` says that the primary lacks a field of it, `image_later` is
    what the user sets while the analysis begins (phases after the first success).
    """

    def __init__(self, phase: str, *, target: JSON | None = None, lost: bool = False) -> None:
        super().__init__()
        self.lost = lost
        self.tracking_writes = 0
        self.add("deployments", target or deployment())
        self.add("canaries", canary())
        self._roll("web")
        self.later(10)
        self.copy_target()
        self.later(20)
        if phase == "Initializing":
            self.flagger_status("Initializing")
            return
        self._settle_down("Initialized", LEGACY, LEGACY)
        if phase == "Initialized":
            return
        self.later(30)
        self.edit("deployments", "web", image("app:2"))
        self._roll("web")
        self.later(10)
        self.edit("deployments", "web", {"spec": {"replicas": 3}}, FLAGGER)
        self.flagger_status("Progressing", "2222222222", LEGACY)
        self._roll("web")
        self.later(10)
        if phase in ("Progressing", "WaitingPromotion", "Waiting"):
            self.flagger_status(phase, "2222222222", LEGACY)
        elif phase == "Failed":
            self._settle_down("Failed", "2222222222", LEGACY)
        else:
            self.copy_target()
            self.flagger_status("Promoting", "2222222222", LEGACY)
            self.later(10)
            self._roll("web-primary")
            if phase != "Promoting":
                self.flagger_status("Finalising", "2222222222", LEGACY)
                self.later(10)
            if phase == "Succeeded":
                self._settle_down("Succeeded", "2222222222", "2222222222")

    def later(self, seconds: float) -> None:
        self.now += seconds

    def copy_target(self) -> None:
        """Create the primary, or promote the target, as Flagger does."""
        source = self.target
        template = copy.deepcopy(source["spec"]["template"])
        template["metadata"]["labels"]["app"] = "web-primary"
        template["metadata"]["annotations"] = {"flagger-id": f"0b24c2de-{self._next()}"}
        terms = (template["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution") or []:
            term["labelSelector"]["matchLabels"]["app"] = "web-primary"
            if self.lost:
                del term["matchLabelKeys"]
        existing = self.get("deployments", "web-primary")
        if existing is not None:
            body = copy.deepcopy(existing)
            body["spec"]["template"] = template
            self._update("deployments", body, FLAGGER)
            return
        meta = self.canary["metadata"]
        owner = {"kind": "Canary", "name": "web", "uid": meta["uid"], "controller": True}
        obj: JSON = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web-primary",
                "namespace": "n",
                "labels": {"app": "web-primary"},
                "ownerReferences": [owner],
            },
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web-primary"}},
                "template": template,
            },
        }
        self.add("deployments", obj, FLAGGER)
        self._roll("web-primary")

    def _settle_down(self, phase: str, applied: str, promoted: str) -> None:
        self.edit("deployments", "web", {"spec": {"replicas": 0}}, FLAGGER)
        self._roll("web")
        self._roll("web-primary")
        self.flagger_status(phase, applied, promoted)

    def flagger_status(self, phase: str, applied: str = "", promoted: str = "") -> None:
        """Write a status as Flagger's types give it, one tracked ConfigMap included."""
        moment = self._second()
        entry: JSON = {
            "type": "Promoted",
            "status": "Unknown",
            "reason": phase,
            "message": "as Flagger says it",
            "lastUpdateTime": moment,
            "lastTransitionTime": moment,
        }
        status: JSON = {
            "phase": phase,
            "canaryWeight": 0,
            "failedChecks": 0,
            "iterations": 0,
            "lastTransitionTime": moment,
            "conditions": [entry],
            "trackedConfigs": {"configmap/web-config": "241889ca0604e333"},
        }
        if applied:
            status["lastAppliedSpec"] = applied
        if promoted:
            status["lastPromotedSpec"] = promoted
        self.edit_status(status, FLAGGER)

    def edit_status(self, patch: JSON, manager: str = "user") -> None:
        before = {key: self.status.get(key) for key in TRACKING}
        super().edit_status(patch, manager)
        if manager == MANAGER and before != {key: self.status.get(key) for key in TRACKING}:
            self.tracking_writes += 1

    def change(self, patch: JSON, after: float = 30) -> None:
        """A user changes the target while nobody watches; the Deployment controller takes it up."""
        self.later(after)
        self.edit("deployments", "web", patch)
        self._roll("web")

    def take_over(self, seconds: float = 200) -> HandOver:
        self.later(30)
        self.run(seconds)
        return self

    @property
    def starts(self) -> int:
        """How many runs ours began, or began again."""
        return sum(row in ("start", "restart", "start-waiting") for row in self.rows)

    @property
    def warnings(self) -> list[str]:
        return [note.message for note in self.notes.values() if note.severity == "Warning"]


def annotation(value: str) -> JSON:
    """A merge patch that changes no more than an annotation of the template."""
    return {"spec": {"template": {"metadata": {"annotations": {"note": value}}}}}


def in_legacy_form(sim: Sim) -> None:
    """Give a status of ours the form that older versions wrote, by hand."""
    applied, promoted = sim.status.get("lastAppliedSpec"), sim.status.get("lastPromotedSpec")
    patch = {"lastAppliedSpec": LEGACY, "lastTrackedRevision": None}
    if promoted:
        patch["lastPromotedSpec"] = LEGACY if promoted == applied else "2222222222"
    sim.edit_status(patch)


__all__ = ["HandOver", "annotation", "image", "in_legacy_form", "keyed", "merge"]
