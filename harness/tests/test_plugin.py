"""The pytest plugin, in somebody else's repository. No cluster: only what is collected, and how."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

# Loaded once, here: CEL's library cannot be loaded a second time in a process, and pytester forgets what it loaded itself.
import harness.plugin_session  # noqa: F401
from harness.data import data_path

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
import pytest

@pytest.mark.drill
def test_scenario(drill_scenario, drill, request):
    drill.must_pass(drill_scenario, request)

def test_plain():
    pass
"""


@pytest.fixture
def elsewhere(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A repository with a module of three lines and one scenario of its own."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_drills=MODULE)
    own = pytester.path / "my-scenarios" / "own-drill"
    shutil.copytree(data_path("scenarios", "node-spread-blue-green"), own)
    file = own / "scenario.yaml"
    file.write_text(file.read_text().replace("name: node-spread-blue-green", "name: own-drill", 1))
    return pytester


def collect(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "harness.plugin", "--collect-only", "-q", *arguments)


def test_without_the_marker_no_drill_is_run(elsewhere: pytest.Pytester) -> None:
    result = collect(elsewhere)
    result.stdout.fnmatch_lines(["*test_plain*"])
    assert "node-spread" not in result.stdout.str()


def test_every_scenario_and_variant_is_a_test_with_a_stable_id(elsewhere: pytest.Pytester) -> None:
    result = collect(elsewhere, "-m", "drill", "--drill-scenarios", "my-scenarios")
    lines = result.stdout.str()
    for scenario in ("own-drill", "node-spread-blue-green"):
        for variant in ("with-key", "without-key", "no-surge"):
            assert f"{scenario}[{variant}-bundled-embedded]" in lines


@pytest.fixture
def with_slow(elsewhere: pytest.Pytester) -> pytest.Pytester:
    """The same, where one variant is slow, one names a subject that has to be built, and one the bundled one."""
    file: Path = elsewhere.path / "my-scenarios" / "own-drill" / "scenario.yaml"
    text = file.read_text()
    for variant, line in (
        ("with-key", "subject: bundled"),
        ("without-key", "slow: true"),
        ("no-surge", "subject: flagger@1.44.0"),
    ):
        text = re.sub(rf"^    {variant}:.*\n", rf"\g<0>      {line}\n", text, flags=re.MULTILINE)
        text = text.replace(f"    {variant}: {{}}\n", f"    {variant}:\n")
    file.write_text(text)
    return elsewhere


def own_drills(pytester: pytest.Pytester, *arguments: str) -> set[str]:
    result = collect(pytester, "--drill-scenarios", "my-scenarios", *arguments)
    assert result.ret in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return set(re.findall(r"own-drill\[(.+?)-embedded\]", result.stdout.str()))


@pytest.mark.parametrize(
    ("chosen", "drills"),
    [
        ("drill", {"with-key-bundled"}),
        ("drill and slow", {"without-key-bundled", "no-surge-flagger@1.44.0"}),
        ("slow", {"without-key-bundled", "no-surge-flagger@1.44.0"}),
        ("drill and not slow", {"with-key-bundled"}),
        ("", set()),
    ],
)
def test_slow_drills_are_run_when_they_are_asked_for(
    with_slow: pytest.Pytester, chosen: str, drills: set[str]
) -> None:
    assert own_drills(with_slow, *(["-m", chosen] if chosen else [])) == drills


def test_with_a_subject_of_the_users_those_that_name_their_own_are_left_out(
    with_slow: pytest.Pytester,
) -> None:
    subject = ["--drill-subject", "flagger@1.37.0"]
    assert own_drills(with_slow, "-m", "drill", *subject) == set()
    assert own_drills(with_slow, "-m", "slow", *subject) == {"without-key-flagger@1.37.0"}


def test_k_selects_among_drills(elsewhere: pytest.Pytester) -> None:
    result = collect(
        elsewhere,
        "-m",
        "drill",
        "--drill-scenarios",
        "my-scenarios",
        "-k",
        "own-drill and no-surge",
    )
    assert "own-drill[no-surge-bundled-embedded]" in result.stdout.str()
    assert "with-key" not in result.stdout.str()


def test_a_broken_scenario_is_a_usage_error_with_its_line(elsewhere: pytest.Pytester) -> None:
    file: Path = elsewhere.path / "my-scenarios" / "own-drill" / "scenario.yaml"
    file.write_text(file.read_text().replace("  question:", "  qestion:", 1))
    result = collect(elsewhere, "-m", "drill", "--drill-scenarios", "my-scenarios")
    assert result.ret != 0
    text = result.stdout.str() + result.stderr.str()
    assert "own-drill/scenario.yaml:7: spec.qestion" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            ["--drill-subject", "nobody"],
            "unknown subject 'nobody' (allowed: bundled, bundled@in-cluster, ",
        ),
        (["--drill-cluster", "cloud"], "unknown kind of cluster; allowed: embedded"),
        (["--drill-cluster", "context:acme-prod"], "is protected by the pattern '*prod*'"),
        (["--drill-nodes", "a,b"], "--drill-nodes is for a cluster of your own"),
        (
            ["--drill-cluster", "context:dev", "--drill-node-selector", "ssd"],
            "expected key=value",
        ),
    ],
)
def test_an_option_that_names_nothing_is_a_usage_error(
    elsewhere: pytest.Pytester, option: list[str], message: str
) -> None:
    result = collect(elsewhere, *option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stdout.str() + result.stderr.str()
