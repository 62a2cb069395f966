"""Finding scenarios."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from harness.scenario.catalogue import entries, find, split
from harness.scenario.lint import lint
from harness.scenario.problem import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

_TEXT = """\
apiVersion: drill/v1
kind: Scenario
metadata: {{name: {name}}}
spec:
  question: Does it work?
  values: {{spare: 1}}
  variants:
    only: {{description: '{name}'}}
  manifests: [web.yaml]
  steps:
    - {{name: start, apply: [web.yaml], until: '{until}'}}
    - {{name: pause, wait: 1s}}
  checks:
    - {{id: served, always: primary.ready >= 1}}
"""
_WEB = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"


def _write(folder: Path, name: str, until: str = "rollout.ended") -> Path:
    folder.mkdir(parents=True)
    (folder / "web.yaml").write_text(_WEB)
    (folder / "scenario.yaml").write_text(_TEXT.format(name=name, until=until))
    return folder


def test_names_may_carry_a_variant() -> None:
    assert split("a[b,c=1]") == ("a", "b,c=1")
    assert split("a") == ("a", None)


def test_folders_given_win_over_local_ones_and_those_over_shipped_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    local = _write(tmp_path / "scenarios" / "mine", "mine")
    other = _write(tmp_path / "elsewhere" / "mine", "mine")
    _write(tmp_path / "scenarios" / "node-spread-blue-green", "node-spread-blue-green")
    assert find(["mine"])[0].file.samefile(local / "scenario.yaml")
    assert find(["mine"], [tmp_path / "elsewhere"])[0].file.samefile(other / "scenario.yaml")
    assert find(["node-spread-blue-green"])[0].variants == ("only",)


def test_a_path_is_a_name_too(tmp_path: Path) -> None:
    folder = _write(tmp_path / "mine", "mine")
    for path in (folder, folder / "scenario.yaml"):
        assert [loaded.name for loaded in find([str(path)])] == ["mine"]


def test_a_broken_scenario_does_not_disturb_another_that_is_named(tmp_path: Path) -> None:
    _write(tmp_path / "good", "good")
    _write(tmp_path / "bad", "bad", until="rollout.nothing")
    assert [loaded.name for loaded in find(["good"], [tmp_path])] == ["good"]
    with pytest.raises(ScenarioError, match="rollout has no field 'nothing'"):
        find((), [tmp_path])


def test_every_unknown_name_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        find(["god", "nowhere/at/all"], [_write(tmp_path / "good", "good")])
    assert "god: there is no such scenario; did you mean 'good'?" in str(caught.value)
    assert "nowhere/at/all: there is no such file" in str(caught.value)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="is no folder"):
        entries([tmp_path / "missing"])


def test_a_folder_inside_the_current_directory_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "scenarios" / "mine", "mine")
    names = [entry.name for entry in entries(["scenarios"])]
    assert names.count("mine") == 1


def test_lint_warns_of_what_is_likely_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = _write(tmp_path / "other", "mine", until="pods[3].ready")
    (folder / "web.yaml").write_text(_WEB + "spec: {replicas: '{{ n }}'}\n")
    lines = [str(problem) for problem in lint(os.path.relpath(folder))]
    assert lines == [
        "other/scenario.yaml:3: warning: metadata.name: differs from the name of its folder, 'other'",
        "other/scenario.yaml:6: warning: spec.values.spare: is not used anywhere",
        (
            "other/scenario.yaml:7: warning: spec.variants: no variant expects a check to fail, "
            "so nothing shows that the checks can"
        ),
        (
            "other/scenario.yaml:9: warning: spec.manifests[0]: 'web.yaml' looks like a template, "
            "but only names that end in .j2 are rendered"
        ),
        (
            "other/scenario.yaml:11: warning: spec.steps[0].until: cannot be decided in an example world: "
            "index out of bounds: 3"
        ),
        (
            "other/scenario.yaml:12: warning: spec.steps[1].wait: makes every run as slow as the slowest; "
            "until waits only as long as needed"
        ),
    ]
