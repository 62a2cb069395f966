"""Readiness counts pods; thresholds are percent, rounded down."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core.readiness import rolled_out

JSON = dict[str, Any]


@pytest.mark.parametrize(
    ("status", "ready", "words"),
    [
        ({"observedGeneration": 1}, False, "not been taken up"),
        ({"updatedReplicas": 1, "replicas": 3, "availableReplicas": 3}, False, "1 of 4 pods"),
        ({"updatedReplicas": 4, "replicas": 5, "availableReplicas": 5}, False, "1 old pods"),
        ({"updatedReplicas": 4, "replicas": 4, "availableReplicas": 3}, False, "3 of 4 pods"),
        ({"updatedReplicas": 4, "replicas": 4, "availableReplicas": 4}, True, ""),
    ],
)
def test_readiness_counts_pods(status: JSON, *, ready: bool, words: str) -> None:
    deployment = {
        "metadata": {"name": "web", "generation": 2},
        "spec": {"replicas": 4},
        "status": {"observedGeneration": 2} | status,
    }
    seen = rolled_out(deployment)
    assert seen.ready is ready
    assert words in seen.message


def test_a_ready_threshold_is_rounded_down() -> None:
    status = {"observedGeneration": 1, "updatedReplicas": 3, "replicas": 3, "availableReplicas": 2}
    deployment = {"metadata": {"name": "web", "generation": 1}, "spec": {"replicas": 3}}
    assert not rolled_out({**deployment, "status": status}, 100).ready
    assert rolled_out({**deployment, "status": status}, 99).ready
    assert rolled_out({**deployment, "status": status}, 67).ready
