"""The traces that writes leave on a real API server, for the simulated one: managedFields and ReplicaSets."""

from __future__ import annotations

import json
from typing import Any, Literal

from harness.controller.core.evidence import HISTORY
from harness.controller.core.snapshots import REVISION

JSON = dict[str, Any]


def note_writer(
    old: JSON, new: JSON, part: Literal["spec", "status"], manager: str, time: str
) -> None:
    """Note in `new` who set which fields of its spec or status; an entry's time moves with any field that its manager changes."""
    before, after = old.get(part) or {}, new.get(part) or {}
    changed = {f"f:{key}" for key in after if after[key] != before.get(key)}
    entries = new["metadata"].setdefault("managedFields", [])
    if not changed:
        return
    fields = f"f:{part}"
    for entry in entries:
        for field in changed:
            entry["fieldsV1"].get(fields, {}).pop(field, None)
    own: JSON = {"manager": manager, "operation": "Update"}
    if part == "status":
        own["subresource"] = "status"
    mine = next((e for e in entries if own.items() <= e.items() and fields in e["fieldsV1"]), None)
    if mine is None:
        mine = own | {"fieldsV1": {fields: {}}}
        entries.append(mine)
    mine["time"] = time
    mine["fieldsV1"][fields] |= {field: {} for field in changed}


def make_current(
    replica_sets: list[JSON], deployment: JSON, template: str, number: str, time: str
) -> None:
    """Make a template's ReplicaSet the current one: a new one, or an earlier one again."""
    uid = deployment["metadata"]["uid"]
    for found in replica_sets:
        meta = found["metadata"]
        if (meta["ownerReferences"][0]["uid"], found["template"]) == (uid, template):
            notes = meta["annotations"]
            notes[HISTORY] = notes[REVISION]
            notes[REVISION] = number
            return
    meta = {
        "name": f"{deployment['metadata']['name']}-{number}",
        "creationTimestamp": time,
        "annotations": {REVISION: number},
        "ownerReferences": [{"kind": "Deployment", "uid": uid, "controller": True}],
    }
    spec = json.loads(template)
    spec["metadata"]["labels"]["pod-template-hash"] = number
    replica_sets.append(
        {
            "kind": "ReplicaSet",
            "metadata": meta,
            "template": template,
            "spec": {"template": spec},
        }
    )
