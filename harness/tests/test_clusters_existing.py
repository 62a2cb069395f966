"""Existing clusters: the context is found, never guessed, and the facts tell what its nodes are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters import existing
from harness.clusters.base import ClusterError, capabilities

if TYPE_CHECKING:
    from pathlib import Path


def _config(path: Path, *contexts: str) -> Path:
    rows = ", ".join(f"{{name: {name}}}" for name in contexts)
    path.write_text(f"apiVersion: v1\ncurrent-context: a\ncontexts: [{rows}]\n", encoding="utf-8")
    return path


def test_an_unknown_context_is_answered_with_those_there_are(tmp_path: Path) -> None:
    path = _config(tmp_path / "config", "a", "b")
    with pytest.raises(ClusterError, match=r"no context 'c' in .*config; there are: a, b"):
        asyncio.run(existing.open_existing("c", path))


def test_the_current_context_is_never_taken(tmp_path: Path) -> None:
    path = _config(tmp_path / "config", "a", "b")
    with pytest.raises(ClusterError, match=r"No context was named.*a, b"):
        asyncio.run(existing.open_existing("", path))


def test_all_files_of_the_environment_are_searched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = _config(tmp_path / "1", "a"), _config(tmp_path / "2", "b", "c")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'missing'}:{second}")
    assert existing.file_of("c", None) == second
    assert existing.known_contexts() == "a, b, c"


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("contexts: [", encoding="utf-8")
    with pytest.raises(ClusterError, match=r"kubeconfig .*config cannot be read"):
        asyncio.run(existing.open_existing("a", path))


def test_a_cluster_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "{apiVersion: v1, kind: Config, clusters: [{name: x, cluster: {}}], users: [],"
        " contexts: [{name: x, context: {cluster: x, user: nobody}}]}",
        encoding="utf-8",
    )
    with pytest.raises(ClusterError, match=r"The cluster of context 'x' .* cannot be used"):
        asyncio.run(existing.open_existing("x", path))


def _node(**spec: Any) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": spec.pop("ready", "True")}]}
    return {"metadata": {"name": "n"}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (_node(), True),
        (_node(ready="Unknown"), False),
        (_node(unschedulable=True), False),
        (_node(taints=[{"key": "k", "effect": "NoSchedule"}]), False),
        (_node(taints=[{"key": "k", "effect": "PreferNoSchedule"}]), True),
        ({"metadata": {"name": "n"}}, False),
    ],
)
def test_only_nodes_that_take_ordinary_pods_count(node: dict[str, Any], *, expected: bool) -> None:
    assert existing.takes_pods(node) is expected


@pytest.mark.parametrize(
    ("version", "has"), [("v1.30.9", False), ("v1.31.0", True), ("v1.35.4+k3s1", True), ("", False)]
)
def test_match_label_keys_come_with_the_version(version: str, *, has: bool) -> None:
    assert ("match-label-keys" in capabilities(version, simulated=False)) is has
