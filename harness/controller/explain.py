"""Which row of the decision table applies to a Canary now, and why. Pure, and only words: the tables decide, nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from harness.controller import standing
from harness.controller.core import decide, evidence, managed
from harness.controller.core.change import SETTLED, Row
from harness.controller.core.phases import FROZEN, IDLE, RUN
from harness.controller.core.scene import Scene
from harness.controller.core.snapshots import Fence
from harness.controller.core.targets.registry import target_for
from harness.controller.core.templates import summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.controller.core import World
    from harness.controller.core.decision import JSON, Decision

_ELSEWHERE: Final = "Another controller or version wrote the status"

SENTENCES: Final[Mapping[Row, tuple[str, str]]] = {
    Row.FIRST_SYNC: ("1", "Nothing is on record yet, so whatever the target holds is new."),
    Row.NO_FENCE_SAME: (
        "2, D10",
        "A hash is on record but no fence, as when the CRD has no field for it; the target's hash is the applied one.",
    ),
    Row.NO_FENCE_ROLLBACK: (
        "2, D10",
        "A hash is on record but no fence, as when the CRD has no field for it; the template that was promoted was put back.",
    ),
    Row.NO_FENCE_CHANGED: (
        "2, D10",
        "A hash is on record but no fence, as when the CRD has no field for it; the target's hash is another one.",
    ),
    Row.MIGRATION_RESTART: (
        "2",
        f"{_ELSEWHERE} while it was not settled, and its hash cannot be compared: the analysis starts once more.",
    ),
    Row.MIGRATION_FAILED: (
        "2",
        f"{_ELSEWHERE}, and there is no primary to compare the target with: nothing is taken over, and nothing started.",
    ),
    Row.MIGRATION_CHANGED: ("2, D11", f"{_ELSEWHERE}, and the target was changed after that."),
    Row.MIGRATION_ADOPTED: (
        "2, D11",
        f"{_ELSEWHERE}, and nothing shows that the target was changed after that: it is taken over as it is.",
    ),
    Row.REBASED: (
        "U1",
        "The target is another object than the one on record (made again, or restored), but holds the promoted template, as the primary.",
    ),
    Row.RECREATED: (
        "3",
        "The target is another object than the one on record: it was deleted and made again.",
    ),
    Row.UNCHANGED: ("4", "Hash and fence are the ones on record."),
    Row.FENCE_REFRESHED: (
        "5",
        "The hash is the applied one; only the fence has moved, as it does when the target is scaled.",
    ),
    Row.VOLATILE: (
        "6",
        "The hash is the applied one; the fence of a Service moves with every write to it, so it says nothing.",
    ),
    Row.DRIFT_ABSORBED: (
        "7",
        "The hash is another one, but the target was not written since: only the way of hashing has changed.",
    ),
    Row.SCALED_AND_DRIFTED: (
        "8",
        "The hash is another one, but the target still has the same revision: it was scaled, and the way of hashing has changed.",
    ),
    Row.MANUAL_ROLLBACK: ("9", "The template that was promoted was put back."),
    Row.CHANGED: (
        "10",
        "The hash is another one than the applied and the promoted, and nothing proves that the template is the same.",
    ),
}
"""Row -> its number in spec change-detection B3 (or the decision it comes from), and why it applies."""

NOT_COMPARED: Final[Mapping[str, str]] = {
    "deleting": "The Canary is being deleted: nothing is compared any more.",
    "suspended": "The Canary is suspended: nothing is compared before spec.suspend is false.",
    "unsupported": "The Canary asks for something that the bundled controller does not do, so it is left alone",
    "target-missing": "There is no target to compare.",
    "restoring": "The target is being made again from the promoted template, and nothing is compared before it is there.",
    "foreign-primary": "The primary belongs to somebody else, so the Canary is left alone.",
    "primary-missing": "There is no primary, and it is not made again before the promoted template is back.",
    "hindered": "Something that the primary needs is missing, and nothing is compared before it is there.",
    "waiting": "In phase Waiting nothing is compared: whatever the target holds is what the gate holds back.",
    "initializing": "While the primary is made for the first time nothing is compared.",
    "promoting": "From Promoting on nothing is compared until the promotion has ended; a change is found after it.",
    "unknown-phase": "The phase is none that the bundled controller knows: nothing is done.",
}
"""Why a pass does not ask (`phases.SKIPPED`)."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer for one Canary."""

    canary: str
    namespace: str
    phase: str
    target: str
    compared: bool
    """Whether the comparison runs in this state."""
    because: str
    row: str = ""
    """Name of the row; empty when nothing is compared."""
    number: str = ""
    """Its number in spec change-detection B3, or the decision it comes from."""
    verdict: str = ""
    """`unchanged`, `changed`, `rolled back` or `cannot tell`; empty when nothing is compared."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """applied, promoted, fence: what is on record."""
    found: Mapping[str, str] = field(default_factory=dict)
    """hash, fence: what the target has."""
    standing: Sequence[str] = ()
    """How far the run has come, in sentences."""
    held: JSON = field(default_factory=dict)
    """gate, message: which gate is closed and who says so; empty while none is."""
    queue: JSON = field(default_factory=dict)
    """position, waiting, since, priority: the place in the line for an analysis; empty while it is not in it."""
    conditions: Sequence[JSON] = ()
    """type, status, reason, message of each condition."""
    comparisons: Sequence[str] = ()
    """Each comparison that the row could look at."""
    configs: Sequence[str] = ()
    """What became of each tracked ConfigMap and Secret."""
    evidence: Sequence[str] = ()
    """What was looked at outside of hashes and fences."""
    does: str = ""
    """Name of the row of the transition table that the next pass takes."""
    says: Sequence[str] = ()
    """The events that the pass records."""
    writes: Sequence[str] = ()
    """The objects that it writes."""
    asks: Sequence[str] = ()
    """What it asks a webhook or a metric, before it decides anything else. Nothing is asked for an explanation."""
    status: JSON = field(default_factory=dict)
    """What it changes of the status."""
    again_in: float | None = None
    """Seconds until time alone makes another pass."""

    def to_json(self) -> JSON:
        """Return it as `drill explain --json` prints it."""
        return {
            "canary": self.canary,
            "namespace": self.namespace,
            "phase": self.phase,
            "target": self.target,
            "stored": dict(self.stored),
            "found": dict(self.found),
            "compared": self.compared,
            "row": self.row,
            "number": self.number,
            "verdict": self.verdict,
            "because": self.because,
            "standing": list(self.standing),
            "held": dict(self.held),
            "queue": dict(self.queue),
            "conditions": list(self.conditions),
            "comparisons": list(self.comparisons),
            "configs": list(self.configs),
            "evidence": list(self.evidence),
            "next": {
                "row": self.does,
                "events": list(self.says),
                "writes": list(self.writes),
                "asks": list(self.asks),
                "status": self.status,
                "againIn": self.again_in,
            },
        }


def explain(world: World, canary: JSON, now: float) -> Explanation:
    """Explain a Canary. `world`: what was read besides it. `now`: seconds since the epoch."""
    scene = Scene(world, canary, now)
    decision = decide(world, canary, now)
    compared, because = _compares(scene, decision)
    answer = _verdict(scene) if compared else {"because": because}
    stored = scene.tracking
    return Explanation(
        canary=scene.names.canary,
        namespace=scene.names.namespace,
        phase=scene.phase,
        target=_target(scene),
        compared=compared,
        stored={"applied": stored.applied, "promoted": stored.promoted, "fence": stored.fence},
        found=_found(scene),
        standing=standing.standing(scene),
        held=standing.held(scene),
        queue=standing.queue(scene),
        conditions=standing.said(scene),
        comparisons=_comparisons(scene),
        configs=standing.tracked(scene),
        evidence=_evidence(scene) if compared or stored.foreign else (),
        does=decision.row,
        says=tuple(note.message for note in decision.notes),
        writes=tuple(f"{write.verb} {write.resource}/{write.name}" for write in decision.writes),
        asks=tuple(standing.call(one) for one in decision.calls),
        status=decision.status or {},
        again_in=decision.requeue_after,
        **answer,
    )


def asks_revisions(world: World, canary: JSON, now: float) -> bool:
    """Whether the target's ReplicaSets have to be read before this Canary can be explained."""
    scene = Scene(world, canary, now)
    if world.target is None or scene.refused is not None or world.target["kind"] != "Deployment":
        return False
    asked = scene.tracking.foreign and scene.revisions_needed
    return asked or decide(world, canary, now).reads_revisions


