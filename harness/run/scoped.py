"""A drill in a namespace that is there already, that others use, and that stays: how it enters, and how it leaves.

Whoever runs it may have rights in that namespace only. So nothing cluster-wide is asked, what may not be listed is named, and what is
the drill's own is known by labels and owners (`harness.run.family`), not by where it is.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.clusters.base import ChoiceError
from harness.kube.errors import Forbidden, KubeError, NotFound
from harness.kube.resource import NAMESPACE, SERVICE, SERVICEACCOUNT, parse_api_version
from harness.model.timeline import Leftovers
from harness.run.family import family
from harness.run.journal import Entry, ObjectKey
from harness.run.leftovers import NOISE, NOTHING, Listing, item, list_everything
from harness.run.objects import RefusedError
from harness.run.patience import patiently
from harness.run.scoped_refusal import refusal
from harness.run.stuck_look import why_stuck
from harness.run.teardown import GONE_WITHIN, Removal, tear_down, until_gone
from harness.run.together import together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON, RolloutKind
    from harness.run.journal import Journal
    from harness.run.live import Live
    from harness.run.objects import Maker
    from harness.run.place import Place

OWN_CREDENTIALS: Final = "The controller ran with the user's own credentials, since no service account with rights of its own could be made"
_TRANSIENT: Final = frozenset({"endpoints", "endpointslices"})
"""Types whose objects others remove a moment after their Service, unasked."""


async def must_serve(client: KubeClient, rollout: RolloutKind) -> None:
    """Raise ChoiceError when the cluster does not serve the rollout object: its CRD is nobody's to make without rights on the cluster."""
    try:
        answer = await client.raw("GET", f"/apis/{rollout.api_version}")
    except NotFound:
        answer = {}
    served = {str(row.get("name")) for row in answer.get("resources") or ()}
    if rollout.plural not in served:
        group = parse_api_version(rollout.api_version)[0]
        msg = (
            f"The cluster does not serve {rollout.kind} of {rollout.api_version}, and a drill in a namespace that is there already "
            f"makes nothing outside of it: let an administrator install the CustomResourceDefinition {rollout.plural}.{group}."
        )
        raise ChoiceError(msg)


@dataclass(frozen=True, slots=True)
class Entered:
    """A namespace that a drill may use."""

    namespace: Entry
    """In no journal, since it stays."""
    notes: tuple[str, ...]
    """What a reader of the report must know."""
    own_credentials: bool
    """Whether the subject runs with the user's credentials."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """What a drill brings along."""

    drill: str
    """Its label value."""
    rollout: RolloutKind
    identity: Sequence[JSON]
    """The subject's objects in the namespace; none where it is only observed."""
    account: str | None
    """The service account among them that it runs under."""
    bound: bool = False
    """Whether it cannot run under anything else (it runs in a pod)."""


async def enter(
    maker: Maker, journal: Journal, name: str, objects: Sequence[JSON], visitor: Visitor
) -> Entered:
    """Enter the namespace `name` with a drill's rendered `objects`.

    The subject's identity is made right away, since only that shows whether it may be. Raises ChoiceError in one sentence when
    something there could be confused, and KubeError; nothing is left of it then.
    """
    client = maker.client
    await _must_exist(client, name)
    await must_serve(client, visitor.rollout)
    for obj in objects:
        resource = await maker.resources.find(str(obj["apiVersion"]), str(obj["kind"]))
        if not resource.namespaced:
            msg = f"{obj['kind']} {obj['metadata']['name']} belongs to no namespace, so the scenario cannot be run inside of {name}."
            raise ChoiceError(msg)
    listing = await list_everything(client, name)
    why = refusal(
        name,
        objects,
        await _there(client, name, listing),
        visitor.rollout,
        acts=bool(visitor.identity) and has_any(listing, visitor.rollout),
    )
    if why:
        raise ChoiceError(why)
    notes = [
        "The drill's namespace was there before and stays; of what is in it, only the drill's own objects were looked at"
    ]
    if listing.refused:
        notes.append(
            f"Not allowed to be listed, so nothing is claimed about: {', '.join(listing.refused)}"
        )
    try:
        refused = await _identify(maker, name, visitor)
    except BaseException:
        made = [entry for entry in journal.entries if entry.drill == visitor.drill]
        await tear_down(client, journal, only=made)
        raise
    if refused:
        notes.append(f"{OWN_CREDENTIALS} ({refused})")
    key = ObjectKey("", "v1", "namespaces", "Namespace", name)
    return Entered(Entry(key, visitor.drill), tuple(f"{note}." for note in notes), bool(refused))


async def _must_exist(client: KubeClient, name: str) -> None:
    try:
        namespace = await client.get(NAMESPACE, name)
    except Forbidden:
        return  # what follows shows it
    except NotFound:
        msg = f"There is no namespace {name}; without --namespace each drill makes one of its own."
        raise ChoiceError(msg) from None
    if "deletionTimestamp" in namespace["metadata"]:
        msg = f"Namespace {name} is being deleted."
        raise ChoiceError(msg)


