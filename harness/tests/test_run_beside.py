"""What a run does beside other controllers, by what was seen of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters.base import ChoiceError, ClusterError
from harness.data import data_path
from harness.kube.resource import CANARY, CRD
from harness.model.timeline import RolloutKind
from harness.run.adapt import Adaptation, adapted
from harness.run.adapt.group import group_of, is_private, moved
from harness.run.beside import ALONE, Beside, decided, must_be_possible, settle
from harness.run.installed import fits
from harness.run.leftovers import Listing
from harness.run.objects import RefusedError, ResourceMap
from harness.run.plan import Plan
from harness.run.scoped import has_any
from harness.scenario.loaded import load
from harness.subjects.bundled import Bundled
from harness.subjects.detect import Controller, Seen
from harness.subjects.flagger import Flagger
from harness.subjects.installed import Installed
from harness.subjects.names import parse
from harness.tests.controller_sim import canary, deployment

if TYPE_CHECKING:
    from pathlib import Path

JSON = dict[str, Any]
RUN = "20260101t000000z-abc"
FREE = Controller("flagger", "Deployment flagger-system/flagger", "1.44.0", provider="kubernetes")
FENCED = replace(FREE, namespace="team-a")
BLIND = ("Deployments of all namespaces",)


def plan(subject: str, cluster: str = "context:dev") -> Plan:
    folder = data_path("scenarios", "node-spread-blue-green")
    return Plan(load(folder).resolve("with-key", {})[0], folder, subject, cluster, "drill run …")


def decide(
    subject: str,
    *controllers: Controller,
    blind: bool = False,
    namespace: str = "",
    may: bool = True,
) -> Beside:
    seen = Seen(controllers, BLIND if blind else ())
    return decided(plan(subject), seen, RUN, namespace, cluster="context:dev", may_make_crds=may)


def test_bundled_moves_away_from_whoever_would_act_there_too() -> None:
    found = decide("bundled", FREE)
    assert found.api_group == group_of(RUN) == f"{RUN}.rollout-drill.dev"
    (note,) = found.notes
    assert note.startswith("Flagger 1.44.0 would act on the drill's Canaries here. So that two")
    assert "flagger-system" not in note
    assert "flagger-system" in found.told
    # The control: nobody seen, and both would drive the same Canary.
    for alone in (decide("bundled"), decide("bundled", FENCED)):
        assert alone == ALONE
    assert decide("bundled", FENCED, namespace="team-a").api_group == group_of(RUN)


def test_bundled_moves_away_from_what_it_cannot_see_where_it_can() -> None:
    assert decide("bundled", blind=True).api_group == group_of(RUN)
    stays = decide("bundled", blind=True, may=False)
    assert stays.api_group == ""
    assert "could not be seen (Deployments of all namespaces may not be listed)" in stays.notes[0]


def test_without_the_right_to_make_crds_bundled_is_not_run_beside_a_flagger() -> None:
    with pytest.raises(ClusterError, match="may not create and delete CustomResourceDefinitions"):
        decide("bundled", FREE, may=False)


def test_installed_is_observed_or_refused_with_the_reason() -> None:
    assert decide("installed", FREE).observed == (FREE,)
    assert decide("installed", FREE).api_group == ""
    assert decide("installed", FENCED, namespace="team-a").observed == (FENCED,)
    with pytest.raises(ChoiceError, match=r"fenced to namespace team-a.*use --namespace team-a"):
        decide("installed", FENCED)
    with pytest.raises(ChoiceError, match="nothing on context:dev acts on Canaries"):
        decide("installed")
    assert "could not be seen" in decide("installed", blind=True).notes[0]


def test_a_flagger_of_the_drills_own_needs_a_cluster_of_the_drills_own() -> None:
    with pytest.raises(ChoiceError, match=r"canaries\.flagger\.app is one for the whole cluster"):
        must_be_possible(plan("flagger@1.44.0"))
    must_be_possible(plan("flagger@1.44.0", "kind"))
    must_be_possible(plan("bundled"))
    assert decide("flagger@1.44.0", FENCED) == ALONE
    with pytest.raises(ChoiceError, match="two controllers would drive the same Canary"):
        decide("flagger@1.44.0", FREE)


def test_a_subject_is_told_its_group_and_one_that_cannot_follow_is_refused() -> None:
    place: Any = SimpleNamespace(adaptation=Adaptation(api_group=group_of(RUN)), observed=())
    subject = Bundled()
    settle(plan("bundled"), place, subject)
    assert subject.facts.rollout.api_version == f"{group_of(RUN)}/v1beta1"
    assert subject.facts.rollout.kind == "Canary"
    with pytest.raises(RefusedError, match="another controller acts on those of Flagger's"):
        settle(plan("flagger@1.44.0"), place, Flagger(parse("flagger@1.44.0")))
    observer = Installed()
    here: Any = SimpleNamespace(adaptation=Adaptation(), observed=(FREE,))
    settle(plan("installed"), here, observer)
    assert (observer.facts.version, observer.controllers) == ("1.44.0", (FREE,))


def test_a_group_that_no_flagger_reads_is_not_handed_back_to_one() -> None:
    place: Any = SimpleNamespace(adaptation=Adaptation(api_group=group_of(RUN)), observed=())
    going_back: Any = SimpleNamespace(handbacks=("1.44.0",))
    with pytest.raises(RefusedError, match="which no Flagger reads"):
        settle(going_back, place, Bundled())


def test_steps_and_namespaces_of_others_go_by_the_group_of_the_drill() -> None:
    group = group_of(RUN)
    client: Any = None
    assert asyncio.run(ResourceMap(client).find_kind("Canary")) == CANARY
    own = asyncio.run(ResourceMap(client, group).find_kind("Canary"))
    assert own == replace(CANARY, group=group)
    theirs = Listing({(CANARY.group, CANARY.plural, "shop", "web"): {}}, 1, ())
    assert has_any(theirs, RolloutKind())
    assert not has_any(theirs, RolloutKind(api_version=f"{group}/v1beta1"))


def test_everything_of_the_group_moves_and_nothing_else() -> None:
    group = group_of(RUN)
    subject = Bundled()
    crds = [moved(crd, group) for crd in subject.cluster_objects()]
    names = ("canaries", "metrictemplates", "alertproviders")
    assert [crd["metadata"]["name"] for crd in crds] == [f"{name}.{group}" for name in names]
    for before, after in zip(subject.cluster_objects(), crds, strict=True):
        assert after["spec"]["group"] == group
        assert after["spec"]["versions"] == before["spec"]["versions"]
        # `kubectl get cd` of other people must not find it.
        assert "shortNames" not in after["spec"]["names"]
    (role,) = [one for one in subject.namespace_objects("n") if one["kind"] == "Role"]
    groups = [one for rule in moved(role, group)["rules"] for one in rule["apiGroups"]]
    assert CANARY.group not in groups
    assert groups.count(group) == sum(CANARY.group in rule["apiGroups"] for rule in role["rules"])
    mine = {**canary(), "apiVersion": CANARY.api_version}
    (changed, kept), notes = adapted([mine, deployment()], Adaptation(api_group=group))
    assert changed == {**mine, "apiVersion": f"{group}/v1beta1"}
    assert (kept, notes) == (deployment(), [])
    assert moved(mine, "") is mine
    assert is_private(group)
    assert not is_private(CANARY.group)
    assert len(f"metrictemplates.{group}") < 63
    other = {"kind": CRD.kind, "spec": {"group": "keda.sh"}, "metadata": {"name": "x"}}
    assert moved(other, group) == other


@pytest.mark.parametrize(
    ("controller", "spec", "requires", "wrong"),
    [
        (FREE, {}, [], ""),
        (replace(FREE, selector_labels=("tier",)), {}, [], "Deployment web is selected by none"),
        (replace(FREE, provider="istio"), {"provider": None}, [], "it names none, and so has"),
        (replace(FREE, provider="istio"), {"provider": None}, ["istio"], ""),
        (FREE, {"provider": "gatewayapi:v1"}, [], "it names gatewayapi:v1"),
        (FREE, {"provider": "gatewayapi:v1"}, ["gateway-api"], ""),
    ],
)
def test_what_an_installed_controller_cannot_do_is_said_before_it_is_waited_for(
    controller: Controller, spec: JSON, requires: list[str], wrong: str
) -> None:
    objects = [deployment(), canary(**spec)]
    found = fits([controller], objects, requires)
    broken = [text for holds, text in found if not holds]
    assert len(broken) == bool(wrong)
    assert wrong in "".join(broken)


def test_the_interval_that_it_does_not_keep_is_said_and_two_controllers_are_one_too_many() -> None:
    quick = canary(analysis={"interval": "1s"})
    texts = [text for holds, text in fits([FREE], [quick, deployment()], []) if holds]
    assert "Canary web has an interval of 1s, and Flagger 1.44.0 looks every 10s" in texts
    slow = canary(analysis={"interval": "1m"})
    assert not [text for _, text in fits([FREE], [slow], []) if "interval" in text]
    assert not fits([], [quick], [])
    two = fits([FREE, replace(FREE, where="Lease x")], [], [])
    assert [holds for holds, _ in two] == [False]


def test_paths_stay(tmp_path: Path) -> None:
    """A binary given by its path is Flagger as well."""
    with pytest.raises(ChoiceError, match="flagger@path:mine is not run"):
        must_be_possible(plan(f"flagger@path:{tmp_path / 'mine'}"))
