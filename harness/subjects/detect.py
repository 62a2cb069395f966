"""Which controllers act on Canaries in a cluster, by what can be seen of them: pure rules over raw objects.

Three traces, the best first: the Deployment (what it runs, and with which flags), the Lease of its leader election, and the managers of
fields in Canaries' statuses. The last two say that there is one, and not where it may act: then it is taken to act everywhere.
Reading the objects is `harness.subjects.detect_reader`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.model.duration import parse_duration
from harness.subjects.flagger_capabilities import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.model.timeline import JSON

FLAGGER: Final = "flagger"
BUNDLED: Final = "rollout-drill-controller"
LEASES: Final = {"flagger-leader-election": FLAGGER, BUNDLED: BUNDLED}
"""Names of leader election Leases, and whose they are."""
SELECTOR_LABELS: Final = ("app", "name", "app.kubernetes.io/name")
PROVIDER: Final = "istio"
"""Flagger's, of a Canary that names none, unless its flag says otherwise."""
LOOP: Final = 10.0
"""Seconds between two looks of Flagger at its Canaries, unless its flag says otherwise; no interval is shorter."""
PUBLIC_GROUP: Final = "flagger.app"
FRESH: Final = 600.0
"""Seconds for which a Lease says that its holder is there: ten times as long as Flagger's lasts."""
OUR_LABEL: Final = ("app.kubernetes.io/managed-by", "rollout-drill")
_HERE: Final = "metadata.namespace"
_MODULE: Final = re.compile(r"harness\.controller|\bcontroller run\b")


@dataclass(frozen=True, slots=True)
class Controller:
    """One controller that acts on Canaries."""

    kind: Literal["flagger", "bundled", "unknown"]
    where: str
    """What shows that it is there, e.g. `Deployment flagger-system/flagger`."""
    version: str = ""
    namespace: str = ""
    """The one namespace whose Canaries it drives; empty: all of them, as far as is known."""
    known: bool = True
    """Whether its flags are known: of a Deployment they are."""
    selector_labels: tuple[str, ...] = SELECTOR_LABELS
    provider: str = PROVIDER
    loop: float = LOOP
    """Seconds between two of its looks; 0: it acts when something happens."""
    leader_election: bool = False
    replicas: int = 1

    def acts_in(self, namespace: str) -> bool:
        """Whether it would act on Canaries of a namespace; empty: one that nobody knows yet, such as a drill's own."""
        return not self.namespace or self.namespace == namespace

    @property
    def text(self) -> str:
        """What it is, in a sentence: `Flagger 1.44.0 (Deployment flagger-system/flagger, -namespace=team-a)`."""
        more = [self.where, *([f"fenced to namespace {self.namespace}"] if self.namespace else ())]
        if not self.replicas:
            more.append("scaled to zero")
        return f"{self.public} ({', '.join(more)})"

    @property
    def public(self) -> str:
        """The same for a report that others read, without names of objects and namespaces: `Flagger 1.44.0`."""
        names = {"flagger": "Flagger", "bundled": "the bundled controller"}
        return " ".join(filter(None, (names.get(self.kind, "a controller"), self.version)))


@dataclass(frozen=True, slots=True)
class Traces:
    """The raw objects that tell, as far as they may be read."""

    deployments: Sequence[JSON] = ()
    leases: Sequence[JSON] = ()
    canaries: Sequence[JSON] = ()
    unseen: tuple[str, ...] = ()
    """What may not be read, in words."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found out."""

    controllers: tuple[Controller, ...] = ()
    unseen: tuple[str, ...] = field(default=())
    """What may not be read, so that more controllers may be there; empty: there are no others."""

    def acting_in(self, namespace: str) -> list[Controller]:
        """Return those that would act on Canaries of a namespace (empty: a new one)."""
        return [one for one in self.controllers if one.acts_in(namespace)]


def detected(traces: Traces, now: datetime) -> Seen:
    """Return the controllers that traces tell of; each once, by its best trace.

    A Deployment tells more than a Lease, and a Lease more than fields: where one of a kind is known by a better trace, the others say
    nothing new.
    """
    found = [one for obj in traces.deployments if (one := of_deployment(obj)) is not None]
    kinds = {one.kind for one in found}
    leased = [one for obj in traces.leases if (one := of_lease(obj, now)) is not None]
    found += [one for one in leased if one.kind not in kinds]
    kinds |= {one.kind for one in leased}
    found += [one for one in of_canaries(traces.canaries) if one.kind not in kinds]
    # Rows that say the same are one: a Lease may stand in two namespaces.
    return Seen(tuple(dict.fromkeys(found)), traces.unseen)


