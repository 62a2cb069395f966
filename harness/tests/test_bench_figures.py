"""The arithmetic of a benchmark: audit lines, phases and samples in, figures out. No cluster, no clock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.bench import audit, figures, population
from harness.bench.board import Board
from harness.bench.figures import Change
from harness.bench.model import Spread
from harness.bench.profiles import name_of, table
from harness.bench.requests_log import RequestsLog
from harness.bench.spread import spread
from harness.model.timeline import RolloutKind

if TYPE_CHECKING:
    from pathlib import Path

USER = audit.user_of("ns", "subject")


def line(
    verb: str = "get",
    resource: str = "deployments",
    *,
    name: str = "app-0001",
    group: str = "apps",
    sub: str = "",
    user: str = USER,
    stage: str = "ResponseComplete",
    code: int = 200,
    received: str = "2026-01-02T03:04:05.000000Z",
    ended: str = "2026-01-02T03:04:05.250000Z",
) -> str:
    reference: dict[str, Any] = {"resource": resource, "namespace": "ns", "name": name}
    reference |= {"apiGroup": group} if group else {}
    reference |= {"subresource": sub} if sub else {}
    event = {
        "kind": "Event",
        "stage": stage,
        "verb": verb,
        "requestURI": f"/apis/{group}/v1/namespaces/ns/{resource}?limit=500",
        "user": {"username": user},
        "objectRef": reference if resource else None,
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": received,
        "stageTimestamp": ended,
    }
    return json.dumps(event)


def read(*lines: str) -> list[audit.Sent]:
    return [sent for one in lines if (sent := audit.read_line(one, USER)) is not None]


def test_a_request_is_read_with_its_verb_resource_and_time() -> None:
    (sent,) = read(line("update", "canaries", group="flagger.app", sub="status", code=409))
    assert (sent.verb, sent.resource, sent.name, sent.status) == (
        "update",
        "canaries.flagger.app/status",
        "app-0001",
        409,
    )
    assert sent.seconds == pytest.approx(0.25)
    assert sent.write


def test_requests_of_others_are_left_out_even_where_they_name_the_subject() -> None:
    admin = line(user="admin", name=USER)
    assert read(admin, line(user=f"{USER}-2")) == []


def test_what_is_no_resource_goes_by_its_path() -> None:
    (sent,) = read(line(resource=""))
    assert sent.resource == "/apis/apps/v1/namespaces/ns/"


def test_a_watch_counts_once_when_it_begins_and_a_refused_one_once_when_it_ends() -> None:
    begun = line("watch", stage="ResponseStarted")
    ended = line("watch", stage="ResponseComplete")
    refused = line("watch", stage="ResponseComplete", code=410)
    other = line("get", stage="ResponseStarted")
    sent = read(begun, ended, refused, other)
    assert [(one.verb, one.status, one.seconds) for one in sent] == [
        ("watch", 200, 0.0),
        ("watch", 410, 0.0),
    ]


def test_requests_are_counted_by_verb_and_resource_most_frequent_first() -> None:
    counted = audit.count(
        read(
            line("get"),
            line("get", code=404),
            line("list", "services", group=""),
            line("patch", "deployments"),
            line("watch", "deployments", stage="ResponseStarted"),
        )
    )
    assert (counted.total, counted.reads, counted.writes, counted.watches) == (5, 3, 1, 1)
    assert counted.refused == 1
    first = counted.rows[0]
    assert (first.verb, first.resource, first.count, first.refused) == (
        "get",
        "deployments.apps",
        2,
        1,
    )
    assert first.seconds == pytest.approx(0.5)
    assert [row.verb for row in counted.rows[1:]] == ["list", "patch", "watch"]


def test_a_stage_has_the_requests_from_its_begin_to_before_its_end() -> None:
    sent = read(
        line(received="2026-01-02T03:04:05.000000Z"),
        line(received="2026-01-02T03:04:06.000000Z"),
        line(received="2026-01-02T03:04:07.000000Z"),
    )
    moments = [one.at for one in sent]
    assert [one.at for one in audit.within(sent, moments[0], moments[2])] == moments[:2]


def test_a_look_is_a_request_that_names_the_rollout_or_its_primary() -> None:
    sent = read(
        line(name="app-0001"),
        line(name="app-0002-primary"),
        line(name="app-0003-canary", resource="services", group=""),
        line("list", name=""),
    )
    names = ["app-0001", "app-0002", "app-0003", "app-0004"]
    assert audit.naming(sent, names, "-primary") == {"app-0001", "app-0002"}


def test_the_log_is_read_as_it_grows_and_half_a_line_waits(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    log = RequestsLog(file, USER)
    log.read()
    assert log.sent == []
    whole, rest = line("get"), line("patch")
    file.write_text(f"{whole}\n{rest[:40]}", encoding="utf-8")
    log.read()
    assert [sent.verb for sent in log.sent] == ["get"]
    with file.open("a", encoding="utf-8") as more:
        more.write(f"{rest[40:]}\n")
    log.read()
    assert [sent.verb for sent in log.sent] == ["get", "patch"]
    log.close()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([3.0], Spread(1, 3.0, 3.0, 3.0)),
        ([4.0, 1.0, 3.0, 2.0], Spread(4, 2.0, 4.0, 4.0)),
        ([float(number) for number in range(1, 101)], Spread(100, 50.0, 95.0, 100.0)),
        ([float(number) for number in range(1, 22)], Spread(21, 11.0, 20.0, 21.0)),
    ],
)
def test_percentiles_are_values_that_were_measured(
    values: list[float], expected: Spread | None
) -> None:
    assert spread(values) == expected


# ---- phases


def canary(name: str, phase: str, iterations: int = 0, weight: int = 0) -> dict[str, Any]:
    status = {"phase": phase, "iterations": iterations, "canaryWeight": weight}
    return {"metadata": {"name": name}, "status": status if phase else {}}


def board(*moments: tuple[float, str, str, int]) -> Board:
    """Return a board that has seen (time, name, phase, iterations)."""
    made = Board(RolloutKind())
    for t, name, phase, iterations in moments:
        made.take(canary(name, phase, iterations), t)
    return made


STORY = (
    (0.0, "a", "", 0),
    (1.0, "a", "Initializing", 0),
    (3.0, "a", "Initialized", 0),
    (10.5, "a", "Progressing", 0),
    (20.0, "a", "Progressing", 1),
    (30.0, "a", "Promoting", 2),
    (32.0, "a", "Finalising", 0),
    (33.0, "a", "Succeeded", 0),
)


def test_an_analysis_starts_where_it_is_entered_from_outside_or_begun_anew() -> None:
    assert board(*STORY).objects["a"].starts == [10.5]
    again = board(*STORY[:5], (21.0, "a", "Progressing", 0), (25.0, "a", "Progressing", 0))
    assert again.objects["a"].starts == [10.5, 21.0]
    waiting = board((0.0, "a", "Initialized", 0), (1.0, "a", "Waiting", 0))
    waiting.take(canary("a", "Progressing"), 2.0)
    waiting.take(canary("a", "WaitingPromotion", 2), 3.0)
    waiting.take(canary("a", "Progressing", 2), 4.0)
    assert waiting.objects["a"].starts == [1.0]


def test_weight_that_falls_back_to_nothing_is_a_start_too() -> None:
    made = Board(RolloutKind())
    for t, weight in ((1.0, 0), (2.0, 20), (3.0, 0)):
        made.take(canary("a", "Progressing", weight=weight), t)
    assert made.objects["a"].starts == [1.0, 3.0]


def test_phases_are_read_where_the_subject_keeps_them_and_in_our_words() -> None:
    kind = RolloutKind(phase_path="status.state", phases={"Healthy": "Succeeded"})
    made = Board(kind)
    made.take({"metadata": {"name": "a"}, "status": {"state": "Healthy"}}, 1.0)
    assert made.inside("Succeeded") == 1


def test_those_that_are_not_there_are_counted_and_one_is_named() -> None:
    made = board((0, "c", "Progressing", 0), (0, "b", "", 0), (0, "a", "Succeeded", 0))
    made.take(canary("d", "Progressing"), 1.0)
    assert made.inside("Succeeded") == 1
    assert made.outside("Succeeded") == "2 Progressing, 1 without a phase; for example b"
    assert made.outside("") != "none"


def test_an_object_that_moves_on_is_counted_in_one_phase_only() -> None:
    made = board(*STORY)
    assert [made.inside(phase) for phase in ("", "Initialized", "Progressing", "Succeeded")] == [
        0,
        0,
        0,
        1,
    ]


def test_detection_counts_from_the_acknowledged_change_to_the_start_that_follows() -> None:
    seen = board(*STORY, (1.0, "b", "Initialized", 0), (10.0, "b", "Progressing", 0))
    seen.take(canary("c", "Initialized"), 1.0)
    changes = {
        "a": Change(sent=9.0, acknowledged=10.0),
        # The watch was faster than the answer.
        "b": Change(sent=9.0, acknowledged=10.2),
        # Never noticed.
        "c": Change(sent=9.0, acknowledged=10.0),
    }
    assert figures.detection(seen, changes) == Spread(2, 0.0, 0.5, 0.5)
    assert figures.finish(seen, changes, "Succeeded") == Spread(1, 23.0, 23.0, 23.0)
    assert figures.detection(seen, {}) is None


def test_a_start_before_the_change_is_not_its_detection() -> None:
    seen = board(*STORY)
    assert figures.detection(seen, {"a": Change(sent=11.0, acknowledged=11.5)}) is None


def test_time_in_phases_counts_what_was_entered_and_left_within_the_stage() -> None:
    rows = figures.phase_times(board(*STORY), 5.0, 40.0)
    assert [(row.phase, row.spread.median) for row in rows] == [
        ("Progressing", 19.5),
        ("Promoting", 2.0),
        ("Finalising", 1.0),
    ]


def test_starts_beyond_one_for_each_change_are_unasked() -> None:
    seen = board(
        *STORY,
        (0.0, "b", "Initialized", 0),
        (12.0, "b", "Progressing", 0),
        (13.0, "b", "Progressing", 1),
        (14.0, "b", "Progressing", 0),
    )
    assert figures.unasked(seen, 5.0, 40.0, {"a", "b"}) == 1
    assert figures.unasked(seen, 5.0, 40.0, {"a"}) == 2
    assert figures.unasked(seen, 5.0, 40.0, ()) == 3
    assert figures.unasked(seen, 40.0, 50.0, ()) == 0


# ---- the rest


def test_the_population_is_as_large_as_asked_and_its_nodes_have_room_for_it() -> None:
    names = population.names(1000)
    assert len(set(names)) == 1000
    assert population.nodes_for(3) == 1
    assert population.nodes_for(1000) * population.PODS_OF_A_NODE >= 3 * 1000
    canary_, target = population.rollout(names[7], "ns"), population.workload(names[7], "ns")
    assert canary_["spec"]["targetRef"]["name"] == target["metadata"]["name"]
    template = target["spec"]["template"]
    assert target["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]


def test_a_profile_names_functions_without_the_folders_of_this_machine() -> None:
    assert name_of(("/home/me/src/harness/controller/core/a.py", 7, "f")) == (
        "harness/controller/core/a.py:7 f"
    )
    assert name_of(("/opt/v/lib/python3.11/site-packages/aiohttp/c.py", 3, "g")) == (
        "aiohttp/c.py:3 g"
    )
    assert name_of(("/usr/lib/python3.11/asyncio/events.py", 1, "run")) == "asyncio/events.py:1 run"
    assert name_of(("~", 0, "<method 'get' of 'dict' objects>")) == "method 'get' of 'dict' objects"


def test_a_profile_has_the_costliest_functions_and_our_own_by_what_they_called() -> None:
    costs: dict[Any, Any] = {
        (f"/x/site-packages/lib/m{number}.py", 1, "f"): (1, 1, number / 10, number / 10, {})
        for number in range(30)
    }
    costs["/src/harness/kube/client.py", 5, "send"] = (4, 5, 0.01, 99.0, {})
    profile = table("idle", costs)
    assert len(profile.own) == 20
    assert profile.own[0].function == "lib/m29.py:1 f"
    assert [(row.function, row.calls, row.whole) for row in profile.whole] == [
        ("harness/kube/client.py:5 send", 5, 99.0)
    ]
    assert profile.seconds == pytest.approx(sum(number / 10 for number in range(30)) + 0.01)
