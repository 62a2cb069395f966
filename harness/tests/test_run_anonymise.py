"""Anonymising: names are gone, and what belongs together still does."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from harness.model.timeline import (
    ClusterFacts,
    Header,
    ObjectSeen,
    Requests,
    StepState,
    SubjectFacts,
    SubjectState,
    parse,
)
from harness.run.anonymise import Anonymiser
from harness.run.redact import Redactor
from harness.run.timeline_file import TimelineFile

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.timeline import JSON

IMAGE = "registry.acme.example:5000/shop/checkout:1.2@sha256:00ff"


def deployment(name: str) -> JSON:
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": IMAGE}]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def test_names_keep_their_suffixes_and_images_their_tags() -> None:
    anonymiser = Anonymiser()
    anonymiser.learn([deployment("checkout")])
    assert anonymiser.text("checkout-primary-5d9f-abcde") == "app-1-primary-5d9f-abcde"
    assert (
        anonymiser.text('pods.exists(p, p.app == "checkout")') == 'pods.exists(p, p.app == "app-1")'
    )
    changed = json.dumps(anonymiser.json(deployment("checkout-primary")))
    assert "acme" not in changed
    assert "shop" not in changed
    assert "registry.example/image-1:1.2@sha256:00ff" in changed
    assert "checkouts" in anonymiser.text("checkouts")


def test_counted_requests_and_looks_keep_belonging_to_their_rollout() -> None:
    anonymiser = Anonymiser()
    anonymiser.learn([deployment("checkout")])
    seen = Requests(1.0, {"checkout": (3, 1)}, total=5, watches=2)
    assert anonymiser.observation(seen) == Requests(1.0, {"app-1": (3, 1)}, total=5, watches=2)
    looked = anonymiser.observation(SubjectState(1.0, "looked", "checkout unchanged"))
    assert looked == SubjectState(1.0, "looked", "app-1 unchanged")


def test_a_node_and_its_addresses_are_one() -> None:
    anonymiser = Anonymiser()
    addresses = [{"address": "10.1.2.3"}, {"address": "ip-10-1-2-3.acme.example"}]
    node = {"kind": "Node", "metadata": {"name": "worker-a"}, "status": {"addresses": addresses}}
    anonymiser.learn([node])
    assert anonymiser.text("worker-a 10.1.2.3 ip-10-1-2-3.acme.example") == "node-1 node-1 node-1"


def test_words_of_the_harness_are_no_names() -> None:
    anonymiser = Anonymiser()
    anonymiser.learn([deployment("primary"), deployment("a")])
    assert anonymiser.text("primary.ready >= 1 && a") == "primary.ready >= 1 && a"


def test_an_anonymised_timeline_holds_no_name_and_can_be_read(tmp_path: Path) -> None:
    cluster = ClusterFacts("existing", "acme-prod", "v1.35.4", ("worker-a",))
    header = Header(
        "r",
        "d",
        "ns",
        "t",
        "1",
        {"step": "checkout is up"},
        SubjectFacts("b", "1"),
        cluster,
        "drill",
    )
    anonymiser = Anonymiser()
    anonymiser.learn([deployment("checkout")])
    path = tmp_path / "t.jsonl"
    with TimelineFile(path, header, Redactor("salt"), anonymiser) as timeline:
        timeline.append(StepState(0.1, "checkout is up", "held", "on worker-a"))
        pod = {"kind": "Pod", "metadata": {"name": "checkout-1"}, "spec": {"nodeName": "worker-a"}}
        timeline.append(ObjectSeen(0.2, "ADDED", pod))
    text = path.read_text(encoding="utf-8")
    for name in ("checkout", "worker", "acme"):
        assert name not in text
    read = parse(text.splitlines())
    assert read.of(StepState)[0].step == read.header.scenario["step"] == "app-1 is up"
    assert read.of(ObjectSeen)[0].object["spec"]["nodeName"] == read.header.cluster.nodes[0]
    assert dataclasses.asdict(read.header)["cluster"]["name"] == "existing"
