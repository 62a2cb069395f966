"""Router of provider knative: the split is `spec.traffic` of the target itself (spec objects 10, deviation O17, case C22).

    [{latestRevision: true, percent: CANARY}, {revisionName: PRIMARY, percent: 100 - CANARY}]

The primary's revision is what the annotation on the target names; the target kind keeps it. Knative answers in `status.traffic`. Entries
of users are tags (addresses of single revisions) and stay, with 0 percent; so does what we know nothing of.

`latestRevision` is whatever is the newest when it becomes ready. A revision that comes while another one's promotion goes on step by step
would have the rest of the traffic without an analysis, so that all of it then goes to what was promoted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core.canonical import string_hash
from harness.controller.core.decision import JSON, Write
from harness.controller.core.targets.knative import (
    PRIMARY_REVISION,
    latest_created,
    primary_revision,
)

if TYPE_CHECKING:
    from harness.controller.core.routers.base import Wish

GROUP: Final = "serving.knative.dev"
_FULL: Final = 100


def is_knative(canary: JSON) -> bool:
    """Whether the target is a Knative Service."""
    reference: JSON = canary["spec"].get("targetRef") or {}
    group = str(reference.get("apiVersion") or "").partition("/")[0]
    return reference.get("kind") == "Service" and group == GROUP


def knative_target_problem(canary: JSON, provider: str) -> str:
    """Return why another provider cannot route this target; empty when it can."""
    if not is_knative(canary):
        return ""
    return f"spec.provider: {provider!r} cannot route a Knative Service (spec.targetRef); allowed: knative"


class KnativeRouter:
    """Splits between the newest revision and the primary's."""

    name: str = "knative"
    splits: bool = True
    mirrors: bool = False
    needs: tuple[str, ...] = ("kservices",)

    def problem(self, canary: JSON) -> str:
        """See Router."""
        analysis: JSON = canary["spec"].get("analysis") or {}
        if not is_knative(canary):
            return f"spec.provider: knative needs a spec.targetRef with kind Service and apiVersion {GROUP}/v1"
        for field in ("match", "mirror", "sessionAffinity"):
            if analysis.get(field):
                return f"spec.analysis.{field} is not supported by provider knative, which splits by weight alone; remove it"
        return ""

    def route(self, wish: Wish) -> tuple[Write, ...]:
        """See Router. Nothing while the target or the name of the primary's revision is missing."""
        target, primary = _target(wish), _primary(wish)
        if target is None or not primary:
            return ()
        held = (target.get("spec") or {}).get("traffic") or []
        return _patched(target, _divided(held, primary, _canary_share(wish, target)))

    def waiting(self, wish: Wish) -> str:
        """See Router."""
        target, primary = _target(wish), _primary(wish)
        name = wish.names.target
        if target is None:
            return f"Knative Service {name!r} does not exist"
        if not primary:
            return f"Knative Service {name!r} has no annotation {PRIMARY_REVISION} yet"
        status: JSON = target.get("status") or {}
        seen, now = status.get("observedGeneration"), target["metadata"].get("generation")
        if seen != now:
            return f"Knative Service {name!r}: Knative has seen generation {seen}, it is at {now}"
        traffic = status.get("traffic") or []
        canary = sum(int(one.get("percent") or 0) for one in traffic if one.get("latestRevision"))
        stable = sum(
            int(one.get("percent") or 0)
            for one in traffic
            if not one.get("latestRevision") and one.get("revisionName") == primary
        )
        share = _canary_share(wish, target)
        if (stable, canary) != (_FULL - share, share):
            return (
                f"Knative Service {name!r}: status.traffic gives {stable} % to {primary} and {canary} % to the"
                f" newest revision, wanted are {_FULL - share} and {share}"
            )
        newest = latest_created(target)
        others = {one.get("revisionName") for one in traffic if one.get("latestRevision")} - {
            newest
        }
        if share and newest and any(others):
            return (
                f"Knative Service {name!r}: the newest revision's {share} % go to"
                f" {', '.join(sorted(filter(None, others)))} as long as {newest} is not ready"
            )
        return ""

    def status(self, _wish: Wish) -> JSON:
        """See Router."""
        return {}

    def revert(self, wish: Wish) -> tuple[Write, ...]:
        """See Router. The target serves alone again: its newest revision gets everything. The annotation is the target kind's."""
        target = _target(wish)
        if target is None:
            return ()
        held = (target.get("spec") or {}).get("traffic") or []
        pinned = any(not _follows(one) and not one.get("tag") for one in held)
        if not pinned and not primary_revision(target):
            return ()  # done already, or never begun; traffic is its owner's
        return _patched(target, _divided(held, "", _FULL))


def _target(wish: Wish) -> JSON | None:
    return wish.target or (wish.objects.get("kservices") or {}).get(wish.names.target)


def _primary(wish: Wish) -> str:
    target = _target(wish)
    return primary_revision(target) if target else ""


def _canary_share(wish: Wish, target: JSON) -> int:
    """Return what the newest revision is to have: nothing when it came during the promotion of the one before it."""
    status: JSON = wish.canary.get("status") or {}
    primary = primary_revision(target)
    promoted = status.get("phase") == "Promoting" and status.get("lastAppliedSpec") == string_hash(
        primary
    )
    return 0 if promoted and latest_created(target) != primary else wish.split.canary


def _patched(target: JSON, traffic: list[JSON]) -> tuple[Write, ...]:
    if ((target.get("spec") or {}).get("traffic") or []) == traffic:
        return ()
    meta = target["metadata"]
    body = {"spec": {"traffic": traffic}}
    return (Write("patch", "kservices", meta["name"], body, meta["resourceVersion"]),)


def _divided(held: list[JSON], primary: str, canary: int) -> list[JSON]:
    """Return spec.traffic for a split, with what users added to it. Without a primary there is only the newest revision."""
    newest = next((one for one in held if _follows(one)), {})
    stable = (
        next((one for one in held if one.get("revisionName") == primary), {}) if primary else {}
    )
    result = [newest | {"latestRevision": True, "percent": canary}]
    if primary:
        result.append(stable | {"revisionName": primary, "percent": _FULL - canary})
    # A tag is somebody's address of a revision; an entry without one is only a share of ours, or of before.
    result += [
        one | ({"percent": 0} if one.get("percent") else {})
        for one in held
        if one is not newest and one is not stable and one.get("tag")
    ]
    return result


def _follows(entry: JSON) -> bool:
    """Whether an entry stands for whatever revision is the newest. Knative fills in `latestRevision` (O17: never rely on it)."""
    return bool(entry.get("latestRevision")) or not entry.get("revisionName")
