"""Somebody's own manifests as a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.scenario.adopt import scenario_from, write_scenario
from harness.scenario.lint import lint
from harness.scenario.loaded import load
from harness.scenario.manifests import render
from harness.scenario.problem import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

_CANARY = """\
apiVersion: flagger.app/v1beta1
kind: Canary
metadata:
  name: shop
  namespace: production   # where it lives
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  progressDeadlineSeconds: 30
  analysis: {interval: 10s, iterations: 5}
"""
_APP = """\
apiVersion: v1
kind: Namespace
metadata: {name: production}
---
# The shop.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  namespace: production
spec:
  template:
    metadata:
      annotations: {note: '{{ not a template }}'}
---
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: production}, data: {flag: on, mode: 0644}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "rendered"
    (found / "templates").mkdir(parents=True)
    (found / "a-canary.yaml").write_text(_CANARY)
    (found / "templates" / "app.yml").write_text(_APP)
    return found


def test_manifests_are_taken_as_they_are_without_their_namespace(folder: Path) -> None:
    loaded = scenario_from(folder)
    drill = loaded.resolve()[0]
    objects = [item.object for item in render(drill, loaded.folder)]
    assert [obj["kind"] for obj in objects] == ["Deployment", "ConfigMap", "Canary"]
    assert all("namespace" not in obj["metadata"] for obj in objects)
    note = objects[0]["spec"]["template"]["metadata"]["annotations"]["note"]
    assert note == "{{ not a template }}"
    assert objects[1]["data"] == {"flag": "on", "mode": 420}
    assert loaded.notes == (
        "Namespace 'production' in the manifests is replaced by the drill's own.",
        "Not applied, since the drill makes its own namespace: Namespace production.",
    )


def test_an_adopted_scenario_changes_the_template_and_checks_the_usual(folder: Path) -> None:
    drill = scenario_from(folder).resolve()[0]
    assert drill.id == "shop-as-it-is[default]"
    assert drill.adopted
    assert drill.change_step == "new revision"
    assert [check.id for check in drill.checks] == ["never-blocked", "primary-served-throughout"]
    assert (drill.settle, drill.nodes.min, drill.expect.phase) == (1.0, 1, "Succeeded")
    # Twice the analysis of 5 and 3 rounds of 10 s, the progress deadline, and the margin.
    assert drill.steps[-1].within == 2 * 10 * 8 + 30 + 120


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({}, "holds no YAML files"),
        ({"a.yaml": _APP}, "holds no Canary, so there is no promotion to drill"),
        ({"a.yaml": _CANARY}, "spec.targetRef: Deployment 'shop' is in none of the manifests"),
        (
            {
                "a.yaml": _APP,
                "b.yaml": _CANARY,
                "c.yaml": _CANARY.replace("name: shop", "name: two", 1),
            },
            "c.yaml:1: kind: there are several Canaries (shop, two)",
        ),
        (
            {"a.yaml": _APP, "b.yaml": _CANARY.replace("production", "other")},
            "the manifests name several namespaces, and a drill has one: other, production",
        ),
        ({"a.yaml": "a: [1"}, "a.yaml:1: is not YAML"),
        (
            {
                "a.yaml": _APP
                + "---\n{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: x}}"
            },
            "StorageClass is cluster-scoped",
        ),
    ],
)
def test_a_folder_that_cannot_be_adopted_says_why(
    tmp_path: Path, files: dict[str, str], line: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ScenarioError) as caught:
        scenario_from(tmp_path)
    assert line in str(caught.value)


def test_an_unknown_change_is_refused(folder: Path) -> None:
    with pytest.raises(ScenarioError, match=r"allowed: template-annotation"):
        scenario_from(folder, change="image")


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="there is no such folder"):
        scenario_from(tmp_path / "nowhere")


def test_a_written_start_is_a_valid_scenario_of_the_same_objects(
    folder: Path, tmp_path: Path
) -> None:
    written = write_scenario(folder, tmp_path / "my-shop")
    assert [path.name for path in written] == ["scenario.yaml", "a-canary.yaml", "app.yml"]
    loaded = load(tmp_path / "my-shop")
    assert loaded.name == "my-shop"
    adopted = scenario_from(folder)
    ours = {item.object["kind"]: item.object for item in render(loaded.drills[0], loaded.folder)}
    theirs = {item.object["kind"]: item.object for item in render(adopted.drills[0], folder)}
    assert ours == theirs
    assert all(problem.severity == "warning" for problem in lint(tmp_path / "my-shop"))


def test_copies_lose_their_namespace_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    write_scenario(folder, tmp_path / "out")
    lines = _CANARY.splitlines(keepends=True)
    kept = "".join(line for line in lines if "namespace:" not in line)
    assert (tmp_path / "out" / "a-canary.yaml").read_text() == kept


def test_nothing_is_ever_overwritten(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a-canary.yaml").write_text("mine")
    with pytest.raises(ScenarioError, match="exists already"):
        write_scenario(folder, out)
    assert [path.name for path in out.iterdir()] == ["a-canary.yaml"]
    assert (out / "a-canary.yaml").read_text() == "mine"
