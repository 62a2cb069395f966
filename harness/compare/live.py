"""Running what is to be compared: the same drills, for each subject on a cluster of its own."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.clusters.select import parse
from harness.compare.files import TIMELINE, recordings
from harness.run.identity import run_id, slug
from harness.run.session import run_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness.model.timeline import Timeline
    from harness.run.plan import Options, Plan
    from harness.run.session import Session
    from harness.run.signals import Stop

AT_ONCE: Final = 2
"""Clusters at the same time: they wait most of the time, and two fit a small machine."""


@dataclass(slots=True)
class Ran:
    """What became of the drills."""

    sets: list[list[Timeline]]
    """Recordings of each subject, in the order of the subjects."""
    problems: list[str] = field(default_factory=list)
    misused: bool = False
    interrupted: bool = False


def folders(subjects: Sequence[str]) -> list[str]:
    """Return a folder name for each subject, also where the same one is compared with itself."""
    seen: Counter[str] = Counter()
    found = []
    for name in map(slug, subjects):
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found


async def run_all(
    plans: Sequence[Sequence[Plan]],
    options: Options,
    *,
    stop: Stop,
    say: Callable[[str], None],
) -> Ran:
    """Run the plans of every subject; each subject's reports and recordings go to a folder of `options.out`.

    Embedded clusters of different subjects are up at the same time. On a cluster that is there already the subjects take turns:
    there is one CRD, and they may bring different ones.
    """
    names = folders([of_one[0].subject for of_one in plans])
    choice = parse(options.cluster)
    shared = choice.kind != "embedded" or bool(choice.name)
    limit = asyncio.Semaphore(1 if shared else AT_ONCE)

    async def one(of_one: Sequence[Plan], name: str) -> Session:
        def told(line: str) -> None:
            say(line if of_one[0].subject in line else f"{name}: {line}")

        async with limit:
            own = dataclasses.replace(options, out=options.out / name)
            return await run_session(of_one, own, run_id(), stop=stop, say=told)

    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(one(of_one, name)) for of_one, name in zip(plans, names, strict=True)
        ]
    sessions = [task.result() for task in running]
    return Ran(
        sets=[
            _recorded(options.out / name, of_one) for name, of_one in zip(names, plans, strict=True)
        ],
        problems=[error for session in sessions for error in session.errors],
        misused=any(session.misused for session in sessions),
        interrupted=stop.event.is_set(),
    )


def _recorded(folder: Path, plans: Sequence[Plan]) -> list[Timeline]:
    files = [folder / plan.name.folder / TIMELINE for plan in plans]
    return [timeline for file in files if file.exists() for timeline in recordings(file)]
