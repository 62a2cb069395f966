"""The specification's golden vectors, replayed from the folder that DRILL_GOLDEN names.

They are not part of the distribution. With CI=true the folder must be given; elsewhere its absence is a skip. How many vectors of
which file were replayed stands in the summary of the test run.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.controller.core import Decision, Write, canonical, refresh
from harness.controller.core.analysis import webhooks
from harness.controller.core.change import Tracking, evaluate
from harness.controller.core.configs import checksum
from harness.controller.core.decision import Refresh
from harness.controller.core.refresh import refreshed
from harness.controller.core.snapshots import REVISION, Fence, Snapshot, snapshot
from harness.controller.core.templates import images_differ
from harness.controller.shell import log as logs
from harness.controller.shell.cache import Cache
from harness.controller.shell.writer import Writer
from harness.kube.decode import decode
from harness.kube.errors import Conflict, KubeError
from harness.kube.retry import Budget
from harness.kube.testing import FakeCluster, run_virtual
from harness.tests.controller_sim import canary, merge
from harness.tests.golden_vectors import MIGRATION, hash_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

JSON = dict[str, Any]

VARIABLE: Final = "DRILL_GOLDEN"
LATER: Final[Mapping[str, str]] = {}
"""Files that are not replayed, and why."""


def folder() -> Path:
    """Return the folder; skip or fail without one."""
    given = os.environ.get(VARIABLE)
    if given:
        path = Path(given)
        if not path.is_dir():
            pytest.fail(f"{VARIABLE}={given}: there is no such folder")
        return path
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI=true, and {VARIABLE} names no folder with the golden vectors")
    pytest.skip(f"{VARIABLE} names no folder with the specification's golden vectors")


# -- one function per file; each returns how many vectors it replayed ---------------------------------------------------------

TYPED_ONLY: Final = "v2:25f85fe45a739678"
"""D7: fields that a typed client drops count for us; known-deviations states the value."""


def spec_hash_v2(vectors: Any) -> int:
    for vector in vectors:
        found = hash_of(vector["kind"], vector["input"])
        if vector.get("typedClientOnly"):
            assert found == TYPED_ONLY != vector["hash"]
        else:
            assert found == vector["hash"], vector["name"]
        if "canonicalJson" in vector:
            assert canonical.canonical(vector["input"]) == vector["canonicalJson"]
    assert [v["name"] for v in vectors if v.get("typedClientOnly")], "D7 explains nothing any more"
    return len(vectors)


def daemonset_normalisation(document: Any) -> int:
    expected = document["fenceForUid"]
    for case in document["cases"]:
        meta = {"uid": expected["uid"], "generation": expected["generation"]}
        kind = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta}
        seen = snapshot({**kind, "spec": {"template": case["template"]}})
        assert (seen.hash, str(seen.fence)) == (case["hash"], expected["fence"]), case["name"]
    assert document["removedNodeSelectorKey"] == canonical.SCALE_TO_ZERO
    return len(document["cases"])


D10: Final[Mapping[str, tuple[bool, JSON]]] = {
    "v2-hash-without-fence-settled": (True, {}),
    "v2-hash-without-fence-progressing": (False, {"lastTrackedRevision": "uid-1/6"}),
}
"""Decision D10 reads these two differently: changed, and what is added to the status."""


def change_decisions(vectors: Any) -> int:
    explained = set()
    for vector in vectors:
        status, seen, expect = vector["status"], vector["snapshot"], vector["expect"]
        now = Snapshot(seen["hash"], Fence.parse(seen["fence"]), seen.get("volatileCounter", False))
        check = MIGRATION[vector["migrationCheck"]]
        verdict = evaluate(Tracking.of(status), now, migration=check)
        found = (verdict.changed, verdict.error, status | verdict.persist)
        expected = (expect["changed"], expect["error"], expect["statusAfter"])
        if vector["name"] in D10:
            assert found != expected, "D10 explains nothing any more"
            changed, persist = D10[vector["name"]]
            expected = (changed, False, status | persist)
            explained.add(vector["name"])
        assert found == expected, vector["name"]
    assert explained == set(D10)
    return len(vectors)


def fence_tokens(document: Any) -> int:
    for case in document["encode"]:
        assert str(Fence(case["uid"], case["counter"], case["revision"])) == case["token"]
    for case in document["parse"]:
        parsed = Fence(case["uid"], case["counter"], case["revision"])
        assert Fence.parse(case["token"]) == parsed
    for case in document["deploymentRevisionRecorded"]:
        meta: JSON = {"uid": "uid-1", "generation": case["generation"]}
        if case["annotation"]:
            meta["annotations"] = {REVISION: case["annotation"]}
        target = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {"paused": case["paused"], "template": {"spec": {}}},
            "status": {"observedGeneration": case["observedGeneration"]},
        }
        assert str(snapshot(target).fence) == case["token"]
    return sum(len(rows) for rows in document.values() if isinstance(rows, list))


def pod_images_differ(document: Any) -> int:
    for case in document["cases"]:
        assert images_differ(document["a"], case["b"]) is case["differ"], case["name"]
    return len(document["cases"])


def tracking_writes(vectors: Any) -> int:
    for vector in vectors:
        {"refresh": _refresh, "persist": _persist, "decide": _decide}[vector["operation"]](vector)
    return len(vectors)


def config_checksum(document: Any) -> int:
    """None of them has binaryData or immutable, so D8 changes none: with either, the value is another one."""
    for vector in document["vectors"]:
        obj: JSON = {"metadata": {"name": "c"}, "data": vector["input"]}
        assert canonical.canonical(vector["input"]) == vector["hashedJson"]
        assert checksum(obj) == vector["checksum"], vector["name"]
        for more in ({"binaryData": {"b": "AA=="}}, {"immutable": True}):
            assert checksum(obj | more) != vector["checksum"], "D8 changes nothing any more"
    return len(document["vectors"])


def _snapshot(vector: JSON) -> Snapshot:
    return Snapshot(vector["snapshot"]["hash"], Fence.parse(vector["snapshot"]["fence"]))


def _refresh(vector: JSON) -> None:
    """Our own write returned an object with this hash and fence."""
    server, seen = vector["server"], _snapshot(vector)
    asked = Refresh("deployments", "web", server["lastAppliedSpec"])
    decision = Decision(status={"phase": "Succeeded"}, refresh=asked)
    write = Write("patch", "deployments", "web", {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refresh, "snapshot", lambda _: seen)
        answer: JSON = {"metadata": {}, "spec": {}}
        after = server | (refreshed(decision, write, answer).status or {})
    assert after == {"phase": "Succeeded", **vector["expect"]["server"]}, vector["name"]


def _persist(vector: JSON) -> None:
    """The decision rests on a status that is no longer the server's: the precondition refuses the write."""
    begin = vector.get("serverAtFirstRead") or vector["decisionBasis"]
    begin = {"phase": "Succeeded", **begin}
    present = vector.get("server") or vector["serverAtSecondRead"]
    fields = evaluate(Tracking.of(begin), _snapshot(vector)).persist or {"lastAppliedSpec": "x"}

    async def story() -> JSON:
        cluster = FakeCluster()
        known = cluster.add(merge(canary(), {"status": begin}))
        cluster.update("Canary", "web", "n", {"status": present})
        writer = _writer(cluster)
        with pytest.raises(Conflict):
            await writer.carry_out(known, Decision(status=fields, tracking=True))
        return cluster.get("Canary", "web", "n") or {}

    left = run_virtual(story())["status"]
    assert left == {"phase": "Succeeded", **vector["expect"].get("server", present)}
    if vector["expect"].get("writesAfterConflict") == 0:
        # Decided anew on what the other writer left: there is nothing to remember.
        assert not evaluate(Tracking.of(left), _snapshot(vector)).persist


