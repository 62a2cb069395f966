"""What Knative's stand-in concludes from objects: where load goes, who answers probes, and how statistics are written."""

from __future__ import annotations

import json
import shutil
import subprocess
from http import HTTPStatus
from typing import Any

import pytest
from ruamel.yaml import YAML

from harness.clusters.embedded import stages
from harness.clusters.knative import load, probes
from harness.clusters.knative.names import CONCURRENCY, INGRESS_CLASS, REVISION
from harness.clusters.knative.stats import Stat, encode, encode_all

JSON = dict[str, Any]


def service(concurrency: str | None, name: str = "web") -> JSON:
    notes = {} if concurrency is None else {CONCURRENCY: concurrency}
    return {"metadata": {"namespace": "shop", "name": name, "annotations": notes}}


def path(**percents: int | None) -> JSON:
    return {
        "splits": [
            {"serviceName": name, **({} if percent is None else {"percent": percent})}
            for name, percent in percents.items()
        ]
    }


def ingress(*paths: JSON) -> JSON:
    """An ingress whose first rule is of the main host, and whose second is of a tag's."""
    tagged = {"http": {"paths": [path(tagged=100)]}}
    return {"spec": {"rules": [{"http": {"paths": list(paths)}}, tagged]}}


def pod(name: str, revision: str, address: str, *, ready: bool = True, ends: bool = False) -> JSON:
    meta: JSON = {"namespace": "shop", "name": name, "labels": {REVISION: revision}}
    if ends:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {
        "podIP": address,
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
    }
    return {"metadata": meta, "status": status}


@pytest.mark.parametrize(("said", "number"), [(None, 0), ("0", 0), ("20", 20), ("0.5", 0.5)])
def test_a_service_says_how_many_requests_are_under_way(said: str | None, number: float) -> None:
    assert load.concurrency(service(said)) == number


@pytest.mark.parametrize("said", ["-1", "many", "", "nan", "inf"])
def test_what_is_no_number_of_requests_is_named(said: str) -> None:
    with pytest.raises(load.LoadError) as error:
        load.concurrency(service(said))
    assert "Service shop/web" in str(error.value)
    assert f"{CONCURRENCY} is {said!r}" in str(error.value)
    assert "0 or more" in str(error.value)


@pytest.mark.parametrize(
    ("made", "shares"),
    [
        (ingress(path(a=80, b=20)), {"a": 80, "b": 20}),
        # A percent of 0 is left out in JSON; a split that stands alone has all of it.
        (ingress(path(a=100, b=None)), {"a": 100, "b": 0}),
        (ingress(path(a=None)), {"a": 100}),
        # Not the main host's plain requests.
        (
            ingress({**path(acme=100), "path": "/.well-known/acme-challenge/x"}, path(a=100)),
            {"a": 100},
        ),
        (
            ingress(
                {**path(next=100), "headers": {"Knative-Serving-Tag": {"exact": "next"}}},
                path(a=60, b=40),
            ),
            {"a": 60, "b": 40},
        ),
        ({"spec": {}}, {}),
    ],
)
def test_the_split_is_that_of_the_main_hosts_plain_requests(
    made: JSON, shares: dict[str, int]
) -> None:
    assert load.split(made) == shares


def test_shares_of_a_revision_that_is_named_twice_are_added() -> None:
    rows = [{"serviceName": "a", "percent": 30}, {"serviceName": "b", "percent": 40}]
    assert load.split(ingress({"splits": [*rows, rows[0]]})) == {"a": 60, "b": 40}


def test_load_is_spread_as_the_split_says_and_none_is_no_entry() -> None:
    services = [
        service("20"),
        service(None, "quiet"),
        service("-3", "nonsense"),
        service("5", "unrouted"),
    ]
    ingresses = {
        ("shop", "web"): ingress(path(a=75, b=25, c=None)),
        ("shop", "quiet"): ingress(path(q=100)),
        ("shop", "nonsense"): ingress(path(n=100)),
    }
    assert load.by_revision(services, ingresses) == {("shop", "a"): 15.0, ("shop", "b"): 5.0}


def picture(*pods: JSON) -> load.Picture:
    return load.Picture.of([service("20")], {("shop", "web"): ingress(path(a=80, b=20))}, pods)


def test_ready_pods_of_a_revision_share_its_load() -> None:
    seen = picture(
        pod("a-1", "a", "10.0.0.1"),
        pod("a-2", "a", "10.0.0.2"),
        pod("a-3", "a", "10.0.0.3", ready=False),
        pod("a-4", "a", "10.0.0.4", ends=True),
        pod("idle-1", "idle", "10.0.0.5"),
    )
    assert seen.of_pod("10.0.0.1") == ("a-1", ("shop", "a"), 8.0)
    assert seen.of_pod("10.0.0.2") == ("a-2", ("shop", "a"), 8.0)
    assert seen.of_pod("10.0.0.3") is None
    assert seen.of_pod("10.0.0.4") is None
    assert seen.of_pod("10.0.0.5") == ("idle-1", ("shop", "idle"), 0.0)
    assert seen.of_pod("10.0.0.9") is None


def test_what_no_ready_pod_takes_waits_at_the_activator() -> None:
    assert picture().waiting() == {("shop", "a"): 16.0, ("shop", "b"): 4.0}
    assert picture(pod("a-1", "a", "10.0.0.1")).waiting() == {("shop", "b"): 4.0}
    starting = pod("b-1", "b", "10.0.0.2", ready=False)
    assert picture(pod("a-1", "a", "10.0.0.1"), starting).waiting() == {("shop", "b"): 4.0}
    assert load.Picture().waiting() == {}


