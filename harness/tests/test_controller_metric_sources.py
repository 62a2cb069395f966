"""Metrics carried out, against servers on loopback and a real Prometheus: numbers, and every way to have none."""

from __future__ import annotations

import asyncio
import base64
import math
import os
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.analysis import metrics
from harness.tests.outside_server import (
    NOW,
    PROXIES,
    World,
    canary,
    own_certificate,
    refused,
    running,
    served,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from harness.controller.core.calls import Answer

JSON = dict[str, Any]


@pytest.fixture(autouse=True)
def _proxies_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")


def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name)


def vector(*values: str) -> JSON:
    result = [{"metric": {"pod": str(at)}, "value": [NOW, v]} for at, v in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


SCALAR = {"status": "success", "data": {"resultType": "scalar", "result": [NOW, "2.5"]}}
MATRIX = {"status": "success", "data": {"resultType": "matrix", "result": []}}
BROKEN = {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}}]}}
ERROR = {"status": "error", "errorType": "bad_data", "error": 'parse error at "("'}


@pytest.mark.parametrize(
    ("reply", "value"),
    [((200, vector("1.5", "9")), 1.5), ((200, SCALAR), 2.5), ((200, vector("+Inf")), math.inf)],
)
def test_the_first_value_of_a_vector_counts_and_a_scalar_does_too(reply: Any, value: float) -> None:
    async def story() -> None:
        async with served(reply) as server:
            answer = await World(server.url).metric(query='sum(  x{n="{{ namespace }}"}\n)')
            assert (answer.ok, answer.value, answer.at) == (True, value, NOW)
            (seen,) = server.seen
            assert (seen.method, seen.path) == ("GET", "/api/v1/query")
            assert seen.query == {"query": 'sum( x{n="n"} )'}

    running(story)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((200, vector()), "no values: the query found nothing"),
        ((200, vector("NaN")), "no values: the query's result is NaN"),
        ((500, "boom"), "query failed: HOST answered 500: boom"),
        ((400, ERROR), 'query failed: HOST answered 400: parse error at "("'),
        ((200, ERROR), 'query failed: HOST answered 200: parse error at "("'),
        ((200, "<html>login</html>"), "query failed: HOST does not answer like Prometheus: <html>"),
        ((200, [1]), "query failed: HOST does not answer like Prometheus: [1]"),
        ((200, MATRIX), "query failed: HOST answered with matrix; the query must give a vector"),
        ((200, BROKEN), "query failed: HOST answered with a sample that is no number"),
        ((200, {"status": "success"}), "query failed: HOST answered with no result"),
        ("break", "query failed: the connection to HOST broke off"),
        ("hang", "query failed: no answer from HOST within 0.05 s"),
    ],
)
def test_no_number_says_why(reply: Any, said: str) -> None:
    async def story() -> None:
        async with served(reply) as server:
            world = World(server.url, timeout=0.05 if reply == "hang" else 5.0)
            answer = await world.metric(query="up")
            assert (answer.ok, answer.value) == (False, None)
            host = server.url.removeprefix("http://")
            assert answer.message.replace(host, "HOST").startswith(said)
            # The HTTP library itself repeats a GET whose connection broke off before any answer.
            assert len(server.seen) == (2 if reply == "break" else 1)

    running(story)


def test_a_server_that_is_down_or_unknown_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    no_proxies(monkeypatch)

    async def story() -> None:
        down = await World(refused()).metric(query="up")
        assert down.message.startswith("query failed: no connection to 127.0.0.1:")
        unknown = await World("http://nobody.invalid:9090").metric(query="up")
        said = "query failed: the name of nobody.invalid:9090 cannot be resolved"
        assert unknown.message == said

    running(story)


def test_the_canary_s_own_server_goes_first_and_its_path_is_kept() -> None:
    async def story() -> None:
        async with served((200, vector("1"))) as server:
            world = World("http://127.0.0.1:9")
            answer = await world.metric(server=f"{server.url}/prom/?x=y", query="up")
            assert answer.value == 1.0
            assert server.seen[0].path == "/prom/api/v1/query"
            assert server.seen[0].query == {"x": "y", "query": "up"}

    running(story)


