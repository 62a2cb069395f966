"""Running scenarios on the warm cluster from a test, in this process, with altered copies of the shipped ones."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from harness.data import data_path
from harness.kube.client import KubeClient
from harness.run.identity import run_id
from harness.run.plan import Options, Plan
from harness.run.session import Session, run_session
from harness.run.signals import Stop
from harness.scenario.loaded import load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.model.report import DrillReport


def altered(
    folder: Path, change: Callable[[str], str], scenario: str = "node-spread-blue-green"
) -> Path:
    """Copy a shipped scenario to `folder` and return it; `change` gets the text of scenario.yaml."""
    shutil.copytree(data_path("scenarios", scenario), folder)
    file = folder / "scenario.yaml"
    text = file.read_text(encoding="utf-8")
    new = change(text)
    assert new != text, "the alteration changed nothing"
    file.write_text(new, encoding="utf-8")
    return folder


def with_client(cluster: EmbeddedCluster, act: Callable[[KubeClient], Awaitable[Any]]) -> Any:
    """Do something with an administrator's client of the cluster, and return what came of it."""

    async def run() -> Any:
        client = await KubeClient.connect(cluster.kubeconfig, user_agent="test")
        async with client:
            return await act(client)

    return asyncio.run(run())


def kubeconfig(cluster: EmbeddedCluster, file: Path, context: str) -> Path:
    """Write a user's kubeconfig: `context` is the cluster, the current context and another one lead nowhere."""
    document = YAML(typ="safe", pure=True).load(cluster.kubeconfig.read_text(encoding="utf-8"))
    (one,) = document["contexts"]
    document["contexts"] = [
        {"name": "elsewhere", "context": {"cluster": "elsewhere", "user": one["context"]["user"]}},
        {"name": context, "context": one["context"]},
    ]
    document["clusters"].append({"name": "elsewhere", "cluster": {"server": "https://127.0.0.1:9"}})
    document["current-context"] = "elsewhere"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def session(
    cluster: EmbeddedCluster,
    folder: Path,
    out: Path,
    variant: str | None = None,
    *,
    cluster_name: str = "",
    jobs: int = 4,
    keep: bool = False,
    **values: Any,
) -> Session:
    """Run the drills of a scenario's folder on `cluster`."""
    where = cluster_name or f"embedded:{cluster.record.name}"
    sets: Mapping[str, Any] = values
    plans = [
        Plan(resolved, folder, "bundled", where, "drill run …")
        for resolved in load(folder).resolve(variant, sets)
    ]
    options = Options(out=out, cluster=where, jobs=jobs, keep=keep)
    return asyncio.run(run_session(plans, options, run_id(), stop=Stop(), say=print))


def drill(
    cluster: EmbeddedCluster, folder: Path, out: Path, variant: str | None = None, **values: Any
) -> DrillReport:
    """Run one drill and return its report."""
    result = session(cluster, folder, out, variant, **values)
    assert result.errors == []
    (report,) = result.report.drills
    return report


def failing(report: DrillReport) -> set[str]:
    """Ids of the checks that did not pass."""
    return {finding.id for finding in report.findings if finding.outcome != "pass"}
