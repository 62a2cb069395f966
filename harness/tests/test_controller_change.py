"""Hashes, fences and the decision table: our own pinned values, and the spec's golden vectors where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.controller.core import canonical, change
from harness.controller.core.change import Fence, Migration, Row, Snapshot, Tracking, evaluate
from harness.controller.core.readiness import rolled_out
from harness.data import data_path

SPEC = Path(__file__).resolve().parents[3] / "shared" / "spec" / "golden"
JSON = dict[str, Any]


def golden(name: str) -> Any:
    path = SPEC / f"{name}.json"
    if not path.is_file():
        pytest.skip("the spec's golden vectors are not part of the distribution")
    return json.loads(path.read_text(encoding="utf-8"))


def ours(name: str) -> Any:
    return json.loads(data_path("fixtures", "golden", f"{name}.json").read_text(encoding="utf-8"))


def hash_of(kind: str, value: Any) -> str:
    if kind == "podTemplate":
        return canonical.template_hash(value)
    return canonical.service_hash(value) if kind == "serviceSpec" else canonical.string_hash(value)


def test_the_spec_s_hash_vectors_hold() -> None:
    for vector in golden("spec_hash_v2"):
        # Decision D7: fields that a typed client drops count for us.
        expected = "v2:25f85fe45a739678" if vector.get("typedClientOnly") else vector["hash"]
        assert hash_of(vector["kind"], vector["input"]) == expected, vector["name"]
        if "canonicalJson" in vector:
            assert canonical.canonical(vector["input"]) == vector["canonicalJson"]


def test_the_spec_s_daemonset_vectors_hold() -> None:
    for case in golden("daemonset_normalisation")["cases"]:
        assert canonical.template_hash(case["template"]) == case["hash"], case["name"]


@pytest.mark.parametrize("vector", ours("hash_v2"), ids=lambda v: v["name"])
def test_our_pinned_hashes_do_not_drift(vector: JSON) -> None:
    assert hash_of(vector["kind"], vector["input"]) == vector["hash"]


def test_fields_nobody_knows_change_the_hash_and_nulls_do_not() -> None:
    base: JSON = {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {}}]}}
    unknown = {"metadata": {}, "spec": {**base["spec"], "newField": {"x": 1}}}
    null = {"metadata": {"creationTimestamp": None}, "spec": base["spec"]}
    bare = {"metadata": {}, "spec": {"containers": [{"name": "c"}]}}
    assert canonical.template_hash(unknown) != canonical.template_hash(base)
    assert canonical.template_hash(null) == canonical.template_hash(base)
    assert canonical.template_hash(bare) == canonical.template_hash(base)


def test_the_spec_s_fence_vectors_hold() -> None:
    vectors = golden("fence_tokens")
    for case in vectors["encode"]:
        assert str(Fence(case["uid"], case["counter"], case["revision"])) == case["token"]
    for case in vectors["parse"]:
        parsed = Fence(case["uid"], case["counter"], case["revision"])
        assert Fence.parse(case["token"]) == parsed
    for case in vectors["deploymentRevisionRecorded"]:
        annotations = {change.REVISION: case["annotation"]} if case["annotation"] else {}
        target = {
            "metadata": {
                "uid": "uid-1",
                "generation": case["generation"],
                "annotations": annotations,
            },
            "spec": {"paused": case["paused"], "template": {"spec": {}}},
            "status": {"observedGeneration": case["observedGeneration"]},
        }
        assert str(change.deployment_snapshot(target).fence) == case["token"]


D10 = {
    "v2-hash-without-fence-settled": (True, {}),
    "v2-hash-without-fence-progressing": (False, {"lastTrackedRevision": "uid-1/6"}),
}
"""Decision D10 reads these two differently from the spec's source."""
MIGRATION = {
    None: Migration.UNAVAILABLE,
    True: Migration.DIFFERENT,
    False: Migration.EQUAL,
    "error": Migration.FAILED,
}


def test_the_spec_s_decision_vectors_hold() -> None:
    vectors = golden("change_decisions")
    assert len(vectors) == 33
    for vector in vectors:
        status, snapshot, expect = vector["status"], vector["snapshot"], vector["expect"]
        verdict = evaluate(
            Tracking.of(status),
            Snapshot(
                snapshot["hash"],
                Fence.parse(snapshot["fence"]),
                snapshot.get("volatileCounter", False),
            ),
            migration=MIGRATION[vector["migrationCheck"]],
        )
        changed, after = expect["changed"], expect["statusAfter"]
        if vector["name"] in D10:
            changed, persist = D10[vector["name"]]
            after = status | persist
        assert verdict.changed is changed, vector["name"]
        assert verdict.error is expect["error"], vector["name"]
        assert status | verdict.persist == after, vector["name"]


def test_the_spec_s_tracking_write_vectors_hold() -> None:
    for vector in golden("tracking_writes"):
        if vector["operation"] != "refresh":
            continue  # persist: a stale basis is refused by the precondition, see the shell's tests
        status = {"phase": "Succeeded", **vector["server"]}
        snapshot = Snapshot(vector["snapshot"]["hash"], Fence.parse(vector["snapshot"]["fence"]))
        after = status | evaluate(Tracking.of(status), snapshot).persist
        assert after == {"phase": "Succeeded", **vector["expect"]["server"]}, vector["name"]


def test_the_spec_s_image_vectors_hold() -> None:
    vectors = golden("pod_images_differ")
    for case in vectors["cases"]:
        assert change.images_differ(vectors["a"], case["b"]) is case["differ"], case["name"]


@pytest.mark.parametrize("vector", ours("decisions"), ids=lambda v: v["name"])
def test_our_pinned_decisions_do_not_drift(vector: JSON) -> None:
    verdict = evaluate(
        Tracking.of(vector["status"]),
        Snapshot(vector["hash"], Fence.parse(vector["fence"])),
        primary_equal=vector.get("primaryEqual", False),
    )
    assert (verdict.row, verdict.changed) == (Row(vector["row"]), vector["changed"])
    assert verdict.persist == vector["persist"]


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
