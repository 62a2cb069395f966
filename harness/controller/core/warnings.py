"""What cannot work as it is, found by looking at the template alone; said on the Canary before it happens (deviation O5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core.configs import references
from harness.controller.core.configs.checksums import PLURALS
from harness.controller.core.readiness import wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.decision import JSON
    from harness.controller.core.targets.base import Pair

REASON: Final = "CannotWork"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_REVISION_KEY: Final = "pod-template-hash"
_PERCENT: Final = 100


def of(pair: Pair, *, beside: bool = False) -> tuple[str, ...]:
    """Return a sentence for each. `beside`: target and primary carry the same labels."""
    return _no_room_beside(pair) if beside else _no_room(pair)


def shared(template: JSON, kinds: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each kind of configs that a pod template refers to and that cannot be watched.

    `kinds`: plural -> why. Nothing is held up by that; but a change of such an object is not analysed, and production sees it at once.
    """
    found: list[str] = []
    for plural, why in sorted(kinds.items()):
        names = [str(one) for one in references(template) if PLURALS[one.kind] == plural]
        if names:
            found.append(
                f"{', '.join(names)} cannot be tracked ({why}): target and primary share it, and a change reaches both at once."
            )
    return tuple(found)


def _no_room(pair: Pair) -> tuple[str, ...]:
    """Required anti-affinity between pods of every revision, and a strategy that needs a pod more before one goes.

    Nodes are not looked at: whether it blocks depends on their number, so the sentence says what number that is.
    """
    target = pair.target
    if target.get("kind") != "Deployment" or not _surges_only(target):
        return ()
    if not (key := _apart_by(pair)):
        return ()
    pods = max(wanted(target), wanted(pair.primary) if pair.primary else 0)
    text = (
        f"Deployment {pair.names.target} requires its pods apart by {key} without matchLabelKeys"
        f" [{_REVISION_KEY}], and its strategy starts a new pod before an old one goes: with {pods} or fewer"
        f" places by {key} the promotion cannot finish. Add the key, or allow maxUnavailable 1."
    )
    return (text,)


def _no_room_beside(pair: Pair) -> tuple[str, ...]:
    """Required anti-affinity between pods of every revision, where a canary's pods carry the label of those that serve."""
    if not (key := _apart_by(pair)):
        return ()
    text = (
        f"Deployment {pair.names.target} requires its pods apart by {key} without matchLabelKeys [{_REVISION_KEY}], and with"
        f" spec.analysis.restore: adopt a canary's pods carry the same label as those that serve: each needs a place by {key} that none"
        " of them has. Add the key, or have twice as many places as replicas."
    )
    return (text,)


def _apart_by(pair: Pair) -> str:
    """Return by what topology key pods of all revisions are required apart; empty when they are not."""
    pod_spec = pair.target["spec"]["template"]["spec"]
    terms = ((pod_spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(_REQUIRED) or []
    for term in terms:
        if _REVISION_KEY not in (term.get("matchLabelKeys") or []) and _names_itself(term, pair):
            return str(term.get("topologyKey"))
    return ""


def _names_itself(term: JSON, pair: Pair) -> bool:
    selector = term.get("labelSelector") or {}
    names = {pair.names.value, pair.names.target}
    if (selector.get("matchLabels") or {}).get(pair.names.label) in names:
        return True
    return any(
        one.get("key") == pair.names.label
        and one.get("operator") == "In"
        and names & set(one.get("values") or ())
        for one in selector.get("matchExpressions") or []
    )


def _surges_only(target: JSON) -> bool:
    """Whether a rolling update may not take a pod away before another one is there.

    The default of 25 % is rounded down for maxUnavailable, so it is none with up to three replicas.
    """
    strategy = target["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return False
    allowed = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", "25%")
    replicas = max(wanted(target), 1)
    text = str(allowed)
    if text.endswith("%"):
        return int(text[:-1]) * replicas // _PERCENT == 0
    return int(text) == 0
