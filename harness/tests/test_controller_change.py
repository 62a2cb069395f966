"""Our own golden vectors: hashes, snapshots, decisions, differences between templates. What they pin must not drift."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from harness.controller.core import canonical
from harness.controller.core.names import Names
from harness.controller.core.snapshots import snapshot
from harness.controller.core.templates import differences, summary
from harness.tests.golden_vectors import hash_of, holds, judged, ours

JSON = dict[str, Any]
NAMES = Names("n", "shop", "shop", "shop", "app", "shop")


def named(vector: Any) -> str:
    return str(vector["name"])


@pytest.mark.parametrize("vector", ours("hash_v2"), ids=named)
def test_hashes(vector: JSON) -> None:
    assert hash_of(vector["kind"], vector["input"]) == vector["hash"]
    # Without a line of our code: what anybody can check.
    text = hashlib.sha256(vector["canonical"].encode()).hexdigest()
    assert vector["hash"] == f"v2:{text[:16]}"


@pytest.mark.parametrize("vector", ours("snapshots"), ids=named)
def test_snapshots(vector: JSON) -> None:
    seen = snapshot(vector["object"])
    found = (seen.hash, str(seen.fence), seen.volatile)
    assert found == (vector["hash"], vector["fence"], vector["volatile"])


@pytest.mark.parametrize("vector", ours("decisions"), ids=named)
def test_decisions(vector: JSON) -> None:
    assert holds(vector), judged(vector)


@pytest.mark.parametrize("vector", ours("templates"), ids=named)
def test_templates(vector: JSON) -> None:
    target, primary = (
        {"spec": {"selector": {"matchLabels": {"app": value}}, "template": vector[key]}}
        for key, value in (("target", "shop"), ("primary", "shop-primary"))
    )
    found = [{"path": str(d), "lost": d.lost} for d in differences(NAMES, target, primary)]
    assert found == vector["differences"]


def test_every_vector_has_a_name_of_its_own_and_a_rule() -> None:
    for file in ("hash_v2", "snapshots", "decisions", "templates"):
        vectors = ours(file)
        assert len({vector["name"] for vector in vectors}) == len(vectors)
        assert all(vector["rule"] for vector in vectors)


def test_a_summary_names_three_places() -> None:
    templates: list[JSON] = [{"spec": dict.fromkeys("abcde", 1)}, {"spec": {}}]
    target, primary = ({"spec": {"selector": {}, "template": found}} for found in templates)
    found = differences(NAMES, target, primary)
    assert summary(found) == "spec.a, spec.b, spec.c and 2 more"
    assert summary(found[:1]) == "spec.a"


def test_a_kind_that_is_no_target_is_refused() -> None:
    with pytest.raises(LookupError, match="apps/v1 StatefulSet cannot be a target"):
        snapshot({"apiVersion": "apps/v1", "kind": "StatefulSet"})


def test_a_hash_does_not_change_what_it_reads() -> None:
    template: JSON = {"spec": {"containers": [{"name": "c"}], "nodeSelector": {}}}
    canonical.template_hash(template, daemonset=True)
    spec: JSON = {"ports": [{"port": 80}]}
    canonical.service_hash(spec)
    assert template == {"spec": {"containers": [{"name": "c"}], "nodeSelector": {}}}
    assert spec == {"ports": [{"port": 80}]}
