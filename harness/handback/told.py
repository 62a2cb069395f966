"""What a Flagger of some version would remember of a target, as a program built from its own sources tells it.

The hash of the versions up to 1.44 covers the text dump of a typed object, with every field that the version's Kubernetes library
happens to have (spec change-detection A). No other program gives that value, so the version itself is asked.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.handback.answers import Flagger, Told
from harness.kube.resource import CONFIGMAP, DAEMONSET, DEPLOYMENT, SECRET, SERVICE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.kube.resource import Resource
    from harness.model.timeline import JSON

KINDS: Final[Mapping[str, Resource]] = {
    "Deployment": DEPLOYMENT,
    "DaemonSet": DAEMONSET,
    "Service": SERVICE,
}
"""Kinds of targets that can be asked about."""
ANSWER_SECONDS: Final = 60.0
"""Seconds for all answers together; a thousand take about one."""


class HandbackError(Exception):
    """The way back cannot be worked out or walked; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Question:
    """One target, and the ConfigMaps and Secrets that it refers to, as the API server sent them."""

    target: JSON
    configs: Sequence[JSON] = ()

    def line(self) -> str:
        """Return it as the program reads it."""
        meta = self.target["metadata"]
        objects = {_path(obj, meta["namespace"]): obj for obj in (self.target, *self.configs)}
        return json.dumps(
            {
                "kind": self.target["kind"],
                "namespace": meta["namespace"],
                "name": meta["name"],
                "objects": objects,
            }
        )


async def ask(program: Path, questions: Sequence[Question]) -> Flagger:
    """Ask the program of a version. Nothing of it goes anywhere else: it has neither network nor files.

    Raises HandbackError when it does not answer as it should.
    """
    lines = "".join(question.line() + "\n" for question in questions)
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={},
        )
    except OSError as error:
        msg = f"{program} cannot be started: {error.strerror or error}"
        raise HandbackError(msg) from error
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            out, err = await process.communicate(lines.encode())
    except TimeoutError as error:
        msg = f"{program.name} gave no answer within {ANSWER_SECONDS:.0f} s to {len(questions)} questions"
        raise HandbackError(msg) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        words = err.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        msg = f"{program.name} ended with code {process.returncode}: {words[0]}"
        raise HandbackError(msg)
    return _read(program.name, out.decode("utf-8", "replace"), len(questions))


def _read(name: str, text: str, expected: int) -> Flagger:
    try:
        head, *rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        answers = tuple(_told(row) for row in rows)
        flagger = Flagger(str(head["api"]), bool(head["fence"]), answers)
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{name} answered something else than expected: {text[:200]!r}"
        raise HandbackError(msg) from error
    if len(answers) != expected:
        msg = f"{name} gave {len(answers)} answers to {expected} questions"
        raise HandbackError(msg)
    return flagger


def _told(row: Mapping[str, Any]) -> Told:
    configs = row["configs"]
    return Told(
        str(row["hash"]),
        None if configs is None else {str(key): str(value) for key, value in configs.items()},
        str(row["error"]),
        str(row["configsError"]),
    )


def _path(obj: JSON, namespace: str) -> str:
    resource = {**KINDS, "ConfigMap": CONFIGMAP, "Secret": SECRET}[obj["kind"]]
    return resource.path(namespace, obj["metadata"]["name"])
