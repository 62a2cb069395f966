"""Options that several commands share, each with its help text written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Scenarios = Annotated[
    list[Path] | None,
    typer.Option(
        "--scenarios",
        metavar="DIR",
        envvar="DRILL_SCENARIOS",
        help="A further folder of scenarios; repeatable. The shipped ones and ./scenarios are always known.",
    ),
]
Variants = Annotated[
    list[str] | None,
    typer.Option("--variant", metavar="V", help="Only this variant; repeatable. Default: all."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a value of the scenario; repeatable."
    ),
]
Across = Annotated[
    list[str] | None,
    typer.Option(
        "--across",
        metavar="KEY=V1,V2,…",
        help="Vary a value of the scenario: every combination is a drill of its own; repeatable.",
    ),
]
Cluster = Annotated[
    str,
    typer.Option(
        "--cluster",
        metavar="CLUSTER",
        envvar="DRILL_CLUSTER",
        help="embedded (a warm one that fits, else its own), embedded:NAME (a warm one), context:NAME (your own cluster).",
    ),
]


def _subjects() -> list[str]:
    """Return what a shell completes a subject's name to; the first part where the rest is the user's."""
    return ["bundled", "installed", "flagger@", "flagger@path:"]


Subject = Annotated[
    str,
    typer.Option(
        "--subject",
        metavar="SUBJECT",
        envvar="DRILL_SUBJECT",
        autocompletion=_subjects,
        help="The controller: bundled, flagger@1.44.0 (any version, built once), flagger@path:FILE (a program), "
        "installed (one in the cluster, observed only).",
    ),
]
Binaries = Annotated[
    str,
    typer.Option(
        "--binaries",
        metavar="SOURCE",
        envvar="DRILL_BINARIES",
        help="Where the control plane comes from: auto (cache, download, build), build, download, or path:DIR.",
    ),
]
Kubernetes = Annotated[
    str | None,
    typer.Option(
        "--kubernetes",
        metavar="VERSION",
        help="Version of Kubernetes, e.g. v1.36; the default one unless given.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", help="Seed of the simulated pods' delays; it is in the report.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Drills at the same time on one cluster.")]
Anonymise = Annotated[
    bool, typer.Option("--anonymise", help="Replace names, nodes and registries in every output.")
]
