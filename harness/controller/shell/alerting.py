"""Telling people: alerts, and webhooks of type event (spec canary-api 6 and 7).

Nothing here can hold up or fail a rollout. What is to be told waits in a queue for each Canary, in order, and is told beside the passes;
what cannot be told is logged. A queue that is full loses its newest, with a line in the log. Ending the controller ends it all.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import alerts
from harness.controller.core.alert_payloads import (
    DEFAULT_CHANNEL,
    DEFAULT_USERNAME,
    PAYLOADS,
    Message,
)
from harness.controller.core.analysis import webhooks
from harness.controller.core.names import GROUP, MANAGER
from harness.controller.shell.http import Http
from harness.controller.shell.posting import Post, Poster
from harness.controller.shell.references import BrokenReferenceError, References
from harness.controller.shell.wording import fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Self

    from harness.controller.core.decision import JSON, Alert, Note, Severity
    from harness.controller.shell.references import Referred
    from harness.kube.client import KubeClient

WAITING: Final = 100
"""Notes of one Canary that may wait; a receiver that hangs must not fill the memory."""
AT_ONCE: Final = 100
"""Canaries that are being told of at the same time."""
TIMEOUT: Final = 10.0
RETRIES: Final = 2
"""For alerts and the global event webhook; webhooks of a Canary state their own."""


@dataclass(frozen=True, slots=True)
class _Told:
    canary: JSON
    note: Note
    at: float


class Alerting:
    """Tells. An async context manager: leaving it ends what is under way and closes every connection."""

    def __init__(
        self,
        client: KubeClient,
        log: Any,
        clock: Callable[[], float],
        *,
        cluster_name: str = "",
        event_webhook: str = "",
        http: Http | None = None,
        api_group: str = GROUP,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._owns = http is None
        self._http = http or Http(user_agent=MANAGER)
        self._poster = Poster(self._http, sleep=sleep, clock=clock)
        self._references = References(client, group=api_group)
        self._log = log
        self._clock = clock
        self._cluster_name = cluster_name
        self._event_webhook = event_webhook
        self._queues: dict[str, deque[_Told]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give up what is under way, and close every connection, unless the client was given."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._owns:
            await self._http.close()

    async def idle(self) -> None:
        """Return when everything has been told, or given up."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def tell(self, canary: JSON, note: Note) -> None:
        """Tell of an event that was just recorded, and of its alert if it has one; returns at once."""
        uid = str(canary["metadata"].get("uid") or canary["metadata"]["name"])
        queue = self._queues.setdefault(uid, deque())
        if len(queue) >= WAITING:
            name = canary["metadata"]["name"]
            self._log.warning("not told", canary=name, message=f"{WAITING} notes wait already")
            return
        queue.append(_Told(canary, note, self._clock()))
        if len(queue) == 1:
            task = asyncio.get_running_loop().create_task(self._drain(uid), name=f"tell {uid}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _drain(self, uid: str) -> None:
        queue = self._queues[uid]
        try:
            while queue:
                async with self._turns:
                    told = queue[0]
                    await self._tell(told)
                    queue.popleft()
        finally:
            del self._queues[uid]

    async def _tell(self, told: _Told) -> None:
        try:
            await self.announce(told.canary, told.note.message, told.note.severity, told.at)
            if told.note.alert is not None:
                await self.send(told.canary, told.note.alert)
        except Exception as error:  # noqa: BLE001 - a fault of ours costs one message, not the next ones
            name = told.canary["metadata"]["name"]
            self._log.error("telling crashed", canary=name, **fault(error))

    async def announce(self, canary: JSON, message: str, severity: Severity, at: float) -> None:
        """Post an event to the Canary's webhooks of type event, or, when it has none, to the global one. Failures are logged."""
        hooks = webhooks.hooks(canary, webhooks.EVENT)
        for hook in hooks:
            post = Post(
                str(hook.get("url") or ""),
                webhooks.event_payload(canary, message, severity, at, hook),
                webhooks.timeout(hook),
                retries=webhooks.retries(hook),
                verify=not hook.get("disableTLS"),
            )
            await self._post(canary, "event webhook failed", str(hook.get("name") or ""), post)
        if not hooks and self._event_webhook:
            body = webhooks.event_payload(canary, message, severity, at)
            post = Post(self._event_webhook, body, TIMEOUT, retries=RETRIES)
            await self._post(canary, "event webhook failed", "--event-webhook", post)

    async def send(self, canary: JSON, alert: Alert) -> None:
        """Send an alert to everybody who wants its severity. Failures are logged, and stop nobody else's."""
        facts = alerts.facts(canary, alert, self._cluster_name)
        for recipient in alerts.recipients(canary, alert.severity):
            try:
                found = await self._references.alert_provider(
                    recipient.provider, recipient.namespace
                )
                post, kind = _alert_post(canary, alert, facts, found)
            except BrokenReferenceError as error:
                self._failed(canary, recipient.name, str(error))
                continue
            text = await self._post(canary, "alert failed", recipient.name, post)
            if kind == "slack" and (refused := _slack_refusal(text)):
                self._failed(canary, recipient.name, f"Slack refused it: {refused}")

    async def _post(self, canary: JSON, event: str, name: str, post: Post) -> str:
        posted = await self._poster.post(post)
        if not posted.ok:
            where = canary["metadata"]["name"]
            self._log.warning(event, canary=where, name=name, message=posted.message)
        return posted.text

    def _failed(self, canary: JSON, name: str, why: str) -> None:
        self._log.warning("alert failed", canary=canary["metadata"]["name"], name=name, message=why)


def _alert_post(
    canary: JSON, alert: Alert, facts: tuple[alerts.Fact, ...], found: Referred
) -> tuple[Post, str]:
    """Return what is posted, and the provider's type. Raises BrokenReferenceError."""
    spec: JSON = found.obj.get("spec") or {}
    meta = found.obj["metadata"]
    what = f"AlertProvider {meta['name']!r} in namespace {meta.get('namespace')!r}"
    kind = str(spec.get("type") or "")
    if kind not in PAYLOADS:
        msg = f"{what}: spec.type {kind!r} is not implemented; allowed: {', '.join(PAYLOADS)}"
        raise BrokenReferenceError(msg)
    address = (
        found.secret.get("address", "") if found.secret_name else str(spec.get("address") or "")
    )
    if not address:
        where = f"Secret {found.secret_name!r} has no key address" if found.secret_name else ""
        msg = f"{what}: {where or 'it has neither spec.address nor spec.secretRef'}"
        raise BrokenReferenceError(msg)
    meta = canary["metadata"]
    message = Message(
        meta["name"],
        meta["namespace"],
        alert.severity,
        alert.message,
        facts,
        str(spec.get("username") or DEFAULT_USERNAME),
        str(spec.get("channel") or DEFAULT_CHANNEL),
    )
    # The other formats carry their token in the address, and their servers refuse a header that they do not know.
    token = found.secret.get("token", "") if kind in {"slack", "generic"} else ""
    post = Post(
        address,
        PAYLOADS[kind](message, address),
        TIMEOUT,
        retries=RETRIES,
        proxy=str(spec.get("proxy") or ""),
        token=token,
        secrets=tuple(found.secret.values()),
    )
    return post, kind


def _slack_refusal(text: str) -> str:
    """Return what Slack's own API says against a message that it answers with 200; empty for none, and for everybody else's answers."""
    try:
        answer = json.loads(text)
    except ValueError:
        return ""
    if isinstance(answer, dict) and answer.get("ok") is False:
        return str(answer.get("error") or "no reason given")[:100]
    return ""
