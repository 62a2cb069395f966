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
        help="embedded, kind or k3s (a warm one that fits, else its own), embedded:NAME, kind:NAME, k3s:NAME (that one), context:NAME (your own cluster).",
    ),
]


def _subjects() -> list[str]:
    """Return what a shell completes a subject's name to; the first part where the rest is the user's."""
    return ["bundled", "bundled@in-cluster", "installed", "flagger@", "flagger@path:"]


Subject = Annotated[
    str,
    typer.Option(
        "--subject",
        metavar="SUBJECT",
        envvar="DRILL_SUBJECT",
        autocompletion=_subjects,
        help="The controller: bundled, bundled@in-cluster (as a pod: kind, k3s or your own cluster), flagger@1.44.0 (any version, built once), flagger@path:FILE (a program), "
        "installed (one in the cluster, observed only).",
    ),
]
ControllerImage = Annotated[
    str,
    typer.Option(
        "--controller-image",
        metavar="IMAGE",
        envvar="DRILL_CONTROLLER_IMAGE",
        help="The image that bundled@in-cluster runs, which the cluster has or can pull. Default: one of this Python, loaded into the nodes of kind or k3s.",
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
Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="NAME,…",
        help="On your own cluster: only these nodes. Default: all that take pods.",
    ),
]
NodeSelector = Annotated[
    str | None,
    typer.Option(
        "--node-selector",
        metavar="KEY=VALUE,…",
        help="On your own cluster: only nodes with these labels.",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NS",
        help="On your own cluster: this namespace, which is there already and stays, instead of a new one for each drill.",
    ),
]
Image = Annotated[
    str | None,
    typer.Option(
        "--image",
        metavar="IMG",
        envvar="DRILL_IMAGE",
        help="On your own cluster: the image that workloads run, where the public one cannot be pulled.",
    ),
]
Anonymise = Annotated[
    bool, typer.Option("--anonymise", help="Replace names, nodes and registries in every output.")
]
