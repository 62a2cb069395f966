"""The normal form: what of a recording counts, and what does not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from harness.compare.align import align
from harness.compare.comparison import compare
from harness.compare.normal import normal_form
from harness.compare.order import in_order
from harness.data import data_path
from harness.model import timeline as tl
from harness.model.outcome import Outcome
from harness.tests.compare_stories import BODY, Noise, Play, Shape, told

if TYPE_CHECKING:
    from pathlib import Path

    from harness.compare.model import Visit

TWO = "2 ready on 2 nodes"


def visits(play: Play) -> dict[str, Visit]:
    return {visit.phase: visit for visit in normal_form(play.timeline()).visits["web"]}


def objects(play: Play) -> dict[str, Any]:
    return dict(normal_form(play.timeline()).facts["objects"])


def test_a_phase_is_told_once_with_what_was_counted_in_it() -> None:
    found = normal_form(told(Shape(iterations=(0, 1, 1, 0, 1), weight=5)).timeline()).visits["web"]
    assert [visit.phase for visit in found] == [
        *("Initializing", "Initialized", "Progressing", "Promoting", "Finalising", "Succeeded")
    ]
    progressing = found[2]
    assert progressing.iterations == (0, 1, 0, 1)
    assert progressing.weights == (0, 5)
    assert progressing.since_change == pytest.approx(1.1)
    assert found[0].since_change == pytest.approx(-6.0)


def test_placements_are_those_at_rest() -> None:
    found = visits(told())
    assert found["Initializing"].placements == {"primary": TWO, "target": TWO}
    assert found["Initialized"].placements == {"primary": TWO, "target": "none"}
    assert found["Progressing"].placements == {"primary": TWO, "target": TWO}
    # Old pods are still terminating beside the new ones when Promoting ends.
    assert found["Promoting"].placements == {"primary": TWO, "target": TWO}
    assert found["Succeeded"].placements == {"primary": TWO, "target": "none"}


def test_a_role_that_never_rests_in_a_phase_has_no_placement_there() -> None:
    assert visits(told(noise=Noise(early=True)))["Initializing"].placements == {"primary": TWO}


def test_pods_that_are_told_to_go_before_the_status_says_so_do_not_count_as_gone() -> None:
    early = visits(told(noise=Noise(late=True)))
    assert early["Initializing"].placements == {"primary": TWO, "target": TWO}
    assert early["Initialized"].placements == {"primary": TWO, "target": "none"}


def test_a_pod_that_never_finds_a_node_is_told() -> None:
    found = visits(told(Shape(phases=("Progressing", "Promoting"), blocked=True)))
    stuck = f"{TWO}, 1 without a node"
    assert found["Promoting"].placements["primary"] == stuck
    assert found["Failed"].placements["primary"] == stuck
    assert found["Failed"].placements["target"] == TWO


def test_a_pod_that_finds_its_node_in_the_next_phase_was_only_waiting() -> None:
    play = told(Shape(phases=("Progressing", "Promoting"), blocked=True))
    play.at(29.5).one("web-primary", 2, 0, node=play.noise.nodes[0])
    assert "primary" not in visits(play)["Promoting"].placements


def test_pods_that_are_refused_are_told() -> None:
    play = told(Shape(phases=("Progressing",)))
    play.at(20.0).spec("web-primary", 2, 2).at(20.1).canary("Promoting")
    workload = play._objects["Deployment", "web-primary"]
    workload["status"]["conditions"] = [{"type": "ReplicaFailure", "status": "True"}]
    play.at(20.2).see(workload).at(25.0).canary("Failed")
    assert visits(play)["Promoting"].placements["primary"] == f"{TWO}, more refused"


def test_which_nodes_they_are_does_not_matter_but_how_many_does() -> None:
    swapped = Noise(nodes=("b", "a"))
    assert visits(told(noise=swapped))["Succeeded"].placements["primary"] == TWO
    crowded = visits(told(Shape(promoted=1)))
    assert crowded["Succeeded"].placements["primary"] == "2 ready on 1 node"


def test_what_was_written_first_counts_first_however_late_its_watch_is() -> None:
    """The pods' watch is half a second late: in the order of times the primary would become ready in the next phase only."""
    late = Noise(lags=(("Pod", 0.5), ("Deployment", 0.4)))
    play = told(noise=late)
    seen = [o.object["kind"] for o in play.timeline().of(tl.ObjectSeen)]
    assert seen != [o.object["kind"] for o in told().timeline().of(tl.ObjectSeen)]
    assert {name: v.placements for name, v in visits(play).items()} == {
        name: v.placements for name, v in visits(told()).items()
    }


