"""Webhooks as the core sees them: which are asked, with what, and which entries cannot work."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core.analysis import webhooks
from harness.tests.outside_server import canary

JSON = dict[str, Any]
GATE: JSON = {"name": "gate", "type": "confirm-rollout", "url": "http://gate.test/"}
LOAD: JSON = {"name": "load", "url": "http://load.test/", "metadata": {"cmd": "hey"}}
SECOND: JSON = {"name": "second", "type": "rollout", "url": "http://load.test/"}


def test_hooks_come_in_list_order_and_an_empty_type_means_rollout() -> None:
    given = canary(webhooks=[SECOND, GATE, LOAD, LOAD | {"type": ""}])
    names = [hook["name"] for hook in webhooks.hooks(given, "rollout")]
    assert names == ["second", "load", "load"]
    assert webhooks.hooks(given, "confirm-rollout") == (GATE,)
    assert webhooks.hooks({"spec": {}}, "rollout") == ()


def test_the_payload_says_which_release_and_leaves_empty_metadata_out() -> None:
    given = canary(webhooks=[LOAD, GATE])
    load = webhooks.call(given, LOAD, "Progressing", "o")
    assert load.kind == "webhook"
    assert load.payload == {
        "name": "web",
        "namespace": "n",
        "phase": "Progressing",
        "checksum": webhooks.checksum(given),
        "metadata": {"cmd": "hey"},
    }
    assert "metadata" not in webhooks.call(given, GATE, "Waiting", "o").payload


def test_another_occasion_an_edited_entry_and_a_second_equal_entry_are_other_questions() -> None:
    given = canary(webhooks=[dict(LOAD), dict(LOAD)])
    first, second = webhooks.hooks(given, "rollout")
    edited = dict(LOAD, url="http://elsewhere.test/")
    keys = {
        webhooks.call(given, first, "Progressing", "1").key,
        webhooks.call(given, first, "Progressing", "2").key,
        webhooks.call(given, second, "Progressing", "1").key,
        webhooks.call(canary(webhooks=[edited]), edited, "Progressing", "1").key,
    }
    assert len(keys) == 4
    assert webhooks.call(given, first, "Progressing", "1").key in keys


def test_no_key_repeats_the_address() -> None:
    hook = dict(LOAD, url="http://me:hunter22@load.test/token-4711")
    key = webhooks.call(canary(webhooks=[hook]), hook, "Progressing", "1").key
    assert "hunter22" not in key
    assert "4711" not in key


@pytest.mark.parametrize(
    ("configs", "applied", "expected"),
    [
        # Of our own; the specification's are replayed by test_golden_replay.py.
        (
            {"secret/tls": "99ff88ee77dd66cc", "configmap/web": "00aa11bb22cc33dd"},
            "v2:0123456789abcdef",
            "5949bc9597",
        ),
        (None, "1234567890", "6c5db97958"),
        ({}, "v2:0123456789abcdef", "7c9ffdbcf6"),
    ],
)
def test_the_checksum_follows_the_legacy_recipe(
    configs: JSON | None, applied: str, expected: str
) -> None:
    given = canary()
    given["status"] = {"phase": "Progressing", "lastAppliedSpec": applied}
    if configs is not None:
        given["status"]["trackedConfigs"] = configs
    assert webhooks.checksum(given) == expected


def test_the_checksum_ignores_the_order_of_configs_and_what_else_is_in_the_status() -> None:
    given, other = canary(), canary()
    given["status"]["trackedConfigs"] = {"secret/b": "1", "configmap/a": "2"}
    other["status"] |= {"trackedConfigs": {"configmap/a": "2", "secret/b": "1"}, "iterations": 7}
    assert webhooks.checksum(given) == webhooks.checksum(other)
    other["status"]["trackedConfigs"]["secret/b"] = "3"
    assert webhooks.checksum(given) != webhooks.checksum(other)


def test_an_event_says_what_happened_and_keeps_the_hook_s_own_metadata_beside_it() -> None:
    hook = {"name": "e", "type": "event", "metadata": {"team": "red", "eventType": "mine"}}
    body = webhooks.event_payload(canary(), "New revision", "Warning", 1_800_000_000.25, hook)
    assert body["phase"] == "Progressing"
    assert body["metadata"] == {
        "team": "red",
        "eventMessage": "New revision",
        "eventType": "Warning",
        "timestamp": "1800000000250",
    }
    assert hook["metadata"] == {"team": "red", "eventType": "mine"}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "url is missing"),
        ({"url": "load.test"}, "url is not an address such as"),
        ({"url": "http://[::1"}, "url is not an address such as"),
        ({"url": "http://a", "type": "on-rollout"}, "type: 'on-rollout' is unknown; allowed:"),
        ({"url": "http://a", "timeout": "soon"}, "timeout: 'soon' is not a duration above zero"),
        ({"url": "http://a", "timeout": "0s"}, "timeout: '0s' is not a duration above zero"),
        ({"url": "http://a", "retries": -1}, "retries: -1 is not a whole number from 0"),
        ({"url": "http://a", "metadata": {"a": 1}}, "metadata is not a map of texts"),
    ],
)
def test_an_entry_that_cannot_work_is_named(entry: JSON, said: str) -> None:
    message = webhooks.problem(canary(webhooks=[LOAD, {"name": "bad", **entry}]))
    assert message.startswith(f"spec.analysis.webhooks[1] (bad): {said}")


def test_entries_that_work_are_no_problem_and_an_address_is_never_shown() -> None:
    good = {"url": "https://u:p@a.test:8443/x?y", "timeout": "", "retries": 2.0, "name": "g"}
    assert webhooks.problem(canary(webhooks=[good, GATE, LOAD])) == ""
    assert (webhooks.timeout(good), webhooks.retries(good)) == (10.0, 2)
    assert "hunter22" not in webhooks.problem(canary(webhooks=[{"url": "ftp://u:hunter22@a"}]))
