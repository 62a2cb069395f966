"""What all tests share: an environment without this user's clusters, and one warm embedded cluster per worker."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import hypothesis
import pytest

# The machine may be busy with a control plane; how long an example takes says nothing.
hypothesis.settings.register_profile("drill", deadline=None)
hypothesis.settings.register_profile("slow", deadline=None)
hypothesis.settings.load_profile("drill")

pytest_plugins = ["pytester"]
LEFT_OUT = ("embedded", "thorough")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.clusters.embedded.cluster import EmbeddedCluster


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of tests that plain `pytest` leaves out."""
    config.addinivalue_line("markers", "embedded: needs an embedded cluster; only with -m embedded")
    config.addinivalue_line(
        "markers", "thorough: takes a minute of computing; only with -m thorough"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave those tests out, unless the user chose tests with -m."""
    if config.option.markexpr:
        return
    slow = [item for item in items if any(map(item.get_closest_marker, LEFT_OUT))]
    if slow:
        items[:] = [item for item in items if item not in slow]
        config.hook.pytest_deselected(items=slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded as a count: golden vectors replayed and which were not, crash points."""
    counts: dict[str, list[str]] = {}
    for report in terminalreporter.getreports("passed"):
        for name, value in getattr(report, "user_properties", ()):
            if report.when == "call" and name.startswith(("golden vectors", "crash points")):
                counts.setdefault(name, []).append(str(value))
    for name, values in sorted(counts.items()):
        total = sum(int(value.split()[1]) for value in values)
        terminalreporter.write_line(f"{name}: {total} ({'; '.join(sorted(values))})")


_CHOOSING = (
    *("KUBECONFIG", "DRILL_CLUSTER", "DRILL_SUBJECT", "DRILL_SCENARIOS"),
    *("DRILL_CONFIG", "DRILL_IMAGE", "DRILL_CONTROLLER_IMAGE"),
)


@pytest.fixture(autouse=True)
def _no_choice_of_this_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may reach a cluster that nobody named, or depend on what this user prefers."""
    for variable in _CHOOSING:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="session")
def warm_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedCluster]:
    """An embedded cluster of two nodes, for as long as this worker runs, in a state folder of its own.

    Otherwise a sweep in one worker would find the runs that a test in another worker killed.
    """
    from harness.clusters.embedded.binaries import ensure_binaries
    from harness.clusters.embedded.cluster import down, up

    source = str(request.config.getoption("--drill-binaries"))
    name = f"test-{secrets.token_hex(3)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRILL_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        cluster = up(
            name,
            nodes=2,
            seed=1,
            binaries=ensure_binaries(source, print),
            progress=print,
            owner_pid_bound=True,
            exclusive=False,
        )
        try:
            yield cluster
        finally:
            down(name)
