"""kwokctl, which makes, starts, stops and deletes an embedded cluster's processes: its configuration and its calls."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

from harness.clusters.base import ClusterError
from harness.clusters.embedded import audit, records, stages
from harness.clusters.embedded.paths import state_root

if TYPE_CHECKING:
    from pathlib import Path

    from harness.clusters.embedded.components import Binaries
    from harness.clusters.embedded.records import Record

LOOPBACK: Final = "127.0.0.1"
SERVICE_RANGE: Final = "10.96.0.0/16"
"""kwokctl's own /24 is full after 254 Services, which is 84 canaries."""
POD_RANGE: Final = "198.18.0.0/16"
"""Addresses for benchmarks (RFC 2544), which no neighbour on a real network has, and more than a /24 holds."""
REFUSING_PROXY: Final = "http://127.0.0.1:9"
"""Nothing listens on the discard port: whatever would leave the machine through a proxy is refused at once."""
CALL_SECONDS: Final = 60.0
LEASE_SECONDS: Final = 40
GRACE_MILLISECONDS: Final = 60_000
"""How long a node may be silent, which is six renewals of its lease: a busy machine must not make it NotReady."""


def configuration(record: Record, binaries: Binaries) -> str:
    """Return kwokctl's configuration file for a cluster: its options, then the stages."""
    options: dict[str, Any] = {
        "runtime": "binary",
        "bindAddress": LOOPBACK,
        "kubeVersion": record.kubernetes,
        "kwokVersion": record.kwok,
        "securePort": True,
        "kubeAuthorization": True,
        "kubeAdmission": True,
        "disableQPSLimits": True,
        "quietPull": True,
        # Should anything be missing after all, there is nothing to find in the cache and nothing answers.
        "cacheDir": str(record.folder / "cache"),
        # Everything about heartbeats is multiplied by five otherwise.
        "heartbeatFactor": 1,
        "nodeLeaseDurationSeconds": LEASE_SECONDS,
        "kubeControllerManagerNodeMonitorGracePeriodMilliseconds": GRACE_MILLISECONDS,
        # kwokctl asks kubectl whether the API server answers, and downloads one for that where PATH has none. We ask
        # the API server ourselves, so this one says yes to everything.
        "kubectlBinary": str(record.folder / "kubectl"),
        "etcdBinary": str(binaries.etcd),
        "kubeApiserverBinary": str(binaries.kube_apiserver),
        "kubeControllerManagerBinary": str(binaries.kube_controller_manager),
        "kubeSchedulerBinary": str(binaries.kube_scheduler),
        "kwokControllerBinary": str(binaries.kwok),
        **record.ports,
    }
    arguments = {
        # Data of a cluster is thrown away with it; it need not survive a power cut.
        "etcd": {"unsafe-no-fsync": "true"},
        "kube-apiserver": {
            "service-cluster-ip-range": SERVICE_RANGE,
            # Without these two it does not start where there is no default route.
            "advertise-address": LOOPBACK,
            "endpoint-reconciler-type": "none",
            **audit.arguments(record),
        },
        # There is one of each: a lease would only delay them after a restart.
        "kube-controller-manager": {"leader-elect": "false"},
        "kube-scheduler": {"leader-elect": "false"},
    }
    patches = [
        {
            "name": component,
            "extraArgs": [{"key": key, "value": value} for key, value in values.items()],
        }
        for component, values in arguments.items()
    ]
    version = "config.kwok.x-k8s.io/v1alpha1"
    documents = (
        {
            "apiVersion": version,
            "kind": "KwokctlConfiguration",
            "options": options,
            "componentsPatches": patches,
        },
        {"apiVersion": version, "kind": "KwokConfiguration", "options": _controller_options()},
    )
    heads = [json.dumps(document, indent=1) for document in documents]
    return "\n---\n".join([*heads, stages.render(record.seed)])


