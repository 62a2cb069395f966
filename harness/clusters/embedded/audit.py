"""The audit log of an embedded cluster's API server: who asked for what, so that a subject's requests can be counted.

Only requests of service accounts are logged, which on such a cluster means those of subjects: without one it costs nothing.
Only the metadata of a request is logged, never what was sent or answered, so that no secret can be in it. The control plane's
own service accounts are left out, and a request is logged once: when it is answered, or when its watch began and when it ended.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from harness.clusters.embedded import records
from harness.clusters.embedded.paths import make_folder

if TYPE_CHECKING:
    from harness.clusters.embedded.records import Record

MEGABYTES: Final = 100
"""Size at which the file is put aside and another begun: some 100,000 requests."""
KEPT: Final = 2
"""Files put aside that are kept."""


def policy() -> str:
    """Return the audit policy; its first rule that fits decides."""
    rules = [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {
            "level": "Metadata",
            "userGroups": ["system:serviceaccounts"],
            "omitStages": ["RequestReceived"],
        },
        {"level": "None"},
    ]
    return json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}, indent=1)


def prepare(record: Record) -> None:
    """Write the policy where `arguments` says it is. Raises ClusterError."""
    make_folder(record.audit_log.parent)
    records.write_private(record.audit_log.parent / "policy.json", policy())


def arguments(record: Record) -> dict[str, str]:
    """Return what the API server has to be told."""
    return {
        "audit-policy-file": str(record.audit_log.parent / "policy.json"),
        "audit-log-path": str(record.audit_log),
        "audit-log-format": "json",
        # Written before the request is answered to its end: what a subject did before it was stopped is in the file by then.
        "audit-log-mode": "blocking",
        "audit-log-maxsize": str(MEGABYTES),
        "audit-log-maxbackup": str(KEPT),
    }
