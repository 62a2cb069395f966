"""A CRD that has no place for what a Canary asks for: seen before it matters, refused with a sentence, never passed over in silence."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
from ruamel.yaml import YAML

from harness.controller.core import World, schema, support
from harness.controller.core.names import names_of
from harness.controller.core.schema import FENCE, FREEZE, FROZEN, USED
from harness.controller.shell.cache import CANARIES, Cache
from harness.controller.shell.schema import Schema, published
from harness.data import data_path
from harness.kube.errors import Forbidden, Invalid, ServerError, from_status
from harness.kube.resource import CANARY
from harness.kube.testing import run_virtual
from harness.tests.controller_sim import Invalid as Refused
from harness.tests.controller_sim import (
    canary,
    deployment,
    image,
    image_of,
    merge,
    never_ready,
    running,
)
from harness.tests.test_controller_shell import Stage

JSON = dict[str, Any]
ANALYSIS: JSON = {"interval": "2s", "threshold": 2, "iterations": 2}
FREEZING = ANALYSIS | {"freezeOnFailure": True}
REVERTING = ANALYSIS | {"restore": "revert"}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def installed() -> JSON:
    """The schema that comes with the controller."""
    text = data_path("fixtures", "crds", "canaries.yaml").read_text(encoding="utf-8")
    versions = YAML(typ="safe").load(text)["spec"]["versions"]
    return dict(versions[0]["schema"]["openAPIV3Schema"])


def without(*places: str) -> JSON:
    """That schema without some fields (dotted), or without values of one (`status.phase=Frozen`)."""
    found = copy.deepcopy(installed())
    for place in places:
        dotted, _, value = place.partition("=")
        *parents, last = dotted.split(".")
        here = found
        for key in parents:
            here = here["properties"][key]
        if value:
            here["properties"][last]["enum"].remove(value)
        else:
            del here["properties"][last]
    return found


FLAGGERS = (
    "spec.analysis.freezeOnFailure",
    "spec.analysis.restore",
    "status.phase=Frozen",
    "status.lastFailedSpec",
    "status.parked",
    "status.restore",
)
"""What Flagger 1.44.0 has no place for."""


class Api:
    """An API server that keeps one Canary by a schema: dry runs are pruned and validated, and change nothing."""

    def __init__(self, obj: JSON, crd: JSON, published: JSON | None = None) -> None:
        self.obj = pruned(obj, crd)
        self.crd = crd
        self.published = crd if published is None else published
        self.asked: list[tuple[str, str]] = []
        self.wrong: Exception | None = None

    async def raw(
        self,
        method: str,
        path: str,
        params: JSON | None = None,
        body: Any = None,
        *,
        content_type: str = "",
    ) -> JSON:
        self.asked.append((method, path))
        if method == "GET":
            assert path == published(CANARY)
            kinds = [{"kind": "Canary"}]
            held = {**self.published, "x-kubernetes-group-version-kind": kinds}
            return {"components": {"schemas": {"a.b.Canary": held, "a.b.CanaryList": {}}}}
        assert (params or {}).get("dryRun") == "All"
        assert content_type == "application/merge-patch+json"
        if self.wrong is not None:
            raise self.wrong
        part = "status" if path.endswith("/status") else "spec"
        assert set(body) == {part}
        answer: JSON = pruned(merge(self.obj, body), self.crd)
        return answer


def pruned(obj: JSON, crd: JSON, path: str = "") -> Any:
    """What a server makes of an object: fields it does not know dropped, values it does not list refused."""
    if not isinstance(obj, dict) or "properties" not in crd:
        values = crd.get("enum")
        if values and obj not in values:
            causes = [{"reason": "FieldValueNotSupported", "field": path.lstrip(".")}]
            status = {"code": 422, "reason": "Invalid", "details": {"causes": causes}}
            raise from_status(status)
        return obj
    known = crd["properties"]
    whole = path == ""
    return {
        key: pruned(value, known.get(key, {}), f"{path}.{key}")
        for key, value in obj.items()
        if key in known or (whole and key in ("apiVersion", "kind", "metadata"))
    }


class Log:
    def __init__(self) -> None:
        self.said: list[tuple[str, JSON]] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.said.append((event, fields))

    def info(self, event: str, **fields: Any) -> None:
        self.said.append((event, fields))


def asks(api: Api) -> tuple[str, ...]:
    found = Schema(api, "n", Log()).drops(api.obj)  # type: ignore[arg-type]
    return asyncio.run(found)


def applied(analysis: JSON) -> JSON:
    """A Canary as `kubectl apply` leaves it."""
    obj = canary(analysis=copy.deepcopy(analysis))
    obj["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(obj)}
    obj["status"] = {"phase": "Initialized", "canaryWeight": 0}
    return obj


# -- what is missing -----------------------------------------------------------------------------------------------------------


def test_the_crd_that_comes_with_the_controller_has_everything_it_uses() -> None:
    assert schema.absent(installed()) == ()


def test_every_place_that_is_taken_away_is_noticed() -> None:
    for place in USED:
        dotted = ".".join(place.path)
        taken = f"{dotted}={place.value}" if place.listed else dotted
        assert place in schema.absent(without(taken)), taken


def test_at_the_start_one_warning_names_what_is_missing() -> None:
    log = Log()
    api = Api(canary(), without(*FLAGGERS))
    asyncio.run(Schema(api, "n", log).look())  # type: ignore[arg-type]
    ((event, fields),) = log.said
    assert event == "schema lacks"
    assert fields["fields"] == [
        "spec.analysis.freezeOnFailure",
        "value 'Frozen' of status.phase",
        "value 'adopt' of spec.analysis.restore",
        "value 'revert' of spec.analysis.restore",
        "status.lastFailedSpec",
        "status.parked",
        "status.restore",
    ]
    log.said.clear()
    asyncio.run(Schema(Api(canary(), installed()), "n", log).look())  # type: ignore[arg-type]
    assert log.said == []


@pytest.mark.parametrize("analysis", [FREEZING, REVERTING, {**ANALYSIS, "restore": "adopt"}])
def test_with_the_crd_nothing_is_dropped_and_without_a_wish_nobody_is_asked(analysis: JSON) -> None:
    assert asks(Api(applied(analysis), installed())) == ()
    api = Api(applied(ANALYSIS), without(*FLAGGERS))
    assert (asks(api), api.asked) == ((), [])


@pytest.mark.parametrize(
    ("analysis", "gone", "said"),
    [
        (FREEZING, "status.phase=Frozen", "value 'Frozen' of status.phase"),
        (FREEZING, "spec.analysis.freezeOnFailure", "spec.analysis.freezeOnFailure"),
        (REVERTING, "spec.analysis.restore", "value 'revert' of spec.analysis.restore"),
        (REVERTING, "status.lastFailedSpec", "status.lastFailedSpec"),
        (REVERTING, "status.lastTrackedRevision", "status.lastTrackedRevision"),
        ({**ANALYSIS, "restore": "adopt"}, "status.parked", "status.parked"),
        ({**ANALYSIS, "restore": "adopt"}, "status.restore", "status.restore"),
    ],
)
def test_each_wish_needs_its_places(analysis: JSON, gone: str, said: str) -> None:
    assert asks(Api(applied(analysis), without(gone))) == (said,)
    # What is applied counts, not what is published, which lags.
    assert asks(Api(applied(analysis), without(gone), published=installed())) == (said,)
    assert asks(Api(applied(analysis), installed(), published=without(gone))) == ()


def test_places_that_only_another_wish_needs_do_not_matter() -> None:
    assert asks(Api(applied(FREEZING), without("status.lastFailedSpec", "status.parked"))) == ()
    assert asks(Api(applied(REVERTING), without("status.phase=Frozen", "status.parked"))) == ()


def test_under_flaggers_own_crd_all_of_it_is_named() -> None:
    assert asks(Api(applied(FREEZING), without(*FLAGGERS))) == (str(FREEZE), str(FROZEN))


# -- a wish that the CRD has dropped from the spec -------------------------------------------------------------------------------


def test_a_field_that_was_edited_away_is_no_wish() -> None:
    obj = applied(FREEZING)
    del obj["spec"]["analysis"]["freezeOnFailure"]
    assert asks(Api(obj, installed())) == ()
    obj["spec"]["analysis"]["freezeOnFailure"] = False
    assert schema.wishes(obj) == ()


def test_once_refused_for_it_a_better_crd_alone_is_not_enough() -> None:
    obj = applied(FREEZING)
    del obj["spec"]["analysis"]["freezeOnFailure"]
    said = schema.refusal((str(FREEZE),))
    held = {"type": "Accepted", "status": "False", "reason": "Unsupported", "message": said}
    obj["status"]["conditions"] = [held]
    assert asks(Api(obj, installed())) == (str(FREEZE),)
    assert "then this Canary once more" in said
    obj["spec"]["analysis"]["freezeOnFailure"] = True
    assert asks(Api(obj, installed())) == ()


@pytest.mark.parametrize("text", ["", "freezeOnFailure", "[]", '{"spec": {"restore": null}}'])
def test_a_manifest_that_cannot_be_read_holds_no_wish(text: str) -> None:
    obj = canary(analysis=ANALYSIS)
    obj["metadata"]["annotations"] = {LAST_APPLIED: text}
    assert schema.wishes(obj) == ()


# -- a dry run that is not answered ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [Invalid(422, "Invalid", "a policy says no"), Forbidden(403, "Forbidden", "cannot patch")],
)
def test_where_a_dry_run_is_not_possible_the_published_schema_decides(wrong: Exception) -> None:
    for crd, drops in ((installed(), ()), (without("status.phase=Frozen"), (str(FROZEN),))):
        api = Api(applied(FREEZING), crd)
        api.wrong = wrong
        assert asks(api) == drops


def test_a_server_that_is_away_is_asked_again_and_no_answer_is_guessed() -> None:
    api = Api(applied(FREEZING), installed())
    api.wrong = ServerError(503, "Unavailable", "later")
    with pytest.raises(ServerError):
        asks(api)


# -- the Canary ------------------------------------------------------------------------------------------------------------------


def test_the_refusal_names_what_is_missing_and_the_file_to_apply() -> None:
    obj = canary(analysis=FREEZING)
    world = World(target=deployment(), crd_drops=(str(FREEZE), str(FROZEN)))
    found = support.refusal(obj, names_of(obj, deployment()), world)
    assert found is not None
    assert found.reason == "Unsupported"
    assert found.message.startswith(
        "spec.analysis.freezeOnFailure, value 'Frozen' of status.phase: the installed CRD"
    )
    assert "fixtures/crds/canaries.yaml" in found.message


def accepted(stage: Stage) -> JSON:
    conditions = stage.status.get("conditions") or []
    return next((each for each in conditions if each["type"] == "Accepted"), {})


def test_a_canary_is_left_alone_until_the_crd_has_the_field_and_then_served() -> None:
    async def story() -> tuple[JSON, str, JSON, Stage]:
        stage = Stage()
        stage.cluster.prune("Canary", *FENCE_PLACE)
        async with stage.controller():
            stage.apply(analysis=REVERTING)
            await asyncio.sleep(5)
            refused, phase = accepted(stage), stage.phase
            stage.cluster.unprune("Canary")
            await stage.reaches("Initialized")
            return refused, phase, accepted(stage), stage

    refused, phase, after, stage = run_virtual(story())
    assert (refused["status"], refused["reason"], phase) == ("False", "Unsupported", "")
    assert str(FENCE) in refused["message"]
    assert after == {}
    warnings = [e for e in stage.cluster.objects("Event", "n") if "Not handled" in e["message"]]
    assert len(warnings) == 1


FENCE_PLACE = ("status", "lastTrackedRevision")


def dry_runs(stage: Stage) -> int:
    return sum(asked.params.get("dryRun") == "All" for asked in stage.cluster.requests)


def test_the_crd_is_asked_once_for_each_generation_and_again_after_a_refused_write() -> None:
    async def story() -> list[int]:
        stage = Stage()
        async with stage.controller():
            stage.apply(analysis=REVERTING)
            await stage.reaches("Initialized")
            await asyncio.sleep(100)
            counts = [dry_runs(stage)]
            stage.cluster.fail_next(
                422, "Invalid", match=lambda a: a.verb == "patch" and "dryRun" not in a.params
            )
            stage.change("app:2")
            await stage.reaches("Succeeded")
            await asyncio.sleep(100)
            return [*counts, dry_runs(stage)]

    # The two places of `restore: revert`, twice.
    assert run_virtual(story()) == [2, 4]


def test_a_phase_that_the_server_refuses_is_waited_for_and_nothing_else_is_done() -> None:
    sim = running(analysis=FREEZING)
    sim.delay = never_ready("web")
    refusing = [True]

    def before_status(patch: JSON) -> None:
        if refusing and patch.get("phase") == "Frozen":
            raise Refused(patch["phase"])

    sim.before_status = before_status
    sim.edit("deployments", "web", image("app:2"))
    sim.run(300)
    assert sim.phase == "Progressing"
    assert (image_of(sim.target), sim.target["spec"]["replicas"]) == ("app:2", 3)
    assert any("refuses a write: Frozen" in message for message in sim.messages())
    refusing.clear()
    sim.run(until="Frozen")
    assert sim.target["spec"]["replicas"] == 3


def test_a_map_that_holds_something_already_is_a_place_all_the_same() -> None:
    """A probe is merged into it; with restore: adopt the status has one for as long as the Canary lives."""
    places = [place for place in USED if isinstance(place.value, dict)]
    assert places
    for place in places:
        held = merge({"status": {place.path[1]: {"name": "web-1"}}}, place.patch())
        assert place.kept(held)
        assert not place.kept({"status": {place.path[1]: {"name": "web-1"}}})


def test_what_is_served_anew_takes_the_place_of_the_same_version_and_never_of_a_newer_one() -> None:
    cache = Cache()
    held = merge(canary(analysis=ANALYSIS), {"metadata": {"uid": "u", "resourceVersion": "7"}})
    cache.put(CANARIES, held)
    served = merge(held, {"spec": {"analysis": FREEZING}})
    cache.put(CANARIES, served)
    assert cache.get(CANARIES, "web") == held
    cache.renew(served)
    assert cache.get(CANARIES, "web") == served
    cache.renew(merge(held, {"metadata": {"resourceVersion": "6"}}))
    assert cache.get(CANARIES, "web") == served