def of_deployment(obj: JSON) -> Controller | None:
    """Return the controller that a Deployment runs; None when it runs none, or one that drives other Canaries than Flagger's.

    One scaled to zero counts: somebody may scale it up in the middle of a drill.
    """
    meta, spec = obj.get("metadata") or {}, obj.get("spec") or {}
    pod: Mapping[str, Any] = (spec.get("template") or {}).get("spec") or {}
    for container in pod.get("containers") or ():
        kind = _kind(container)
        if kind is None:
            continue
        own = str(meta.get("namespace", ""))
        flags = _flags(container, own)
        if flags.get("api-group", PUBLIC_GROUP) != PUBLIC_GROUP:
            return None
        bundled = kind == "bundled"
        labels = tuple(part for part in flags.get("selector-labels", "").split(",") if part)
        return Controller(
            kind,
            f"Deployment {own}/{meta.get('name', '?')}",
            version=_tag(container),
            # Ours drives the namespace that it runs in unless it is told another one.
            namespace=flags.get("namespace", "") or (own if bundled else ""),
            selector_labels=labels or SELECTOR_LABELS,
            provider=flags.get("mesh-provider", "") or PROVIDER,
            loop=0.0 if bundled else _seconds(flags.get("control-loop-interval", "")),
            leader_election=_is_on(flags, "leader-elect" if bundled else "enable-leader-election"),
            replicas=int(spec.get("replicas", 1) or 0),
        )
    return None


def of_lease(obj: JSON, now: datetime) -> Controller | None:
    """Return the controller whose leader holds a Lease; None when it is nobody's, or was given up long ago."""
    meta, spec = obj.get("metadata") or {}, obj.get("spec") or {}
    owner = LEASES.get(str(meta.get("name", "")))
    if owner is None or not spec.get("holderIdentity"):
        return None
    try:
        renewed = datetime.fromisoformat(str(spec.get("renewTime")))
    except ValueError:
        return None
    if (now - renewed).total_seconds() > FRESH:
        return None
    where = f"Lease {meta.get('namespace', '?')}/{meta['name']}"
    if owner == BUNDLED:
        # It keeps its Lease in the namespace that it drives.
        return Controller(
            "bundled", where, namespace=str(meta.get("namespace", "")), known=False, loop=0.0
        )
    return Controller("flagger", where, known=False, leader_election=True)


def of_canaries(canaries: Iterable[JSON]) -> list[Controller]:
    """Return the controllers that wrote statuses of Canaries, by managedFields; those of drills do not count, nor what drills wrote."""
    found: dict[str, str] = {}
    for obj in canaries:
        meta = obj.get("metadata") or {}
        key, value = OUR_LABEL
        if (meta.get("labels") or {}).get(key) == value:
            continue
        for entry in meta.get("managedFields") or ():
            manager = str(entry.get("manager", ""))
            # kubectl edits a status by hand only, and a restored backup is nobody's work either.
            if _writes_status(entry) and manager not in {"", "kubectl", "rollout-drill", "velero"}:
                found.setdefault(manager, f"{meta.get('namespace', '?')}/{meta.get('name', '?')}")
    return [
        Controller(_of_manager(name), f"field manager {name} of Canary {where}", known=False)
        for name, where in sorted(found.items())
    ]


def _of_manager(name: str) -> Literal["flagger", "bundled", "unknown"]:
    if name == BUNDLED:
        return "bundled"
    return "flagger" if name.startswith(FLAGGER) else "unknown"


def _writes_status(entry: Mapping[str, Any]) -> bool:
    return entry.get("subresource") == "status" or "f:status" in (entry.get("fieldsV1") or {})


def _kind(container: Mapping[str, Any]) -> Literal["flagger", "bundled"] | None:
    words = " ".join(map(str, (*(container.get("command") or ()), *(container.get("args") or ()))))
    if _image(container) == FLAGGER:
        return "flagger"
    if _MODULE.search(words) or container.get("name") == BUNDLED:
        return "bundled"
    # A build of one's own under another name: its own flags give it away.
    command = str((container.get("command") or [""])[0]).rsplit("/", 1)[-1]
    flags = _flags(container, "")
    told = command == FLAGGER or {"mesh-provider", "metrics-server"} <= flags.keys()
    return "flagger" if told else None


def _image(container: Mapping[str, Any]) -> str:
    """Return the last part of the image's name, without tag and digest."""
    name = str(container.get("image", "")).partition("@")[0].rsplit("/", 1)[-1]
    return name.partition(":")[0]


def _tag(container: Mapping[str, Any]) -> str:
    tag = str(container.get("image", "")).partition("@")[0].rsplit("/", 1)[-1].partition(":")[2]
    return tag.removeprefix("v") if numbers(tag) else ""


def _flags(container: Mapping[str, Any], own: str) -> dict[str, str]:
    """Return the flags of a container's command line, without dashes; `true` for a switch, and values of the environment filled in.

    `own`: the namespace that it runs in, which the environment may name.
    """
    environment = {
        str(row.get("name")): own
        if _HERE in str(row.get("valueFrom"))
        else str(row.get("value") or "")
        for row in container.get("env") or ()
    }
    words = [str(w) for w in (*(container.get("command") or ()), *(container.get("args") or ()))]
    found: dict[str, str] = {}
    for number, word in enumerate(words):
        if not word.startswith("-"):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals:
            after = words[number + 1 : number + 2]
            value = after[0] if after and not after[0].startswith("-") else "true"
        found["namespace" if name == "n" else name] = re.sub(
            r"\$\((\w+)\)", lambda named: environment.get(named[1], named[0]), value
        )
    return found


def _is_on(flags: Mapping[str, str], name: str) -> bool:
    return flags.get(name, "false").lower() in {"true", "1", "t"}


def _seconds(text: str) -> float:
    try:
        return parse_duration(text) if text else LOOP
    except ValueError:
        return LOOP
