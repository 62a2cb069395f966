"""The throwaway namespace of a drill: always a new one, never one that is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.kube.errors import AlreadyExists
from harness.kube.resource import NAMESPACE
from harness.run.identity import DRILL_LABEL, FIELD_MANAGER, namespace_name
from harness.run.journal import ObjectKey
from harness.run.objects import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.kube.client import KubeClient
    from harness.run.journal import Entry, Journal

_TRIES: Final = 5


async def make_namespace(
    client: KubeClient,
    journal: Journal,
    labels: Mapping[str, str],
    scenario: str,
    draw: Callable[[str], str] = namespace_name,
) -> Entry:
    """Create a namespace for a drill of `scenario`; a name that is taken, or still terminating, leads to another name.

    Raises RefusedError when several names in a row are taken, which random names never are.
    """
    for _ in range(_TRIES):
        name = draw(scenario)
        key = ObjectKey("", "v1", "namespaces", "Namespace", name)
        entry = journal.make(key, labels[DRILL_LABEL])
        obj = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": dict(labels)},
        }
        try:
            made = await client.create(NAMESPACE, obj, field_manager=FIELD_MANAGER)
        except AlreadyExists:
            # Somebody else's: it must not stay in the journal, or teardown would take it for ours.
            journal.gone(entry)
            continue
        journal.made(entry, str(made["metadata"]["uid"]))
        return entry
    msg = f"no free namespace name was found in {_TRIES} tries"
    raise RefusedError(msg)