def _compares(scene: Scene, decision: Decision) -> tuple[bool, str]:
    """Return whether the comparison runs in this state, and why not."""
    if decision.looked in NOT_COMPARED:
        why = NOT_COMPARED[decision.looked]
        refused = scene.refused
        return False, f"{why}: {refused.message}." if refused and why[-1] != "." else why
    if scene.world.target is None or not scene.primary_exists:
        return False, "The primary is made, or made again, before anything is compared."
    if scene.phase in IDLE and not scene.initialised:
        return False, NOT_COMPARED["initializing"]
    if scene.phase in IDLE | RUN | FROZEN:
        return True, ""
    return False, _of_phase(scene.phase)


def _of_phase(phase: str) -> str:
    if phase in ("", "Initializing"):
        return NOT_COMPARED["initializing"]
    key = {"Waiting": "waiting", "Promoting": "promoting", "Finalising": "promoting"}.get(phase)
    return NOT_COMPARED[key or "unknown-phase"]


def _verdict(scene: Scene) -> dict[str, str]:
    verdict = scene.verdict
    number, because = SENTENCES[verdict.row]
    if verdict.rolled_back and scene.primary_elsewhere:
        because += (
            " The primary runs another revision all the same, so it has to be promoted again."
        )
    if verdict.error:
        word = "cannot tell"
    elif scene.new_revision:
        word = "changed"
        if scene.configs_changed and not verdict.changed:
            because += " But a ConfigMap or Secret that it uses is another one."
    else:
        word = "rolled back" if verdict.rolled_back else "unchanged"
    return {"row": verdict.row.value, "number": number, "verdict": word, "because": because}


