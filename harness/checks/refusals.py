"""Who refused an object, told from the API server's words: quota, LimitRange, Pod Security, webhook, policy, missing rights.

A refused pod does not exist, so nobody sees it Pending; all there is is a message of whoever wanted to make it. It names the sort of
refusal somewhere in the middle, in words of its own for each. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.checks.paths import dig, name_of
from harness.model.report import Note
from harness.model.timeline import ObjectSeen, StepState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.model.timeline import JSON, Timeline

Sort = Literal[
    "quota", "limits", "pod-security", "webhook", "webhook-silent", "policy", "priority", "rights"
]
_MOST: Final = 320
"""Characters of a message that are quoted: Pod Security names every field of every container."""
_OURS: Final = "namespaces with the label app.kubernetes.io/managed-by=rollout-drill"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refusal, in plain words."""

    sort: Sort
    by: str
    """Who refused, e.g. `ResourceQuota pods`."""
    why: str
    advice: str

    @property
    def text(self) -> str:
        """The refusal in two sentences, the second of which says what to do."""
        return f"refused by {self.by}: {self.why}. {self.advice}"


@dataclass(frozen=True, slots=True)
class _Form:
    pattern: re.Pattern[str]
    make: Callable[[re.Match[str]], Refusal]


def _form(pattern: str, make: Callable[[re.Match[str]], Refusal]) -> _Form:
    return _Form(re.compile(pattern, re.DOTALL), make)


_FORMS: Final = (
    _form(
        r"exceeded quota: (?P<name>[^,]+), requested: (?P<asked>.*?), used: (?P<used>.*?), limited: (?P<most>.*)",
        lambda m: Refusal(
            "quota",
            f"ResourceQuota {m['name']}",
            f"{m['asked']} asked for, {m['used']} used, {m['most'].strip()} allowed",
            "Raise the quota, or drill fewer or smaller pods (--set replicas=…).",
        ),
    ),
    _form(
        r"failed quota: (?P<name>[^:]+): must specify (?P<what>.*)",
        lambda m: Refusal(
            "quota",
            f"ResourceQuota {m['name']}",
            f"containers have to state {m['what'].strip()}",
            "State it in the manifest, or give the namespace a LimitRange with defaults.",
        ),
    ),
    _form(
        r"violates PodSecurity \"(?P<level>[^\"]+)\": (?P<what>.*)",
        lambda m: Refusal(
            "pod-security",
            f"Pod Security ({m['level']})",
            _short(m["what"]),
            "State the security context in the manifest; only containers without one, and only of known images, get one from the harness.",
        ),
    ),
    _form(
        r"(?:failed calling|failed to call|conversion) webhook(?: for [^,:]+)?(?: \"(?P<name>[^\"]+)\")?:? ?(?P<what>.*)",
        lambda m: Refusal(
            "webhook-silent",
            f"admission webhook {m['name'] or ''}".rstrip() + ", which gave no answer",
            _short(m["what"]),
            "That is the cluster's own trouble, not the controller's: bring the webhook back, or let it fail open (failurePolicy: Ignore).",
        ),
    ),
    _form(
        r"admission webhook \"(?P<name>[^\"]+)\" denied the request(?:: (?P<what>.*))?",
        lambda m: Refusal(
            "webhook",
            f"admission webhook {m['name']}",
            _short(m["what"] or "without a reason"),
            f"Make the manifest as it wants, or have it leave out {_OURS}.",
        ),
    ),
    _form(
        r"(?P<kind>(?:Validating|Mutating)AdmissionPolicy) '(?P<name>[^']+)'(?: with binding '[^']*')?(?: denied request)?:? ?(?P<what>.*)",
        lambda m: Refusal(
            "policy",
            f"{m['kind']} {m['name']}",
            _short(m["what"] or "without a reason"),
            f"Make the manifest as it wants, or have its binding leave out {_OURS}.",
        ),
    ),
    _form(
        r"(?P<what>(?:maximum|minimum) [\w./-]+ usage per (?:Container|Pod|PersistentVolumeClaim) is .*|"
        r"[\w./-]+ max limit to request ratio per (?:Container|Pod) is .*)",
        lambda m: Refusal(
            "limits",
            "a LimitRange of the namespace",
            _short(m["what"].rstrip("]")),
            "State requests and limits within that range in the manifest, or widen the range.",
        ),
    ),
    _form(
        r"no PriorityClass with name (?P<name>\S+) was found",
        lambda m: Refusal(
            "priority",
            "the API server",
            f"there is no PriorityClass {m['name'].rstrip('.')}",
            "Make it, or leave it out of the manifest.",
        ),
    ),
    _form(
        r"User \"(?P<user>[^\"]+)\" cannot (?P<what>\w+ resource \"[^\"]+\"(?: in API group \"[^\"]*\")?)",
        lambda m: Refusal(
            "rights",
            "the API server",
            f"{m['user']} may not {m['what']}",
            "`drill doctor` lists the rights that drills need.",
        ),
    ),
)


def refusal(message: str) -> Refusal | None:
    """Return who refused an object, and what to do, from a message about it; None when it says nothing of the kind."""
    for form in _FORMS:
        found = form.pattern.search(message)
        if found:
            return form.make(found)
    return None


def explained(message: str) -> str:
    """Return a message with its explanation, if there is one."""
    found = refusal(message)
    return message if found is None else f"{message.rstrip('.')} ({found.text.rstrip('.')})"


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal that was seen in a recording."""

    who: str
    """Whose object was refused: the workload that makes pods, or the step."""
    message: str
    refusal: Refusal
    step: bool = False

    @property
    def note(self) -> Note:
        """The diagnosis for the report."""
        what = "was refused" if self.step else "was refused a pod"
        text = self.refusal.text.removeprefix("refused ")
        return Note("REFUSED", f"{self.who} {what} {text}")


def refused(timeline: Timeline) -> list[Refused]:
    """Return the refusals of a recording, one of each sort and of each who refused, the first ones."""
    found: dict[tuple[str, str], Refused] = {}
    for who, message, step in _messages(timeline):
        why = refusal(message)
        if why is not None:
            found.setdefault((why.sort, why.by), Refused(who, message, why, step=step))
    return list(found.values())


def _messages(timeline: Timeline) -> Iterator[tuple[str, str, bool]]:
    for seen in timeline.observations:
        if isinstance(seen, StepState):
            if seen.state == "failed":
                yield f"Step {seen.step}", seen.detail, True
        elif isinstance(seen, ObjectSeen):
            obj = seen.object
            if obj.get("kind") == "Event":
                if obj.get("reason") == "FailedCreate":
                    about = obj.get("involvedObject") or obj.get("regarding") or {}
                    who = f"{about.get('kind', '?')} {about.get('name', '?')}"
                    yield who, str(obj.get("message") or obj.get("note") or ""), False
            elif obj.get("kind") in {"ReplicaSet", "Deployment"}:
                for message in _failures(obj):
                    yield f"{obj['kind']} {name_of(obj)}", message, False


def _failures(obj: JSON) -> Iterator[str]:
    for row in dig(obj, "status.conditions", []):
        if row.get("type") == "ReplicaFailure" and row.get("status") == "True":
            yield str(row.get("message", ""))


def _short(text: Any) -> str:
    one = " ".join(str(text).split()).rstrip(".")
    return one if len(one) <= _MOST else f"{one[:_MOST].rstrip()} …"
