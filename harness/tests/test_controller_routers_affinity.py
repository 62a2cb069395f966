"""Cookies of session affinity: when they change, when they must not, and what clients are told."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.controller.core.routers import affinity
from harness.controller.core.routers.base import Split
from harness.tests.routers_kit import CANARY, MESHES, PRIMARY, Server, canary

JSON = dict[str, Any]
BOTH: JSON = {"cookieName": "stay", "primaryCookieName": "old"}
HELD = affinity.CANARY_COOKIE
BEFORE = affinity.PREVIOUS_COOKIE
OTHER = affinity.PRIMARY_COOKIE


def sticky(provider: str = "istio", **settings: Any) -> JSON:
    return canary(provider, analysis={"sessionAffinity": {**BOTH, **settings}})


def set_cookies(server: Server) -> dict[tuple[int, str], str]:
    """Set-Cookie headers by place of the rule and backend."""
    found: dict[tuple[int, str], str] = {}
    if "httproutes" in server.objects:
        for place, rule in enumerate(server.http_route["spec"]["rules"]):
            for ref in rule["backendRefs"]:
                for one in ref.get("filters", []):
                    found[place, ref["name"]] = one["responseHeaderModifier"]["add"][0]["value"]
    else:
        for place, rule in enumerate(server.virtual_service["spec"]["http"]):
            for one in rule["route"]:
                if "headers" in one:
                    host = one["destination"]["host"]
                    found[place, host] = one["headers"]["response"]["add"]["Set-Cookie"]
    return found


def patterns(server: Server) -> list[str]:
    """Regular expressions on the Cookie header, rule by rule."""
    if "httproutes" in server.objects:
        rules = server.http_route["spec"]["rules"]
        return [
            header["value"]
            for rule in rules
            for match in rule["matches"]
            for header in match.get("headers", [])
            if header["name"] == "Cookie"
        ]
    return [
        match["headers"]["cookie"]["regex"]
        for rule in server.virtual_service["spec"]["http"]
        for match in rule.get("match", [])
        if "cookie" in match.get("headers", {})
    ]


@pytest.mark.parametrize("provider", MESHES)
def test_a_run_from_the_first_step_to_the_next_run(provider: str) -> None:
    server = Server(sticky(provider))
    server.route(0)
    assert server.rules() == [[(PRIMARY, 100), (CANARY, 0)]], "nothing to keep or to forget yet"
    server.route(10)
    status = server.canary["status"]
    first, step = status[HELD], status[OTHER]
    assert server.rules() == [[(CANARY, 100)], [(PRIMARY, 100)], [(PRIMARY, 90), (CANARY, 10)]]
    assert set_cookies(server) == {
        (2, CANARY): f"{first}; Max-Age=86400",
        (2, PRIMARY): f"{step}; Max-Age=30",
    }
    assert patterns(server) == [affinity.pattern(first), affinity.pattern(step)]
    server.route(20)
    status = server.canary["status"]
    assert status[HELD] == first, "kept through the run"
    assert status[OTHER] != step, "new for each step (O19)"
    server.route(0)
    status = server.canary["status"]
    assert HELD not in status
    assert OTHER not in status
    assert status[BEFORE] == first
    assert server.rules() == [[(PRIMARY, 100)], [(PRIMARY, 100), (CANARY, 0)]]
    assert set_cookies(server) == {(0, PRIMARY): f"{first}; Max-Age=-1"}
    assert patterns(server) == [affinity.pattern(first)]
    server.route(10)
    second = server.canary["status"][HELD]
    assert second != first, "a new run, even of the same revision, has a cookie of its own"
    assert second.startswith("stay=")
    assert server.rules() == [[(CANARY, 100)], [(PRIMARY, 100)], [(PRIMARY, 90), (CANARY, 10)]]


def test_cut_off_before_the_status_the_same_cookies_come_again() -> None:
    server = Server(sticky())
    for share in (10, 20, 0, 10):
        before = server.wish(share)
        first, again = affinity.cookies(before.canary, Split(share)), server.router.status(before)
        server.route(share)
        assert affinity.cookies(server.canary, Split(share)) == first
        assert again == server.router.status(before)


def test_another_revision_does_not_inherit_the_clients_of_the_last_one() -> None:
    server = Server(sticky())
    server.route(10)
    old = server.canary["status"][HELD]
    server.canary["status"]["lastAppliedSpec"] = "v2:ffffffffffffffff"
    server.route(10)
    status = server.canary["status"]
    assert status[HELD] != old
    assert status[BEFORE] == old


def test_a_cookie_of_another_controller_is_replaced_and_forgotten() -> None:
    server = Server(sticky())
    server.canary["status"] |= {HELD: "stay=LpsIaLdoNZ", OTHER: "=x"}
    server.route(10)
    status = server.canary["status"]
    assert status[BEFORE] == "stay=LpsIaLdoNZ"
    assert re.fullmatch(r"stay=[0-9a-f]{16}", status[HELD])
    assert re.fullmatch(r"old=[0-9a-f]{16}", status[OTHER])


def test_without_a_name_the_primary_has_no_cookie() -> None:
    server = Server(canary("istio", analysis={"sessionAffinity": {"cookieName": "stay"}}))
    server.route(10)
    assert OTHER not in server.canary["status"]
    assert server.rules() == [[(CANARY, 100)], [(PRIMARY, 90), (CANARY, 10)]]


def test_cookies_of_two_canaries_differ() -> None:
    one, other = sticky(), sticky()
    other["metadata"]["uid"] = "uid-2"
    assert affinity.cookies(one, Split(10)) != affinity.cookies(other, Split(10))


def test_without_session_affinity_the_status_is_left_as_it_is() -> None:
    server = Server(canary("istio"))
    server.canary["status"] |= {HELD: "a=b", BEFORE: "a=c"}
    before = copy.deepcopy(server.canary["status"])
    server.route(10)
    assert server.canary["status"] == before
    assert len(server.rules()) == 1


def test_attributes_in_order_and_the_same_ones_to_forget() -> None:
    owner = sticky(
        domain="example.com",
        httpOnly=True,
        partitioned=True,
        path="/shop",
        sameSite="None",
        secure=True,
        maxAge=60,
    )
    rest = "Domain=example.com; HttpOnly; Partitioned; Path=/shop; SameSite=None; Secure"
    assert affinity.set_canary(owner, "a=b") == f"a=b; Max-Age=60; {rest}"
    assert affinity.set_primary(owner, "a=b") == f"a=b; Max-Age=30; {rest}"
    # A browser keeps a cookie that is to be deleted under another Domain or Path.
    assert affinity.expire(owner, "a=b") == f"a=b; Max-Age=-1; {rest}"


def test_a_max_age_of_zero_is_a_day() -> None:
    assert "Max-Age=86400" in affinity.set_canary(sticky(maxAge=0), "a=b")


_NAMES = st.text("abcXYZ019!#$%&'*+-.^_`|~", min_size=1, max_size=12)


@given(name=_NAMES, before=st.lists(_NAMES, max_size=3), after=st.lists(_NAMES, max_size=3))
def test_the_pattern_finds_its_cookie_among_others_and_no_other(
    name: str, before: list[str], after: list[str]
) -> None:
    wanted = f"{name}=0123456789abcdef"
    regex = re.compile(affinity.pattern(wanted))
    others = [f"{one}x=1" for one in before], [f"{one}x=2" for one in after]
    assert regex.fullmatch("; ".join([*others[0], wanted, *others[1]]))
    for other in (f"x{wanted}", f"{wanted}0", f"{name}=", f"y={wanted}", "a=b"):
        assert not regex.search("; ".join([*others[0], other, *others[1]])), other


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"cookieName": "a b"}, "sessionAffinity.cookieName"),
        ({"cookieName": ""}, "sessionAffinity.cookieName"),
        ({"primaryCookieName": "a;b"}, "sessionAffinity.primaryCookieName"),
        ({"domain": "a;b"}, "sessionAffinity.domain"),
        ({"path": "/\n"}, "sessionAffinity.path"),
        ({"sameSite": "lax"}, "allowed: Strict, Lax, None"),
        ({"maxAge": -1}, "sessionAffinity.maxAge"),
    ],
)
@pytest.mark.parametrize("provider", MESHES)
def test_what_makes_no_cookie_is_a_problem(provider: str, settings: JSON, field: str) -> None:
    server = Server(sticky(provider, **settings))
    assert field in server.router.problem(server.canary)


@pytest.mark.parametrize("provider", MESHES)
def test_every_service_match_goes_with_the_cookie(provider: str) -> None:
    owner = sticky(provider)
    owner["spec"]["service"]["match"] = [{"uri": {"prefix": "/a"}}, {"uri": {"prefix": "/b"}}]
    server = Server(owner)
    server.route(10)
    assert len(patterns(server)) == 4, "two cookies by two matches"


@pytest.mark.parametrize("provider", MESHES)
def test_own_set_cookie_headers_of_a_service_are_no_clash(provider: str) -> None:
    owner = sticky(provider)
    owner["spec"]["service"]["headers"] = {"response": {"add": {"Set-Cookie": "mine=1"}}}
    server = Server(owner)
    for share in (10, 0):
        server.route(share)
    assert len(set_cookies(server)) == 1
