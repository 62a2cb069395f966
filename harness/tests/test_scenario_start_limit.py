"""The scenario `start-limit`: which flags, canaries and checks its variants come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.data import data_path
from harness.scenario.loaded import Loaded, load
from harness.scenario.manifests import render

if TYPE_CHECKING:
    from harness.model.resolved import Resolved

_LIMITED = {"maxConcurrentAnalyses": 5, "metricsRate": 4, "metricsBurst": 2}


@pytest.fixture(scope="module")
def shipped() -> Loaded:
    return load(data_path("scenarios", "start-limit"))


def drill(shipped: Loaded, variant: str) -> Resolved:
    (found,) = shipped.resolve(variant)
    return found


@pytest.mark.parametrize(
    ("variant", "flags"),
    [
        ("limited", _LIMITED),
        ("hundred", _LIMITED),
        ("unlimited", None),
        ("hundred-unlimited", None),
        ("metered", {"metricsRate": 4, "metricsBurst": 2}),
        ("refused", _LIMITED),
        ("refused-without-patience", {**_LIMITED, "noVerdictTimeout": "0s"}),
    ],
)
def test_variants_differ_in_the_flags_of_the_controller(
    shipped: Loaded, variant: str, flags: dict[str, Any] | None
) -> None:
    assert drill(shipped, variant).controller == flags


def test_a_subject_without_a_limit_is_not_supported_and_does_not_fail(shipped: Loaded) -> None:
    for one in shipped.resolve():
        assert {"start-limit", "metrics-rate"} <= set(one.requires)


def test_one_canary_is_in_a_hurry_where_that_is_asked_for(shipped: Loaded) -> None:
    for variant, hurried in (("limited", []), ("hotfix", ["web-014"])):
        one = drill(shipped, variant)
        objects = [m.object for m in render(one, shipped.folder)]
        canaries = [obj for obj in objects if obj["kind"] == "Canary"]
        assert len(canaries) == one.values["canaries"] == 15
        found = [obj["metadata"] for obj in canaries]
        assert [meta["name"] for meta in found if "annotations" in meta] == hurried
        last = [meta["name"] for meta in found if meta["labels"]["drill/hurries"] == "yes"]
        assert last == hurried


def test_what_is_refused_is_refused_for_as_long_as_the_variant_says(shipped: Loaded) -> None:
    steps = {step.name: step for step in drill(shipped, "refused-for-a-minute").steps}
    assert list(steps)[2:6] == [
        "some are measured",
        "queries are refused",
        "meanwhile",
        "queries are answered again",
    ]
    assert getattr(steps["meanwhile"].action, "seconds", None) == 60.0
    assert getattr(steps["queries are refused"].action, "values", None) == {
        "success_rate": "throttled"
    }
    assert "meanwhile" not in {step.name for step in drill(shipped, "limited").steps}


def test_controls_show_that_what_is_checked_of_the_line_can_fail(shipped: Loaded) -> None:
    failing = {name for one in shipped.resolve() for name in one.expect.fail}
    assert failing == {
        "never-more-than-the-limit",
        "queries-within-the-bound",
        "queries-within-the-bound-by-its-own-count",
        "order-kept",
        "nothing-rolled-back",
        "all-succeeded",
    }
