"""The words that CEL expressions of a scenario may use: names, types, meaning.

One table serves four readers: the static check of expressions, the sample world that lint evaluates them against, the builder of
the real world (`harness.checks.state`), and the reference page of the scenario format.

Types are written as `bool`, `int`, `double`, `string`, `dyn` (anything), `list(T)`, `map(T)` (keys are strings), or
the name of an object in `OBJECTS`.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, get_args

from harness.checks import vocabulary_outside as outside
from harness.checks import vocabulary_serving as serving
from harness.checks import vocabulary_traffic as traffic
from harness.checks.word import Word
from harness.model.scenario_checks import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable

PHASES: Final[tuple[str, ...]] = get_args(Phase)
"""The common phases of a rollout (spec canary-api, status.phase); subjects map theirs to these."""


_WORKLOAD: Final[dict[str, Word]] = {
    "exists": Word("bool", "Whether the workload exists.", example=True),
    "name": Word("string", "Its name.", "web-primary"),
    "uid": serving.UID,
    "desired": Word("int", "Replicas asked for by its spec.", 2),
    "replicas": Word("int", "Its pods that are not terminating.", 2),
    "updated": Word("int", "Pods of the newest revision, as its status says.", 2),
    "ready": Word("int", "Its pods that are Ready and not terminating.", 2),
    "available": Word("int", "Available pods, as its status says.", 2),
    "hash": Word("string", "Hash of its newest revision.", "74cfdc4c74"),
    "images": Word("list(string)", "Images of its containers, in order.", ["web:1"]),
    "node_selector": Word(
        "map(string)", "Node selector of its pod template; empty for none.", {"disk": "ssd"}
    ),
    "uids": serving.UIDS,
    "generation": Word("int", "metadata.generation.", 3),
    "observed": Word("int", "status.observedGeneration.", 3),
}

_ROLLOUT: Final[dict[str, Word]] = {
    "exists": Word("bool", "Whether the rollout object exists.", example=True),
    "name": Word("string", "Its name.", "web"),
    "phase": Word("string", "Its phase, in the common words.", "Progressing", ("", *PHASES)),
    "ended": Word("bool", "Whether the phase is Succeeded, Failed or Frozen.", example=False),
    "weight": Word("int", "Share of the traffic that the new revision gets, in percent.", 0),
    "iterations": Word("int", "Iterations of the analysis that are done.", 1),
    "failed_checks": Word("int", "Failed checks of the analysis so far.", 0),
    "promoted": Word(
        "string",
        "Status of its Promoted condition.",
        "Unknown",
        ("True", "False", "Unknown", ""),
    ),
    "reason": Word("string", "Reason of that condition.", "Progressing"),
    "message": Word("string", "Message of that condition.", "new revision detected"),
    "conditions": outside.CONDITIONS,
}

OBJECTS: Final[dict[str, dict[str, Word]]] = {
    "rollout": _ROLLOUT,
    "rollout_entry": {
        **_ROLLOUT,
        "labels": Word("map(string)", "Its labels.", {"drill/cell": "Failed-scaled"}),
        "suspended": Word(
            "bool", "Whether its spec says that nothing is to be done.", example=False
        ),
        "applied": Word(
            "string", "Which revision it took up last, in its status' own form.", "v2:1f"
        ),
        "tracked": Word("string", "At which revision of the target that was (fence).", "6c1/2/1"),
        "starts": Word(
            "int",
            "Analyses that began since the subject was last started; starting over counts too.",
            0,
        ),
        "starts_after_change": Word("int", "Analyses that began since the change of the drill.", 0),
        "began": Word(
            "double", "When the last of its analyses began, as `t`; -1.0: none did.", 12.5
        ),
        "queued_since": Word(
            "string",
            "Since when it waits in line for its analysis, or did last, as its condition Queued has it; empty: it never did.",
            "2026-10-29T11:22:35Z",
        ),
        "target_rolls": Word(
            "int", "How often the target got another current ReplicaSet since then.", 0
        ),
        "primary_rolls": Word("int", "The same for the primary.", 0),
        "tracking_writes": Word(
            "int",
            "How often its status' applied, promoted or tracked revision changed since then.",
            0,
        ),
        "looks": Word(
            "int",
            "How often the subject provably looked at it since then: requests that name it, its target or its primary, "
            "or its own word, whichever is more.",
            2,
        ),
        "writes": Word(
            "int", "Those of the requests that write; not known without an audit log.", 0
        ),
        "target_hash": Word("string", "Hash of the target's current ReplicaSet.", "5f66c8d9fd"),
        "target_revision": Word("string", "Number of the target's revision.", "1"),
        "primary_hash": Word("string", "Hash of the primary's current ReplicaSet.", "74cfdc4c74"),
        "primary_revision": Word("string", "Number of the primary's revision.", "1"),
    },
    "analyses": {
        "running": Word("int", "How many rollouts are in an analysis now.", 5),
        "most": Word("int", "The most that were at the same time so far.", 5),
    },
    "subject": {
        "name": Word("string", "Its name, of the one started last.", "bundled"),
        "running": Word(
            "bool", "Whether it runs; not known of one that the drill does not run.", example=True
        ),
        "starts": Word("int", "How often a subject was started in this drill.", 1),
    },
    "workload_role": _WORKLOAD,
    "pod": {
        "name": Word("string", "Name of the pod.", "web-primary-74cfdc4c74-x2x9z"),
        "uid": serving.UID,
        "app": Word("string", "Name of the workload that owns it.", "web-primary"),
        "role": Word(
            "string",
            "Which workload that is. Pods of a ReplicaSet that is the primary itself (`restore: adopt`) are `primary` whoever owns it: "
            "after a restoration they belong to the target and still are what serves.",
            "primary",
            ("primary", "target", "other"),
        ),
        "hash": Word("string", "Hash of the revision that it belongs to.", "74cfdc4c74"),
        "node": Word("string", "Node that it is bound to, or empty.", "node-0"),
        "phase": Word(
            "string",
            "status.phase.",
            "Running",
            ("", "Pending", "Running", "Succeeded", "Failed", "Unknown"),
        ),
        "ready": Word("bool", "Whether its Ready condition is True.", example=True),
        "scheduled": Word("bool", "Whether it is bound to a node.", example=True),
        "unschedulable": Word("bool", "Whether the scheduler found no node for it.", example=False),
        "gated": Word("bool", "Whether a scheduling gate holds it back.", example=False),
        "reason": Word("string", "Why it is not scheduled or not running, or empty.", ""),
        "message": Word("string", "The same as a sentence, or empty.", ""),
        "terminating": Word("bool", "Whether it is being deleted.", example=False),
        "age": Word("double", "Seconds since it was first seen.", 12.5),
        "images": Word("list(string)", "Images of its containers, in order.", ["web:1"]),
    },
    "workload": {
        "kind": Word("string", "Deployment, DaemonSet or another kind.", "Deployment"),
        "name": Word("string", "Its name.", "web-primary"),
        "role": Word(
            "string", "What it is to the rollout.", "primary", ("primary", "target", "other")
        ),
        "desired": Word("int", "Replicas asked for by its spec.", 2),
        "replicas": Word("int", "Its pods that are not terminating.", 2),
        "ready": Word("int", "Its pods that are Ready and not terminating.", 2),
        "available": Word("int", "Available pods, as its status says.", 2),
        "updated": Word("int", "Pods of the newest revision, as its status says.", 2),
        "createFailed": Word(
            "bool",
            "Whether pods could not be created (a quota, a webhook): ReplicaFailure on it or on its ReplicaSet.",
            example=False,
        ),
        "message": Word("string", "Why, or empty.", ""),
    },
    "service": {
        "name": Word("string", "Its name.", "web"),
        "role": Word(
            "string", "What it is to the rollout.", "apex", ("apex", "primary", "target", "other")
        ),
        "selector": Word("map(string)", "spec.selector.", {"app": "web-primary"}),
        "selects": Word(
            "string",
            "Whose pods its selector matches.",
            "primary",
            ("primary", "target", "both", "none"),
        ),
    },
    "node": {
        "name": Word("string", "Its name.", "node-0"),
        "ready": Word("bool", "Whether its Ready condition is True.", example=True),
        "schedulable": Word("bool", "Whether new pods may be placed on it.", example=True),
    },
    **serving.OBJECTS,
    **outside.OBJECTS,
    **traffic.OBJECTS,
}

VARIABLES: Final[dict[str, Word]] = {
    "t": Word("double", "Seconds since the first observation.", 42.5),
    "since_change": Word("double", "Seconds since the change; -1.0 before it.", 3.25),
    "step": Word("string", "Name of the current step.", "promote"),
    "values": Word("map(dyn)", "The values of the variant.", {}),
    "rollout": Word(
        "rollout", "The object that carries the promotion; the first one of several.", None
    ),
    "canary": Word("rollout", "The same as `rollout`.", None),
    "rollouts": Word(
        "list(rollout_entry)", "All of them, those that were deleted again too.", None
    ),
    "analyses": Word(
        "analyses", "The rollouts that are in phase Progressing or WaitingPromotion.", None
    ),
    "subject": Word("subject", "The controller under test.", None),
    "primary": Word(
        "workload_role",
        "The workload that serves: `NAME-primary`, or the ReplicaSet that the rollout object says it keeps.",
        None,
    ),
    "target": Word("workload_role", "The workload that users change.", None),
    "pods": Word("list(pod)", "All pods of the namespace.", None),
    "workloads": Word("list(workload)", "All workloads of the namespace.", None),
    "services": Word("list(service)", "All Services of the namespace.", None),
    "nodes": Word("list(node)", "All nodes of the cluster.", None),
    **serving.VARIABLES,
    **outside.VARIABLES,
    **traffic.VARIABLES,
}

CLOCKED: Final = frozenset({"t", "since_change", "step"})
"""Variables that move with the clock and the steps, whatever the objects do."""


def sample_world(values: dict[str, Any] | None = None, steps: Iterable[str] = ()) -> dict[str, Any]:
    """Return a world in which every word has its example value; `values` are the variant's, and these steps have held."""
    world = {name: _sample(word) for name, word in VARIABLES.items()}
    world["values"] = copy.deepcopy(values or {})
    moment = {name: _sample(word) for name, word in OBJECTS["moment"].items()}
    world["at"] = {step: copy.deepcopy(moment) for step in steps}
    return world


def _sample(word: Word) -> Any:
    inner = word.type.removeprefix("list(").removesuffix(")")
    if inner not in OBJECTS:
        return copy.deepcopy(word.example)
    row = {name: _sample(item) for name, item in OBJECTS[inner].items()}
    return [row] if inner != word.type else row
