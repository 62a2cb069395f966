"""What the controller can be told: defaults, values that cannot be, and both ways to start it."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.cli.main import _run as drill
from harness.controller import __main__ as module
from harness.controller.options import Options, OptionsError, parse
from harness.controller.shell import process
from harness.controller.shell.lease import LEASE_NAME
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping

OUTSIDE: dict[str, str] = {}
INSIDE = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
USUAL = ("--kubeconfig", "file", "--namespace", "shop")


def options(
    *arguments: str, environment: Mapping[str, str] = OUTSIDE, folder: Path = Path("nowhere")
) -> Options:
    return parse(arguments, prog="test", environment=environment, folder=folder)


def test_a_namespace_is_enough() -> None:
    assert options(*USUAL) == Options(namespace="shop", kubeconfig=Path("file"))
    plain = Options(namespace="shop")
    assert plain.workers == 32
    assert plain.metrics_server == "http://prometheus:9090"
    assert (plain.metrics_rate, plain.metrics_burst, plain.no_verdict_timeout) == (None, 1, 300)
    assert not plain.policy.limited
    assert plain.selector_labels == ("app", "name", "app.kubernetes.io/name")
    assert plain.include_label_prefix == ()
    assert plain.config_tracking
    assert plain.cross_namespace_refs
    assert not plain.leader_elect
    assert plain.metrics_port is None
    assert plain.metrics_host == "127.0.0.1"
    assert plain.lease_name == LEASE_NAME


def test_every_option_has_a_flag() -> None:
    given = options(
        *("--kubeconfig", "file", "--context", "here", "-n", "shop", "--workers", "7"),
        *("--metrics-port", "0", "--metrics-host", "0.0.0.0", "--leader-elect"),  # noqa: S104
        *("--lease-name", "mine", "--metrics-server", "http://localhost:9090/", "--log", "out"),
        *("--event-webhook", "https://hooks.example/T0", "--cluster-name", "Kiel (west)"),
        *("--selector-labels", "app, example.org/Name", "--include-label-prefix", "team/,*"),
        *("--metrics-rate", "2.5", "--metrics-burst", "3", "--no-verdict-timeout", "1m30s"),
        *("--max-concurrent-analyses", "5", "--max-concurrent-analyses-per-namespace", "3"),
        *("--no-config-tracking", "--no-cross-namespace-refs", "--log-level", "error"),
        *("--api-group", "run.example.org"),
    )
    changed = Options(namespace="shop")
    same = [
        each.name
        for each in dataclasses.fields(Options)
        if getattr(given, each.name) == getattr(changed, each.name)
    ]
    assert same == ["namespace"]
    assert given.selector_labels == ("app", "example.org/Name")
    assert given.include_label_prefix == ("team/", "*")
    assert given.metrics_server == "http://localhost:9090"
    assert (given.metrics_rate, given.metrics_burst) == (2.5, 3)
    assert given.policy.no_verdict_timeout == 90
    assert (given.policy.most_analyses, given.policy.most_analyses_per_namespace) == (5, 3)
    assert options(*USUAL, "--no-verdict-timeout", "0").no_verdict_timeout == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--workers", "0"), "--workers: '0' is not a whole number from 1 to 1000"),
        (("--workers", "x"), "--workers: 'x' is not a whole number from 1 to 1000"),
        (("--metrics-port", "65536"), "'65536' is not a whole number from 0 to 65535"),
        (
            ("--max-concurrent-analyses", "0"),
            "--max-concurrent-analyses: '0' is not a whole number from 1 to",
        ),
        (
            ("--max-concurrent-analyses-per-namespace", "x"),
            "'x' is not a whole number from 1 to 100000",
        ),
        (("--metrics-rate", "0"), "--metrics-rate: '0' is not a number from 0.001 to"),
        (("--metrics-rate", "1e3"), "--metrics-rate: '1e3' is not a number from 0.001 to"),
        (("--metrics-burst", "0"), "--metrics-burst: '0' is not a whole number from 1 to"),
        (("--no-verdict-timeout", "5"), "--no-verdict-timeout: '5' is not a duration such as"),
        (("--no-verdict-timeout", "-1s"), "expected one argument"),
        (("--metrics-server", "prometheus:9090"), "--metrics-server: the value is not a URL"),
        (("--metrics-server", "http://a:x"), "--metrics-server: the value is not a URL"),
        (("--namespace", "Shop"), "-n/--namespace: 'Shop' is not the name of a namespace"),
        (("--lease-name", "a_b"), "--lease-name: 'a_b' is not the name of an object"),
        (("--selector-labels", ","), "--selector-labels: at least one key of a label is needed"),
        (("--selector-labels", "a b"), "--selector-labels: 'a b' is not the key of a label"),
        (("--include-label-prefix", "a b"), "'a b' is not a prefix of label keys"),
        (("--metrics-host", ""), "--metrics-host: '' is not an address or a host name"),
        (("--log-level", "loud"), "--log-level: invalid choice: 'loud'"),
        (("--frobnicate",), "unrecognized arguments: --frobnicate"),
        (("--work", "3"), "unrecognized arguments: --work"),
    ],
)
def test_a_bad_value_is_one_sentence(arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(OptionsError) as caught:
        options(*USUAL, *arguments)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_address_of_a_webhook_is_a_secret() -> None:
    secret = {"EVENT_WEBHOOK_URL": "https://hooks.example/pl4nted"}
    given = options(*USUAL, environment=secret)
    assert given.event_webhook.endswith("pl4nted")
    assert "pl4nted" not in repr(given)
    with pytest.raises(OptionsError) as caught:
        options(*USUAL, environment={"EVENT_WEBHOOK_URL": "hooks.example/pl4nted"})
    assert str(caught.value).startswith("environment variable EVENT_WEBHOOK_URL: ")
    assert "pl4nted" not in str(caught.value)
    with pytest.raises(OptionsError) as caught:
        options(*USUAL, "--event-webhook", "hooks.example/pl4nted")
    assert "pl4nted" not in str(caught.value)


def test_in_a_pod_neither_credentials_nor_namespace_are_needed(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("shop")
    assert options(environment=INSIDE, folder=tmp_path) == Options(namespace="shop")
    other = options("--namespace", "other", environment=INSIDE, folder=tmp_path)
    assert other.namespace == "other"
    with pytest.raises(OptionsError, match="--namespace NAME is needed"):
        options(environment=INSIDE)
    with pytest.raises(OptionsError, match="--kubeconfig FILE is needed outside of a cluster"):
        options("--namespace", "shop")
    with pytest.raises(OptionsError, match="--context names a context of a kubeconfig file"):
        options("--namespace", "shop", "--context", "here", environment=INSIDE)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """What would be run."""
    seen: list[Options] = []

    def run(given: Options) -> int:
        seen.append(given)
        return 1 if given.cluster_name == "broken" else 0

    monkeypatch.delenv("EVENT_WEBHOOK_URL", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(process, "run", run)
    return seen


def test_both_ways_to_start_it_take_the_same_flags(
    ran: list[Options], capsys: pytest.CaptureFixture[str]
) -> None:
    usual = [*USUAL, "--workers", "3", "-n", "other"]
    assert module.main(usual) == 0
    assert drill(["controller", "run", *usual]) == ExitCode.OK
    assert ran[0] == ran[1] == options(*usual)
    assert module.main([*USUAL, "--cluster-name", "broken"]) == 1
    assert drill(["controller", "run", *USUAL, "--cluster-name", "broken"]) == ExitCode.ERROR
    capsys.readouterr()
    assert module.main([*USUAL, "--workers", "0"]) == 2
    assert drill(["controller", "run", *USUAL, "--workers", "0"]) == ExitCode.USAGE
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"python -m harness.controller: {second}"


def test_help_shows_every_flag_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert drill(["controller", "run", "--help"]) == ExitCode.OK
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("usage: drill controller run")
    for text in ("Default: 32.", "Default: http://prometheus:9090.", "Default: 127.0.0.1."):
        assert text in shown
    assert "Default: None" not in shown


def test_a_line_of_standard_input_gives_further_flags(
    ran: list[Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {
        "kubeconfig": "file",
        "namespace": "n",
        "metrics_server": "http://127.0.0.1:1",
    }
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(given) + "\n"))
    assert module.main(["--from-stdin", "--workers", "5"]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert module.main(["--from-stdin"]) == 0
    assert ran == [
        Options("n", kubeconfig=Path("file"), workers=5, metrics_server="http://127.0.0.1:1")
    ]


def test_a_log_that_cannot_be_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert process.run(Options("n", log=tmp_path / "no" / "such")) == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_what_cannot_be_used_ends_it_with_one_sentence(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert process.run(Options("n", kubeconfig=tmp_path / "none", log=log)) == 1
    *_, last = [json.loads(line) for line in log.read_text().splitlines()]
    assert last["event"] == "stopped"
    assert last["message"].endswith("there is no such file")
    assert "exception" not in last


def test_lines_below_the_level_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert process.run(Options("n", kubeconfig=tmp_path / "no", log=log, log_level="error")) == 1
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["level"] == "error"
