"""Handback: talking with the program of a Flagger, and which program that is."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from harness.handback.answers import Flagger, Told
from harness.handback.program import TargetNameError, program_for, version_of
from harness.handback.told import HandbackError, Question, ask
from harness.tests.controller_sim import deployment

if TYPE_CHECKING:
    from pathlib import Path

JSON = dict[str, Any]
HEAD = {"api": "v0.36.2", "fence": False}
ROW = {"hash": "666b6b6fb6", "configs": {"configmap/c": "1"}, "error": "", "configsError": ""}


def program(folder: Path, *lines: object, code: int = 0, says: str = "") -> Path:
    """A program that keeps what it was asked, and answers with these lines."""
    path = folder / "legacy-hash"
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        f"open({str(folder / 'asked')!r}, 'w').write(sys.stdin.read())\n"
        f"open({str(folder / 'environment')!r}, 'w').write(repr(sorted(os.environ)))\n"
        f"print({text!r})\n"
        f"sys.stderr.write({says!r})\n"
        f"sys.exit({code})\n"
    )
    path.chmod(0o755)
    return path


def question() -> Question:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}}
    return Question(deployment(), (secret, config))


def test_a_question_holds_every_object_under_its_path(tmp_path: Path) -> None:
    asyncio.run(ask(program(tmp_path, HEAD, ROW), [question()]))
    (line,) = (tmp_path / "asked").read_text().splitlines()
    asked = json.loads(line)
    assert (asked["kind"], asked["namespace"], asked["name"]) == ("Deployment", "n", "web")
    assert asked["objects"] == {
        "/apis/apps/v1/namespaces/n/deployments/web": deployment(),
        "/api/v1/namespaces/n/secrets/s": question().configs[0],
        "/api/v1/namespaces/n/configmaps/c": question().configs[1],
    }


def test_the_program_gets_nothing_of_the_users_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "secret")
    asyncio.run(ask(program(tmp_path, HEAD), []))
    assert "KUBECONFIG" not in (tmp_path / "environment").read_text()


def test_answers_come_in_the_order_of_the_questions(tmp_path: Path) -> None:
    wrong = {"hash": "", "configs": None, "error": "no", "configsError": ""}
    flagger = asyncio.run(ask(program(tmp_path, HEAD, ROW, wrong), [question(), question()]))
    told = [Told("666b6b6fb6", {"configmap/c": "1"}), Told("", None, "no", "")]
    assert flagger == Flagger("v0.36.2", fenced=False, answers=tuple(told))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((HEAD,), "legacy-hash gave 0 answers to 1 questions"),
        ((HEAD, ROW, ROW), "legacy-hash gave 2 answers to 1 questions"),
        (("Hello",), "legacy-hash answered something else than expected: 'Hello"),
        (({"api": "v1"},), "legacy-hash answered something else"),
        ((HEAD, {"hash": "1"}), "legacy-hash answered something else"),
        (("",), "legacy-hash answered something else"),
    ],
)
def test_another_answer_is_one_sentence(
    tmp_path: Path, lines: tuple[object, ...], message: str
) -> None:
    with pytest.raises(HandbackError) as caught:
        asyncio.run(ask(program(tmp_path, *lines), [question()]))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    broken = program(tmp_path, HEAD, code=3, says="first\nlast words\n")
    with pytest.raises(HandbackError, match=r"^legacy-hash ended with code 3: last words$"):
        asyncio.run(ask(broken, []))


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HandbackError, match="cannot be started: No such file"):
        asyncio.run(ask(tmp_path / "nothing", []))


# -- which program -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["flagger@1.44.0", "flagger@v1.44.0"])
def test_a_version_is_asked_through_a_main_of_ours(name: str) -> None:
    wanted = program_for(version_of(name))
    assert (wanted.module.path, wanted.module.version) == ("github.com/fluxcd/flagger", "v1.44.0")
    (source,) = wanted.sources
    assert source.is_file()
    assert wanted.package.startswith("cmd/")


@pytest.mark.parametrize(
    "name", ["bundled", "installed", "flagger@path:/bin/true", "flagger", "nothing@1.0.0"]
)
def test_only_a_released_version_can_be_handed_back_to(name: str) -> None:
    with pytest.raises(TargetNameError, match=r"as in flagger@1\.44\.0"):
        version_of(name)