def _decide(vector: JSON) -> None:
    """A verdict stands, whether or not it can be written down."""
    assert vector["allStatusWritesFail"]
    verdict = evaluate(Tracking.of(vector["status"]), _snapshot(vector))
    expect = vector["expect"]
    assert (verdict.changed, verdict.error) == (expect["changed"], expect["error"])

    async def story() -> None:
        cluster = FakeCluster()
        known = cluster.add(merge(canary(), {"status": vector["status"]}))
        cluster.fail_next(500, times=99)
        with pytest.raises(KubeError):
            await _writer(cluster).carry_out(known, Decision(status=verdict.persist))

    run_virtual(asyncio.wait_for(story(), 60))


def _writer(cluster: FakeCluster) -> Writer:
    client = cluster.client(Budget(total=0.5))
    return Writer(client, "n", Cache(), logs.to(io.StringIO()), lambda: 0.0)


def webhook_checksum(document: Any) -> int:
    for vector in document["vectors"]:
        status = {key: vector[key] for key in ("trackedConfigs", "lastAppliedSpec")}
        assert webhooks.checksum({"status": status}) == vector["checksum"]
    return len(document["vectors"])


REPLAYED: Final[Mapping[str, Callable[[Any], int]]] = {
    "spec_hash_v2": spec_hash_v2,
    "daemonset_normalisation": daemonset_normalisation,
    "change_decisions": change_decisions,
    "fence_tokens": fence_tokens,
    "pod_images_differ": pod_images_differ,
    "tracking_writes": tracking_writes,
    "webhook_checksum": webhook_checksum,
    "config_checksum": config_checksum,
}


@pytest.mark.parametrize("name", REPLAYED)
def test_the_specification_s_vectors_hold(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    text = (folder() / f"{name}.json").read_text(encoding="utf-8")
    count = REPLAYED[name](decode(text))
    assert count, f"{name}.json holds no vectors"
    record_property("golden vectors replayed", f"{name} {count}")


def test_every_file_is_replayed_or_named(record_property: Callable[[str, object], None]) -> None:
    found = {path.stem for path in folder().glob("*.json")}
    assert found == {*REPLAYED, *LATER}
    for name, why in LATER.items():
        document = json.loads((folder() / f"{name}.json").read_text(encoding="utf-8"))
        count = len(document["vectors"])
        record_property("golden vectors not replayed", f"{name} {count} ({why})")


def test_all_33_decisions_are_there() -> None:
    text = (folder() / "change_decisions.json").read_text(encoding="utf-8")
    assert len(json.loads(text)) == 33


def test_without_a_folder_a_ci_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="names no folder"):
        folder()
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception):
        folder()
    monkeypatch.setenv(VARIABLE, "/there/is/none")
    with pytest.raises(pytest.fail.Exception, match="no such folder"):
        folder()
