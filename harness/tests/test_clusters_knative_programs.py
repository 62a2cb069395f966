"""Knative's programs and manifests: where they come from, that it is done once, and what is said where they cannot be had."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from harness.cli import main
from harness.clusters import addons
from harness.clusters.base import ClusterError
from harness.clusters.embedded.stages import ADDON_FILES
from harness.clusters.knative import manifests as reading
from harness.clusters.knative import programs
from harness.data import data_path
from harness.kube.testing import run_virtual
from harness.model.outcome import ExitCode
from harness.run.addons import needed
from harness.run.casting import Casting
from harness.tests.fake_go import FakeGo
from harness.tests.test_clusters_addons import command, crd
from harness.tests.test_run_selection import plan

if TYPE_CHECKING:
    from pathlib import Path

KNATIVE: Final = addons.ADDONS[addons.KNATIVE]
GO_MOD: Final = "module knative.dev/serving\n\ngo 1.22.0\n"
REFUSED: Final = "this machine gives this user no network namespace (Operation not permitted)"


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeGo:
    """A Go that has Knative's module, with one object in each file, and those that it requires."""
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'go'}:/usr/bin:/bin")
    monkeypatch.setattr(programs, "possible", lambda: "")
    made = FakeGo(tmp_path / "go")
    names = [*KNATIVE.files, *(name for group in reading._FILES.values() for name in group)]
    own = {name: _document(name) for name in names}
    of_serving = [name for name in KNATIVE.crds if "serving." in name or "autoscaling." in name]
    own[KNATIVE.files[0]] = "\n---\n".join(json.dumps(crd(name)) for name in of_serving)
    required = tmp_path / "required"
    for package, files in (*KNATIVE.packages, (reading._NETWORK[0], (reading._NETWORK[1],))):
        (required / package).mkdir(parents=True, exist_ok=True)
        for file in files:
            (required / package / file).write_text(_document(file), encoding="utf-8")
    image = [name for name in KNATIVE.crds if name not in of_serving]
    (required / "knative.dev/caching/config/image.yaml").write_text(
        "\n---\n".join(json.dumps(crd(name)) for name in image), encoding="utf-8"
    )
    made.serve(KNATIVE.module.path, KNATIVE.module.version, {"go.mod": GO_MOD, "go.sum": "", **own})
    made.write(f'case "$all" in list*) echo {required}/"$1"; exit;; esac\necho "$1" > "$target"')
    return made


def _document(name: str) -> str:
    plain = {"kind": "ConfigMap", "metadata": {"name": name}}
    return f"{json.dumps(plain)}\n---\n# nothing\n"


def test_two_programs_are_knatives_own_and_one_has_a_main_of_ours(go: FakeGo) -> None:
    said: list[str] = []
    found = programs.obtain(said.append)
    assert found.webhook.read_text(encoding="utf-8") == "./cmd/webhook\n"
    assert found.autoscaler.read_text(encoding="utf-8") == "./cmd/autoscaler\n"
    assert found.controller.read_text(encoding="utf-8") == "./cmd/knative-controller\n"
    assert len(go.builds) == 3
    assert "Building knative-webhook 0.49.1, once" in said[0]
    (go.folder / "go").unlink()
    assert programs.obtain(said.append) == found, "a second time neither Go nor a network is needed"


def test_our_main_runs_beside_the_autoscaler() -> None:
    text = (data_path("fixtures", "go") / "knative-controller" / "main.go").read_text("utf-8")
    # Both would listen on 8080 otherwise.
    assert "WithHealthProbesDisabled(" in text
    assert "WithHADisabled(" in text


def test_manifests_are_read_once_with_those_of_the_required_module(go: FakeGo) -> None:
    found = reading.manifests(print)
    assert [one["metadata"]["name"] for one in found.hooks] == [*reading._FILES["hooks"]]
    assert found.configs[-1]["metadata"]["name"] == "config-network.yaml"
    assert any(line.endswith(reading._NETWORK[0]) for line in go.commands if " list " in line)
    (go.folder / "go").unlink()
    assert reading.manifests(print) == found


def test_types_come_from_three_modules(go: FakeGo) -> None:
    assert KNATIVE.name in ADDON_FILES, "its ingresses are played"
    found = addons.crds(KNATIVE, print)
    assert [one["metadata"]["name"] for one in found] == [*KNATIVE.crds]
    asked = [line.rsplit(" ", 1)[1] for line in go.commands if " list " in line]
    assert asked == ["knative.dev/networking/config", "knative.dev/caching/config"]
    (go.folder / "go").unlink()
    assert addons.crds(KNATIVE, print) == found


def test_a_required_module_that_cannot_be_had_is_one_sentence(go: FakeGo) -> None:
    go.write('echo "dial tcp: no route to host" >&2; exit 1')
    with pytest.raises(
        ClusterError,
        match=r"^The add-on knative cannot be had: knative.dev/networking/config, which knative.dev/serving "
        r"v[\d.]+ requires, cannot be fetched: dial tcp: no route to host",
    ):
        addons.crds(KNATIVE, print)


def test_its_programs_belong_to_what_is_needed_and_to_that_of_no_other(go: FakeGo) -> None:
    assert needed([KNATIVE], print).keys() == {"knative"}
    assert len(go.builds) == 3
    assert KNATIVE.needs == "the CRDs and programs"
    assert addons.ADDONS["keda"].needs == "the CRDs"


def test_without_a_network_namespace_nothing_is_built(
    go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "possible", lambda: REFUSED)
    with pytest.raises(ClusterError) as told:
        programs.obtain(print)
    assert str(told.value) == (
        "The add-on knative runs in a network namespace of its own, and this machine gives this user no network namespace "
        "(Operation not permitted); run the drill on a cluster that has it, with --cluster context:NAME."
    )
    assert go.commands == []


def test_a_run_is_told_before_a_cluster_is_made_and_the_next_drill_at_once(go: FakeGo) -> None:
    go.refuse(KNATIVE.module.path, KNATIVE.module.version, "dial tcp: no route to host")
    drill = plan(requires=["knative"], cluster="embedded")

    async def obtain() -> list[str]:
        casting = Casting(print)
        said = []
        for _ in range(2):
            with pytest.raises(ClusterError) as told:
                await casting.obtain(drill)
            said.append(str(told.value))
        return said

    first, second = run_virtual(obtain())
    assert first == second
    assert first.startswith("The add-on knative cannot be had: ")
    assert len(go.commands) == 1
    assert go.builds == []


def test_a_cluster_with_what_cannot_be_had_is_not_made(
    go: FakeGo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(*_: object, **__: object) -> None:
        pytest.fail("no cluster is made")

    go.refuse(KNATIVE.module.path, KNATIVE.module.version, "dial tcp: no route to host")
    monkeypatch.setattr("harness.clusters.embedded.cluster.up", make)
    assert command("cluster", "up", "x", "--with", "knative") == ExitCode.ERROR
    assert "The add-on knative cannot be had: " in capsys.readouterr().err
    *others, last = addons.ADDONS
    with pytest.raises(SystemExit):
        main(("cluster", "up", "--help"))
    told = " ".join(capsys.readouterr().out.replace("│", "").split())
    assert f"this add-on: {', '.join(others)} or {last};" in told
    assert command("cluster", "up", "x", "--with", "kanative") == ExitCode.USAGE
    assert "allowed: gateway-api, istio, keda, knative." in capsys.readouterr().err
