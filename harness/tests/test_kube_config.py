"""Kubeconfig files: which context is taken, and one sentence for everything that is wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.kube import config
from harness.kube.client import KubeClient
from harness.kube.errors import ConfigError


def write(path: Path, user: dict[str, Any] | None = None, **change: Any) -> Path:
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "two",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": user or {"token": "abc"}}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u"}},
            {"name": "two", "context": {"cluster": "c", "user": "u"}},
        ],
    }
    path.write_text(json.dumps(document | change), encoding="utf-8")
    return path


def load(path: Path, context: str | None = None) -> config.Credentials:
    return asyncio.run(config.load(path, context))


def test_a_named_context_gives_server_and_token(tmp_path: Path) -> None:
    credentials = load(write(tmp_path / "k"), "one")
    assert credentials.configuration.host == "http://127.0.0.1:1"
    assert credentials.headers() == {"Authorization": "Bearer abc"}


def test_the_only_context_needs_no_name(tmp_path: Path) -> None:
    only = [{"name": "one", "context": {"cluster": "c", "user": "u"}}]
    assert "context 'one'" in load(write(tmp_path / "k", contexts=only)).origin


def test_current_context_and_environment_are_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "environment")))
    with pytest.raises(ConfigError, match="no context was named; it has: one, two"):
        load(write(tmp_path / "k"))
    with pytest.raises(ConfigError, match="there is no such file"):
        load(tmp_path / "missing", "one")


@pytest.mark.parametrize(
    ("change", "context", "problem"),
    [
        ({}, "three", "no context 'three'; it has: one, two"),
        ({"contexts": []}, "one", "holds no contexts"),
        ({"clusters": []}, "one", "its cluster 'c' is not among the file's clusters"),
        ({"users": []}, "one", "its user 'u' is not among the file's users"),
        ({"clusters": [{"name": "c", "cluster": {}}]}, "one", "its cluster 'c' has no server"),
        (
            {
                "clusters": [
                    {"name": "c", "cluster": {"server": "http://x", "proxy-url": "socks5://y"}}
                ]
            },
            "one",
            "proxy-url 'socks5://y' is not supported, only http and https",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_with_the_file(
    tmp_path: Path, change: dict[str, Any], context: str, problem: str
) -> None:
    path = write(tmp_path / "k", **change)
    with pytest.raises(ConfigError) as raised:
        load(path, context)
    assert problem in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_broken_yaml_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_text("a: b\nc: [\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"line \d+: not valid YAML"):
        load(path, "one")


def test_missing_certificate_file_is_named(tmp_path: Path) -> None:
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": "ca.crt"}
    path = write(tmp_path / "k", clusters=[{"name": "c", "cluster": cluster}])
    with pytest.raises(ConfigError, match=r"ca\.crt"):
        load(path, "one")


def test_useless_certificate_is_a_config_error(tmp_path: Path) -> None:
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": "bm90IGEgY2VydA=="}
    path = write(tmp_path / "k", clusters=[{"name": "c", "cluster": cluster}])
    with pytest.raises(ConfigError, match="its certificates cannot be used"):
        asyncio.run(KubeClient.connect(path, "one", user_agent="t"))


def test_keys_that_another_thread_is_about_to_read_stay(tmp_path: Path) -> None:
    """Files of inline keys are removed once they were read; an add-on is put into its cluster in a thread of its own."""
    server = {"server": "https://127.0.0.1:1"}
    authority = {"certificate-authority-data": base64.b64encode(b"theirs").decode()}
    clusters = [{"name": "c", "cluster": server | authority}]
    file = write(tmp_path / "k", clusters=clusters)
    taken: list[config.Credentials] = []
    other = threading.Thread(target=lambda: taken.append(load(file, "one")))
    mine = load(file, "one")
    other.start()
    other.join()
    config.discard_temporary_files()
    held, kept = (Path(one.configuration.ssl_ca_cert) for one in (mine, *taken))
    assert not held.exists()
    assert kept.read_bytes() == b"theirs"
    kept.unlink()


def exec_user(code: str) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": sys.executable, "args": ["-c", code]}}


def test_exec_plugin_gives_a_token_and_is_run_again_when_it_is_refused(tmp_path: Path) -> None:
    count = tmp_path / "count"
    code = (
        "import json, pathlib\n"
        f"p = pathlib.Path({str(count)!r})\n"
        "p.write_text((p.read_text() if p.exists() else '') + 'x')\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1',"
        " 'kind': 'ExecCredential', 'status': {'token': 'token-' + p.read_text(),"
        " 'expirationTimestamp': '2999-01-01T00:00:00Z'}}))"
    )
    path = write(tmp_path / "k", exec_user(code))

    async def scenario() -> None:
        credentials = await config.load(path, "one")
        assert credentials.headers() == {"Authorization": "Bearer token-x"}
        assert not await credentials.refresh()
        assert await credentials.renew()
        assert credentials.headers() == {"Authorization": "Bearer token-xx"}

    asyncio.run(scenario())


def test_failing_exec_plugin_is_named_with_its_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "k", exec_user("import sys; sys.exit('not logged in')"))
    with pytest.raises(ConfigError, match=r"exec plugin .* failed: .*not logged in"):
        load(path, "one")


def test_a_plain_token_cannot_be_renewed(tmp_path: Path) -> None:
    async def scenario() -> bool:
        return await (await config.load(write(tmp_path / "k"), "one")).renew()

    assert not asyncio.run(scenario())
