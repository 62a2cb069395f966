"""The subject `installed` is looked at, and never touched."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.subjects.base import Access
from harness.subjects.flagger_capabilities import capabilities
from harness.subjects.installed import Installed, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def _deployment(*images: str) -> dict[str, Any]:
    containers = [{"name": str(number), "image": image} for number, image in enumerate(images)]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


@pytest.mark.parametrize(
    ("images", "version"),
    [
        (["ghcr.io/fluxcd/flagger:1.44.0"], "1.44.0"),
        (["registry:5000/mirror/flagger:v1.37.0@sha256:abc"], "1.37.0"),
        (["envoy:1.2.3", "flagger:1.38.0-rc.1"], "1.38.0-rc.1"),
        (["ghcr.io/fluxcd/flagger@sha256:abc"], ""),
        (["ghcr.io/fluxcd/flagger:latest"], ""),
        (["ghcr.io/fluxcd/flagger-loadtester:0.34.0"], ""),
        ([], ""),
    ],
)
def test_its_version_is_the_tag_of_its_image(images: Sequence[str], version: str) -> None:
    assert version_of(_deployment(*images)) == version


def test_a_deployment_without_a_template_says_nothing() -> None:
    assert version_of({}) == ""


class Client:
    """Lists what it was given, and notes how it was asked."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self.items = list(items)
        self.selectors: list[str] = []

    async def list(self, _: object, **how: Any) -> tuple[list[dict[str, Any]], str]:
        self.selectors.append(how["field_selector"])
        return self.items, "1"


def _looked(*items: dict[str, Any]) -> Installed:
    subject, client = Installed(), Client(*items)
    asyncio.run(subject.look(client))  # type: ignore[arg-type]  # as much of one as it needs
    assert client.selectors == ["metadata.name=flagger"]
    return subject


def test_it_finds_the_one_that_runs() -> None:
    facts = _looked(_deployment("flagger:1.37.0")).facts
    assert (facts.name, facts.version) == ("installed", "1.37.0")
    assert facts.capabilities == capabilities("1.37.0")


def test_none_or_two_different_ones_are_unknown() -> None:
    assert _looked().facts.version == "unknown"
    two = [_deployment(f"flagger:{version}") for version in ("1.37.0", "1.44.0")]
    assert _looked(*two).facts.version == "unknown"


def test_it_gets_nothing_and_is_never_ended() -> None:
    told: list[str] = []
    subject = Installed()

    async def life() -> None:
        await subject.obtain(print)
        await subject.warm_up()
        access = Access(Path("/nowhere"), "n", Path("/nowhere"))
        await subject.start(access, lambda event, detail: told.append(f"{event}: {detail}"))
        await subject.kill()
        await subject.stop()

    asyncio.run(life())
    assert subject.service_account is None
    assert subject.cluster_objects() == subject.namespace_objects("n") == []
    assert told == ["started: installed unknown"]
