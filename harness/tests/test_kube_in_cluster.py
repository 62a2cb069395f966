"""Credentials of a pod: what is read, when it is read again, and what is said when something is missing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from harness.kube import config, in_cluster
from harness.kube.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

HOST = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_text("a certificate")
    (tmp_path / "namespace").write_text("shop\n")
    return tmp_path


def load(folder: Path, environment: dict[str, str] = HOST) -> config.Credentials:
    return asyncio.run(in_cluster.load(environment, folder))


def test_server_token_and_namespace(folder: Path) -> None:
    credentials = load(folder)
    assert credentials.configuration.host == "https://10.0.0.1:6443"
    assert credentials.configuration.ssl_ca_cert == str(folder / "ca.crt")
    assert credentials.headers() == {"Authorization": "Bearer first"}
    assert credentials.certificate() is None
    assert in_cluster.own_namespace(folder) == "shop"
    assert in_cluster.own_namespace(folder / "none") is None
    assert in_cluster.in_cluster(HOST)
    assert not in_cluster.in_cluster({})


def test_an_address_of_ip_version_6(folder: Path) -> None:
    credentials = load(folder, HOST | {"KUBERNETES_SERVICE_HOST": "fd00::1"})
    assert credentials.configuration.host == "https://[fd00::1]:6443"


def test_a_token_that_rotates_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        credentials = await in_cluster.load(HOST, folder)
        (folder / "token").write_text("second")
        # Not for every request, but once a minute.
        assert not await credentials.refresh()
        assert credentials.headers() == {"Authorization": "Bearer first"}
        monkeypatch.setattr(config, "REFRESH_SECONDS", 0.0)
        assert await credentials.refresh()
        assert credentials.headers() == {"Authorization": "Bearer second"}
        # And at once when the present one is refused.
        monkeypatch.setattr(config, "REFRESH_SECONDS", 1e9)
        (folder / "token").write_text("third")
        assert await credentials.renew()
        assert credentials.headers() == {"Authorization": "Bearer third"}
        # While it cannot be read, the last one stays.
        for text in ("", None):
            (folder / "token").unlink()
            if text is not None:
                (folder / "token").write_text(text)
            assert await credentials.renew()
            assert credentials.headers() == {"Authorization": "Bearer third"}

    asyncio.run(story())


@pytest.mark.parametrize(
    ("missing", "environment", "told"),
    [
        ("token", HOST, "No such file or directory"),
        ("ca.crt", HOST, "there is no file"),
        ("", {}, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set"),
    ],
)
def test_what_is_missing_is_said(
    folder: Path, missing: str, environment: dict[str, str], told: str
) -> None:
    if missing:
        (folder / missing).unlink()
    with pytest.raises(ConfigError) as caught:
        load(folder, environment)
    assert str(caught.value).startswith("the pod's service account: ")
    assert told in str(caught.value)


def test_an_empty_token_is_no_token(folder: Path) -> None:
    (folder / "token").write_text("\n")
    with pytest.raises(ConfigError, match="token is empty"):
        load(folder)
