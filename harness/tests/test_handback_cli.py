"""`drill explain` and `drill controller handback`: mistakes are one sentence, a file is explained, a cluster is asked once."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.cli import connect, main
from harness.handback import program, told
from harness.handback.told import HandbackError
from harness.model.outcome import ExitCode
from harness.tests.controller_sim import running
from harness.tests.test_controller_explain import as_yaml, saved
from harness.tests.test_handback_carry_out import cluster_of
from harness.tests.test_handback_reading import Oracle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from harness.kube.client import KubeClient
    from harness.kube.testing import FakeCluster


def drill(arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("explain", "--cluster context:NAME or embedded:NAME, or a file with --from FILE"),
        ("explain canary/web --cluster embedded -n n", "--from FILE"),
        ("explain canary/web --cluster context:c", "drill explain canary/NAME -n NAMESPACE"),
        ("explain -n n --cluster context:c", "drill explain canary/NAME -n NAMESPACE"),
        ("explain pod/web -n n --cluster context:c", "'pod/web': name a Canary"),
        ("explain canary/ -n n --cluster context:c", "'canary/': name a Canary"),
        (
            "controller handback --to bundled --cluster context:c -n n",
            "--to 'bundled': name the released version of Flagger",
        ),
        (
            "controller handback --to flagger@1.44.0 --cluster embedded -n n",
            "--cluster 'embedded': name one cluster",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drill(arguments) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert words in err
    assert (out, err.count("\n")) == ("", 1)


@pytest.fixture
def saved_file(tmp_path: Path) -> Path:
    path = tmp_path / "saved.yaml"
    path.write_text(as_yaml(*saved(running())))
    return path


def test_a_file_is_explained(saved_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill(f"explain --from {saved_file}") == ExitCode.OK
    assert capsys.readouterr().out.startswith("canary/web in n, phase Initialized: unchanged\n")


def test_a_named_canary_is_one_object(saved_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill(f"explain canary/web --from {saved_file} --json") == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["row"] == "unchanged"
    assert drill(f"explain --from {saved_file} --json") == ExitCode.OK
    assert [one["row"] for one in json.loads(capsys.readouterr().out)] == ["unchanged"]


def test_another_name_is_one_sentence(saved_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill(f"explain canary/other --from {saved_file}") == ExitCode.USAGE
    assert "there is no Canary 'other' in it (there is: n/web)" in capsys.readouterr().err


# -- on a cluster ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """What `--cluster` leads to, with a program that answers."""
    made = cluster_of("a", "b")
    oracle = Oracle()

    @contextlib.asynccontextmanager
    async def connected(_cluster: str) -> AsyncIterator[KubeClient]:
        yield made.client()

    async def obtain(version: str, _say: object) -> str:
        assert version == "1.44.0"
        return "program"

    async def ask(given: object, questions: Any) -> Any:
        assert given == "program"
        return await oracle(questions)

    monkeypatch.setattr(connect, "connected", connected)
    monkeypatch.setattr(program, "obtain", obtain)
    monkeypatch.setattr(told, "ask", ask)
    return made


HANDBACK = "controller handback --to flagger@1.44.0 --cluster context:c -n n"


def test_a_cluster_is_explained(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill("explain canary/a -n n --cluster context:c") == ExitCode.OK
    assert capsys.readouterr().out.startswith("canary/a in n, phase Initialized: unchanged\n")
    assert {asked.verb for asked in cluster.requests} == {"get"}


def test_without_apply_it_is_only_worked_out(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drill(HANDBACK) == ExitCode.OK
    assert "Under flagger@1.44.0, 2 rest." in capsys.readouterr().out
    assert {asked.verb for asked in cluster.requests} == {"list"}


@pytest.mark.usefixtures("cluster")
def test_json_holds_every_canary(capsys: pytest.CaptureFixture[str]) -> None:
    assert drill(f"{HANDBACK} --json") == ExitCode.OK
    shown = json.loads(capsys.readouterr().out)
    assert [row["canary"] for row in shown["canaries"]] == ["a", "b"]


@pytest.mark.usefixtures("cluster")
def test_a_program_that_cannot_be_had_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def obtain(_version: str, _say: object) -> str:
        msg = "Flagger 1.44.0 cannot be asked"
        raise HandbackError(msg)

    monkeypatch.setattr(program, "obtain", obtain)
    assert drill(HANDBACK) == ExitCode.ERROR
    assert capsys.readouterr().err == "error: Flagger 1.44.0 cannot be asked\n"
