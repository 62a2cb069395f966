"""Carrying calls out: what a pass wants to know of webhooks and metrics, asked now and never remembered.

How long a call may take (A14): a webhook at most retries + 1 times its timeout and the waits between, a metric one timeout. It runs beside
the watches, so only its own Canary waits for it; cancelling it closes its connection. Where the rate of queries is limited a metric waits for its turn
before that, however long that takes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.analysis import metrics, webhooks
from harness.controller.core.analysis.render import QueryError, render
from harness.controller.core.calls import Answer, Call
from harness.controller.core.names import GROUP, MANAGER
from harness.controller.shell.http import Http
from harness.controller.shell.meter import Meter
from harness.controller.shell.metric_sources import unsupported_source
from harness.controller.shell.metric_sources.base import Query, QueryFailedError, UndecidedError
from harness.controller.shell.metric_sources.providers import Providers
from harness.controller.shell.posting import Post, Poster
from harness.controller.shell.references import BrokenReferenceError, References
from harness.controller.shell.wording import fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Self

    from harness.controller.core.decision import JSON
    from harness.kube.client import KubeClient

METRICS_SERVER: Final = "http://prometheus:9090"
"""Where built-in and inline queries go by default (spec canary-api 2)."""
METRIC_TIMEOUT: Final = 10.0


class Calls:
    """Asks. An async context manager: leaving it closes every connection."""

    def __init__(
        self,
        client: KubeClient,
        log: Any,
        clock: Callable[[], float],
        *,
        metrics_server: str = METRICS_SERVER,
        http: Http | None = None,
        api_group: str = GROUP,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        metric_timeout: float = METRIC_TIMEOUT,
        metrics_rate: float | None = None,
        metrics_burst: int = 1,
        meter: Meter | None = None,
    ) -> None:
        self._owns = http is None
        self._http = http or Http(user_agent=MANAGER)
        self._poster = Poster(self._http, sleep=sleep, clock=clock)
        self._providers = Providers(
            self._http, log, clock, meter or Meter(), rate=metrics_rate, burst=metrics_burst
        )
        self._references = References(client, group=api_group)
        self._log = log
        self._clock = clock
        self._metrics_server = metrics_server
        self._metric_timeout = metric_timeout

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
        """Close every connection, unless the client was given."""
        if self._owns:
            await self._http.close()

    async def carry_out(self, call: Call, canary: JSON) -> Answer:
        """Ask, and return what came back. Raises nothing but CancelledError."""
        try:
            if call.kind == "webhook":
                answer = await self._webhook(call)
            else:
                answer = await self._metric(call, canary)
        except Exception as error:  # noqa: BLE001 - a fault of ours is a failed check here, and must not stop other Canaries
            self._log.error("call crashed", kind=call.kind, name=call.name, **fault(error))
            answer = Answer(self._clock(), ok=False, message=f"unexpected {type(error).__name__}")
        meta = canary["metadata"]
        why = {"undecided": answer.undecided} if answer.undecided else {}
        self._log.info(
            "called",
            canary=meta["name"],
            kind=call.kind,
            name=call.name,
            ok=answer.ok,
            value=answer.value,
            message=answer.message,
            **why,
        )
        return answer

    async def unsupported(self, canary: JSON) -> str:
        """Return why a metric of this Canary can never be measured here, with its name; empty when all can (G1).

        A template that is not there yet, or cannot be read, is no such reason: its check fails, and says so.
        """
        for entry in metrics.entries(canary):
            if metrics.source(entry) != "template":
                continue
            name, namespace = _reference(entry, canary)
            try:
                template = await self._references.template(name, namespace)
            except BrokenReferenceError:
                continue
            if problem := unsupported_source(template):
                return f"spec.analysis.metrics ({entry.get('name')}): {problem}"
        return ""

    async def _webhook(self, call: Call) -> Answer:
        hook = call.entry
        post = Post(
            str(hook.get("url") or ""),
            call.payload,
            webhooks.timeout(hook),
            retries=webhooks.retries(hook),
            verify=not hook.get("disableTLS"),
        )
        posted = await self._poster.post(post)
        return Answer(self._clock(), ok=posted.ok, message=posted.message)

    async def _metric(self, call: Call, canary: JSON) -> Answer:
        try:
            kind, query = await self._query(call, canary)
            value = await self._providers.ask(kind, query)
        except QueryError as error:
            return metrics.failed(f"query: {error}", self._clock())
        except UndecidedError as error:
            now = self._clock()
            return metrics.undecided(str(error), now, error.reason, error.retry_after)
        except (QueryFailedError, BrokenReferenceError) as error:
            return metrics.failed(str(error), self._clock())
        return metrics.answered(value, self._clock())

    async def _query(self, call: Call, canary: JSON) -> tuple[str, Query]:
        entry = call.entry
        if metrics.source(entry) == "template":
            return await self._by_template(call, canary)
        address = str(canary["spec"].get("metricsServer") or self._metrics_server)
        text = metrics.query(canary, entry, call.payload)
        return "prometheus", Query(text, {"address": address}, timeout=self._metric_timeout)

    async def _by_template(self, call: Call, canary: JSON) -> tuple[str, Query]:
        found = await self._references.metric_source(*_reference(call.entry, canary))
        if problem := unsupported_source(found.obj):
            raise QueryFailedError(problem)
        spec = found.obj["spec"]
        text = render(str(spec.get("query") or ""), call.payload)
        provider = spec["provider"]
        query = Query(text, provider, found.secret, found.secret_name, timeout=self._metric_timeout)
        return str(provider["type"]), query


def _reference(entry: JSON, canary: JSON) -> tuple[str, str]:
    """Return name and namespace of an entry's MetricTemplate."""
    reference = entry["templateRef"]
    return str(reference.get("name") or ""), str(
        reference.get("namespace") or canary["metadata"]["namespace"]
    )
