"""What is watched and what of it is kept: kinds that somebody needs, configs that somebody refers to."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.configs import checksum
from harness.controller.shell.cache import CANARIES, DEPLOYMENTS, Cache
from harness.controller.shell.engine import SHARED_RETRY
from harness.controller.shell.kinds import RESOURCES
from harness.controller.shell.schema import published
from harness.controller.shell.slim import slim
from harness.kube.resource import CANARY
from harness.kube.testing import run_virtual
from harness.tests.controller_sim import (
    canary,
    configmap,
    deployment,
    image,
    merge,
    target_ref,
    with_configmap,
)
from harness.tests.controller_stories_routed import GATEWAY
from harness.tests.test_controller_shell import Stage, versioned

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON = dict[str, Any]
ROUTES = RESOURCES["httproutes"]


def watched(stage: Stage) -> set[str]:
    return {
        asked.path.rpartition("/")[2] for asked in stage.cluster.requests if asked.verb == "watch"
    }


def secret(name: str = "login", user: str = "Zmlyc3Q=") -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "n"},
        "type": "Opaque",
        "data": {"user": user},
    }


def with_login(obj: JSON) -> JSON:
    """That workload, with a Secret in the environment of its container as well."""
    sources = [{"secretRef": {"name": "login"}}]
    obj["spec"]["template"]["spec"]["containers"][0].setdefault("envFrom", []).extend(sources)
    return obj


def conditions(stage: Stage, name: str = "web") -> dict[str, JSON]:
    found = stage.cluster.get("Canary", name, "n") or {}
    return {c["type"]: c for c in (found.get("status") or {}).get("conditions") or []}


def phase(stage: Stage, name: str) -> str:
    found = stage.cluster.get("Canary", name, "n") or {}
    return str((found.get("status") or {}).get("phase") or "")


def add(stage: Stage, *objects: JSON) -> None:
    for obj in objects:
        stage.cluster.add(merge(obj, {"metadata": {"generation": 1}}))


def other(name: str = "other", **spec: Any) -> tuple[JSON, JSON]:
    """A second Deployment with a Canary."""
    target = deployment(name)
    target["spec"]["selector"]["matchLabels"]["app"] = name
    target["spec"]["template"]["metadata"]["labels"]["app"] = name
    rollout: JSON = merge(canary(**spec), {"metadata": {"name": name}})
    rollout["spec"]["targetRef"]["name"] = name
    return target, rollout


# -- which kinds -------------------------------------------------------------------------------------------------------------


def test_blue_green_deployments_need_five_kinds() -> None:
    async def story() -> Stage:
        stage = Stage()
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            stage.change("app:2")
            await stage.reaches("Succeeded")
        return stage

    stage = run_virtual(story())
    assert watched(stage) == {"canaries", "deployments", "services", "configmaps", "secrets"}
    listed = {asked.path.rpartition("/")[2] for asked in stage.cluster.asked("list")}
    assert listed == watched(stage)


def test_without_config_tracking_no_config_is_read() -> None:
    async def story() -> Stage:
        stage = Stage()
        async with stage.controller(config_tracking=False):
            add(stage, configmap(), secret(), with_login(with_configmap(deployment())), canary())
            await stage.reaches("Initialized")
        return stage

    stage = run_virtual(story())
    assert watched(stage) == {"canaries", "deployments", "services"}
    assert stage.cluster.get("ConfigMap", "settings-primary", "n") is None
    assert "Warned" not in conditions(stage), "it was meant so"


def test_an_empty_namespace_needs_three_and_a_kind_comes_with_its_first_canary() -> None:
    async def story() -> list[set[str]]:
        stage = Stage(ROUTES)
        seen = []
        async with stage.controller():
            await asyncio.sleep(1)
            seen.append(watched(stage))
            stage.apply(**GATEWAY)
            await asyncio.sleep(1)
            seen.append(watched(stage))
        return seen

    empty, routed = run_virtual(story())
    assert empty == {"canaries", "deployments", "services"}
    assert routed - empty == {"configmaps", "secrets", "httproutes"}


def test_configs_are_listed_after_the_targets_so_nothing_is_read_one_by_one() -> None:
    async def story() -> Stage:
        stage = Stage()
        add(stage, configmap(), secret(), with_login(with_configmap(deployment())), canary())
        async with stage.controller():
            await stage.reaches("Initialized")
        stage.cluster.requests.clear()
        async with stage.controller():
            await asyncio.sleep(5)
        return stage

    stage = run_virtual(story())
    assert not any("fieldSelector" in asked.params for asked in stage.cluster.asked("list"))
    assert [asked.path for asked in stage.cluster.asked("get")] == [published(CANARY)]


def test_configs_wait_for_the_kind_of_the_target() -> None:
    cache = Cache(configs=True)
    rollout = canary(targetRef=target_ref("DaemonSet"))
    cache.put(CANARIES, versioned(rollout, 1))
    cache.replace("services", [])
    assert set(cache.due(rollout)) == {"services", "daemonsets"}
    cache.cannot("daemonsets", "forbidden")
    everything = {"services", "daemonsets", "configmaps", "secrets"}
    assert set(cache.due(rollout)) == cache.all_due() == everything
    cache.replace("daemonsets", [])
    assert set(cache.due(rollout)) == everything


# -- kinds that are not there, or may not be read -----------------------------------------------------------------------------


def test_a_missing_crd_is_told_to_who_needs_it_and_heals() -> None:
    async def story() -> tuple[JSON, str, str, Stage]:
        stage = Stage()
        async with stage.controller():
            stage.apply(**GATEWAY)
            add(stage, *other())
            await stage.until(lambda: phase(stage, "other") == "Initialized")
            await stage.until(lambda: "Accepted" in conditions(stage))
            told, before = conditions(stage)["Accepted"], stage.phase
            await asyncio.sleep(90)
            assert len(stage.events("refused")) == 1, "said once"
            stage.cluster.server.resources.append(ROUTES)
            await stage.until(lambda: "Accepted" not in conditions(stage), 31)
            await stage.until(
                lambda: stage.cluster.get("Deployment", "web-primary", "n") is not None
            )
        return told, before, phase(stage, "other"), stage

    told, before, others, stage = run_virtual(story())
    assert (told["status"], told["reason"], before) == ("False", "Missing", "")
    assert "httproutes.gateway.networking.k8s.io: its CRD is not installed" in told["message"]
    assert others == "Initialized"
    said = [e for e in stage.cluster.objects("Event", "n") if "Not handled" in e["message"]]
    assert len(said) == 1


def test_a_kind_that_nobody_needs_any_more_is_not_asked_for() -> None:
    async def story() -> Stage:
        stage = Stage()
        async with stage.controller():
            stage.apply(**GATEWAY)
            await asyncio.sleep(60)
            stage.cluster.remove("Canary", "web", "n")
            await asyncio.sleep(60)
            stage.cluster.requests.clear()
            await asyncio.sleep(120)
            assert not stage.cluster.asked("list")
            # And when somebody needs it again, it is.
            stage.cluster.server.resources.append(ROUTES)
            stage.cluster.add(canary(**GATEWAY))
            await asyncio.sleep(1)
        return stage

    stage = run_virtual(story())
    assert "httproutes" in watched(stage)
    assert "Accepted" not in conditions(stage)


def test_secrets_that_may_not_be_read_are_shared_and_that_is_said_once() -> None:
    async def story() -> Stage:
        stage = Stage()
        stage.cluster.forbid("list", "secrets")
        add(stage, configmap(), secret(), with_login(with_configmap(deployment())), canary())
        add(stage, *other())
        async with stage.controller():
            await stage.reaches("Initialized")
            await stage.until(lambda: "Warned" in conditions(stage))
            await asyncio.sleep(30)
        return stage

    stage = run_virtual(story())
    primary = stage.cluster.get("Deployment", "web-primary", "n") or {}
    sources = primary["spec"]["template"]["spec"]["containers"][0]["envFrom"]
    assert sources == [
        {"configMapRef": {"name": "settings-primary"}},
        {"secretRef": {"name": "login"}},
    ]
    refusals = stage.events("forbidden")
    assert [(line["verb"], line["path"]) for line in refusals] == [
        ("watch", "/api/v1/namespaces/n/secrets")
    ]
    told = conditions(stage)["Warned"]["message"]
    assert told.startswith("Secret 'login' cannot be tracked (secrets: forbidden):")
    assert "Warned" not in conditions(stage, "other"), "it uses none"
    messages = [event["message"] for event in stage.cluster.objects("Event", "n")]
    assert messages.count(told) == 1


def test_the_right_that_comes_later_is_noticed() -> None:
    async def story() -> Stage:
        stage = Stage()
        stage.cluster.forbid("list", "secrets")
        add(stage, secret(), with_login(deployment()), canary())
        async with stage.controller():
            await stage.reaches("Initialized")
            await stage.until(lambda: "Warned" in conditions(stage))
            stage.cluster._forbidden.clear()
            await stage.until(lambda: "Warned" not in conditions(stage), SHARED_RETRY + 1)
            stage.cluster.update("Deployment", "web", "n", newer(with_login(deployment())))
            await stage.reaches("Succeeded")
        return stage

    stage = run_virtual(story())
    # Production gets its copy with the next release.
    assert stage.cluster.get("Secret", "login-primary", "n") is not None
    assert set(stage.status["trackedConfigs"]) == {"secret/login"}


# -- what is kept ------------------------------------------------------------------------------------------------------------


def cache_with_interest() -> Cache:
    """A cache that knows a Canary whose target refers to ConfigMap `settings`."""
    cache = Cache(configs=True)
    cache.put(CANARIES, versioned(canary(), 1))
    cache.put(DEPLOYMENTS, versioned(with_configmap(deployment()), 1))
    return cache


LARGE = 100_000


def foreign(count: int) -> Iterator[JSON]:
    chance = random.Random(1)  # noqa: S311 - no secret
    for number in range(count):
        text = chance.randbytes(LARGE // 2).hex()
        yield versioned(configmap(f"foreign-{number}", text=text), 1, uid=f"u-{number}")


def test_configs_of_others_do_not_cost_their_size() -> None:
    cache = cache_with_interest()
    tracemalloc.start()
    try:
        # As the client lists: shaped one by one.
        shaped = [cache.shape("configmaps", obj) for obj in foreign(500)]
        cache.replace("configmaps", shaped)
        del shaped
        for obj in foreign(500):
            assert (
                cache.put("configmaps", merge(obj, {"metadata": {"resourceVersion": "2"}})) == set()
            )
        del obj
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < LARGE / 2
    assert peak < 20 * LARGE
    assert cache.names("configmaps") == []


def test_of_a_config_only_what_is_decided_on_is_kept() -> None:
    large = {
        "kubectl.kubernetes.io/last-applied-configuration": "x" * LARGE,
        "flagger.app/config-tracking": "disabled",
    }
    obj = merge(configmap(colour="green"), {"metadata": {"annotations": large}})
    kept = slim("configmaps", obj)
    assert kept["metadata"]["annotations"] == {"flagger.app/config-tracking": "disabled"}
    assert kept["data"] == {"colour": "green"}
    login = slim("secrets", secret() | {"type": "helm.sh/release.v1"})
    assert "data" not in login


def test_interest_that_comes_later_makes_a_config_unread_until_it_is_read_or_seen() -> None:
    cache = cache_with_interest()
    rollout = canary()
    settings = versioned(configmap(colour="green"), 7)
    cache.replace("secrets", [])
    cache.replace("configmaps", [settings, versioned(configmap("late", size="1"), 5)])
    assert cache.names("configmaps") == ["settings"]
    assert not cache.unread(rollout)
    change = {"metadata": {"generation": 2}}
    cache.put(DEPLOYMENTS, versioned(merge(with_configmap(deployment(), "late"), change), 8))
    late, copy = ("configmaps", "late"), ("configmaps", "late-primary")
    assert set(cache.unread(rollout)) == {late, copy}
    assert cache.names("configmaps") == [], "and what nobody refers to any more is dropped"
    # The watch is faster with the one; what was read before that must not win.
    assert cache.put("configmaps", versioned(configmap("late", size="2"), 9)) == {"web"}
    assert cache.unread(rollout) == [copy]
    cache.read(late, versioned(configmap("late", size="1"), 5))
    assert (cache.get("configmaps", "late") or {})["data"] == {"size": "2"}
    cache.read(copy, None)
    assert not cache.unread(rollout)


def test_a_deletion_that_was_seen_is_not_undone_by_what_was_read_before() -> None:
    cache = cache_with_interest()
    late = versioned(configmap("late"), 5)
    cache.replace("configmaps", [late])
    change = {"metadata": {"generation": 2}}
    cache.put(DEPLOYMENTS, versioned(merge(with_configmap(deployment(), "late"), change), 8))
    cache.remove("configmaps", versioned(late, 9))
    cache.read(("configmaps", "late"), late)
    assert cache.get("configmaps", "late") is None


def test_interest_that_comes_while_a_list_is_on_its_way_is_not_lost() -> None:
    cache = Cache(configs=True)
    cache.put(CANARIES, versioned(canary(), 1))
    cache.replace(DEPLOYMENTS, [])
    shaped = [cache.shape("configmaps", versioned(configmap(), 3))]
    cache.put(DEPLOYMENTS, versioned(with_configmap(deployment()), 4))
    cache.replace("configmaps", shaped)
    assert cache.unread(canary()) == [("configmaps", "settings")]


def test_two_that_share_a_config_keep_it_until_the_last_one_goes() -> None:
    cache = cache_with_interest()
    target, rollout = other()
    cache.put(CANARIES, versioned(rollout, 2, uid="o"))
    cache.put(DEPLOYMENTS, versioned(with_configmap(target), 2, uid="o"))
    cache.replace("configmaps", [versioned(configmap(), 3)])
    cache.remove(CANARIES, versioned(canary(), 4))
    assert cache.names("configmaps") == ["settings"]
    cache.remove(CANARIES, versioned(rollout, 5, uid="o"))
    assert cache.names("configmaps") == []


@pytest.mark.parametrize("exists", [True, False])
def test_a_config_that_a_release_newly_refers_to_is_read_once(exists: bool) -> None:  # noqa: FBT001 - a parameter of a test
    async def story() -> tuple[Stage, list[str]]:
        stage = Stage()
        if exists:
            add(stage, configmap("late", size="1"))
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            stage.cluster.requests.clear()
            stage.change("app:2")
            stage.cluster.update(
                "Deployment", "web", "n", newer(with_configmap(deployment(), "late"))
            )
            if not exists:
                await asyncio.sleep(10)
                add(stage, configmap("late", size="1"))
            await stage.until(
                lambda: stage.cluster.get("ConfigMap", "late-primary", "n") is not None
            )
            await stage.reaches("Succeeded")
            reads = [asked.params.get("fieldSelector", "") for asked in stage.cluster.asked("list")]
        return stage, reads

    stage, reads = run_virtual(story())
    assert sorted(reads) == ["metadata.name=late", "metadata.name=late-primary"]
    copy = stage.cluster.get("ConfigMap", "late-primary", "n") or {}
    assert copy["data"] == {"size": "1"}
    assert stage.status["trackedConfigs"] == {"configmap/late": checksum(copy)}
    # From now on the watch brings every change.
    assert stage.image("web-primary") == "app:2"


def newer(obj: JSON) -> JSON:
    result: JSON = merge(obj, merge(image("app:2"), {"metadata": {"generation": 99}}))
    result["spec"]["template"]["spec"]["containers"][0]["envFrom"] = obj["spec"]["template"][
        "spec"
    ]["containers"][0]["envFrom"]
    return result


def test_a_foreign_config_that_changes_wakes_nobody() -> None:
    async def story() -> Stage:
        stage = Stage()
        add(stage, configmap("foreign", size="1"), configmap(), with_configmap(deployment()))
        add(stage, canary())
        async with stage.controller():
            await stage.reaches("Initialized")
            await asyncio.sleep(5)
            stage.cluster.requests.clear()
            stage.cluster.update("ConfigMap", "foreign", "n", {"data": {"size": "2"}})
            await asyncio.sleep(5)
            assert not stage.cluster.requests
            stage.cluster.update("ConfigMap", "settings", "n", {"data": {"colour": "red"}})
            await stage.reaches("Progressing")
        return stage

    run_virtual(story())
