"""Orders for a frozen canary from the command line."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from harness.cli.main import main
from harness.controller.core import frozen
from harness.controller.ordering import OrderError, give, order_for
from harness.kube.errors import Conflict, NotFound

JSON = dict[str, Any]
APPLIED = "v2:0123456789abcdef"


def canary(phase: str = "Frozen") -> JSON:
    promoted = {
        "type": "Promoted",
        "status": "False",
        "message": "Deployment web is frozen: a check failed",
        "lastUpdateTime": "2026-03-01T10:00:00Z",
    }
    return {
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"},
        "status": {"phase": phase, "lastAppliedSpec": APPLIED, "conditions": [promoted]},
    }


class Client:
    def __init__(self, held: JSON | None, error: Exception | None = None) -> None:
        self.held, self.error = held, error
        self.sent: list[JSON] = []

    async def get(self, *_: object) -> JSON:
        if self.held is None:
            raise NotFound(404, "NotFound", "not found")
        return self.held

    async def patch(self, *arguments: Any, **_: object) -> JSON:
        if self.error is not None:
            raise self.error
        self.sent.append(arguments[3])
        return {}


def given(client: Client, *, apply: bool) -> str:
    order = asyncio.run(give(cast("Any", client), "shop", "web", "promote", apply=apply))
    return order.text(given=apply)


def test_an_order_names_the_revision_and_the_version_that_were_looked_at() -> None:
    client = Client(canary())
    text = given(client, apply=True)
    (sent,) = client.sent
    assert sent["metadata"]["resourceVersion"] == "7"
    assert sent["metadata"]["annotations"] == {frozen.ORDER: f"promote {APPLIED}"}
    assert "a check failed" in text
    assert frozen.order({**canary(), "metadata": sent["metadata"]}).wanted == "promote"


def test_without_apply_nothing_is_written() -> None:
    client = Client(canary())
    assert "Nothing was written" in given(client, apply=False)
    assert client.sent == []


@pytest.mark.parametrize("phase", ["Failed", "Progressing", "Succeeded", ""])
def test_nothing_can_be_ordered_of_what_is_not_frozen(phase: str) -> None:
    with pytest.raises(OrderError, match=f"its phase is {phase or 'none'}"):
        order_for(canary(phase), "rollback")


def test_a_canary_that_changed_meanwhile_gets_no_order() -> None:
    conflict = Conflict(409, "Conflict", "the object has been modified")
    with pytest.raises(OrderError, match="has changed meanwhile"):
        given(Client(canary(), conflict), apply=True)


def test_a_canary_that_is_not_there_is_named() -> None:
    with pytest.raises(OrderError, match="no Canary web in namespace shop"):
        given(Client(None), apply=True)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "one of --promote and --rollback"),
        (["--promote", "--rollback"], "one of --promote and --rollback"),
        (["--promote", "--cluster", "here"], "context:NAME"),
    ],
)
def test_mistakes_on_the_command_line_are_one_sentence(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["controller", "decide", "web", "-n", "shop", "--cluster", "context:x", *arguments]
    with pytest.raises(SystemExit):
        main(line)
    assert word in capsys.readouterr().err
