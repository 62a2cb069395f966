"""Contexts that are never drilled: the user's list, its mistakes, and what it keeps from happening."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.clusters.base import ChoiceError
from harness.clusters.protected import (
    DEFAULT,
    Configuration,
    parse_configuration,
    read_configuration,
)
from harness.model.outcome import ExitCode

HERE = Path("config.toml")


@pytest.mark.parametrize(
    ("context", "pattern"),
    [
        ("acme-prod", "*prod*"),
        ("PRODUCTION-eu", "*prod*"),
        ("live", "live"),
        ("eu-live", "*-live"),
        ("dev", ""),
        ("delivery", ""),
        ("olive-dev", ""),
    ],
)
def test_the_default_patterns(context: str, pattern: str) -> None:
    assert Configuration(HERE).pattern_of(context) == pattern


def test_a_list_of_the_users_own_replaces_the_default() -> None:
    own = parse_configuration('protected_contexts = ["customer-*"]', HERE)
    assert own.pattern_of("Customer-1") == "customer-*"
    assert own.pattern_of("acme-prod") == ""
    assert parse_configuration("protected_contexts = []", HERE).protected == ()
    assert parse_configuration("", HERE).protected == DEFAULT


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("protected_contexts = [", "config.toml: "),
        (
            "\nprotected = []",
            "config.toml: line 2: protected: is not known; allowed: protected_contexts.",
        ),
        ("[other]\n", "config.toml: line 1: other: is not known; allowed: protected_contexts."),
        (
            'protected_contexts = "x"',
            "config.toml: line 1: protected_contexts: must be a list, not 'x'; allowed: a list of texts",
        ),
        (
            "# one\nprotected_contexts = [1]",
            "config.toml: line 2: protected_contexts: 1 is no pattern; allowed: a list",
        ),
        ('protected_contexts = [""]', "config.toml: line 1: protected_contexts: '' is no pattern"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(ChoiceError) as refused:
        parse_configuration(text, HERE)
    assert str(refused.value).startswith(sentence)


def test_text_that_is_no_toml_is_answered_with_the_line() -> None:
    with pytest.raises(ChoiceError, match=r"config\.toml: line 2, column 1: this is not TOML"):
        parse_configuration('protected_contexts = ["a"]\n=', HERE)


def test_a_file_that_was_named_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRILL_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(ChoiceError, match=r"none\.toml: there is no such file"):
        read_configuration()
    monkeypatch.delenv("DRILL_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert read_configuration() == Configuration(tmp_path / "rollout-drill" / "config.toml")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration that protects `acme-*`, and a kubeconfig whose servers nobody must ask."""
    file = tmp_path / "mine.toml"
    file.write_text('protected_contexts = ["acme-*"]', encoding="utf-8")
    kube = tmp_path / "kube"
    server = "{cluster: {server: 'https://127.0.0.1:9'}, name: c}"
    contexts = "[{name: acme-1, context: {cluster: c, user: u}}]"
    kube.write_text(
        f"{{apiVersion: v1, kind: Config, clusters: [{server}], users: [{{name: u, user: {{}}}}], contexts: {contexts}}}",
        encoding="utf-8",
    )
    monkeypatch.setenv("DRILL_CONFIG", str(file))
    monkeypatch.setenv("KUBECONFIG", str(kube))
    return file


@pytest.mark.parametrize(
    "command",
    [
        "run node-spread-blue-green --cluster context:acme-1",
        "run canary-weights --cluster context:acme-1",
        "sweep --cluster context:acme-1",
        "compare canary-weights --subject bundled --subject flagger@1.44.0 --cluster context:acme-1",
    ],
)
def test_nothing_is_made_or_removed_there(
    command: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    error = capsys.readouterr().err
    assert "Context 'acme-1' is protected by the pattern 'acme-*'" in error
    assert str(config) in error
    assert ended.value.code == ExitCode.USAGE


@pytest.mark.parametrize("command", ["list", "render node-spread-blue-green"])
def test_commands_that_only_read_go_on(
    command: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert config.exists()
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == ExitCode.OK
    assert "protected" not in capsys.readouterr().err
