"""The model test of the controller, and the proof that it can fail: with a broken rule it finds out."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, settings

from harness.tests.controller_model import Releases

JSON = dict[str, Any]
SLOW = settings.get_current_profile_name() == "slow"
"""pytest --hypothesis-profile=slow: more examples, other ones each time, and a failing story is made as short as possible."""
BOUNDS = settings(
    max_examples=2000 if SLOW else 30,
    stateful_step_count=50 if SLOW else 30,
    derandomize=not SLOW,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
    # Shortening a story takes minutes.
    phases=[Phase.generate, Phase.shrink] if SLOW else [Phase.generate],
    report_multiple_bugs=False,
)

Releases.TestCase.settings = BOUNDS
TestReleases = Releases.TestCase
