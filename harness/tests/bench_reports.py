"""Reports of benchmarks, put together for tests."""

from __future__ import annotations

import dataclasses
from typing import Any

from harness.bench.goals import goals
from harness.bench.model import (
    BenchReport,
    Load,
    PhaseTime,
    Profile,
    ProfileRow,
    RequestRow,
    Requests,
    Setup,
    Spread,
    Stage,
    SubjectFigures,
    Usage,
)

MEBIBYTE = 1 << 20


def requests(total: int, writes: int = 0) -> Requests:
    rows = (
        RequestRow("get", "deployments.apps", total - writes, 2, 1.5),
        RequestRow("patch", "canaries.flagger.app/status", writes, 0, 8.0),
    )
    kept = tuple(row for row in rows if row.count)
    return Requests(total, total - writes, 0, writes, 2, kept)


def stage(name: str, seconds: float, total: int, **more: Any) -> Stage:
    values: dict[str, Any] = {
        "ended": 100,
        "unasked": 0,
        "requests": requests(total, total // 4),
        "usage": Usage(2.0, 80 * MEBIBYTE, 70 * MEBIBYTE),
        "machine": (Load("kube-apiserver", 20.0), Load("everything else", 1.0)),
    }
    return Stage(name, seconds, **{**values, **more})


def storm(subject: str, version: str, factor: float, **more: Any) -> SubjectFigures:
    """Return the figures of a subject that takes `factor` times as long and asks as many times as often."""
    in_all = stage("initialise all", 30.0 * factor, int(6000 * factor), changed=1.5)
    idle = stage(
        "idle", 60.0, int(5000 * factor**4), usage=Usage(3 * factor**2, MEBIBYTE, MEBIBYTE)
    )
    promote = stage(
        "promote all",
        90.0 * factor,
        int(17000 * factor),
        changed=2.0,
        detection=Spread(100, 9.0 * factor, 11.0 * factor, 12.0 * factor),
        finish=Spread(100, 80.0 * factor, 85.0 * factor, 88.0 * factor),
        phases=(PhaseTime("Progressing", Spread(100, 30.0, 31.0, 32.0)),),
    )
    loop = stage(
        "restart loop",
        30.0,
        300,
        starts=3,
        looked=100,
        looked_after=(2.0, 1.0, 3.0),
        writes_by_start=(5, 0, 0),
    )
    return SubjectFigures(subject, version, (in_all, idle, promote, loop), **more)


SETUP = Setup(
    canaries=100,
    interval=10.0,
    iterations=2,
    idle=60.0,
    nodes=3,
    simulated="kwok v0.8.0",
    kubernetes="v1.35.4",
    seed=1,
    harness="0.1.0",
    python="3.11.7",
    cores=2,
    profiled=False,
)


def report(*subjects: SubjectFigures, **more: Any) -> BenchReport:
    values: dict[str, Any] = {
        "run_id": "20260102t030405z-abcde",
        "started_at": "2026-01-02T03:04:05+00:00",
        "ended_at": "2026-01-02T03:14:05+00:00",
        "setup": SETUP,
        "subjects": subjects,
        "goals": goals(subjects),
        "reproduce": "drill bench storm --canaries 100 --subject flagger@1.44.0 --subject bundled",
    }
    return BenchReport(**{**values, **more})


def both() -> BenchReport:
    """Return a report of two subjects in which every goal is met."""
    rows = (ProfileRow("harness/kube/client.py:5 send", 5, 0.5, 0.75),)
    profile = Profile("idle", 0.5, rows, rows)
    ours = storm("bundled", "0.1.0", 0.1, profiles=(profile,))
    return report(storm("flagger@1.44.0", "1.44.0", 1.0), ours)


def with_stage(figures: SubjectFigures, name: str, **changes: Any) -> SubjectFigures:
    """Return the figures with other values in one stage."""
    stages = tuple(
        dataclasses.replace(one, **changes) if one.name == name else one for one in figures.stages
    )
    return dataclasses.replace(figures, stages=stages)
