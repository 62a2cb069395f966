"""Before anything is made on a cluster that is not ours: what is there, what is allowed, and what that changes in a drill.

I/O is one survey (`harness.clusters.survey`); the rest is decided from it. `drill doctor` shows the same, and makes nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.clusters import health, rights, workload
from harness.clusters.admission import gates
from harness.clusters.base import PUBLIC_IMAGE, SIMULATED_IMAGE, ClusterError
from harness.clusters.eligible import HOSTNAME, Eligible, eligible
from harness.clusters.health_namespace import enforces_restricted
from harness.clusters.survey import ask, take_survey
from harness.kube.resource import CANARY
from harness.run.adapt import Adaptation
from harness.run.adapt.priority import NO_PRIORITY, PRIORITY_NAME, is_ours, priority_class
from harness.run.identity import labels
from harness.run.marks import ours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.clusters.base import Cluster
    from harness.clusters.rights import Need
    from harness.clusters.survey import Survey
    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

ALLOWED_WITHOUT_ROOT = (PUBLIC_IMAGE, SIMULATED_IMAGE, workload.IMAGE)
"""Images that scenarios use by themselves; each runs as any user."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run asks of a cluster that is not ours."""

    nodes: tuple[str, ...] = ()
    node_selector: str = ""
    namespace: str = ""
    image: str = ""
    crds: tuple[JSON, ...] = ()
    """Of the subject."""
    roles: tuple[JSON, ...] = ()
    """The subject's objects in a drill's namespace: its rights."""


@dataclass(frozen=True, slots=True)
class Found:
    """A cluster as it was found, and what was made of it."""

    survey: Survey
    eligible: Eligible
    needed: tuple[Need, ...]
    priority: str
    """`ok`: the PriorityClass of drill pods is there; `wrong`: there with other values; `make`: to be made; empty: not to be had."""

    @property
    def missing(self) -> list[str]:
        """What no drill can do without, in words; empty when drills can run."""
        lacking = rights.missing(self.needed, self.survey.allowed)
        return rights.told(need for need in lacking if not need.without)

    @property
    def withheld(self) -> tuple[str, ...]:
        """The API groups whose rules are left out of the subject's Role."""
        return rights.withheld(rights.missing(self.needed, self.survey.allowed))

    def rows(self, crds: Sequence[JSON]) -> list[health.Row]:
        """Return everything that there is to say."""
        marks = labels("run", "drill")
        state = {"make": ""}.get(self.priority, self.priority)
        return health.rows(
            self.survey, self.eligible, self.needed, crds=crds, labels=marks, priority=state
        )


async def look(client: KubeClient, wanted: Wanted) -> Found:
    """Look at a cluster, and ask what is allowed on it. Raises KubeError, and ChoiceError for nodes that are not there."""
    names = [str(crd["metadata"]["name"]) for crd in wanted.crds]
    survey = await take_survey(client, wanted.namespace, crds=names, priority=PRIORITY_NAME)
    chosen = eligible(survey.seen("nodes"), wanted.nodes, wanted.node_selector)
    group = str(wanted.crds[0]["spec"]["group"]) if wanted.crds else CANARY.group
    absent = _absent(survey, names)
    needed = rights.needs(wanted.namespace, wanted.roles, absent, group=group)
    survey = replace(survey, allowed=await ask(client, (need.right for need in needed)))
    return Found(survey, chosen, tuple(needed), _priority(survey, needed))


def _absent(survey: Survey, names: Sequence[str]) -> list[str]:
    if "customresourcedefinitions" in survey.refused or survey.namespace:
        return []
    there = {one["metadata"]["name"] for one in survey.objects.get("customresourcedefinitions", ())}
    return [name for name in names if name not in there]


def _priority(survey: Survey, needed: Sequence[Need]) -> str:
    there = survey.seen("priorityclasses")
    if there:
        if survey.namespace and ours(there[0]):
            # Of other runs, and gone with the last of them: a drill that may not mark it must not rely on it, nor keep it.
            return ""
        return "ok" if is_ours(there[0]) else "wrong"
    lacking = {need.right.resource for need in rights.missing(needed, survey.allowed)}
    possible = there is not None and not survey.namespace and "priorityclasses" not in lacking
    return "make" if possible else ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A cluster as drills get it."""

    cluster: Cluster
    adaptation: Adaptation
    shared: tuple[JSON, ...] = ()
    """Cluster-scoped objects that are needed besides CRDs."""
    names: tuple[tuple[str, ...], ...] = ()
    """The names of each node that there is: its own, and its host's."""


