"""The image of workloads: known by its name, and made for the nodes' architecture."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from harness.clusters import workload
from harness.clusters.base import ChoiceError, capabilities
from harness.clusters.workload import IMAGE, is_ours, save_image

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("image", "ours"),
    [
        (IMAGE, True),
        ("registry.example:5000/team/rollout-drill/workload@sha256:0123", True),
        ("rollout-drill/workload", True),
        ("registry.k8s.io/e2e-test-images/agnhost:2.53", False),
        ("registry.example/workload:1", False),
        ("rollout-drill/workload-x:1", False),
    ],
)
def test_an_image_of_ours_is_known_by_its_name(image: str, *, ours: bool) -> None:
    assert is_ours(image) is ours


def test_programs_of_two_architectures_have_places_of_their_own() -> None:
    (one, here), (other, there) = (workload._program(name) for name in ("amd64", "arm64"))
    assert here.folder != there.folder
    assert (one.architecture, other.architecture) == ("amd64", "arm64")


def test_the_image_is_the_program_for_the_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "workload"
    program.write_bytes(b"ELF")
    asked: list[str] = []

    def obtain(_progress: object, *, architecture: str) -> Path:
        asked.append(architecture)
        return program

    monkeypatch.setattr(workload, "obtain", obtain)
    path, name = tmp_path / "image.tar", "registry.example/rollout-drill/workload:1"
    save_image(path, name, print, architecture="arm64")
    assert asked == ["arm64"]
    with tarfile.open(path) as archive:
        content = archive.extractfile("manifest.json")
        assert content is not None
        (manifest,) = json.load(content)
        content = archive.extractfile(manifest["Config"])
        assert content is not None
        config = json.load(content)
    assert manifest["RepoTags"] == [name]
    assert config["architecture"] == "arm64"
    assert config["config"]["Entrypoint"] == ["/workload"]


def test_an_image_by_a_name_that_nobody_would_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChoiceError, match="has to end like rollout-drill/workload"):
        save_image(tmp_path / "x.tar", "web:1", print)


def test_only_real_pods_can_be_reached() -> None:
    assert "network" in capabilities("v1.35.4", simulated=False)
    assert "network" not in capabilities("v1.35.4", simulated=True)