def has_any(listing: Listing, rollout: RolloutKind) -> bool:
    """Whether there are rollout objects of the very API group that the drill's controller reads."""
    wanted = rollout.api_version.partition("/")[0], rollout.plural
    return any((group, plural) == wanted for group, plural, _, _ in listing.objects)


async def _there(client: KubeClient, name: str, listing: Listing) -> list[JSON]:
    """Return what is there as kind and metadata, Services whole: their selectors count."""
    try:
        services, _ = await client.list(SERVICE, name)
    except Forbidden:
        services = []
    others = [
        {"kind": metadata["kind"], "metadata": metadata}
        for key, metadata in listing.objects.items()
        if key[:2] != ("", "services")
    ]
    return [*services, *others]


async def _identify(maker: Maker, namespace: str, visitor: Visitor) -> str:
    """Make the subject's identity; return why that is not allowed, empty when it is."""
    if visitor.account is None:
        return ""
    try:
        for obj in visitor.identity:
            await maker.apply(obj, namespace)
        if not visitor.bound:
            path = SERVICEACCOUNT.path(namespace, visitor.account, "token")
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            await maker.client.raw("POST", path, None, request)
    except Forbidden as error:
        if visitor.bound:
            raise
        return f"refused: {error.request}"
    except RefusedError as error:
        msg = f"Namespace {namespace} cannot be used by this drill: {error}."
        raise ChoiceError(msg) from error
    return ""


@dataclass(slots=True)
class Gone:
    """What became of a drill's objects in a namespace that stays."""

    removal: Removal
    removed: dict[str, int] = field(default_factory=dict)
    """Kind -> how many objects went, those among them that nobody had to remove."""
    left: list[JSON] = field(default_factory=list)
    listing: Listing = NOTHING
    explained: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """What is left, a sentence for each object that the removal does not name itself."""
        named = [f"{one['kind']} {one['namespace']}/{one['name']}" for one in self.left]
        told = " ".join(self.removal.problems)
        return [f"{name} is left" for name in named if f"{name} " not in told]


async def remove_family(
    client: KubeClient,
    journal: Journal,
    namespace: str,
    entries: Sequence[Entry],
    run: str,
    *,
    first_kinds: Sequence[str] = (),
    within: float = GONE_WITHIN,
) -> Gone:
    """Remove a drill's objects, newest first, wait for what they own to be collected, and name what is left.

    `entries` are all of one drill, in the order in which they were made. Raises KubeError when nothing can be listed.
    """
    drill = entries[0].drill if entries else ""
    before = await list_everything(client, namespace)
    roots = {entry.uid for entry in entries if entry.uid}
    mine = family(before.objects, roots, run, drill)
    owned = {str(before.objects[key].get("uid")): why for key, why in mine.items()}
    removal = await tear_down(client, journal, only=entries, first_kinds=first_kinds, within=within)

    async def gone(entry: Entry) -> None:
        await until_gone(client, entry)

    waiting = [
        Entry(before.key_of(key), drill, str(before.objects[key].get("uid")))
        for key in mine
        if key[:2] not in NOISE and key[1] not in _TRANSIENT
    ]
    try:
        async with asyncio.timeout(within):
            await together(gone, waiting)
    except (TimeoutError, KubeError):
        pass  # the listing shows what is left
    after = await list_everything(client, namespace)
    still = {
        key: why
        for key, why in family(after.objects, roots | owned.keys(), run, drill).items()
        if key[:2] not in NOISE and key[1] not in _TRANSIENT
    }
    # What was owned by something that is gone is told as it was seen first.
    left = [
        item(after.objects[key], namespace, owned.get(str(after.objects[key].get("uid")), why))
        for key, why in sorted(still.items())
    ]
    result = Gone(removal, left=left, listing=after)
    for key in mine:
        if key not in still and key[:2] not in NOISE:
            kind = str(before.objects[key]["kind"])
            result.removed[kind] = result.removed.get(kind, 0) + 1
    if left or removal.problems:
        uids = {str(after.objects[key].get("uid")) for key in still}

        def ours(metadata: JSON) -> bool:
            return str(metadata.get("uid")) in uids

        result.explained = await why_stuck(client, namespace, ours, stays=True)
    return result


async def remove_scoped(
    client: KubeClient, place: Place, namespace: Entry, live: Live
) -> Leftovers:
    """Remove a drill's objects from a namespace that stays; an error is part of the result, never raised."""
    began = time.monotonic()
    mine = [entry for entry in place.journal.entries if entry.drill == namespace.drill]
    told: dict[str, Any] = {}
    try:
        gone = await patiently(
            lambda: remove_family(
                client,
                place.journal,
                namespace.key.name,
                mine,
                place.run,
                first_kinds=(live.header.subject.rollout.kind,),
            )
        )
    except KubeError as problem:
        told["error"] = f"nothing could be listed: {problem}"
        gone = Gone(Removal())
    if gone.removal.problems and not gone.left:
        told["error"] = "; ".join(gone.removal.problems)
    return Leftovers(
        live.now(),
        tuple(gone.left),
        gone.listing.kinds,
        gone.removed,
        time.monotonic() - began,
        refused=gone.listing.refused,
        explained=gone.explained,
        **told,
    )
