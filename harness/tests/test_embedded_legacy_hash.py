"""The program that answers for a Flagger, built from that version's sources: what it hashes, and what it leaves out."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import os
from typing import TYPE_CHECKING, Any

import pytest

from harness.handback.program import obtain, program_for
from harness.handback.told import Question, ask
from harness.programs.from_module import cached
from harness.tests.controller_sim import deployment, image, merge

if TYPE_CHECKING:
    from harness.handback.answers import Told

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
VERSION = "1.44.0"


def asked(*questions: Question) -> list[Told]:
    if cached(program_for(VERSION)) is None and not os.environ.get("CI"):
        pytest.skip("the program is not in the cache, and building it takes minutes")

    async def story() -> list[Told]:
        flagger = await ask(await obtain(VERSION, print), questions)
        assert flagger.kubernetes_api == "v0.36.2"
        assert not flagger.fenced
        return list(flagger.answers)

    return asyncio.run(story())


def daemonset(selector: JSON | None) -> JSON:
    obj = deployment() | {"kind": "DaemonSet"}
    obj["spec"].pop("replicas")
    if selector is not None:
        obj["spec"]["template"]["spec"]["nodeSelector"] = selector
    return obj


def config(kind: str, name: str, **fields: Any) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "n"},
        **fields,
    }


def test_the_template_counts_and_nothing_around_it() -> None:
    status = {"observedGeneration": 7}
    scaled = deployment(replicas=9) | {"status": status}
    other = merge(deployment(), image("app:2"))
    unknown = copy.deepcopy(deployment())
    unknown["spec"]["template"]["spec"]["fieldOfTomorrow"] = {"a": 1}
    plain, same, changed, unseen = asked(*map(Question, (deployment(), scaled, other, unknown)))
    assert plain.hash == same.hash
    assert plain.hash != changed.hash
    assert plain.hash == unseen.hash, "a field that the version does not know is invisible to it"
    assert set(plain.hash) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_the_key_that_puts_a_daemonset_to_zero_does_not_count() -> None:
    zero = {"flagger.app/scale-to-zero": "true"}
    given: tuple[JSON | None, ...] = (None, {}, zero, {"disk": "ssd"}, {"disk": "ssd", **zero})
    none, empty, idle, chosen, chosen_idle = asked(*(Question(daemonset(one)) for one in given))
    assert none.hash == empty.hash == idle.hash
    assert chosen.hash == chosen_idle.hash
    assert chosen.hash != none.hash


def test_a_service_is_hashed_as_a_whole_and_tracks_nothing() -> None:
    service = config("Service", "web", spec={"ports": [{"port": 80}]})
    other = config("Service", "web", spec={"ports": [{"port": 81}]})
    one, two = asked(Question(service), Question(other))
    assert one.hash != two.hash
    assert (one.configs, one.configs_problem) == (None, "")


def test_configs_are_checked_by_that_versions_own_rules() -> None:
    target = deployment()
    target["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [
        {"configMapRef": {"name": "settings"}},
        {"secretRef": {"name": "token"}},
        {"secretRef": {"name": "absent", "optional": True}},
        {"configMapRef": {"name": "left-out"}},
    ]
    left_out = config("ConfigMap", "left-out", data={"a": "b"})
    left_out["metadata"]["annotations"] = {"flagger.app/config-tracking": "disabled"}
    configs = (
        config("ConfigMap", "settings", data={"color": "red"}),
        config("Secret", "token", type="Opaque", data={"apiKey": "dGVzdA=="}),
        left_out,
    )
    (told,) = asked(Question(target, configs))
    checksum = hashlib.sha256(b'{"color":"red"}').hexdigest()[:16]
    secret = hashlib.sha256(b'{"apiKey":"dGVzdA=="}').hexdigest()[:16]
    assert told.configs == {"configmap/settings": checksum, "secret/token": secret}


def test_a_mandatory_config_that_is_missing_is_said() -> None:
    target = deployment()
    target["spec"]["template"]["spec"]["volumes"] = [
        {"name": "v", "secret": {"secretName": "gone"}}
    ]
    (told,) = asked(Question(target))
    assert told.hash
    assert told.configs is None
    assert "secrets/gone was not found" in told.configs_problem
