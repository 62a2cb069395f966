"""Whatever stands in a scenario: it loads, or it is refused with lines. Never anything else."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.data import data_path
from harness.scenario.dump import to_yaml
from harness.scenario.lint import lint
from harness.scenario.loaded import Loaded, resolve_all
from harness.scenario.reader import read_text, read_yaml

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = data_path("scenarios", "node-spread-blue-green")
_FILE = _FOLDER / "scenario.yaml"
_DATA = read_yaml(read_text(_FILE), "scenario.yaml")[0].data


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys: list[Any] = list(value) if isinstance(value, dict) else []
    keys = list(range(len(value))) if isinstance(value, list) else keys
    return [path, *(found for key in keys for found in _paths(value[key], (*path, key)))]


_ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "{{", "{{ x }}", "{{ replicas }}", "{% if %}", "..", "/", "pods.all(p, p)", "-1s"]
    ),
    st.lists(st.just("a"), max_size=2),
    st.dictionaries(st.sampled_from(["", "a", "name", "values", "expect"]), st.none(), max_size=2),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([path for path in _paths(_DATA) if path]), _ODD)
def test_any_value_in_any_place_loads_or_is_refused(path: tuple[Any, ...], value: Any) -> None:
    data = copy.deepcopy(_DATA)
    holder = data
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    document = read_yaml(to_yaml(data), "scenario.yaml")[0]
    drills, problems = resolve_all(document, _FILE, _FOLDER)
    assert drills or problems
    assert all(problem.message and problem.file for problem in problems)
    if not problems:
        Loaded("x", _FILE, _FOLDER, document, tuple(drills)).resolve()


def test_lint_of_anything_in_the_repository_gives_lines(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text("apiVersion: drill/v1\nkind: Scenario\n")
    for path in (
        tmp_path,
        data_path("scenarios", "README.md"),
        data_path("scenarios"),
        _FOLDER / "workload.yaml.j2",
    ):
        assert lint(path)