def _controller_options() -> dict[str, Any]:
    """Return all options that kwok would have by default: it fills in none where a configuration is given."""
    parallel = (
        "podPlayStageParallelism",
        "nodePlayStageParallelism",
        "nodeLeaseParallelism",
        "podsOnNodeSyncParallelism",
    )
    return {
        "cidr": POD_RANGE,
        "nodeLeaseDurationSeconds": LEASE_SECONDS,
        "enableDebuggingHandlers": True,
        "enablePodsOnNodeSyncListPager": False,
        "enablePodsOnNodeSyncStreamWatch": True,
        **dict.fromkeys(parallel, 4),
    }


def create(record: Record, binaries: Binaries) -> None:
    """Start all processes of a cluster; returns before they are ready. Raises ClusterError."""
    audit.prepare(record)
    records.write_private(record.folder / "kwok.yaml", configuration(record, binaries))
    stand_in = record.folder / "kubectl"
    records.write_private(stand_in, "#!/bin/sh\nexit 0\n")
    stand_in.chmod(0o700)
    call(record, "create", "cluster", "--config", str(record.folder / "kwok.yaml"), "--wait", "0s")


def start(record: Record) -> None:
    """Start those processes of a cluster that do not run. Raises ClusterError."""
    call(record, "start", "cluster", "--wait", "0s", kubeconfig=False)


def stop(record: Record) -> None:
    """Stop all processes of a cluster and keep its data. Raises ClusterError."""
    call(record, "stop", "cluster", kubeconfig=False)


def delete(record: Record) -> None:
    """Stop all processes of a cluster and remove its folder. Raises ClusterError."""
    call(record, "delete", "cluster")


def call(record: Record, *arguments: str, kubeconfig: bool = True) -> str:
    """Run kwokctl and return what it printed; ClusterError quotes its last words."""
    # It adds and removes a context in a kubeconfig; the user's own is none of its business.
    more = ["--kubeconfig", str(record.folder / "contexts")] if kubeconfig else []
    command = [record.kwokctl, *arguments, "--name", record.name, *more]
    try:
        done = subprocess.run(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=CALL_SECONDS,
            check=False,
            text=True,
            # Ctrl-C in the terminal must not end it half-way; whoever called us cleans up.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"kwokctl {arguments[0]} of embedded cluster {record.name!r} took longer than {CALL_SECONDS:.0f} s."
        raise ClusterError(msg) from error
    except OSError as error:
        msg = f"kwokctl cannot be run from {record.kwokctl}: {error.strerror}."
        raise ClusterError(msg) from error
    if done.returncode != 0:
        msg = f"kwokctl {arguments[0]} of embedded cluster {record.name!r} failed: {_reason(done.stdout)}."
        raise ClusterError(msg)
    return done.stdout


def _reason(output: str) -> str:
    """Return why kwokctl failed, out of the lines of JSON that it prints where there is no terminal."""
    for line in reversed(output.splitlines()):
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and said.get("level") == "ERROR":
            text = f"{said.get('msg', '')}: {said.get('err', '')}"
            return " ".join(text.split()).strip(": ")
    return (output.strip().splitlines() or ["it said nothing"])[-1]


def environment() -> dict[str, str]:
    """Return the environment for kwokctl and for the processes that inherit it.

    Variables of a user's own kwokctl are dropped, since they change ports and programs.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("KWOK_") and name.lower() not in {"all_proxy", "kubeconfig"}
    }
    # The API server calls webhooks by the names of Services, which it resolves itself.
    no_proxy = f"{LOOPBACK},localhost,.svc"
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        kept[name] = kept[name.lower()] = REFUSING_PROXY
    kept["NO_PROXY"] = kept["no_proxy"] = no_proxy
    # A kubectl found here would be preferred to the stand-in; the programs have absolute paths and need no PATH.
    kept["PATH"] = str(_empty_folder())
    kept["KWOK_WORKDIR"] = str(state_root())
    return kept


def _empty_folder() -> Path:
    return state_root() / "no-programs"
