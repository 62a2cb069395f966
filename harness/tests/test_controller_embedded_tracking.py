"""Change detection on a real control plane: statuses of others, drift, a second writer, a CRD that prunes the fence."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import secrets
import time
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.moments import seconds
from harness.controller.core.pruned import ANNOTATION
from harness.kube.client import KubeClient
from harness.kube.errors import Conflict
from harness.kube.resource import CANARY, CRD, DEPLOYMENT, EVENT, NAMESPACE, REPLICASET
from harness.kube.watch import Listed, watch
from harness.tests.controller_handover import LEGACY, TRACKING, annotation, keyed
from harness.tests.controller_sim import canary, image
from harness.tests.test_controller_embedded import ME, Place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
WITHIN = 90.0
"""Seconds for anything to come about on a busy machine."""


class Scene(Place):
    """A Place whose Canary is settled and whose controller is stopped, and every status that the watch has seen since."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        super().__init__(client, namespace)
        self.seen: list[JSON] = []
        self._changed = asyncio.Event()

    async def settle(self) -> None:
        await self.start()
        for res, obj in (
            (DEPLOYMENT, merged(keyed(), {"spec": {"replicas": 2}})),
            (CANARY, canary(analysis={"interval": "1s", "threshold": 1, "iterations": 1})),
        ):
            obj["metadata"]["namespace"] = self.namespace
            await self.client.create(res, obj, self.namespace, field_manager=ME)
        await self.until(lambda: self.phase == "Initialized", "Initialized")
        await self.at_rest()
        await self.subject.stop()
        del self.seen[:-1]

    async def follow_status(self) -> None:
        async for event in watch(self.client, CANARY, self.namespace):
            for obj in event.items if isinstance(event, Listed) else [event.object]:
                self.seen.append(obj)
                self._changed.set()

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds that follows from the statuses seen."""
        try:
            async with asyncio.timeout(WITHIN):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            msg = f"not {what} within {WITHIN:g} s; seen last: {self.seen[-1:]}"
            raise AssertionError(msg) from None

    async def at_rest(self) -> None:
        """Wait until the controller has looked at the present state and found nothing to do: its log says so."""
        for _ in range(int(WITHIN / 0.05)):
            lines = self.access.log.read_text(encoding="utf-8").splitlines()[self.mark :]
            looks = [row for row in map(json.loads, lines) if row["event"] == "looked"]
            if looks and looks[-1]["row"] == "unchanged" and self.tracked_state():
                return
            await asyncio.sleep(0.05)
        msg = f"the controller did not come to rest within {WITHIN:g} s: {looks[-3:]}"
        raise AssertionError(msg)

    mark = 0
    """Line of the log from which on it is read."""

    async def start(self) -> None:
        log = self.access.log
        self.mark = len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0
        await super().start()

    def tracked_state(self) -> bool:
        return str(self.status.get("lastAppliedSpec") or "").startswith("v2:")

    @property
    def status(self) -> JSON:
        return (self.seen[-1].get("status") or {}) if self.seen else {}

    @property
    def phase(self) -> str:
        return str(self.status.get("phase") or "")

    @property
    def phases(self) -> list[str]:
        found: list[str] = []
        for obj in self.seen:
            phase = str((obj.get("status") or {}).get("phase") or "")
            if found[-1:] != [phase]:
                found.append(phase)
        return found

    def tracking_writes(self) -> int:
        """How often the tracking fields changed, what the test itself wrote included."""
        states = [[(o.get("status") or {}).get(key) for key in TRACKING] for o in self.seen]
        return sum(one != other for one, other in itertools.pairwise(states))

    async def patch_status(self, patch: JSON, manager: str = "somebody") -> JSON:
        return await self.client.patch(
            CANARY,
            "web",
            self.namespace,
            {"status": patch},
            field_manager=manager,
            subresource="status",
        )

    async def patch_target(self, patch: JSON) -> None:
        await self.client.patch(DEPLOYMENT, "web", self.namespace, patch, field_manager=ME)

    async def as_flagger_left_it(self) -> None:
        """Give primary and status the form of a Flagger that did not know matchLabelKeys."""
        primary = await self.client.get(DEPLOYMENT, "web-primary", self.namespace)
        template = copy.deepcopy(primary["spec"]["template"])
        template["metadata"]["annotations"] = {"flagger-id": "0b24c2de-7f0b-4d8e-9a42-f2b6b8d1a111"}
        anti = template["spec"]["affinity"]["podAntiAffinity"]
        del anti["requiredDuringSchedulingIgnoredDuringExecution"][0]["matchLabelKeys"]
        spec = [{"op": "replace", "path": "/spec/template", "value": template}]
        await self.client.patch(
            DEPLOYMENT, "web-primary", self.namespace, spec, field_manager="flagger", kind="json"
        )
        # What happens within one second cannot be told apart afterwards; a Flagger takes longer than that to get here.
        made = seconds(primary["metadata"]["creationTimestamp"])
        assert made is not None
        await asyncio.sleep(max(made + 1.05 - time.time(), 0.0))
        # Whole seconds, as its types write them; the API server's own time stands in managedFields.
        moment = str(self.status["lastTransitionTime"]).split(".", maxsplit=1)[0].rstrip("Z") + "Z"
        legacy: JSON = {
            "lastAppliedSpec": LEGACY,
            "lastPromotedSpec": LEGACY,
            "lastTransitionTime": moment,
        }
        legacy |= {
            "lastTrackedRevision": None,
            "trackedConfigs": {"configmap/web": "241889ca0604e333"},
        }
        written = await self.patch_status(legacy, "flagger")
        await self.until(
            lambda: (
                self.seen[-1]["metadata"]["resourceVersion"]
                == written["metadata"]["resourceVersion"]
            ),
            "the other controller's status",
        )
        self.seen[:-1] = []

    async def current_replica_set(self) -> tuple[str, str]:
        """Return revision and template hash of the target's current ReplicaSet: a witness that nothing of ours writes."""
        target = await self.client.get(DEPLOYMENT, "web", self.namespace)
        number = target["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
        items, _ = await self.client.list(REPLICASET, self.namespace, label_selector="app=web")
        hashes = [
            item["metadata"]["labels"]["pod-template-hash"]
            for item in items
            if item["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == number
        ]
        return number, hashes[0]

    async def warnings(self) -> list[str]:
        events, _ = await self.client.list(EVENT, self.namespace)
        ours = [e for e in events if (e.get("source") or {}).get("component") == "rollout-drill"]
        return [event["message"] for event in ours if event["type"] == "Warning"]


def merged(base: JSON, patch: JSON) -> JSON:
    result = copy.deepcopy(base)
    for key, value in patch.items():
        result[key] = result[key] | value
    return result


@pytest.fixture
def play(warm_cluster: EmbeddedCluster, tmp_path: Path) -> Callable[[Story], None]:
    """Run a story in a namespace of its own, over a settled Canary whose controller is stopped."""

    async def run(story: Story) -> None:
        async with await KubeClient.connect(
            warm_cluster.kubeconfig, warm_cluster.context, user_agent="rollout-drill/test"
        ) as client:
            scene = Scene(client, f"track-{secrets.token_hex(3)}")
            await scene.prepare(warm_cluster.kubeconfig, warm_cluster.context, tmp_path)
            following = asyncio.create_task(scene.follow_status())
            try:
                await scene.settle()
                await story(scene)
                assert scene.forbidden == []
            finally:
                following.cancel()
                await scene.subject.kill()
                await client.delete(NAMESPACE, scene.namespace)

    return lambda story: asyncio.run(run(story))


if TYPE_CHECKING:
    Story = Callable[[Scene], Awaitable[None]]


def test_a_status_of_another_controller_is_taken_over_and_starts_nothing(
    play: Callable[[Story], None],
) -> None:
    async def story(scene: Scene) -> None:
        await scene.as_flagger_left_it()
        witness = await scene.current_replica_set()
        await scene.start()
        await scene.at_rest()
        assert scene.phases == ["Initialized"]
        assert scene.tracking_writes() == 1
        assert scene.status["trackedConfigs"] == {}  # the template refers to none
        assert await scene.current_replica_set() == witness
        (said,) = await scene.warnings()
        assert "matchLabelKeys" in said
        # And from then on it is one of ours.
        await scene.patch_target(image("app:2"))
        await scene.until(lambda: scene.phase == "Succeeded", "Succeeded")
        assert scene.phases.count("Progressing") == 1

    play(story)


def test_a_change_while_nobody_watched_is_analysed_once(play: Callable[[Story], None]) -> None:
    async def story(scene: Scene) -> None:
        await scene.as_flagger_left_it()
        await scene.patch_target(annotation("meanwhile"))
        await scene.start()
        await scene.until(lambda: scene.phase == "Succeeded", "Succeeded")
        await scene.at_rest()
        assert scene.phases == [
            "Initialized",
            "Progressing",
            "Promoting",
            "Finalising",
            "Succeeded",
        ]
        primary = await scene.client.get(DEPLOYMENT, "web-primary", scene.namespace)
        assert primary["spec"]["template"]["metadata"]["annotations"]["note"] == "meanwhile"
        assert await scene.warnings() == []

    play(story)


def test_scaled_while_nobody_watched_starts_nothing(play: Callable[[Story], None]) -> None:
    async def story(scene: Scene) -> None:
        await scene.as_flagger_left_it()
        # By the manager that also owns the template: its time in managedFields moves.
        await scene.patch_target({"spec": {"replicas": 1}})
        await scene.start()
        await scene.at_rest()
        assert scene.phases == ["Initialized"]
        assert scene.tracking_writes() == 1

    play(story)


def test_a_hash_that_drifted_is_absorbed_by_the_fence(play: Callable[[Story], None]) -> None:
    async def story(scene: Scene) -> None:
        right = dict((await scene.canary())["status"])
        drifted = {
            "lastAppliedSpec": "v2:0123456789abcdef",
            "lastPromotedSpec": "v2:0123456789abcdef",
        }
        await scene.patch_status(drifted)
        del scene.seen[:-1]
        await scene.start()
        await scene.until(
            lambda: scene.status.get("lastAppliedSpec") == right["lastAppliedSpec"], "absorbed"
        )
        await scene.at_rest()
        assert scene.phases == ["Initialized"]
        assert {key: scene.status[key] for key in TRACKING} == {key: right[key] for key in TRACKING}
        assert scene.tracking_writes() <= 2, "the test's own, if it was still seen, and one of ours"

    play(story)


def test_a_concurrent_writer_is_never_overwritten(play: Callable[[Story], None]) -> None:
    async def story(scene: Scene) -> None:
        await scene.as_flagger_left_it()
        starting = asyncio.create_task(scene.start())
        number = 0
        while not starting.done() or not scene.tracked_state():
            number += 1
            await scene.patch_status({"failedChecks": number})
        await starting
        await scene.at_rest()
        assert scene.phases == ["Initialized"]
        assert scene.tracking_writes() == 1
        assert (await scene.canary())["status"]["failedChecks"] == number

    play(story)


def test_a_crd_that_prunes_the_fence_degrades_visibly_and_heals(
    play: Callable[[Story], None],
) -> None:
    async def story(scene: Scene) -> None:
        whole = await scene.client.get(CRD, "canaries.flagger.app")
        try:
            await replace_crd(scene.client, without_fence(whole["spec"]))
            await scene.as_flagger_left_it()
            await scene.start()
            await scene.until(lambda: bool(annotated(scene)) and degraded(scene), "degraded")
            assert scene.phases == ["Initialized"]
            assert "lastTrackedRevision" not in scene.status
            # What a controller without a fence swallows: no image changes.
            await scene.patch_target(annotation("x"))
            await scene.until(lambda: scene.phase == "Succeeded", "Succeeded")
            assert scene.phases.count("Progressing") == 1
            await replace_crd(scene.client, whole["spec"])
            await scene.until(
                lambda: (
                    not annotated(scene)
                    and not degraded(scene)
                    and bool(scene.status.get("lastTrackedRevision"))
                ),
                "healed",
            )
            assert scene.phase == "Succeeded"
            told = [text for text in await scene.warnings() if "lastTrackedRevision" in text]
            assert len(told) == 1
        finally:
            # To the letter: other tests share the cluster, and a drill uses none whose CRD is another one.
            await replace_crd(scene.client, whole["spec"])

    play(story)


def annotated(scene: Scene) -> str:
    return str((scene.seen[-1]["metadata"].get("annotations") or {}).get(ANNOTATION) or "")


def degraded(scene: Scene) -> bool:
    return any(entry["type"] == "Degraded" for entry in scene.status.get("conditions") or [])


def without_fence(spec: JSON) -> JSON:
    """The same CRD with no place for the fence."""
    spec = copy.deepcopy(spec)
    for version in spec["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        del status["lastTrackedRevision"]
    return spec


async def replace_crd(client: KubeClient, spec: JSON) -> None:
    """Make this what the cluster serves."""
    async with asyncio.timeout(WITHIN):
        while True:
            crd = await client.get(CRD, "canaries.flagger.app")
            crd["spec"] = spec
            try:
                await client.replace(CRD, crd, field_manager=ME)
            except Conflict:
                continue
            return
