"""Requests to an embedded API server while it comes up and before it goes.

Only for bootstrapping: it answers a handful of blocking questions, needs nothing but the standard library, and takes a
refused connection for an answer. Everything else goes through harness.kube.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from typing import TYPE_CHECKING, Any, Final

from harness.clusters.base import ClusterError
from harness.clusters.embedded.records import write_private

if TYPE_CHECKING:
    from harness.clusters.embedded.records import Record

SECONDS: Final = 5.0


class Api:
    """The API server of one cluster, seen by its administrator."""

    def __init__(self, record: Record) -> None:
        certificates = record.workdir / "pki"
        self._port = record.ports["kubeApiserverPort"]
        try:
            self._context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
            self._context.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
        except (OSError, ssl.SSLError) as error:
            msg = f"Embedded cluster {record.name!r} has no usable certificates in {certificates}."
            raise ClusterError(msg) from error

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and body, parsed where it is JSON; status 0 when nothing answered."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=SECONDS, context=self._context
        )
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json", "User-Agent": "rollout-drill"},
            )
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text

    def exists(self, path: str) -> bool:
        """Whether an object is there."""
        return self.request("GET", path)[0] == http.HTTPStatus.OK

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object and return it; ClusterError quotes the refusal."""
        status, answer = self.request("POST", path, body)
        if status != http.HTTPStatus.CREATED or not isinstance(answer, dict):
            said = answer.get("message", answer) if isinstance(answer, dict) else answer
            msg = f"The embedded API server did not create {body.get('kind')} {body['metadata']}: {said}."
            raise ClusterError(msg)
        return answer


def write_kubeconfig(record: Record) -> None:
    """Write the administrator's kubeconfig, which needs no other file, with mode 0600."""
    certificates = record.workdir / "pki"

    def encoded(name: str) -> str:
        return base64.b64encode((certificates / name).read_bytes()).decode("ascii")

    server = f"https://127.0.0.1:{record.ports['kubeApiserverPort']}"
    user = {
        "client-certificate-data": encoded("admin.crt"),
        "client-key-data": encoded("admin.key"),
    }
    cluster = {"server": server, "certificate-authority-data": encoded("ca.crt")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": record.name,
        "clusters": [{"name": record.name, "cluster": cluster}],
        "users": [{"name": record.name, "user": user}],
        "contexts": [
            {"name": record.name, "context": {"cluster": record.name, "user": record.name}}
        ],
    }
    write_private(record.kubeconfig, json.dumps(document, indent=1))
