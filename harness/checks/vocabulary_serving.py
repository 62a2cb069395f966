"""The words for what serves clients, and for how it was at an earlier moment."""

from __future__ import annotations

from typing import Final

from harness.checks.word import Word

_UID: Final = "8e4c5a70-6a38-4a7e-9d5c-0f6f3f3b0c11"
UID: Final = Word(
    "string", "Its metadata.uid; another one after it was deleted and made again.", _UID
)
UIDS: Final = Word("list(string)", "UIDs of its pods that are not terminating, sorted.", [_UID])

OBJECTS: Final[dict[str, dict[str, Word]]] = {
    "apex": {
        "exists": Word("bool", "Whether the Service exists.", example=True),
        "name": Word("string", "Its name.", "web"),
        "ready": Word(
            "int",
            "Pods that its selector selects at this moment, by their labels, and that are Ready and not terminating.",
            2,
        ),
        "pods": Word("list(string)", "Their names, sorted.", ["web-74cfdc4c74-x2x9z"]),
        "uids": Word("list(string)", "Their UIDs, sorted.", [_UID]),
        "hashes": Word(
            "list(string)",
            "Hashes of the revisions that they belong to, each once, sorted.",
            ["74cfdc4c74"],
        ),
    },
    "revision": {
        "name": Word("string", "Its name.", "web-00002"),
        "role": Word(
            "string",
            "What it is to the rollout: the revision that its Service's annotation names, or the newest other one.",
            "target",
            ("primary", "target", ""),
        ),
        "newest": Word("bool", "Whether it is the one that was created last.", example=True),
        "latest_ready": Word(
            "bool",
            "Whether it is the newest of those that were ready: that which `latestRevision: true` means.",
            example=True,
        ),
        "ready": Word(
            "bool", "Whether its condition Ready is True; it stays so at zero pods.", example=True
        ),
        "failed": Word("bool", "Whether that is False, rather than not known yet.", example=False),
        "reason": Word(
            "string", "Reason of that condition, or of its condition Active; may be empty.", ""
        ),
        "active": Word(
            "bool",
            "Whether its condition Active is True: not so at zero pods, without requests.",
            example=True,
        ),
        "image": Word("string", "Image of its first container.", "web:2"),
        "pods": Word("int", "Its pods that are not terminating.", 1),
        "ready_pods": Word("int", "Those of them that are Ready.", 1),
        "nodes": Word("list(string)", "Where its pods are, each node once, sorted.", ["node-0"]),
        "asked": Word("int", "Its share of the traffic in the Service's spec, in percent.", 20),
        "served": Word("int", "The same in the Service's status.", 20),
        "routed": Word("int", "The same in the ingress that Knative made.", 20),
    },
    "moment": {
        "t": Word("double", "When that was, as `t`.", 12.5),
        "rollout": Word("rollout", "`rollout` as it was then.", None),
        "primary": Word("workload_role", "`primary` as it was then.", None),
        "target": Word("workload_role", "`target` as it was then.", None),
        "apex": Word("apex", "`apex` as it was then.", None),
        "route": Word("route", "`route` as it was then.", None),
    },
}

VARIABLES: Final[dict[str, Word]] = {
    "apex": Word(
        "apex",
        "The Service that clients of the first rollout use, and the pods behind it. Pods and Services are watched apart from each "
        "other, so say `for: 200ms` where a selector and pods change at once.",
        None,
    ),
    "revisions": Word(
        "list(revision)",
        "Revisions of the Knative Service under promotion, the oldest first. `primary` and `target` then are the Deployments that Knative "
        "made for them.",
        None,
    ),
    "at": Word(
        "map(moment)",
        "How it was when a step's `until` held, by the step's name: `apex.uids == at[\"initialise\"].apex.uids`. Before that "
        "the step is not in it, and nothing is known.",
        None,
    ),
}