def test_without_versions_the_order_is_that_of_the_recording() -> None:
    observations = told().timeline().observations
    del next(o for o in observations if isinstance(o, tl.ObjectSeen)).object["metadata"][
        "resourceVersion"
    ]
    assert in_order(observations) == list(observations)


def test_a_step_stays_behind_what_was_seen_before_it() -> None:
    ordered = in_order(told().timeline().observations)
    states = [o for o in ordered if isinstance(o, tl.StepState)]
    assert [o.step for o in states if o.state == "started"] == [
        *("initialise", "new revision", "promote")
    ]


def test_objects_are_left_without_what_servers_generate() -> None:
    found = objects(told())
    assert set(found) == {
        *(
            "Canary/web",
            "Deployment/web",
            "Deployment/web-primary",
            "Service/web",
            "Service/web-primary",
        )
    }
    primary = found["Deployment/web-primary"]
    assert primary["metadata"] == {
        "annotations": {"deployment.kubernetes.io/revision": "2"},
        "ownerReferences": [{"kind": "Canary", "name": "web", "uid": "(uid of Canary web)"}],
    }
    assert "status" not in primary
    assert found["Canary/web"]["metadata"] == {}
    assert found["Service/web"]["spec"]["clusterIP"] == "(assigned)"
    status = found["Canary/web"]["status"]
    assert status["conditions"]["Promoted"] == {
        "type": "Promoted",
        "status": "True",
        "reason": "Succeeded",
        "message": "done, web-primary-(hash)",
    }


def test_a_headless_service_stays_one() -> None:
    found = objects(told(Shape(service=(("clusterIP", "None"), ("clusterIPs", ["None"])))))
    assert found["Service/web"]["spec"]["clusterIP"] == "None"


def test_revisions_are_numbered_whatever_the_subject_calls_them() -> None:
    for tokens in (("v2:1", "v2:2"), ("bfc98956c", "57fdb4bd5")):
        found = objects(told(noise=Noise(tokens=tokens)))
        assert found["Canary/web"]["status"]["lastAppliedSpec"] == "(revision 2)"
        template = found["Deployment/web-primary"]["spec"]["template"]
        assert template["metadata"]["annotations"]["flagger-id"] == "(revision 2)"


def test_an_empty_field_of_the_status_says_as_much_as_none() -> None:
    play = told()
    play.at(30.0).canary("Succeeded", trackedConfigs={}, **play.tracked(2, 2))
    assert "trackedConfigs" not in objects(play)["Canary/web"]["status"]


def test_secrets_are_compared_by_which_are_equal() -> None:
    def with_secrets(salt: str, copy: str) -> dict[str, Any]:
        play = told()
        play.at(5.0)
        for name, value in (
            ("app", f"[sha256:{salt * 12}]"),
            ("app-primary", f"[sha256:{copy * 12}]"),
        ):
            play.see({"kind": "Secret", "metadata": {"name": name}, "data": {"key": value}})
        return objects(play)

    assert with_secrets("a", "a") == with_secrets("b", "b")
    assert with_secrets("a", "a") != with_secrets("a", "b")


def test_names_that_differ_in_what_was_generated_stay_apart() -> None:
    play = told()
    for number in (0, 1):
        name = f"set-{play.noise.hashes[number]}"
        play.at(5.0).see({"kind": "ConfigMap", "metadata": {"name": name}, "data": {}})
    assert {"ConfigMap/set-(hash)", "ConfigMap/set-(hash)#2"} <= set(objects(play))


def test_what_teardown_does_is_not_looked_at() -> None:
    play = told()
    play.at(40.0).gone("web", "Canary").clean(45.0)
    assert "Canary/web" in objects(play)
    assert list(visits(play))[-1] == "Succeeded"


def test_a_rollout_object_that_is_deleted_in_the_drill_is_a_phase_of_its_own() -> None:
    play = told()
    play.at(28.0).gone("web", "Canary")
    assert list(visits(play))[-1] == "(deleted)"


def test_roles_of_several_rollouts_are_kept_apart() -> None:
    play = told()
    play.at(20.0).see(
        {
            "kind": "Canary",
            "metadata": {"name": "other"},
            "spec": {"targetRef": {"name": "other"}},
            "status": {"phase": "Initialized"},
        }
    )
    form = normal_form(play.timeline())
    assert [visit.phase for visit in form.visits["other"]] == ["Initialized"]
    assert form.visits["other"][0].placements == {}
    assert len(form.visits["web"]) == 6


