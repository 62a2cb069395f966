"""The pytest plugin: one test per scenario and variant, and a `drill` fixture for tests of your own.

    pytest -m drill                                every scenario of the `drills` folder's module, bundled controller, embedded
    pytest -m drill -k with-key --drill-keep       one of them, and leave it to look at
    pytest -m "drill and slow"                     those that take minutes or need other controllers: upgrades, real Flagger
    pytest -m drill --drill-subject flagger@1.44.0 the others with a real controller

A module collects scenarios by asking for the argument `drill_scenario`; `drills/test_scenarios.py` is all it takes.
All options begin with `--drill-`, since pytest-kind, which may be installed too, takes the plain names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.plugin_session import DrillRunner

_OF_OWN_CLUSTERS: Final = ("nodes", "node-selector", "namespace", "image")
"""Options that mean nothing on a cluster of ours."""
_SLOW: Final = re.compile(r"\bslow\b")
"""Whether an expression after -m speaks of slow drills."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the `--drill-` options."""
    group = parser.getgroup("drill", "rollout-drill")
    add = group.addoption
    add(
        "--drill-cluster",
        default="embedded",
        help="embedded, embedded:NAME, kind, kind:NAME, k3s, k3s:NAME or context:NAME",
    )
    add(
        "--drill-subject",
        default=None,
        help="the controller under test: bundled (the default), bundled@in-cluster (a pod; DRILL_CONTROLLER_IMAGE names its image), flagger@1.44.0, flagger@path:FILE or installed; "
        "scenarios that name their own are left out then",
    )
    add("--drill-out", default=None, help="folder of the reports; default drill-reports/RUN-ID")
    add("--drill-keep", action="store_true", help="leave namespaces and clusters alone afterwards")
    add("--drill-nodes", default=None, help="names of nodes of your own cluster, with commas")
    add(
        "--drill-node-selector",
        default=None,
        help="labels of nodes of your own cluster, as KEY=VALUE,…",
    )
    add(
        "--drill-namespace",
        default=None,
        help="a namespace of your own cluster, which is there already and stays",
    )
    add(
        "--drill-image",
        default=None,
        help="what workloads run on your own cluster; default $DRILL_IMAGE, or a public image",
    )
    add("--drill-binaries", default="auto", help="auto, build, download or path:DIR")
    add("--drill-seed", type=int, default=1, help="seed of the simulated pods' delays")
    add(
        "--drill-scenarios",
        action="append",
        default=[],
        help="a further folder of scenarios; repeatable",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line("markers", "drill: runs a whole drill on a cluster; only with -m drill")
    config.addinivalue_line(
        "markers",
        "slow: a drill that takes minutes or needs other programs; only with -m slow, or -m 'drill and slow'",
    )
    _check(config)


def _check(config: pytest.Config) -> None:
    """Refuse options that name nothing, before anything is collected or made."""
    subject, cluster = config.getoption("--drill-subject"), config.getoption("--drill-cluster")
    chosen = [config.getoption(f"--drill-{name}") for name in _OF_OWN_CLUSTERS]
    if (subject, cluster) == (None, "embedded") and not any(chosen):
        return  # the defaults need no check, and other people's test runs need no import
    from harness.clusters.base import ClusterError
    from harness.clusters.protected import refuse_protected
    from harness.clusters.select import parse
    from harness.plugin_session import chosen_of
    from harness.subjects.base import SubjectError
    from harness.subjects.select import check_subject

    try:
        if subject is not None:
            check_subject(subject)
        choice = parse(cluster)
        if choice.kind == "context":
            refuse_protected(choice.name)
        chosen_of(config)
    except (ClusterError, SubjectError) as error:
        raise pytest.UsageError(str(error)) from error


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out drills unless the user chose tests with -m, and slow ones unless that speaks of them."""
    chosen = str(config.option.markexpr or "")
    drills = [item for item in items if item.get_closest_marker("drill")]
    if chosen:
        drills = [item for item in drills if item.get_closest_marker("slow")]
    if drills and not _SLOW.search(chosen):
        items[:] = [item for item in items if item not in drills]
        config.hook.pytest_deselected(items=drills)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test per scenario and variant out of a function that takes `drill_scenario`."""
    if "drill_scenario" not in metafunc.fixturenames:
        return
    from harness.plugin_session import collect

    plans = [
        pytest.param(plan, id=plan.name.title, marks=[pytest.mark.slow] * plan.slow)
        for plan in collect(metafunc.config)
    ]
    metafunc.parametrize("drill_scenario", plans)


@pytest.fixture(scope="session")
def drill(request: pytest.FixtureRequest) -> Iterator[DrillRunner]:
    """Run scenarios from a test: `drill.run("my-scenario", variant="x")` returns the report, `drill.must_pass(plan)` asserts.

    Clusters are opened when they are first needed and closed at the end of the session; the fixture is safe under
    pytest-xdist, where every worker has clusters of its own.
    """
    from harness.plugin_session import DrillRunner

    runner = DrillRunner(request.config)
    try:
        yield runner
    finally:
        runner.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Put the verdict and the report's path beside the test's result."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    told = dict(item.user_properties)
    if report.when == "call" and "drill_verdict" in told:
        report.sections.append(
            ("drill", f"{told['drill_verdict']}\nreport: {told['drill_report']}")
        )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List every drill's verdict and where its report is."""
    rows = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            told = dict(getattr(report, "user_properties", ()))
            if getattr(report, "when", "") == "call" and "drill_verdict" in told:
                rows.append(f"{told['drill_verdict']}\n    report: {told['drill_report']}")
    if rows:
        terminalreporter.section("drills")
        for row in sorted(rows):
            terminalreporter.line(row)
