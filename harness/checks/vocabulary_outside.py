"""The words for what is around a rollout and no workload: routes, autoscalers, configs, calls and gates."""

from __future__ import annotations

from typing import Final

from harness.checks.word import Word

CONDITION_TYPES: Final = (
    "Promoted",
    "Accepted",
    "CanaryReady",
    "ChangePending",
    "Degraded",
    "Held",
    "Mirroring",
    "PostRollout",
    "Queued",
    "Restored",
    "RoutesKept",
    "Unmeasured",
    "Warned",
)
"""Types of conditions that the subjects have; an expression may ask for any other one."""
_CONDITION: Final = {"status": "True", "reason": "Succeeded", "message": "the analysis is over"}

CONDITIONS: Final = Word(
    "map(condition)",
    'Its conditions by type: ask `"Held" in rollout.conditions` first, for one that is not there is not known.',
    dict.fromkeys(CONDITION_TYPES, _CONDITION),
)

OBJECTS: Final[dict[str, dict[str, Word]]] = {
    "condition": {
        "status": Word("string", "Its status.", "True", ("True", "False", "Unknown")),
        "reason": Word("string", "Its reason.", "Succeeded"),
        "message": Word("string", "Its message.", "the analysis is over"),
    },
    "route": {
        "exists": Word("bool", "Whether there is such an object.", example=True),
        "kind": Word(
            "string", "Its kind.", "HTTPRoute", ("HTTPRoute", "VirtualService", "KnativeService")
        ),
        "name": Word("string", "Its name.", "web"),
        "weights": Word(
            "map(int)",
            "Shares of `primary` and `canary` of everybody's traffic, in percent, as its spec has them; empty if it leads to neither.",
            {"primary": 90, "canary": 10},
        ),
        "matched": Word(
            "map(int)",
            "The same for requests that match its first rule, where there is more than one.",
            {"primary": 0, "canary": 100},
        ),
        "mirror": Word("bool", "Whether requests are copied to another backend.", example=False),
        "served": Word(
            "map(int)",
            "Those that its status says are served (Knative Services only).",
            {"primary": 90, "canary": 10},
        ),
    },
    "autoscaler": {
        "kind": Word(
            "string", "HorizontalPodAutoscaler or ScaledObject.", "HorizontalPodAutoscaler"
        ),
        "name": Word("string", "Its name.", "web-primary"),
        "target": Word("string", "Name of the workload that it scales.", "web-primary"),
        "role": Word(
            "string", "What that is to the rollout.", "primary", ("primary", "target", "other")
        ),
        "min": Word("int", "Least replicas.", 2),
        "max": Word("int", "Most replicas.", 4),
        "paused": Word("bool", "Whether an annotation pauses it (ScaledObjects).", example=False),
    },
    "config": {
        "kind": Word("string", "ConfigMap or Secret.", "ConfigMap", ("ConfigMap", "Secret")),
        "name": Word("string", "Its name.", "web-config"),
        "digest": Word(
            "string",
            "Digest of its keys and values, the same for equal ones within a drill.",
            "0123456789ab",
        ),
        "keys": Word("list(string)", "Its keys, sorted.", ["app.conf"]),
    },
    "call": {
        "name": Word("string", "Gate and number, e.g. the second call of it.", "approve 2"),
        "gate": Word(
            "string", "Which gate or receiver of alerts; empty for any other path.", "approve"
        ),
        "sort": Word("string", "What was called.", "gate", ("gate", "alert", "other")),
        "status": Word("int", "What was answered; 0 if the caller gave up before.", 200),
        "phase": Word("string", "`phase` of the body.", "Progressing"),
        "rollout": Word("string", "`name` of the body.", "web"),
        "event_type": Word("string", "`eventType` of the body, or of its metadata.", "Normal"),
        "kind": Word("string", "`type` of the body, or of its metadata.", ""),
        "message": Word("string", "Text of an alert or of an event.", ""),
        "at": Word("double", "When it was answered or given up, as `t`.", 12.5),
        "seconds": Word("double", "How long it took.", 0.001),
    },
    "gate": {
        "name": Word("string", "Its name.", "approve"),
        "sort": Word("string", "What it is.", "gate", ("gate", "alert")),
        "answer": Word("string", "`open`, `closed`, `hang`, or a status.", "open"),
        "calls": Word("int", "How often it was called so far.", 2),
        "status": Word("int", "What it answered last; 0 before the first call.", 200),
    },
    "queries": {
        "total": Word("int", "How many came in so far.", 120),
        "refused": Word("int", "How many of them got 429, since a step throttled the server.", 0),
        "passed": Word("int", "How many of them the server itself got.", 120),
        "peak": Word("int", "The most that came in within any one second so far.", 7),
        "counted": Word(
            "int",
            "How many the server itself says that it answered; known of a real Prometheus only. Those of the harness are not among them.",
            120,
        ),
        "counted_peak": Word(
            "double", "The most per second by that count, which is looked at once a second.", 6.5
        ),
    },
}

VARIABLES: Final[dict[str, Word]] = {
    "route": Word(
        "route",
        "What splits the traffic of the first rollout; known where the cluster serves such a kind.",
        None,
    ),
    "autoscalers": Word("list(autoscaler)", "All autoscalers of the namespace.", None),
    "configs": Word("list(config)", "All ConfigMaps and Secrets of the namespace.", None),
    "calls": Word("list(call)", "All calls to the drill's receiver, in their order.", None),
    "gates": Word("list(gate)", "All gates and receivers of alerts of the scenario.", None),
    "queries": Word("queries", "What the drill's metrics server was asked.", None),
}
