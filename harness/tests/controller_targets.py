"""Targets as an API server would hold them, and what becomes of them when a kind's writes are carried out."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.controller.core.names import names_of
from harness.controller.core.targets.base import Pair
from harness.controller.core.targets.registry import target_for
from harness.tests.controller_sim_make import (
    canary,
    daemonset,
    deployment,
    kservice,
    merge,
    service,
    target_ref,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.controller.core import Write
    from harness.controller.core.targets.base import Target

JSON = dict[str, Any]
MAKERS: dict[str, Callable[..., JSON]] = {
    "Deployment": deployment,
    "DaemonSet": daemonset,
    "Service": service,
    "Knative": kservice,
}
PODS = ("Deployment", "DaemonSet")
COPIES = (*PODS, "Service")
"""Kinds whose primary is an object."""


def stored(obj: JSON, version: int = 1, **status: Any) -> JSON:
    """As read: with uid, resourceVersion and generation, and a status if any is given."""
    meta = {"uid": "u-" + obj["metadata"]["name"], "resourceVersion": str(version), "generation": 1}
    result: JSON = merge(obj, {"metadata": meta})
    if status:
        result["status"] = {"observedGeneration": 1, **status}
    return result


def owner(kind: str, **spec: Any) -> JSON:
    """The Canary of a target of that kind."""
    return stored(canary(targetRef=target_ref(kind), **spec))


def kind_of(name: str) -> Target:
    """The kind of target by the name that tests use."""
    found = target_for(owner(name))
    assert found is not None
    return found


def pair_of(
    kind: str, target: JSON | None = None, primary: JSON | None = None, **more: Any
) -> Pair:
    """A target and its primary as one pass reads them."""
    target = stored(MAKERS[kind]()) if target is None else target
    rollout = owner(kind)
    revision = more.pop("revision", "v2:00")
    return Pair(rollout, names_of(rollout, target), target, primary, revision=revision, **more)


def knative(newest: str = "web-1", primary: str | None = "web-1", **status: Any) -> JSON:
    """A Knative Service whose newest revision is ready."""
    names = {"latestCreatedRevisionName": newest, "latestReadyRevisionName": newest}
    obj = stored(kservice(), **{**names, **status})
    if primary is not None:
        obj["metadata"]["annotations"] = {"flagger.app/primary-revision": primary}
    return obj


def applied(pair: Pair, writes: Iterable[Write]) -> Pair:
    """Carry writes out as an API server does, preconditions included; generation and status stay as they are."""
    kind = target_for(pair.canary)
    assert kind is not None
    objects = {plural: dict(held) for plural, held in pair.objects.items()}
    held = objects.setdefault(kind.plural, {})
    held |= {obj["metadata"]["name"]: obj for obj in (pair.target, pair.primary) if obj}
    for write in writes:
        assert write.resource == kind.plural
        present = held.get(write.name)
        assert (present is None) == (write.verb == "create"), write
        if present is None:
            assert write.body["metadata"]["name"] == write.name
            held[write.name] = stored(write.body)
            continue
        assert write.precondition == present["metadata"]["resourceVersion"]
        version = {"metadata": {"resourceVersion": str(int(write.precondition) + 1)}}
        if write.verb == "delete":
            del held[write.name]
        else:
            body = merge(present, write.body) if write.verb == "patch" else write.body
            held[write.name] = merge_version(body, version)
    return replace(
        pair,
        target=held[pair.names.target],
        primary=held.get(pair.names.primary),
        objects=objects,
    )


def merge_version(body: JSON, version: JSON) -> JSON:
    """That body with another resourceVersion; nulls in it stay, as in a field whose schema nobody knows."""
    body = copy.deepcopy(body)
    body["metadata"] |= version["metadata"]
    return body


def made(kind: str, target: JSON | None = None, **more: Any) -> Pair:
    """A pair whose primary was just made from the target."""
    pair = pair_of(kind, target, **more)
    return applied(pair, kind_of(kind).create(pair))
