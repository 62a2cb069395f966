"""Our own golden vectors, from fixtures/golden: each names the rule that it pins."""

from __future__ import annotations

from typing import Any, Final

from harness.controller.core import canonical
from harness.controller.core.change import TABLE, Entry, Migration, Tracking, Verdict, evaluate
from harness.controller.core.snapshots import Fence, Snapshot
from harness.data import data_path
from harness.kube.decode import decode

JSON = dict[str, Any]

MIGRATION: Final = {
    None: Migration.UNAVAILABLE,
    True: Migration.DIFFERENT,
    False: Migration.EQUAL,
    "error": Migration.FAILED,
}
"""What the vectors call a migration check that says: none, different, equal, cannot be made."""


def ours(name: str) -> list[JSON]:
    """Return the vectors of a file, with their numbers as written."""
    text = data_path("fixtures", "golden", f"{name}.json").read_text(encoding="utf-8")
    vectors: list[JSON] = decode(text)
    return vectors


def hash_of(kind: str, value: Any) -> str:
    """Return the hash of an input of hash_v2.json, of ours and of the specification's."""
    match kind:
        case "podTemplate":
            return canonical.template_hash(value)
        case "daemonSetTemplate":
            return canonical.template_hash(value, daemonset=True)
        case "serviceSpec":
            return canonical.service_hash(value)
        case "string":
            return canonical.string_hash(value)
    raise LookupError(kind)


def judged(vector: JSON, table: tuple[Entry, ...] = TABLE) -> Verdict:
    """Return what the decision table says to a vector of decisions.json."""
    now = Snapshot(vector["hash"], Fence.parse(vector["fence"]), vector.get("volatile", False))
    return evaluate(
        Tracking.of(vector["status"]),
        now,
        migration=MIGRATION[vector.get("migrationCheck")],
        primary_equal=vector.get("primaryEqual", False),
        table=table,
    )


def holds(vector: JSON, table: tuple[Entry, ...] = TABLE) -> bool:
    """Whether the table gives what the vector says, in every part of the answer."""
    said = judged(vector, table)
    expected = (vector["row"], vector["changed"], vector.get("error", False), vector["persist"])
    return (said.row.value, said.changed, said.error, said.persist) == expected
