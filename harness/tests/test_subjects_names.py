"""Names of subjects: every form means one thing, everything else is refused with the forms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.model.names import SUBJECT
from harness.subjects.base import SubjectError, crd_digest
from harness.subjects.bundled import Bundled
from harness.subjects.flagger import Flagger
from harness.subjects.in_cluster import InCluster
from harness.subjects.installed import Installed
from harness.subjects.names import SubjectName, parse
from harness.subjects.select import check_subject, make_subject


@pytest.mark.parametrize(
    ("name", "meant", "reported"),
    [
        ("bundled", SubjectName("bundled"), "bundled"),
        ("bundled@in-cluster", SubjectName("in-cluster"), "bundled@in-cluster"),
        ("installed", SubjectName("installed"), "installed"),
        ("flagger@1.44.0", SubjectName("flagger", "1.44.0"), "flagger@1.44.0"),
        ("flagger@v1.44.0", SubjectName("flagger", "1.44.0"), "flagger@1.44.0"),
        ("flagger@1.45.0-rc.1", SubjectName("flagger", "1.45.0-rc.1"), "flagger@1.45.0-rc.1"),
        (
            "flagger@path:/opt/builds/flagger",
            SubjectName("flagger", path=Path("/opt/builds/flagger")),
            "flagger@path:flagger",
        ),
    ],
)
def test_each_form_is_understood(name: str, meant: SubjectName, reported: str) -> None:
    assert parse(name) == meant
    assert str(meant) == reported
    assert make_subject(name).facts.name == reported
    assert re.match(SUBJECT, name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Bundled",
        "bundled@",
        "bundled@cluster",
        "flagger",
        "flagger@",
        "flagger@1.44",
        "flagger@latest",
        "flagger@path:",
        "x",
    ],
)
def test_anything_else_is_refused_with_the_forms(name: str) -> None:
    with pytest.raises(
        SubjectError,
        match=r"^unknown subject .* \(allowed: bundled, bundled@in-cluster, flagger@X\.Y\.Z, flagger@path:FILE, installed\)$",
    ):
        check_subject(name)
    assert not re.match(SUBJECT, name)


def test_a_relative_path_is_that_of_the_folder_where_it_was_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse("flagger@path:bin/flagger").path == tmp_path / "bin" / "flagger"


def test_every_name_makes_its_subject_anew() -> None:
    kinds = {
        "bundled": Bundled,
        "bundled@in-cluster": InCluster,
        "flagger@1.37.0": Flagger,
        "installed": Installed,
    }
    for name, kind in kinds.items():
        assert isinstance(make_subject(name), kind)
        assert make_subject(name) is not make_subject(name)


def test_the_digest_of_crds_tells_them_apart_and_nothing_else() -> None:
    bundled, installed = Bundled(), Installed()
    assert crd_digest(bundled) == crd_digest(Bundled()) == crd_digest(InCluster())
    assert crd_digest(bundled) != crd_digest(installed)
    assert re.fullmatch(r"[0-9a-f]{12}", crd_digest(installed))
