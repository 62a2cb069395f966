"""What a return to Flagger needs, Canary by Canary. Pure: what was read goes in, a patch and a sentence come out.

A Flagger up to 1.44 compares nothing but its own hash (spec change-detection A): the empty one is a change, the promoted one is
none, any other than the applied one is a change; after that the checksums of ConfigMaps and Secrets. So those hashes are put
back, computed by that very version, where our own comparison says that the target is what the status speaks of. A target that
changed while nobody watched keeps its status: Flagger starts a run for it, rightly.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.controller.core.canonical import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.handback.answers import Told
    from harness.model.timeline import JSON

SETTLED: Final = frozenset({"Initialized", "Succeeded"})
FAILED: Final = "Failed"
FROZEN: Final = "Frozen"
BOOTSTRAP: Final = frozenset({"", "Initializing"})
RUNNING: Final = frozenset({"Waiting", "Progressing", "WaitingPromotion"})
ENDING: Final = frozenset({"Promoting", "Finalising"})


class Fate(enum.StrEnum):
    """What that Flagger will do with a Canary when it starts."""

    RESTS = "rests"
    """Nothing: no analysis starts."""
    GOES_ON = "goes on"
    """It takes over what is under way where it stands; nothing starts over."""
    STARTS = "starts"
    """It starts an analysis (or starts over), for a change that really is one."""
    TROUBLE = "trouble"
    """It can do harm, or nothing at all, before somebody mends something."""
    LEFT = "left alone"
    """Not ours to judge."""


class Recorded(enum.Enum):
    """Whether the target is what the status speaks of, in our own comparison."""

    SAME = enum.auto()
    CHANGED = enum.auto()
    UNKNOWN = enum.auto()


@dataclass(frozen=True, slots=True)
class Case:
    """All that is known about one Canary."""

    canary: JSON
    recorded: Recorded = Recorded.UNKNOWN
    evidence: str = ""
    """Which row of our own comparison says so, in words."""
    exact: bool = False
    """Whether the target has exactly the hash on record, so that no fence is needed to tell."""
    configs_changed: bool = False
    """Whether a ConfigMap or Secret is another than our own comparison remembers."""
    told: Told | None = None
    """What that version would remember of the target as it is; None when there is no target to ask about."""
    promoted: str = ""
    """What that version would have remembered of the template that was promoted; empty when that template is not kept."""
    fenced: bool = False
    """Whether that version keeps a change fence itself."""

    @property
    def status(self) -> JSON:
        """The raw status."""
        return self.canary.get("status") or {}

    @property
    def phase(self) -> str:
        """The phase; empty for none."""
        return str(self.status.get("phase") or "")

    @property
    def applied(self) -> str:
        """The stored lastAppliedSpec."""
        return str(self.status.get("lastAppliedSpec") or "")

    @property
    def was_promoted(self) -> str:
        """The stored lastPromotedSpec."""
        return str(self.status.get("lastPromotedSpec") or "")


@dataclass(frozen=True, slots=True)
class Return:
    """What one Canary needs, and what becomes of it."""

    name: str
    phase: str
    fate: Fate
    why: str
    """One sentence."""
    patch: JSON = field(default_factory=dict)
    """JSON merge patch of the status; empty when it can stay as it is."""
    suspended: bool = False

    def to_json(self) -> JSON:
        """Return it as `drill controller handback --json` prints it."""
        return {
            "canary": self.name,
            "phase": self.phase,
            "fate": self.fate.value,
            "why": self.why,
            "patch": self.patch,
            "suspended": self.suspended,
        }


def plan(case: Case) -> Return:
    """Work out the return of one Canary."""
    fate, why, patch = _judge(case)
    suspended = bool((case.canary.get("spec") or {}).get("suspend"))
    if suspended:
        why += " It is suspended: nothing happens before spec.suspend is false."
    return Return(case.canary["metadata"]["name"], case.phase, fate, why, patch, suspended)


_Judged = tuple[Fate, str, "JSON"]


def _refused(case: Case) -> _Judged | None:
    """Return what is said of a Canary whose status means nothing to a Flagger; None for one that it can take over."""
    if case.canary["metadata"].get("deletionTimestamp") or case.phase == "Terminating":
        return Fate.LEFT, "It is being deleted.", {}
    if case.phase == FROZEN:
        why = (
            "It is frozen, and Flagger knows no such phase: nothing there keeps the failed revision and its routes as they are."
            " End the freeze first, with a fixed revision, a rollback or a promotion, then hand back."
        )
        return Fate.TROUBLE, why, {}
    if case.status.get("parked") is not None:
        why = (
            "Its primary is a ReplicaSet that it keeps itself (spec.analysis.restore: adopt), and Flagger knows no such"
            " layout: there is no primary Deployment for it. Set the Canary up without it first, then hand back."
        )
        return Fate.TROUBLE, why, {}
    if case.phase not in SETTLED | BOOTSTRAP | RUNNING | ENDING | {FAILED}:
        return Fate.LEFT, f"Phase {case.phase!r} is none that is known.", {}
    return None


def _judge(case: Case) -> _Judged:
    refused = _refused(case)
    if refused is not None:
        return refused
    told = case.told
    if told is None:
        return Fate.TROUBLE, "Its target does not exist; Flagger waits for it.", {}
    if told.problem:
        return Fate.LEFT, f"There is no hash of its target: {told.problem}.", {}
    if told.configs_problem:
        why = f"Flagger reports an error at every look, and does nothing, until this is mended: {told.configs_problem}."
        return Fate.TROUBLE, why, {}
    if case.phase in BOOTSTRAP:
        return _initialising(case)
    if case.phase == FAILED and not case.applied and not case.was_promoted:
        why = (
            "Its primary never became ready. Flagger points the Service at that primary all the same; repair it, or suspend"
            " the Canary, before Flagger starts."
        )
        return Fate.TROUBLE, why, {}
    if case.recorded is Recorded.SAME and not case.configs_changed:
        return _unchanged(case, told)
    if told.hash == case.applied and not case.configs_changed:
        return _restored(case, told, "Its hash is in place already.")
    return _starts(case)


def _initialising(case: Case) -> _Judged:
    why = "Flagger goes on with the initialisation."
    if case.recorded is Recorded.CHANGED:
        why += (
            " Its target has moved on since the primary was made from it; Flagger records the newer template as promoted"
            " without running it."
        )
    return Fate.GOES_ON, why, {}


def _unchanged(case: Case, told: Told) -> _Judged:
    if case.fenced:
        patch = _difference(case.status, {"trackedConfigs": _configs(case, told)})
        return _fate_of(case), f"This Flagger understands the status as it is. {_goes(case)}", patch
    in_place = told.hash == case.applied
    return _restored(case, told, f"Its hash is {'in place already' if in_place else 'put back'}.")


def _restored(case: Case, told: Told, what: str) -> _Judged:
    promoted = told.hash if case.was_promoted == case.applied else case.promoted
    fields: JSON = {
        "lastAppliedSpec": told.hash,
        "lastTrackedRevision": None,
        "trackedConfigs": _configs(case, told),
    }
    why = f"{what} {_goes(case)}"
    if promoted:
        fields["lastPromotedSpec"] = promoted
    elif case.was_promoted.startswith(PREFIX):
        why += (
            " The promoted template is not kept any more, so going back to it would start an analysis instead of being"
            " seen as a rollback."
        )
    return _fate_of(case), why, _difference(case.status, fields)


def _starts(case: Case) -> _Judged:
    if case.recorded is Recorded.SAME:
        change = "A ConfigMap or Secret is another than the one on record"
    elif case.recorded is Recorded.CHANGED:
        change = "Its target is another than the one on record"
    else:
        change = "It cannot be told whether its target is the one on record"
    if case.evidence and case.recorded is not Recorded.SAME:
        change += f" ({case.evidence[:1].lower()}{case.evidence[1:]})"
    if case.phase == "Waiting":
        return Fate.GOES_ON, f"{change}: the analysis that its gate holds back will judge it.", {}
    if case.phase in ENDING:
        return Fate.STARTS, f"{change}: Flagger ends the promotion, then starts an analysis.", {}
    if case.phase in RUNNING:
        return Fate.STARTS, f"{change}: Flagger starts the analysis over.", {}
    return Fate.STARTS, f"{change}: Flagger starts an analysis.", {}


def _fate_of(case: Case) -> Fate:
    return Fate.GOES_ON if case.phase in RUNNING | ENDING else Fate.RESTS


def _goes(case: Case) -> str:
    if case.phase in ENDING:
        return "Flagger ends the promotion, then rests."
    if case.phase == "Waiting":
        return "Flagger goes on waiting for its gate."
    if case.phase in RUNNING:
        done = int(case.status.get("iterations") or 0)
        return f"Flagger goes on with the analysis after iteration {done}."
    return "Flagger rests until something changes."


def _configs(case: Case, told: Told) -> JSON | None:
    """Return the checksums as a merge patch, which removes those that nobody refers to any more."""
    if not told.configs and not case.status.get("trackedConfigs"):
        return case.status.get("trackedConfigs")
    held: Mapping[str, str] = case.status.get("trackedConfigs") or {}
    wanted = told.configs or {}
    return {**dict.fromkeys(held.keys() - wanted.keys()), **wanted}


def _difference(status: JSON, fields: JSON) -> JSON:
    """Return the fields that differ from the status; null and absent are the same."""
    return {key: value for key, value in fields.items() if status.get(key) != value}