def test_a_built_in_metric_asks_its_query() -> None:
    async def story() -> None:
        async with served((200, vector("99.5"))) as server:
            world = World(server.url)
            given = canary(metrics=[{"name": "request-success-rate"}])
            (entry,) = metrics.entries(given)
            answer = await world.calls.carry_out(metrics.call(given, entry, "o"), given)
            await world.http.close()
            assert answer.value == 99.5
            assert server.seen[0].query["query"].startswith("100 - 100 * (sum(rate(http_request")

    running(story)


def test_every_call_asks_anew() -> None:
    async def story() -> None:
        async with served((200, vector("1")), (200, vector("2"))) as server:
            world = World(server.url)
            first = await world.metric(query="up")
            assert (first.value, (await World(server.url).metric(query="up")).value) == (1.0, 2.0)

    running(story)


# -- templates ---------------------------------------------------------------------------------------------------------------


def template(world: World, url: str, *, namespace: str = "n", **provider: Any) -> None:
    world.cluster.add(
        {
            "apiVersion": "flagger.app/v1beta1",
            "kind": "MetricTemplate",
            "metadata": {"name": "t", "namespace": namespace},
            "spec": {
                "provider": {"type": "prometheus", "address": url, **provider},
                "query": "q{{ variables.v }}[{{ interval }}]",
            },
        }
    )


def secret(world: World, namespace: str = "n", **data: str) -> None:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    meta = {"name": "s", "namespace": namespace}
    world.cluster.add({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded})


ENTRY: JSON = {"templateRef": {"name": "t"}, "templateVariables": {"v": "1"}}


def with_template(
    prepare: Callable[[World, str], None], check: Callable[[World, Any, Answer], None], **entry: Any
) -> Callable[[], Awaitable[None]]:
    async def story() -> None:
        async with served((200, vector("3"))) as server:
            world = World()
            prepare(world, server.url)
            check(world, server, await world.metric(**{**ENTRY, **entry}))

    return story


def test_a_template_is_read_from_its_namespace_and_rendered() -> None:
    def check(_: World, server: Any, answer: Answer) -> None:
        assert answer.value == 3.0
        assert server.seen[0].query == {"query": "q1[1m]"}
        assert "authorization" not in server.seen[0].headers

    running(with_template(template, check))
    elsewhere = {"templateRef": {"name": "t", "namespace": "shared"}}
    prepared = with_template(
        lambda world, url: template(world, url, namespace="shared"), check, **elsewhere
    )
    running(prepared)


@pytest.mark.parametrize(
    ("data", "header"),
    [
        ({"token": "t0ken\n"}, "Bearer t0ken"),
        ({"username": "u", "password": "pw"}, "Basic dTpwdw=="),
        ({"username": "u", "password": "pw", "token": "t"}, "Bearer t"),
    ],
)
def test_credentials_come_from_the_secret(data: JSON, header: str) -> None:
    def prepare(world: World, url: str) -> None:
        template(world, url, secretRef={"name": "s"}, headers={"X-Scope": ["a", "b"]})
        secret(world, **data)

    def check(world: World, server: Any, answer: Answer) -> None:
        assert answer.ok
        assert server.seen[0].headers["authorization"] == header
        assert server.seen[0].headers["x-scope"] == "a, b"
        assert "t0ken" not in world.log.text

    running(with_template(prepare, check))


def half_a_login(world: World, url: str) -> None:
    template(world, url, secretRef={"name": "s"})
    secret(world, username="u")


def forbidden(world: World, url: str) -> None:
    template(world, url)
    world.cluster.forbid("get", "metrictemplates")


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda _w, _u: None, "there is no MetricTemplate 't' in namespace 'n'"),
        (
            lambda w, u: template(w, u, secretRef={"name": "s"}),
            "there is no Secret 's' in namespace 'n'",
        ),
        (
            half_a_login,
            "Secret 's' has neither the key token, nor both username and password",
        ),
        (
            forbidden,
            "the controller may not read MetricTemplate 't' in namespace 'n'",
        ),
        (lambda w, _u: template(w, ""), "the provider's address is missing"),
        (
            lambda w, u: template(w, u, type="datadog"),
            "MetricTemplate 't': spec.provider.type 'datadog' is not implemented; allowed: prometheus",
        ),
    ],
)
def test_a_template_that_cannot_be_used_is_a_failed_query(
    prepare: Callable[[World, str], None], said: str
) -> None:
    def check(_: World, server: Any, answer: Answer) -> None:
        assert answer.message == f"query failed: {said}"
        assert not server.seen

    running(with_template(prepare, check))