async def prepare(client: KubeClient, cluster: Cluster, wanted: Wanted) -> Prepared:
    """Return how drills run on a cluster; one that is ours stays as it is.

    Raises ClusterError with all rights that are missing, ChoiceError for nodes that are not there, and KubeError.
    """
    if cluster.facts.kind != "existing":
        images = () if cluster.facts.simulated else (*ALLOWED_WITHOUT_ROOT, cluster.workload_image)
        return Prepared(cluster, Adaptation(images=images))
    found = await look(client, wanted)
    refuse(cluster.name, found, wanted.crds)
    return _adapted(cluster, wanted, found)


def refuse(name: str, found: Found, crds: Sequence[JSON]) -> None:
    """Raise ClusterError when drills cannot run on the cluster `name`, with everything that is missing."""
    lacking = [f"the right to {text}" for text in found.missing]
    rows = found.rows(crds)
    lacking += [
        f"{row.topic}: {row.text}"
        for row in rows
        if row.state == "missing" and row.topic not in {"rights", "nodes"}
    ]
    if lacking:
        msg = (
            f"No drill can run on {name}, and nothing was made there. Missing: {'; '.join(lacking)}. "
            f"`drill doctor --cluster {name}` shows everything."
        )
        raise ClusterError(msg)


def _adapted(cluster: Cluster, wanted: Wanted, found: Found) -> Prepared:
    facts = replace(
        cluster.facts,
        nodes=found.eligible.names,
        notes=(*cluster.facts.notes, *_notes(found, wanted)),
    )
    ours = (wanted.image,) if workload.is_ours(wanted.image) else ()
    namespaces = found.survey.seen("namespaces") or ()
    adaptation = Adaptation(
        nodes=found.eligible.hostnames,
        priority_class=PRIORITY_NAME if found.priority in {"ok", "make"} else "",
        images=() if facts.simulated else (*ALLOWED_WITHOUT_ROOT, *ours),
        restricted=any(enforces_restricted(one) for one in namespaces),
        withheld=found.withheld,
    )
    shared = (priority_class(),) if found.priority in {"ok", "make"} else ()
    names = tuple(
        (
            str(node["metadata"]["name"]),
            str((node["metadata"].get("labels") or {}).get(HOSTNAME, "")),
        )
        for node in found.survey.seen("nodes") or ()
    )
    return Prepared(replace(cluster, facts=facts, image=wanted.image), adaptation, shared, names)


def _notes(found: Found, wanted: Wanted) -> list[str]:
    """Return what a reader of the report must know; without names, which are the users'."""
    notes = _counted(found.eligible, chosen=bool(wanted.nodes or wanted.node_selector))
    scalers = [text.partition(" (")[0] for text in health.autoscalers(found.survey)]
    if scalers:
        notes.append(f"Nodes can be added here while a drill runs, by {' and '.join(scalers)}.")
    if not found.priority or found.priority == "wrong":
        notes.append(NO_PRIORITY)
    hooks = gates(found.survey.objects, _marks(found))
    if hooks:
        changing = sum(hook.mutates for hook in hooks)
        verb = "looks" if len(hooks) == 1 else "look"
        notes.append(
            f"Admission: {_number(len(hooks), 'webhook or policy', 'webhooks or policies')} {verb} at drills' objects, "
            f"{changing or 'none'} of them may change these (`drill doctor` names them)."
        )
    return notes


def _counted(nodes: Eligible, *, chosen: bool) -> list[str]:
    if not nodes.seen and nodes.names:
        return [
            "Nodes may not be listed here: those that the user named are counted, and taken for real ones."
        ]
    if not nodes.seen:
        return ["Nodes may not be listed here, so they are not counted."]
    # Of a taint only that it is one: its key may be somebody's name.
    reasons = Counter(
        why.partition(" ")[0] if "tainted" in why else why for why in nodes.left_out.values()
    )
    if not reasons and not chosen:
        return []
    out = ", ".join(f"{number} {why}" for why, number in sorted(reasons.items()))
    count = f"{_number(len(nodes.names), 'node')} counted{', chosen by the user' if chosen else ''}"
    return [f"{count}{f'; left out: {out}' if out else ''}."]


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _marks(found: Found) -> dict[str, str]:
    namespaces = found.survey.seen("namespaces") or ()
    own = [dict(one["metadata"].get("labels") or {}) for one in namespaces]
    return own[0] if own else labels("run", "drill")
