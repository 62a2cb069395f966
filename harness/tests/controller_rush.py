"""Many Canaries that change at once, under a controller that may be killed: who was under analysis when, and in which order they began."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from harness.controller.core import conditions as cond
from harness.controller.core import line
from harness.controller.options import Options
from harness.controller.shell import log as logs
from harness.controller.shell.engine import Engine
from harness.kube.client import KubeClient
from harness.kube.resource import CANARY
from harness.kube.retry import Budget
from harness.kube.testing import FakeCluster
from harness.kube.watch import Listed, watch
from harness.tests.controller_mortal import Life, Mortal
from harness.tests.controller_rolling import rolling
from harness.tests.controller_sim import START, image, merge
from harness.tests.test_controller_scale import settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harness.controller.shell.meter import Meter

JSON = dict[str, Any]


class Rush:
    """So many Canaries with 2 iterations of 2 s each; pods take a second."""

    def __init__(self, many: int, limit: int | None, **spec: Any) -> None:
        self.cluster = FakeCluster()
        self.names = [f"web{number:02d}" for number in range(many)]
        self.limit = limit
        self.stream = io.StringIO()
        self.began: list[str] = []
        """In the order in which their analyses began; again when one starts over."""
        self.most = 0
        """The most that were under analysis at any moment."""
        self._busy: set[str] = set()
        self._seen: dict[tuple[str, int], float] = {}
        for number, name in enumerate(self.names):
            for obj in _named(settled(number), f"web{number}", name):
                if obj["kind"] == "Canary":
                    obj["spec"] = merge(obj["spec"], spec)
                self.cluster.add(obj)

    # -- time --------------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def controller(
        self, life: Life | None = None, meter: Meter | None = None, **options: Any
    ) -> AsyncIterator[Life]:
        """A controller process, ended the hard way: at the end, or when its life is over."""
        life = life or Life()
        loop = asyncio.get_running_loop()
        transport = Mortal(self.cluster, life)
        client = KubeClient(transport, user_agent="rollout-drill/test", budget=Budget(total=1.0))
        more = {"max_concurrent_analyses": self.limit} | options
        log, clock = logs.to(self.stream), lambda: START + loop.time()
        engine = Engine(client, Options("n", **more), log, clock, meter=meter)
        others = rolling(self.cluster, self._seen, pause=0.5), self._look()
        tasks = [asyncio.create_task(work) for work in (engine.run(), *others)]
        try:
            yield life
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        """See every state that every Canary has been in."""
        async for event in watch(self.cluster.client(), CANARY, "n"):
            if isinstance(event, Listed):
                for obj in event.items:
                    self._note(obj)
            elif event.type != "DELETED":
                self._note(event.object)

    def _note(self, obj: JSON) -> None:
        name = obj["metadata"]["name"]
        if line.holds(obj) and name not in self._busy:
            self._busy.add(name)
            self.began.append(name)
        elif not line.holds(obj):
            self._busy.discard(name)
        self.most = max(self.most, len(self._busy))

    async def until(self, holds: Callable[[], bool], within: float = 600.0) -> None:
        try:
            async with asyncio.timeout(within):
                while not holds():  # noqa: ASYNC110 - a virtual clock does not wait
                    await asyncio.sleep(0.5)
        except TimeoutError:
            msg = f"still {self.phases()} after {within} s"
            raise AssertionError(msg) from None

    async def settled(self) -> None:
        """Wait until all of them are taken over and the controller has nothing to do."""
        await asyncio.sleep(5)
        self.cluster.requests.clear()

    # -- what there is -----------------------------------------------------------------------------------------------

    def canary(self, name: str) -> JSON:
        return self.cluster.get("Canary", name, "n") or {}

    def phase(self, name: str) -> str:
        return str((self.canary(name).get("status") or {}).get("phase") or "")

    def phases(self) -> Counter[str]:
        return Counter(self.phase(name) for name in self.names)

    def done(self) -> bool:
        """Whether every one that is there runs the new revision."""
        return all(self.image(f"{name}-primary") == "app:2" for name in self.names) and set(
            self.phases()
        ) == {"Succeeded"}

    def image(self, name: str) -> str:
        found = self.cluster.get("Deployment", name, "n") or {}
        return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

    def queued(self) -> list[str]:
        """Who is in the line, by the conditions alone."""
        return [
            name
            for name in self.names
            if cond.find(self.canary(name).get("status") or {}, cond.QUEUED)
        ]

    def events(self, begin: str) -> Counter[str]:
        """How many events of each Canary begin like that."""
        return Counter(
            event["involvedObject"]["name"]
            for event in self.cluster.objects("Event", "n")
            if event["message"].startswith(begin)
        )

    def logged(self, event: str) -> list[JSON]:
        lines = (json.loads(text) for text in self.stream.getvalue().splitlines())
        return [one for one in lines if one["event"] == event]

    # -- what happens ------------------------------------------------------------------------------------------------

    def change(self, *names: str, to: str = "app:2") -> None:
        for name in names or self.names:
            found = self.cluster.get("Deployment", name, "n") or {}
            generation = {"metadata": {"generation": found["metadata"]["generation"] + 1}}
            self.cluster.update("Deployment", name, "n", merge(image(to), generation))

    def edit(self, name: str, change: JSON) -> None:
        self.cluster.update("Canary", name, "n", change)


def _named(objects: list[JSON], old: str, new: str) -> list[JSON]:
    """Give them names of equal length, so that their order is that of their numbers."""
    text = json.dumps(objects).replace(f'"{old}-primary"', f'"{new}-primary"')
    renamed: list[JSON] = json.loads(text.replace(f'"{old}"', f'"{new}"'))
    return renamed
