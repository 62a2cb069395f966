"""Other controllers on a cluster that is not the run's own: which of them would act on a drill's Canaries, and what is done about it.

    subject      another one acts there          none acts there          it cannot be seen
    bundled      a private API group             as everywhere            a private API group, where CRDs may be made
    installed    it is observed                  refused, with why        it is observed, if it is there
    flagger@X    refused (context:NAME: always)  as everywhere            refused

Two controllers that drive one Canary undo each other's work, and no verdict says anything about either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ChoiceError, ClusterError
from harness.clusters.rights import Right
from harness.clusters.survey import ask
from harness.kube.resource import CRD
from harness.run.adapt.group import group_of
from harness.run.objects import RefusedError
from harness.subjects.base import Movable
from harness.subjects.detect_reader import look_around
from harness.subjects.installed import Installed
from harness.subjects.names import parse

if TYPE_CHECKING:
    from harness.clusters.base import Cluster
    from harness.kube.client import KubeClient
    from harness.run.place import Place
    from harness.run.plan import Plan
    from harness.subjects.base import Subject
    from harness.subjects.detect import Controller, Seen

_MAKE: Final = Right("", CRD.group, CRD.plural, "create")
_REMOVE: Final = Right("", CRD.group, CRD.plural, "delete")


@dataclass(frozen=True, slots=True)
class Beside:
    """How a run gets along with the controllers that are there."""

    api_group: str = ""
    """Under which the bundled controller's Canaries are served; empty: Flagger's."""
    notes: tuple[str, ...] = ()
    """Sentences for the report."""
    told: str = ""
    """A sentence for the person who waits, with the names of objects, which a report does not show to everybody."""
    observed: tuple[Controller, ...] = ()
    """Those that the subject `installed` stands for."""


ALONE: Final = Beside()


def must_be_possible(plan: Plan) -> None:
    """Raise ChoiceError for a Flagger that would need its CRDs on a cluster that is not ours; before anything is built or asked."""
    if not plan.cluster.startswith("context:"):
        return
    for name in plan.subjects:
        if parse(name).kind == "flagger":
            msg = (
                f"--subject {parse(name)} is not run on {plan.cluster}: its CRD canaries.flagger.app is one for the whole cluster, and that of "
                "another version would prune what other people's Canaries say. Use --subject installed for a Flagger that is there, "
                "bundled, or a cluster of the drill's own (embedded, kind)"
            )
            raise ChoiceError(msg)


async def beside(
    client: KubeClient, cluster: Cluster, plan: Plan, run: str, namespace: str = ""
) -> Beside:
    """Look who is there, and return how drills get along with them; on a cluster made for the run nobody is.

    `namespace`: the drill's, where it is one that is there already. Raises ClusterError (ChoiceError) for what cannot be, and KubeError.
    """
    facts = cluster.facts
    if facts.kind == "embedded" or facts.exclusive:
        return ALONE
    seen = await look_around(client, namespace)
    allowed = await ask(client, (_MAKE, _REMOVE))
    may = allowed.get(_MAKE, False) and allowed.get(_REMOVE, False)
    return decided(plan, seen, run, namespace, cluster=cluster.name, may_make_crds=may)


def decided(
    plan: Plan, seen: Seen, run: str, namespace: str, *, cluster: str, may_make_crds: bool
) -> Beside:
    """Return what is done, by the table above. Raises ClusterError, ChoiceError."""
    acting = seen.acting_in(namespace)
    match parse(plan.subject).kind:
        case "installed":
            return _installed(seen, acting, namespace, cluster)
        case "flagger":
            if acting or seen.unseen:
                msg = f"{plan.subject} is not run on {cluster}: {_who(acting, seen)}, and two controllers would drive the same Canary"
                raise ChoiceError(msg)
            return ALONE
        case _:
            return _bundled(plan, seen, acting, run, cluster=cluster, may_make_crds=may_make_crds)


def settle(plan: Plan, place: Place, subject: Subject) -> None:
    """Tell a subject under which API group its Canaries are on that cluster. Raises RefusedError for what cannot be done there."""
    if isinstance(subject, Installed):
        subject.meet(place.observed)
    group = place.adaptation.api_group
    if not group:
        return
    if plan.handbacks:
        msg = (
            "a scenario that hands back to Flagger is not run beside a controller that acts on the drill's Canaries: those are of an API group of "
            "their own, which no Flagger reads"
        )
        raise RefusedError(msg)
    if not isinstance(subject, Movable):
        msg = f"{subject.facts.name} cannot have Canaries of an API group of its own, and another controller acts on those of Flagger's"
        raise RefusedError(msg)
    subject.move(group)


def _installed(seen: Seen, acting: list[Controller], namespace: str, cluster: str) -> Beside:
    if acting:
        public = " and ".join(one.public for one in acting)
        note = f"Observed is {public}, which is installed here."
        return Beside(notes=(note,), observed=tuple(acting), told=f"Observed: {_listed(acting)}.")
    if seen.controllers:
        first = seen.controllers[0]
        where = f"namespace {namespace}" if namespace else "a new namespace"
        msg = (
            f"--subject installed: {_listed(seen.controllers)} acts in no other namespace, and the drill would be in {where}; "
            f"use --namespace {first.namespace}, if drills may run there"
        )
        raise ChoiceError(msg)
    if seen.unseen:
        note = f"Which controller acts on Canaries here could not be seen ({_unseen(seen)} may not be listed)."
        return Beside(notes=(note,))
    msg = (
        f"--subject installed: nothing on {cluster} acts on Canaries: no Deployment runs Flagger or the bundled controller, no Lease of theirs is "
        "held, and no Canary's status has been written by one"
    )
    raise ChoiceError(msg)


def _bundled(
    plan: Plan,
    seen: Seen,
    acting: list[Controller],
    run: str,
    *,
    cluster: str,
    may_make_crds: bool,
) -> Beside:
    if not acting and not seen.unseen:
        return ALONE
    if not may_make_crds:
        if acting:
            msg = (
                f"{plan.subject} is not run on {cluster}: {_who(acting, seen)}, so it needs Canaries of an API group of its own, and this user may "
                "not create and delete CustomResourceDefinitions; use --subject installed, or a user who may"
            )
            raise ClusterError(msg)
        note = (
            f"Whether another controller acts on Canaries here could not be seen ({_unseen(seen)} may not be listed), and no API group of its own "
            "could be made for the bundled one (CustomResourceDefinitions may not be created)."
        )
        return Beside(notes=(note,))
    group = group_of(run)
    who = (
        f"{' and '.join(one.public for one in acting)} would act on the drill's Canaries here"
        if acting
        else _who(acting, seen)
    )
    note = (
        f"{who}. So that two controllers never drive one Canary, the bundled one had Canaries of an API group of its own, "
        f"{group}, whose CustomResourceDefinitions were made for this run."
    )
    told = f"{_who(acting, seen)}: the bundled controller gets the API group {group}."
    return Beside(group, (note[0].upper() + note[1:],), told[0].upper() + told[1:])


def _who(acting: list[Controller], seen: Seen) -> str:
    if acting:
        return f"{_listed(acting)} acts on Canaries there"
    return f"whether another controller acts on Canaries there cannot be seen ({_unseen(seen)} may not be listed)"


def _unseen(seen: Seen) -> str:
    return " and ".join(seen.unseen)


def _listed(controllers: list[Controller] | tuple[Controller, ...]) -> str:
    return " and ".join(one.text for one in controllers)
