"""Every shipped scenario and variant, one test each: `pytest -m drill`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.plugin_session import DrillRunner
    from harness.run.plan import Plan


@pytest.mark.drill
def test_scenario(drill_scenario: Plan, drill: DrillRunner, request: pytest.FixtureRequest) -> None:
    """The drill ends as its scenario expects."""
    drill.must_pass(drill_scenario, request)