def test_a_missing_variable_is_a_failed_query() -> None:
    def check(_: World, server: Any, answer: Answer) -> None:
        assert answer.message.startswith("query failed: query: the query needs the variable 'v'")
        assert not server.seen

    running(with_template(template, check, templateVariables={}))


def test_a_source_s_answer_that_repeats_its_credentials_is_masked() -> None:
    async def story() -> None:
        async with served((401, "bad token t0ken-4711")) as server:
            world = World()
            template(world, server.url, secretRef={"name": "s"})
            secret(world, token="t0ken-4711")
            answer = await world.metric(**ENTRY)
            assert answer.message.endswith("answered 401: bad token ***")
            assert "4711" not in world.log.text

    running(story)


def test_credentials_do_not_follow_a_redirect_to_somebody_else() -> None:
    async def story() -> None:
        async with served((200, vector("3"))) as other:
            away = other.url + "/api/v1/query?query=q"
            async with served((302, "", {"Location": away})) as server:
                world = World()
                template(world, server.url, secretRef={"name": "s"}, headers={"X-Key": ["k"]})
                secret(world, token="t0ken")
                assert (await world.metric(**ENTRY)).value == 3.0
                assert server.seen[0].headers["authorization"] == "Bearer t0ken"
                assert not {"authorization", "x-key"} & set(other.seen[0].headers)

    running(story)


def test_an_untrusted_source_is_asked_only_when_its_template_says_so(tmp_path: Path) -> None:
    tls = own_certificate(tmp_path)

    async def story() -> None:
        async with served((200, vector("3")), tls=tls) as server:
            strict, lenient = World(), World()
            template(strict, server.url)
            template(lenient, server.url, insecureSkipVerify=True)
            assert "no trusted connection" in (await strict.metric(**ENTRY)).message
            assert (await lenient.metric(**ENTRY)).value == 3.0

    running(story)


def test_only_what_can_never_be_measured_is_said_at_admission() -> None:
    async def story() -> None:
        given = canary(metrics=[{"name": "m", **ENTRY}, {"name": "request-duration"}])
        missing, usable, other = World(), World(), World()
        template(usable, "http://127.0.0.1:9")
        template(other, "http://127.0.0.1:9", type="cloudwatch")
        assert await missing.calls.unsupported(given) == ""
        assert await usable.calls.unsupported(given) == ""
        assert await other.calls.unsupported(given) == (
            "spec.analysis.metrics (m): MetricTemplate 't': spec.provider.type 'cloudwatch' is not"
            " implemented; allowed: prometheus"
        )
        assert await other.calls.unsupported(canary()) == ""
        assert len(other.cluster.asked("get", "metrictemplates")) == 1

    running(story)


# -- a real one --------------------------------------------------------------------------------------------------------------


@pytest.mark.embedded
def test_a_real_prometheus_is_understood(tmp_path: Path) -> None:
    binary = os.environ.get("DRILL_PROMETHEUS")
    if not binary:
        pytest.skip("DRILL_PROMETHEUS names no prometheus")
    (tmp_path / "p.yml").write_text("{}", encoding="utf-8")
    address = refused().removeprefix("http://")

    async def story() -> None:
        process = await asyncio.create_subprocess_exec(
            binary,
            f"--config.file={tmp_path / 'p.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address={address}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stderr is not None
            async with asyncio.timeout(8):
                while b"ready to receive web requests" not in await process.stderr.readline():
                    pass
            url = f"http://{address}"
            answers = {q: await World(url).metric(query=q) for q in REAL}
            for query, (value, said) in REAL.items():
                assert answers[query].value == value, query
                assert said in answers[query].message, query
            built_in = await World(url).metric(name="request-success-rate")
            assert built_in.message == "no values: the query found nothing"
        finally:
            process.terminate()
            await process.wait()

    running(story)


REAL: dict[str, tuple[float | None, str]] = {
    "vector(1)": (1.0, ""),
    "2.5": (2.5, ""),
    "vector(0) / vector(0)": (None, "no values: the query's result is NaN"),
    "nothing_of_the_kind": (None, "no values: the query found nothing"),
    "sum(": (None, "query failed: "),
    "up[1m]": (None, "answered with matrix"),
    '"text"': (None, "answered with string"),
}