def test_in_a_second_a_load_is_told_by_pods_or_by_the_activator_but_not_by_both() -> None:
    seconds, a, b = load.Seconds(), ("shop", "a"), ("shop", "b")
    assert seconds.counts(a, "activator", 7)
    assert not seconds.counts(a, "queue", 7)
    assert seconds.counts(b, "queue", 7)
    assert seconds.counts(a, "queue", 8)
    assert seconds.counts(a, "queue", 8)
    assert not seconds.counts(a, "activator", 8)
    assert seconds.counts(a, "activator", 9)


ACTIVATORS = frozenset({"10.1.0.1", "10.1.0.2"})


@pytest.mark.parametrize(
    ("wanted", "behind", "status", "text"),
    [
        ("activator", {"10.1.0.1"}, HTTPStatus.OK, "activator"),
        ("queue", {"10.0.0.1"}, HTTPStatus.OK, "queue"),
        # A pod that is still there would get requests, so the revision must not go to zero yet.
        ("activator", {"10.0.0.1"}, HTTPStatus.BAD_REQUEST, None),
        ("activator", {"10.1.0.1", "10.0.0.1"}, HTTPStatus.BAD_REQUEST, None),
        ("queue", {"10.1.0.2"}, HTTPStatus.BAD_REQUEST, None),
        ("activator", set(), HTTPStatus.SERVICE_UNAVAILABLE, None),
    ],
)
def test_a_probe_finds_the_activator_only_where_nobody_else_stands(
    wanted: str, behind: set[str], status: HTTPStatus, text: str | None
) -> None:
    found = probes.answer(wanted, behind, ACTIVATORS)
    assert found.status is status
    assert text is None or found.text == text
    assert found.status is HTTPStatus.OK or found.text != wanted


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("web-00001.shop.svc.cluster.local", ("shop", "web-00001")),
        ("web-00001.shop.svc.other.domain", ("shop", "web-00001")),
        ("web-00001.shop.svc", ("shop", "web-00001")),
        ("web.shop.example", None),
        ("registry", None),
        (".shop.svc", None),
        ("10.0.0.1", None),
    ],
)
def test_a_service_is_told_by_its_name_inside_a_cluster(
    host: str, found: tuple[str, str] | None
) -> None:
    assert probes.service_of(host) == found


def test_addresses_that_are_not_ready_do_not_count() -> None:
    endpoints = {
        "subsets": [
            {"addresses": [{"ip": "10.0.0.1"}], "notReadyAddresses": [{"ip": "10.0.0.2"}]},
            {"notReadyAddresses": [{"ip": "10.0.0.3"}]},
        ]
    }
    assert probes.addresses(endpoints) == {"10.0.0.1"}
    assert probes.addresses({}) == set()


def test_statistics_are_written_as_knatives_own_code_writes_them() -> None:
    """The bytes come from its generated Go code (v0.49.1)."""
    busy = Stat("web-00001-deployment-x", 7.5, 7.5, 12.25, 1764550000)
    # A name that is not ASCII, and fields that are 0.
    idle = Stat("\N{LATIN SMALL LETTER E WITH ACUTE}", 0.0, 0.0, 0.0, 1)
    first = (
        "0a167765622d30303030312d6465706c6f796d656e742d78110000000000001e40210000000000001e40"
        "31000000000080284038f0cab3c906"
    )
    assert encode(busy).hex() == first
    assert encode(idle).hex() == "0a02c3a93801"
    together = encode_all([("shop", "web-00002", busy), ("n", "r", idle)])
    assert together.hex() == (
        f"0a4c0a0473686f7012097765622d30303030321a39{first}0a0e0a016e1201721a060a02c3a93801"
    )


# The stage of ingresses


def kingress(observed: int | None = None, kind: str = INGRESS_CLASS, **meta: Any) -> JSON:
    return {
        "metadata": {
            "generation": 2,
            "annotations": {"networking.knative.dev/ingress.class": kind},
            **meta,
        },
        **({} if observed is None else {"status": {"observedGeneration": observed}}),
    }


@pytest.mark.skipif(not shutil.which("jq"), reason="jq evaluates what kwok would")
@pytest.mark.parametrize(
    ("obj", "answered"),
    [
        (kingress(), True),
        (kingress(observed=1), True),
        (kingress(observed=2), False),
        (kingress(kind="kourier.ingress.networking.knative.dev"), False),
        (kingress(deletionTimestamp="2026-01-01T00:00:00Z"), False),
        (kingress(labels={stages.ROUTE_LABEL: "never"}), False),
        (kingress(labels={"app": "web"}), True),
    ],
)
def test_an_ingress_of_ours_is_answered_once_for_every_generation(
    obj: JSON, answered: object
) -> None:
    text = stages.render(1, [stages.ADDON_FILES["knative"]])
    stage = YAML(typ="safe").load(text)
    (rule,) = stage["spec"]["selector"]["matchExpressions"]
    said = subprocess.run(
        [str(shutil.which("jq")), rule["jq"]["key"]],
        input=json.dumps(obj),
        capture_output=True,
        text=True,
        check=True,
    )
    assert (said.stdout.strip() in rule["jq"]["values"]) is answered