def _target(scene: Scene) -> str:
    kind = target_for(scene.canary)
    word = kind.kind if kind else scene.canary["spec"]["targetRef"].get("kind")
    return f"{word}/{scene.names.target}"


def _found(scene: Scene) -> dict[str, str]:
    if scene.world.target is None or scene.refused is not None:
        return {}
    return {"hash": scene.snapshot.hash, "fence": str(scene.snapshot.fence)}


def _comparisons(scene: Scene) -> tuple[str, ...]:
    stored = scene.tracking
    if scene.world.target is None or scene.refused is not None or not stored.applied:
        return ()
    now = scene.snapshot
    if stored.foreign:
        return ("the hash on record is not one of ours: it cannot be compared",)
    is_applied, is_promoted = now.hash == stored.applied, now.hash == stored.promoted
    names = [name for name, holds in (("applied", is_applied), ("promoted", is_promoted)) if holds]
    lines = [f"hash: {' and '.join(names) or 'neither the applied nor the promoted one'}"]
    if not stored.fence:
        return (*lines, "fence: none on record")
    old = Fence.parse(stored.fence)
    same = "the same object" if now.fence.uid == old.uid else "another object (uid)"
    lines += [f"fence: {same}", f"fence: counter {old.counter} on record, {now.fence.counter} now"]
    before, after = old.revision or "none", now.fence.revision or "none"
    return (*lines, f"fence: revision {before} on record, {after} now")


def _evidence(scene: Scene) -> tuple[str, ...]:
    """Return what decides about a status that another controller wrote, or about a target that was made again."""
    if scene.world.primary is None or scene.world.target is None:
        return ()
    fence = scene.tracking.fence
    recreated = bool(fence) and Fence.parse(fence).uid != scene.snapshot.fence.uid
    if not (scene.tracking.foreign or recreated):
        return ()
    lines = [_differences(scene)]
    if recreated:
        return tuple(lines)
    if scene.primary_is_ours:
        revision = (
            "another revision than the target's" if scene.primary_elsewhere else "the target's"
        )
        return (*lines, f"the primary names the revision it was made from: {revision}")
    settled = scene.phase in SETTLED
    since = (
        evidence.last_status_write(scene.canary)
        if settled
        else evidence.template_written(scene.primary)
    )
    what = "the last status" if settled else "the primary's template"
    lines.append(f"{what} was written at {_moment(since)}")
    current = evidence.current_revision(scene.target, scene.world.revisions or ())
    if scene.target["kind"] != "Deployment":
        lines.append(
            "such a target has no ReplicaSets that could show since when it has its template"
        )
    elif current is not None:
        name = f"{current['kind']}/{current['metadata']['name']}"
        lines.append(
            f"{name} has the target's template, and was made at {_moment(evidence.created(current))}"
        )
    else:
        lines.append("no ReplicaSet shows since when the target has its template")
    wrote = managed.written(scene.target, managed.TEMPLATE)
    lines.append(f"who wrote the target's template wrote last at {_moment(wrote)}")
    return tuple(lines)


def _differences(scene: Scene) -> str:
    found = scene.differences
    if not found:
        return "target and primary hold the same template, apart from the primary's rewriting"
    lost = " (fields that the primary merely lacks)" if all(one.lost for one in found) else ""
    return f"target and primary differ in {summary(found)}{lost}"


def _moment(time: float | None) -> str:
    if time is None:
        return "an unknown time"
    return datetime.fromtimestamp(time, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