@pytest.mark.parametrize(
    ("spoil", "outcome", "told_why"),
    [
        (lambda p: p.at(9.0).gap("Pod", since=8.0), Outcome.UNKNOWN, "the watch of Pod has a gap"),
        (
            lambda p: p.at(0.3).add(tl.Missing, features=("x",), lacking="subject s"),
            Outcome.UNSUPPORTED,
            "subject s lacks x",
        ),
        (
            lambda p: p.at(0.3).add(tl.Precondition, holds=False, reason="3 nodes"),
            Outcome.UNKNOWN,
            "3 nodes",
        ),
        (
            lambda p: p.at(9.0).add(tl.HarnessError, message="etcd died"),
            Outcome.ERROR,
            "etcd died",
        ),
        (
            lambda p: p.at(9.0).add(tl.Interrupted, signal="SIGTERM"),
            Outcome.UNKNOWN,
            "interrupted",
        ),
    ],
    ids=["gap", "unsupported", "precondition", "error", "interrupted"],
)
def test_a_recording_that_does_not_hold_it_all_says_so(
    spoil: Any, outcome: Outcome, told_why: str
) -> None:
    play = told()
    spoil(play)
    incomplete = normal_form(play.timeline()).incomplete
    assert incomplete is not None
    assert incomplete[0] is outcome
    assert told_why in incomplete[1]


def test_a_recording_without_any_phase_is_no_basis() -> None:
    play = Play(Shape(), Noise(), body=BODY)
    play.at(0.2).synced().step("initialise").step("new revision").step("promote").settle(1.0, 2.0)
    incomplete = normal_form(play.timeline()).incomplete
    assert incomplete == (Outcome.UNKNOWN, "no phase of a rollout object was ever observed")


def test_a_recording_that_breaks_off_is_no_basis() -> None:
    text = told().text()
    incomplete = normal_form(tl.parse(text[:-20].splitlines())).incomplete
    assert incomplete is not None
    assert incomplete[0] is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("abc", "abc", [(0, 0), (1, 1), (2, 2)]),
        ("abc", "ac", [(0, 0), (1, None), (2, 1)]),
        ("ac", "abc", [(0, 0), (None, 1), (1, 2)]),
        ("ab", "", [(0, None), (1, None)]),
        ("abab", "ab", [(0, 0), (1, 1), (2, None), (3, None)]),
        ("ab", "ba", [(0, 1), (1, None), (None, 0)]),
        ("abcd", "badc", [(0, 1), (2, 3), (1, None), (3, None), (None, 0), (None, 2)]),
    ],
)
def test_phases_are_put_side_by_side(
    left: str, right: str, expected: list[tuple[int | None, int | None]]
) -> None:
    found = align(left, right)
    assert sum(1 for i, j in found if i is not None and j is not None) == sum(
        1 for i, j in expected if i is not None and j is not None
    )
    assert align(right, left) == [(j, i) for i, j in found]
    assert [i for i, _ in found if i is not None] == list(range(len(left)))
    assert [j for _, j in found if j is not None] == list(range(len(right)))


RECORDED = sorted(data_path("reports").glob("*/*/timeline.jsonl"))


def _relabelled(text: str) -> str:
    """Return a real recording as if it were that of another run: other nodes, ids, hashes, names of pods, times of day."""
    header = tl.parse(text.splitlines()).header
    one, other = header.cluster.nodes[:2]
    swapped = re.sub(
        rf"\b({re.escape(one)}|{re.escape(other)})\b",
        lambda found: other if found.group() == one else one,
        text,
    )
    swapped = swapped.replace(header.namespace, "drill-elsewhere-x").replace("2026-", "2027-")
    for value in set(re.findall(r'"pod-template-hash": ?"([^"]+)"', swapped)):
        swapped = swapped.replace(value, f"z{value[::-1]}")
    uuid = r"\b([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-)"
    return re.sub(uuid, lambda found: f"{found[1][::-1]}{found[2]}", swapped)


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.parent.name)
def test_a_real_recording_does_not_differ_from_its_like_in_another_run(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    like = _relabelled(text)
    assert like != text
    pair = [[tl.parse(told_.splitlines())] for told_ in (text, like)]
    (found,) = compare(pair, (), reproduce="x").pairs
    assert found.differences == ()
    assert found.outcome is Outcome.PASS
    assert found.compared["objects"] >= 6
