"""The words for requests that were sent while the drill was under way, and for who answered."""

from __future__ import annotations

from typing import Final

from harness.checks.word import Word

_ROLES: Final = ("primary", "target", "other")

OBJECTS: Final[dict[str, dict[str, Word]]] = {
    "traffic": {
        "sent": Word("int", "Requests so far, from the first one that was answered.", 400),
        "answered": Word("int", "Those that were answered with a status below 400.", 400),
        "failed": Word("int", "Those that were not.", 0),
        "kinds": Word(
            "map(int)",
            "How many failed by `refused`, `timeout`, `reset`, `unreachable`, `dns`, `status` (400 or more), `other`; all of them are there.",
            {
                "refused": 0,
                "timeout": 0,
                "reset": 0,
                "unreachable": 0,
                "dns": 0,
                "status": 0,
                "other": 0,
            },
        ),
        "last_failure": Word(
            "double", "When the last request that failed began, as `t`; -1.0: none did.", -1.0
        ),
        "shares": Word(
            "map(int)",
            "Percent of the answers of the last 5 seconds that came from pods of each role; all are there, and 0 where nobody answered.",
            {"primary": 100, "target": 0, "other": 0},
        ),
        "message": Word("string", "What failed, in words; empty while nothing did.", ""),
    },
    "answer": {
        "name": Word("string", "Role and hash.", "primary 74cfdc4c74"),
        "role": Word(
            "string", "Which workload the pods belong to that answered.", "primary", _ROLES
        ),
        "hash": Word("string", "Hash of their revision.", "74cfdc4c74"),
        "requests": Word("int", "How many requests they answered so far.", 400),
        "pods": Word("list(string)", "Their names, sorted.", ["web-primary-74cfdc4c74-x2x9z"]),
        "first": Word(
            "double",
            "When the first of these requests began, as `t` (to a window of the probe: 250 ms).",
            12.5,
        ),
        "last": Word("double", "When the last of them began at the latest.", 80.25),
        "share": Word("int", "Their share of the answers of the last 5 seconds, in percent.", 100),
    },
}

VARIABLES: Final[dict[str, Word]] = {
    "traffic": Word("traffic", "The requests of the drill's probe (`spec.traffic`).", None),
    "answers": Word(
        "list(answer)",
        "Who answered them, by revision. An answer of a pod that nobody knows makes what asks for role or hash unknown.",
        None,
    ),
}
