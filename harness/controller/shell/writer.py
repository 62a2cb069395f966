"""Carrying a Decision out: each write with its precondition, then the events, then the status."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.moments import stamp
from harness.controller.core.names import KIND, MANAGER, api_version
from harness.controller.core.refresh import refreshed
from harness.controller.shell.cache import CANARIES, Cache
from harness.controller.shell.kinds import RESOURCES
from harness.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
)
from harness.kube.resource import EVENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.controller.core import Decision, Note, Write
    from harness.controller.core.decision import JSON
    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource

COMPONENT: Final = "rollout-drill"
_REMEMBERED: Final = 2000
_VERBS: Final = {"create": "create", "patch": "patch", "replace": "update", "delete": "delete"}
_NAME_PART: Final = 200


class Writer:
    """Writes to one namespace. Answers go straight into the cache."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        cache: Cache,
        log: Any,
        clock: Callable[[], float],
        *,
        resources: Mapping[str, Resource] = RESOURCES,
        saw_status: Callable[[JSON, JSON], None] = lambda _sent, _answer: None,
        tell: Callable[[JSON, Note], None] = lambda _canary, _note: None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._cache = cache
        self._log = log
        self._clock = clock
        self._resources = resources
        self._saw_status = saw_status
        self._tell = tell
        self._noted: OrderedDict[str, None] = OrderedDict()

    async def carry_out(self, canary: JSON, decision: Decision) -> None:
        """Do everything a Decision says, in order; the first refusal ends it.

        Raises KubeError. A Conflict means that the decision was made on an old state: the watch will bring the new one.
        """
        for write in decision.writes:
            answer = await self._write(write)
            decision = refreshed(decision, write, answer)
        for note in decision.notes:
            await self.note(canary, note)
        if decision.status is not None:
            await self._write_status(canary, decision.status)

    async def note(self, canary: JSON, note: Note) -> None:
        """Record an event once. A refusal is logged and no more: events must not hold up a rollout."""
        meta = canary["metadata"]
        digest = hashlib.sha256(f"{meta['uid']}|{note.key}".encode()).hexdigest()[:16]
        name = f"{meta['name'][:_NAME_PART]}.{digest}"
        if name in self._noted:
            return
        try:
            await self._client.create(
                EVENT,
                _event(canary, note, name, self._clock()),
                self._namespace,
                field_manager=MANAGER,
            )
        except AlreadyExists:
            pass  # noted before a restart
        except KubeError as error:
            self.log_refusal(error, "create", EVENT.path(self._namespace))
            return
        else:
            # Only what is new is told: an event that is there already was told before a restart.
            self._tell(canary, note)
        self._noted[name] = None
        while len(self._noted) > _REMEMBERED:
            self._noted.popitem(last=False)

    def log_refusal(self, error: KubeError, verb: str, path: str) -> None:
        """Log what the API server refused; a permission that is missing in the form that the harness looks for."""
        if isinstance(error, Forbidden) and lacks_permission(error):
            self._log.error("forbidden", verb=verb, path=path, message=error.message)
        elif isinstance(error, Conflict):
            self._log.info(
                "conflict", verb=verb, path=path
            )  # somebody else was faster: decide anew
        else:
            status = error.status if isinstance(error, ApiError) else None
            self._log.warning("refused", verb=verb, path=path, status=status, message=str(error))

    async def _write(self, write: Write) -> JSON:
        resource = self._resources[write.resource]
        try:
            answer = await self._send(resource, write)
        except KubeError as error:
            name = None if write.verb == "create" else write.name
            self.log_refusal(error, _VERBS[write.verb], resource.path(self._namespace, name))
            raise
        self._log.info("wrote", verb=write.verb, resource=write.resource, name=write.name)
        if write.verb == "delete":
            if write.uid:
                self._took_away(write, answer)
            return answer
        if answer["metadata"].get("deletionTimestamp") and not answer["metadata"].get("finalizers"):
            # Our own write took the last finalizer away: the object is gone, and the answer is the last that is heard of it.
            self._cache.remove(write.resource, answer)
        else:
            self._cache.put(write.resource, answer)
        return answer

    def _took_away(self, write: Write, answer: JSON) -> None:
        """Take note that an object is gone, or on its way, so that the next pass does not delete it again before the watch tells."""
        if (answer.get("metadata") or {}).get("uid") == write.uid:
            self._cache.put(write.resource, answer)  # finalizers of others hold it
        else:
            gone: JSON = {"metadata": {"name": write.name, "uid": write.uid}}
            self._cache.remove(write.resource, gone)

    async def _send(self, resource: Resource, write: Write) -> JSON:
        client, namespace = self._client, self._namespace
        if write.verb == "create":
            return await client.create(resource, write.body, namespace, field_manager=MANAGER)
        if write.verb == "delete":
            try:
                return await client.delete(
                    resource,
                    write.name,
                    namespace,
                    uid=write.uid or None,
                    version=write.precondition if write.uid else None,
                )
            except NotFound:
                return write.body
        body = _with_precondition(write.body, write.precondition)
        if write.verb == "replace":
            return await client.replace(resource, body, namespace, field_manager=MANAGER)
        return await client.patch(resource, write.name, namespace, body, field_manager=MANAGER)

    async def _write_status(self, canary: JSON, status: JSON) -> None:
        meta = canary["metadata"]
        body = _with_precondition({"status": status}, meta["resourceVersion"])
        canaries = self._resources[CANARIES]
        try:
            answer = await self._client.patch(
                canaries,
                meta["name"],
                self._namespace,
                body,
                field_manager=MANAGER,
                subresource="status",
            )
        except KubeError as error:
            path = canaries.path(self._namespace, meta["name"], "status")
            self.log_refusal(error, "patch", path)
            raise
        self._cache.put(CANARIES, answer)
        self._saw_status(status, answer)


def terminating(error: ApiError) -> bool:
    """Whether the namespace is being deleted and takes nothing new."""
    causes = error.details.get("causes") or []
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def lacks_permission(error: Forbidden) -> bool:
    """Whether the authoriser refused it. A quota or a policy answers with the same status, but not in its words."""
    return " cannot " in error.message and not terminating(error)


def _with_precondition(body: JSON, version: str) -> JSON:
    return {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": version}}


def _event(canary: JSON, note: Note, name: str, now: float) -> JSON:
    meta = canary["metadata"]
    moment = stamp(now).split(".", maxsplit=1)[0] + "Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": meta["namespace"]},
        "involvedObject": {
            "apiVersion": api_version(canary),
            "kind": KIND,
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "reason": "Synced",
        "message": note.message,
        "type": note.severity,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
