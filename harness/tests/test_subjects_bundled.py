"""What the bundled controller's log lines become for the runner."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from typing import TYPE_CHECKING, Any

from harness.controller.__main__ import _told
from harness.controller.flags import NO_PROXY
from harness.kube.transport import environment_proxy
from harness.subjects.bundled_log import Lines
from harness.subjects.process import REFUSING_PROXY, fenced_environment, server_host

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def _read(*rows: dict[str, Any] | str) -> tuple[bool, list[tuple[str, str]]]:
    told: list[tuple[str, str]] = []
    ready = asyncio.Event()
    lines = Lines(ready, lambda event, detail: told.append((event, detail)))
    for row in rows:
        lines.read((row if isinstance(row, str) else json.dumps(row)).encode())
    return ready.is_set(), told


def test_a_look_names_the_canary_and_the_row_that_decided() -> None:
    assert _read({"event": "looked", "canary": "web", "row": "same-hash"}) == (
        False,
        [("looked", "web same-hash")],
    )


def test_a_look_without_a_row_names_the_canary_alone() -> None:
    told = _read(*({"event": "looked", "canary": "web", **row} for row in ({}, {"row": None})))[1]
    assert told == [("looked", "web")] * 2


def test_ready_and_refusals_are_told_and_the_rest_is_left() -> None:
    rows = [{"event": "ready"}, {"event": "forbidden", "verb": "GET", "path": "/x"}]
    assert _read(*rows, {"event": "other"}, "no JSON", "[1]") == (True, [("forbidden", "GET /x")])


def test_one_that_was_fenced_early_still_reaches_an_api_server_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in fenced_environment().items():
        monkeypatch.setenv(name, value)
    server = "https://api.example.org:6443"
    assert environment_proxy(server) == REFUSING_PROXY
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({"clusters": [{"cluster": {"server": server}}]}))
    told = {"namespace": "x", NO_PROXY: server_host(kubeconfig)}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(told) + "\n"))
    assert _told() == ["--namespace=x"]
    assert environment_proxy(server) is None
    assert environment_proxy("https://hooks.example.org/") == REFUSING_PROXY
