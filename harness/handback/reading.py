"""What a return has to know, read from a namespace: Canaries, targets, primaries, what these refer to, and earlier templates.

Of ConfigMaps and Secrets only those are read that a target refers to, each by its name. Their data goes to the program of that
Flagger on this machine, which answers with checksums; nothing of it is shown or kept.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.controller.core.canonical import PREFIX
from harness.controller.core.names import PRIMARY_SUFFIX
from harness.controller.core.needs import CONFIGS
from harness.controller.core.ownership import controller_of
from harness.controller.look import world_of
from harness.handback.answers import Flagger, Told
from harness.handback.history import earlier
from harness.handback.plan import Case
from harness.handback.recorded import configs_changed, has_hash_on_record, recorded
from harness.handback.references import references
from harness.handback.told import KINDS, Question
from harness.kube.errors import NotFound
from harness.kube.resource import CANARY, CONFIGMAP, REPLICASET, SECRET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.handback.references import Reference
    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

Ask = Callable[[Sequence[Question]], Awaitable[Flagger]]
"""Gives that Flagger's answers, in the order of the questions."""
_REFERRED: Final = {"ConfigMap": CONFIGMAP, "Secret": SECRET}
_HISTORY: Final = {"Deployment": REPLICASET}
"""Kind of a target that the bundled controller handles -> where its earlier templates are kept."""


@dataclass(frozen=True, slots=True)
class _Inquiry:
    """What is asked about one Canary."""

    canary: JSON
    around: Sequence[JSON]
    """Target, primary, and what keeps the target's earlier templates; those that exist."""
    target: JSON | None
    """None when it does not exist, or is of a kind that cannot be asked about."""
    before: JSON | None
    """The target with the template that was promoted, where that is another one and still kept."""


async def read_cases(client: KubeClient, namespace: str, ask: Ask) -> tuple[Flagger, list[Case]]:
    """Return what that Flagger says about itself, and a Case for each Canary of a namespace, by name. Raises KubeError."""
    canaries, _ = await client.list(CANARY, namespace)
    canaries.sort(key=lambda canary: str(canary["metadata"]["name"]))
    index = await _index(client, namespace, canaries)
    inquiries = [_inquiry(canary, index) for canary in canaries]
    configs = await _configs(client, namespace, inquiries)
    questions = [_question(one.target, configs) for one in inquiries if one.target is not None]
    questions += [Question(one.before) for one in inquiries if one.before is not None]
    flagger = await ask(questions)
    answers = iter(flagger.answers)
    told = [_unasked(one) if one.target is None else next(answers) for one in inquiries]
    before = [next(answers).hash if one.before is not None else "" for one in inquiries]
    now = time.time()
    cases = [
        _case(one, configs, answer, promoted, now, fenced=flagger.fenced)
        for one, answer, promoted in zip(inquiries, told, before, strict=True)
    ]
    return flagger, cases


def _case(
    one: _Inquiry,
    configs: Mapping[Reference, JSON],
    told: Told | None,
    promoted: str,
    now: float,
    *,
    fenced: bool,
) -> Case:
    used = [configs[key] for key in references(one.target or {}) if key in configs]
    world = world_of(one.canary, [*one.around, *used], read=CONFIGS)
    same, evidence = recorded(world, one.canary, now)
    return Case(
        one.canary,
        same,
        evidence,
        exact=has_hash_on_record(world, one.canary),
        configs_changed=configs_changed(world, one.canary, told.configs if told else None),
        told=told,
        promoted=promoted,
        fenced=fenced,
    )


@dataclass(frozen=True, slots=True)
class _Index:
    """What was read of a namespace, to be found without a search."""

    by_name: Mapping[tuple[str, str], JSON]
    by_owner: Mapping[str, Sequence[JSON]]
    """UID of a workload -> what keeps its earlier templates."""


async def _index(client: KubeClient, namespace: str, canaries: Sequence[JSON]) -> _Index:
    """Read everything of the kinds that the Canaries have as targets, with what keeps their earlier templates."""
    kinds = {str(canary["spec"]["targetRef"].get("kind")) for canary in canaries}
    targets = [KINDS[kind] for kind in sorted(kinds & KINDS.keys())]
    history = [_HISTORY[kind] for kind in sorted(kinds & _HISTORY.keys())]
    lists = await asyncio.gather(*(client.list(each, namespace) for each in targets + history))
    by_name: dict[tuple[str, str], JSON] = {}
    by_owner: dict[str, list[JSON]] = defaultdict(list)
    for resource, (items, _) in zip(targets + history, lists, strict=True):
        for obj in items:
            if resource in targets:
                by_name[obj["kind"], obj["metadata"]["name"]] = obj
            else:
                by_owner[str((controller_of(obj) or {}).get("uid"))].append(obj)
    return _Index(by_name, by_owner)


def _inquiry(canary: JSON, index: _Index) -> _Inquiry:
    reference = canary["spec"]["targetRef"]
    kind, name = str(reference.get("kind")), str(reference.get("name"))
    if not _can_be_asked(reference):
        return _Inquiry(canary, (), None, None)
    target = index.by_name.get((kind, name))
    primary = index.by_name.get((kind, name + PRIMARY_SUFFIX))
    kept = index.by_owner.get(str((target or {"metadata": {}})["metadata"].get("uid")), ())
    around = [obj for obj in (target, primary, *kept) if obj is not None]
    return _Inquiry(canary, around, target, _before(canary, target, kept))


def _can_be_asked(reference: JSON) -> bool:
    known = KINDS.get(str(reference.get("kind")))
    group = str(reference.get("apiVersion") or "").rpartition("/")[0]
    return known is not None and known.group == group


def _unasked(one: _Inquiry) -> Told | None:
    reference = one.canary["spec"]["targetRef"]
    if _can_be_asked(reference):
        return None
    return Told(
        problem=f"{reference.get('kind')} of {reference.get('apiVersion')} cannot be asked about"
    )


def _before(canary: JSON, target: JSON | None, kept: Sequence[JSON]) -> JSON | None:
    status = canary.get("status") or {}
    promoted = str(status.get("lastPromotedSpec") or "")
    other = promoted.startswith(PREFIX) and promoted != status.get("lastAppliedSpec")
    return earlier(target, kept, promoted) if target is not None and other else None


def _question(target: JSON, configs: Mapping[Reference, JSON]) -> Question:
    return Question(target, [configs[key] for key in references(target) if key in configs])


async def _configs(
    client: KubeClient, namespace: str, inquiries: Sequence[_Inquiry]
) -> dict[Reference, JSON]:
    targets = (one.target for one in inquiries if one.target is not None)
    wanted = list(dict.fromkeys(key for target in targets for key in references(target)))
    found = await asyncio.gather(*(_get(client, namespace, *key) for key in wanted))
    return {key: obj for key, obj in zip(wanted, found, strict=True) if obj is not None}


async def _get(client: KubeClient, namespace: str, kind: str, name: str) -> JSON | None:
    try:
        obj = await client.get(_REFERRED[kind], name, namespace)
    except NotFound:
        return None
    return {**obj, "kind": kind}
