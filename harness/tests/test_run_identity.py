"""Names: unique, valid, stable."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from harness.run.identity import DrillName, labels, namespace_name, run_id

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def test_twenty_thousand_namespace_names_are_valid_and_all_different() -> None:
    names = [namespace_name("node-spread-blue-green") for _ in range(20_000)]
    assert len(set(names)) == len(names)
    assert all(_DNS_LABEL.fullmatch(name) for name in names)


def test_namespace_name_of_any_scenario_name_is_valid() -> None:
    for scenario in ("x" * 200, "Ünïcode Näme", "--", "", "UPPER_case.with.dots"):
        assert _DNS_LABEL.fullmatch(namespace_name(scenario)), scenario


def test_run_ids_sort_by_time() -> None:
    early = run_id(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    late = run_id(datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC))
    assert early.startswith("20260102t030405z-")
    assert early < late


def test_drill_id_is_the_one_that_people_and_pytest_see() -> None:
    name = DrillName("node-spread-blue-green", "with-key", "bundled", "embedded")
    assert name.title == "node-spread-blue-green[with-key-bundled-embedded]"
    assert name.folder == "node-spread-blue-green-with-key-bundled-embedded"


def test_label_values_stay_valid_and_different_when_names_are_long() -> None:
    names = [
        DrillName(
            "node-spread-blue-green", f"with-key,replicas={n}", "bundled", "context-some-long-name"
        )
        for n in (1, 2)
    ]
    values = [labels("run", name.label)["rollout-drill/drill"] for name in names]
    assert len(set(values)) == 2
    for value in values:
        assert len(value) <= 63
        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", value), value
