"""Flagger as a subject: what it can do, how it is started and fenced, what its log and its module say."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from ruamel.yaml import YAML

from harness.model.features import FEATURES
from harness.subjects import flagger_objects
from harness.subjects.base import Access, SubjectError
from harness.subjects.flagger import Flagger, arguments, environment
from harness.subjects.flagger_capabilities import CAPABILITIES, capabilities, numbers
from harness.subjects.flagger_log import FlaggerLog, refusals
from harness.subjects.flagger_source import MODULE
from harness.subjects.names import parse
from harness.tests.fake_go import FakeGo

if TYPE_CHECKING:
    from collections.abc import Callable

READY: Final = '{"level":"info","msg":"Started operator workers"}'
ROLE: Final = [
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "update"]},
    {"nonResourceURLs": ["/version"], "verbs": ["get"]},
]


def _yaml(path: Path, *objects: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        YAML(typ="safe", pure=True).dump_all(objects, file)
    return path


def _crds(*names: str) -> list[dict[str, Any]]:
    return [{"kind": "CustomResourceDefinition", "metadata": {"name": name}} for name in names]


# Capabilities


def test_every_feature_of_a_subject_is_in_the_table_once_with_a_reason() -> None:
    rows = [row.feature for row in CAPABILITIES]
    assert rows == sorted(set(rows))
    assert set(rows) == {name for name, feature in FEATURES.items() if feature.of == "subject"}
    assert all(row.why for row in CAPABILITIES)


def test_a_version_has_what_came_before_it() -> None:
    assert "match-label-keys" not in capabilities("1.37.0")
    assert "match-label-keys" in capabilities("1.38.0")
    assert "knative-service" in set(capabilities("1.44.0")) - set(capabilities("1.40.0"))
    assert {"suspend", "session-affinity"} <= set(capabilities("1.37.0"))
    assert not {"suspend", "session-affinity"} & set(capabilities("1.20.0"))


def test_no_version_has_what_flagger_cannot_do() -> None:
    never = {"sub-10s-interval", "manual-rollback-aborts", "change-fence", "freeze"}
    assert not never & set(capabilities("99.0.0"))


def test_the_client_library_decides_where_it_is_known() -> None:
    assert "match-label-keys" in capabilities("1.37.0", "v0.29.0")
    assert "match-label-keys" not in capabilities("1.44.0", "v0.27.11")


def test_an_unknown_version_has_what_all_have() -> None:
    assert capabilities("") == capabilities("unknown") == capabilities("1.0.0")
    assert "blue-green" in capabilities("")
    assert numbers("v1.2.3-rc.1") == (1, 2, 3)


# CRDs and roles


def test_the_rules_are_kept_in_one_namespace(tmp_path: Path) -> None:
    file = _yaml(
        tmp_path / "rbac.yaml",
        {"kind": "ClusterRole", "metadata": {"name": "flagger"}, "rules": ROLE},
        {"kind": "ClusterRoleBinding", "metadata": {"name": "flagger"}},
    )
    objects = flagger_objects.namespace_objects("drill-x", flagger_objects.roles(file))
    account, role, binding = objects
    assert [one["kind"] for one in objects] == ["ServiceAccount", "Role", "RoleBinding"]
    assert {one["metadata"]["namespace"] for one in objects} == {"drill-x"}
    assert role["rules"] == ROLE[:1]
    assert binding["roleRef"]["kind"] == "Role"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["metadata"]["name"], "namespace": "drill-x"}
    ]


def test_a_file_without_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match=r"rbac\.yaml of this Flagger has no ClusterRole"):
        flagger_objects.roles(_yaml(tmp_path / "rbac.yaml", {"kind": "ServiceAccount"}))


def test_all_three_crds_are_taken_and_a_missing_one_is_named(tmp_path: Path) -> None:
    every = _yaml(tmp_path / "crd.yaml", *_crds("x.y", *reversed(flagger_objects.CRDS)))
    assert flagger_objects.crds(every) == _crds(*flagger_objects.CRDS)
    some = _yaml(tmp_path / "crd.yaml", *_crds("canaries.flagger.app"))
    with pytest.raises(SubjectError, match=r"no CustomResourceDefinition metrictemplates"):
        flagger_objects.crds(some)


# How it is started


def _access(tmp_path: Path, server: str = "https://127.0.0.1:6443") -> Access:
    kubeconfig = tmp_path / "kubeconfig"
    config = {"clusters": [{"name": "drill", "cluster": {"server": server}}]}
    kubeconfig.write_text(json.dumps(config), encoding="utf-8")
    return Access(kubeconfig, "drill-x", tmp_path / "log")


def test_it_is_fenced_to_its_namespace_and_asks_nobody_for_metrics(tmp_path: Path) -> None:
    argv = arguments(Path("/bin/flagger"), _access(tmp_path))
    given = dict(zip(argv[1:13:2], argv[2:13:2], strict=True))
    assert given["-namespace"] == "drill-x"
    assert given["-kubeconfig"] == str(tmp_path / "kubeconfig")
    assert given["-mesh-provider"] == "kubernetes"
    assert given["-metrics-server"].startswith("http://127.0.0.1:")
    assert given["-port"] == "0"
    assert "-enable-leader-election=false" in argv


def test_it_asks_the_metrics_server_of_its_drill(tmp_path: Path) -> None:
    access = dataclasses.replace(_access(tmp_path), metrics_server="http://127.0.0.1:4321")
    argv = arguments(Path("/bin/flagger"), access)
    assert argv[argv.index("-metrics-server") + 1] == "http://127.0.0.1:4321"


def test_it_sees_no_token_and_no_proxy_of_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLACK_URL", "https://hooks.example")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted")
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    seen = environment(_access(tmp_path, "https://api.example:6443").kubeconfig)
    assert set(seen) <= {
        *("PATH", "TMPDIR", "TZ", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "no_proxy"),
    }
    assert seen["https_proxy"] == seen["HTTPS_PROXY"] == "http://127.0.0.1:9"
    assert seen["NO_PROXY"].split(",") == ["127.0.0.1", "localhost", "::1", "api.example"]


# Its log


def _read(*lines: str) -> tuple[bool, list[tuple[str, str]], str]:
    told: list[tuple[str, str]] = []
    ready = asyncio.Event()
    log = FlaggerLog(ready, lambda event, detail: told.append((event, detail)))
    for line in lines:
        log.read(line.encode() + b"\n")
    return ready.is_set(), told, log.last


def test_it_is_ready_when_its_workers_run() -> None:
    assert not _read('{"level":"info","msg":"Starting operator"}')[0]
    assert _read('{"level":"info","msg":"Starting operator"}', READY)[0]


def test_every_refusal_is_told_once() -> None:
    words = (
        'configmaps is forbidden: User \\"system:serviceaccount:drill-x:rollout-drill-flagger\\" cannot list '
        'resource \\"configmaps\\" in API group \\"\\" at the cluster scope'
    )
    other = words.replace("configmaps", "deployments/scale").replace(
        'group \\"\\"', 'group \\"apps\\"'
    )
    line = f'{{"level":"error","msg":"{words}"}}'
    told = _read(line, line, f'{{"level":"error","msg":"{other}"}}')[1]
    assert told == [("forbidden", "list configmaps"), ("forbidden", "list deployments/scale.apps")]
    assert refusals('User "x" cannot get path "/metrics"') == ["get /metrics"]
    assert refusals('{"msg":"the canary cannot list its resource"}') == []


def test_its_last_words_are_its_message() -> None:
    assert _read(READY, '{"level":"fatal","msg":"no CRD"}')[2] == "no CRD"
    assert _read("panic: runtime error")[2] == "panic: runtime error"


# Where it comes from, and its life


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeGo:
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'go'}:/usr/bin:/bin")
    made = FakeGo(tmp_path / "go")
    source = made.serve(
        MODULE, "v1.50.0", {"go.mod": "go 1.22\nrequire k8s.io/api v0.20.0\n", "go.sum": ""}
    )
    _yaml(source / "artifacts/flagger/crd.yaml", *_crds(*flagger_objects.CRDS))
    _yaml(source / "kustomize/base/flagger/rbac.yaml", {"kind": "ClusterRole", "rules": ROLE})
    _program(made, f"echo '{READY}'; exec sleep 60")
    return made


def _program(go: FakeGo, body: str) -> None:
    """Let Flagger, as it is built from now on, be this script."""
    script = go.folder / "flagger"
    script.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo Flagger version 1.50.0 revision x; exit; fi\n{body}\n',
        encoding="utf-8",
    )
    script.chmod(0o700)
    go.write(f'cp {script} "$target"')


def _obtained(name: str = "flagger@1.50.0") -> Flagger:
    subject = Flagger(parse(name))
    asyncio.run(subject.obtain(print))
    return subject


def test_a_version_is_built_and_knows_itself_after_that(go: FakeGo) -> None:
    subject = _obtained()
    assert subject.facts.version == "1.50.0"
    # By its client library, which the version's number says nothing about.
    assert "match-label-keys" not in subject.facts.capabilities
    assert subject.cluster_objects() == _crds(*flagger_objects.CRDS)
    assert subject.namespace_objects("n")[1]["rules"] == ROLE[:1]
    _obtained()
    assert go.builds == ["flagger"]


def test_nothing_is_known_before_it_is_obtained() -> None:
    with pytest.raises(SubjectError, match=r"flagger@1\.50\.0 has not been obtained yet"):
        Flagger(parse("flagger@1.50.0")).cluster_objects()


def test_a_version_that_is_not_served_is_one_sentence_and_builds_nothing(go: FakeGo) -> None:
    go.refuse(MODULE, "v9.9.9", "reading https://proxy: 404 Not Found")
    with pytest.raises(
        SubjectError, match=r"^there is no Flagger 9\.9\.9 to be had: .*404 Not Found"
    ):
        _obtained("flagger@9.9.9")
    assert go.builds == []


def test_a_given_program_is_asked_for_its_version(go: FakeGo) -> None:
    subject = _obtained(f"flagger@path:{go.folder / 'flagger'}")
    assert (subject.facts.name, subject.facts.version) == ("flagger@path:flagger", "1.50.0")
    assert go.builds == []


def test_a_given_program_of_a_version_that_is_not_served_is_refused(go: FakeGo) -> None:
    go.refuse(MODULE, "v1.50.0", "invalid version: unknown revision v1.50.0")
    with pytest.raises(
        SubjectError, match=r"is Flagger 1\.50\.0, but its CRDs and roles cannot be"
    ):
        _obtained(f"flagger@path:{go.folder / 'flagger'}")


@pytest.mark.parametrize(
    ("script", "mode", "sentence"),
    [
        (None, 0, r"there is no such file$"),
        ("#!/bin/sh\n", 0o600, r"is not executable; make it so with chmod \+x$"),
        ("#!/bin/sh\necho nothing like it\n", 0o700, r"it is no Flagger; .*: nothing like it$"),
        ("not a program", 0o700, r"it cannot be asked for its version: Exec format error$"),
    ],
)
def test_a_given_file_that_is_no_flagger_is_refused(
    tmp_path: Path, script: str | None, mode: int, sentence: str
) -> None:
    file = tmp_path / "flagger"
    if script is not None:
        file.write_text(script, encoding="utf-8")
        file.chmod(mode)
    with pytest.raises(SubjectError, match=sentence):
        _obtained(f"flagger@path:{file}")


def _live(story: Callable[[Flagger, Callable[[str, str], None]], Any]) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    subject = _obtained()
    asyncio.run(story(subject, lambda event, detail: told.append((event, detail))))
    return told


def test_it_is_started_killed_started_again_and_stopped(go: FakeGo, tmp_path: Path) -> None:
    assert go.commands == []

    async def story(subject: Flagger, notify: Callable[[str, str], None]) -> None:
        access = _access(tmp_path)
        await subject.start(access, notify)
        await subject.kill()
        await subject.start(access, notify)
        await subject.stop()
        await subject.stop()

    told = _live(story)
    assert [event for event, _ in told] == ["started", "killed", "started", "stopped"]
    assert told[0][1] == "flagger@1.50.0 1.50.0"
    assert (tmp_path / "log").read_text(encoding="utf-8") == f"{READY}\n{READY}\n"


def test_one_that_ends_instead_is_an_error_with_its_last_words(go: FakeGo, tmp_path: Path) -> None:
    _program(go, """echo '{"level":"fatal","msg":"Canary CRD is not registered"}'; exit 1""")

    async def story(subject: Flagger, notify: Callable[[str, str], None]) -> None:
        with pytest.raises(
            SubjectError,
            match=r"^flagger@1\.50\.0 ended; its log ends with: Canary CRD is not registered$",
        ):
            await subject.start(_access(tmp_path), notify)

    assert _live(story)[-1] == ("exited", "exit status 1")
