"""What kwokctl is told, the ports that are chosen, and the stages."""

from __future__ import annotations

import dataclasses
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from harness.clusters.base import ClusterError
from harness.clusters.embedded import audit, cluster, kwokctl, ports, records, stages, upgrade
from harness.clusters.embedded.components import COMPONENTS, Binaries, needed_go


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> records.Record:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    chosen = dict.fromkeys(ports.LISTENERS, 0)
    made = records.Record(
        "one", 2, 7, 1, 0.0, owner_bound=True, kwokctl="", ports=chosen, kubernetes="v1.35.4"
    )
    records.write(made)
    return made


def _documents(record: records.Record) -> list[dict[str, Any]]:
    binaries = Binaries.from_paths({one.name: Path("/b") / one.name for one in COMPONENTS})
    return list(YAML(typ="safe").load_all(kwokctl.configuration(record, binaries)))


def test_everything_is_bound_to_loopback_with_authorization_on(record: records.Record) -> None:
    options = _documents(record)[0]["options"]
    assert options["bindAddress"] == "127.0.0.1"
    assert options["kubeAuthorization"] is True
    assert options["kubeAdmission"] is True


def test_every_program_is_given_so_that_nothing_is_downloaded(record: records.Record) -> None:
    options = _documents(record)[0]["options"]
    given = {name: value for name, value in options.items() if name.endswith("Binary")}
    assert len(given) == 6
    assert all(value.startswith("/") for value in given.values())


def test_it_starts_without_a_default_route(record: records.Record) -> None:
    patches = {one["name"]: one["extraArgs"] for one in _documents(record)[0]["componentsPatches"]}
    server = {one["key"]: one["value"] for one in patches["kube-apiserver"]}
    assert server["advertise-address"] == "127.0.0.1"
    assert server["endpoint-reconciler-type"] == "none"
    assert server["service-cluster-ip-range"] == "10.96.0.0/16"


def test_requests_of_subjects_are_logged_as_metadata_only_and_of_nobody_else() -> None:
    rules = json.loads(audit.policy())["rules"]
    assert [rule["level"] for rule in rules] == ["None", "Metadata", "None"]
    assert rules[0]["userGroups"] == ["system:serviceaccounts:kube-system"]
    assert rules[1]["userGroups"] == ["system:serviceaccounts"]
    assert rules[1]["omitStages"] == ["RequestReceived"]


def test_the_audit_log_is_in_our_own_folder_and_cannot_grow_for_ever(
    record: records.Record,
) -> None:
    patches = {one["name"]: one["extraArgs"] for one in _documents(record)[0]["componentsPatches"]}
    server = {one["key"]: one["value"] for one in patches["kube-apiserver"]}
    assert server["audit-log-path"] == str(record.audit_log)
    assert record.folder in record.audit_log.parents
    assert int(server["audit-log-maxsize"]) * (int(server["audit-log-maxbackup"]) + 1) <= 300
    audit.prepare(record)
    assert Path(server["audit-policy-file"]).read_text("utf-8") == audit.policy()


def test_a_cluster_that_an_earlier_version_made_has_no_audit_log(record: records.Record) -> None:
    old = cluster.opened(record, exclusive=False)
    assert old.audit_log is None
    assert "audit" not in old.facts.capabilities
    new = cluster.opened(dataclasses.replace(record, audited=True), exclusive=False)
    assert new.audit_log == record.audit_log
    assert {"audit", "kubernetes-upgrade", "node-changes"} <= set(new.facts.capabilities)


def test_the_names_that_kwokctl_starts_lead_to_the_new_programs(
    record: records.Record, tmp_path: Path
) -> None:
    folder = record.workdir / "bin"
    folder.mkdir(parents=True)
    for one in COMPONENTS:
        (folder / one.name).symlink_to(f"/old/{one.name}")
    new = Binaries.from_paths({one.name: tmp_path / one.name for one in COMPONENTS})
    upgrade.replace_programs(record, new)
    leads = {path.name: str(path.readlink()) for path in folder.iterdir()}
    assert leads == {
        one.name: str(tmp_path / one.name) if one.name in upgrade.REPLACED else f"/old/{one.name}"
        for one in COMPONENTS
    }


def test_the_stages_take_the_place_of_kwokctls_own(record: records.Record) -> None:
    kinds = [document["kind"] for document in _documents(record)]
    assert kinds[:2] == ["KwokctlConfiguration", "KwokConfiguration"]
    assert set(kinds[2:]) == {"Stage"}
    assert len(kinds) > 8


def test_the_same_seed_gives_the_same_stages() -> None:
    assert stages.render(7) == stages.render(7)
    assert stages.render(7) != stages.render(8)


def test_stages_have_names_of_their_own() -> None:
    names = [one["metadata"]["name"] for one in YAML(typ="safe").load_all(stages.render(1))]
    assert len(names) == len(set(names))


def test_the_environment_has_no_way_out_and_no_settings_of_another_kwokctl(
    record: records.Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KWOK_KUBE_APISERVER_PORT", "1")
    monkeypatch.setenv("https_proxy", "http://proxy.example.com")
    monkeypatch.setenv("KUBECONFIG", "/somewhere")
    monkeypatch.setenv("ALL_PROXY", "socks5://proxy.example.com")
    found = kwokctl.environment()
    assert {name for name in found if name.startswith("KWOK_")} == {"KWOK_WORKDIR"}
    assert found["KWOK_WORKDIR"] == str(record.workdir.parents[1])
    assert found["https_proxy"] == found["HTTP_PROXY"] == kwokctl.REFUSING_PROXY
    assert "127.0.0.1" in found["NO_PROXY"]
    assert "KUBECONFIG" not in found
    assert "ALL_PROXY" not in found
    assert not Path(found["PATH"]).exists()


def test_a_failure_of_kwokctl_is_one_sentence(record: records.Record, tmp_path: Path) -> None:
    program = tmp_path / "kwokctl"
    line = json.dumps({"level": "ERROR", "msg": "Execute exit", "err": "no such file"})
    program.write_text(f"#!/bin/sh\necho '{line}'\nexit 1\n", encoding="utf-8")
    program.chmod(0o700)
    with pytest.raises(ClusterError, match=r"create of .*'one' failed: Execute exit: no such file"):
        kwokctl.call(dataclasses.replace(record, kwokctl=str(program)), "create", "cluster")


def test_ports_that_are_taken_are_left_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert not ports._is_free(other.getsockname()[1])
    start = ports.RANGE.start + 100
    chosen = ports.free(range(start, start + 50), start=start)
    assert set(chosen) == set(ports.LISTENERS)
    assert len(set(chosen.values())) == 6
    assert min(chosen.values()) >= start + 50


def test_no_ports_left_is_an_error() -> None:
    with pytest.raises(ClusterError, match=r"No 6 free ports"):
        ports.free(ports.RANGE)


def test_versions_come_from_the_lock_files() -> None:
    versions = {component.name: component.version for component in COMPONENTS}
    assert versions["kube-apiserver"] == versions["kube-scheduler"] == "v1.35.4"
    assert versions["etcd"] == "v3.6.5"
    assert versions["kwok"] == versions["kwokctl"] == "v0.8.0"
    assert needed_go() == (1, 26, 0)
