"""Metrics of a drill: the exposition, where a Prometheus comes from, its stand-in, and, where one can be had, the real one."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import pytest

from harness.model.actions import MetricStep
from harness.model.resolved import Resolved
from harness.model.timeline import HarnessError
from harness.model.timeline_outside import Queries, StandIn
from harness.programs.errors import ProgramError
from harness.programs.paths import cache_root
from harness.run.objects import RefusedError
from harness.run.outside import Outside
from harness.standins import metrics_server, prometheus_program
from harness.standins.exposition import Exposition, Metrics
from harness.standins.front import Front
from harness.standins.imitation import sample
from harness.standins.metrics_server import MetricsServer, NotSeenError
from harness.standins.prometheus import Prometheus, arguments, configuration

if TYPE_CHECKING:
    from harness.standins.doorman import Asked

COUNTER = 'http_requests_total{status="500",pod="web-1"}'


def bare(**more: Any) -> Resolved:
    """Return a scenario with nothing in it but what is given."""
    return replace(Resolved.from_json({"name": "s", "manifests": ["m.yaml.j2"]}), **more)


# The values


def test_the_text_has_every_series_that_is_not_absent() -> None:
    metrics = Metrics({"good": "99.5", "odd": "NaN", "gone": "absent", COUNTER: "5/s"})
    assert metrics.text(10.0) == f"good 99.5\nodd NaN\n{COUNTER} 50\n"


def test_a_counter_never_falls_when_it_is_changed() -> None:
    metrics = Metrics({COUNTER: "5/s"})
    metrics.set(COUNTER, "0/s", 10.0)
    assert metrics.value(COUNTER, 20.0) == "50"
    metrics.set(COUNTER, "2/s", 30.0)
    assert metrics.value(COUNTER, 31.0) == "52"


def test_the_endpoint_serves_them() -> None:
    async def run() -> str:
        site = Exposition(Metrics({"good": "1"}))
        await site.open()
        async with (
            aiohttp.ClientSession(trust_env=False) as http,
            http.get(f"http://127.0.0.1:{site.port}/metrics") as answer,
        ):
            text = await answer.text()
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        await site.close()
        return text

    assert asyncio.run(run()) == "good 1\n"


# The port that can be taken away


def test_a_server_that_is_down_refuses_and_comes_back_on_its_port() -> None:
    async def fetch(port: int) -> str:
        async with (
            aiohttp.ClientSession(trust_env=False) as http,
            http.get(f"http://127.0.0.1:{port}/metrics") as answer,
        ):
            return await answer.text()

    async def run() -> None:
        site, front = Exposition(Metrics({"good": "1"})), Front()
        await site.open()
        await front.up()
        port = front.port
        with pytest.raises(aiohttp.ClientError):
            await fetch(port)  # nothing is behind it yet
        front.behind = site.port
        assert await fetch(port) == "good 1\n"
        await front.down()
        with pytest.raises(aiohttp.ClientConnectorError):
            await fetch(port)
        await front.up()
        assert front.port == port
        assert await fetch(port) == "good 1\n"
        await front.down()
        await site.close()

    asyncio.run(run())


def test_a_port_that_somebody_else_took_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.standins.front._TRIES", 2)
    monkeypatch.setattr("harness.standins.front._AGAIN", 0.0)

    async def run() -> None:
        front = Front()
        await front.up()
        await front.down()
        with (
            socket.create_server(("127.0.0.1", front.port)),
            pytest.raises(OSError, match="in use"),
        ):
            await front.up()

    asyncio.run(run())


# The stand-in


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("good", ["99.5"]),
        (" good {} ", ["99.5"]),
        ('http_requests_total{pod="web-1", status="500"}', ["50"]),
        ("gone", []),
        ("vector(1)", ["1"]),
        ("rate(good[1m])", None),
        ("good * 100", None),
        ("unheard_of", None),
        ('http_requests_total{status=~"5.."}', None),
    ],
)
def test_the_stand_in_answers_names_of_series_and_nothing_else(
    query: str, values: list[str] | None
) -> None:
    metrics = Metrics({"good": "99.5", "gone": "absent", COUNTER: "5/s"})
    assert sample(query, metrics, 10.0) == values


class Log:
    """What a Live does, as far as the stand-ins see it."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def now(self) -> float:
        return 1.0

    def observe(self, observation: Any) -> None:
        self.seen.append(observation)


async def ask(address: str, query: str) -> Any:
    async with (
        aiohttp.ClientSession(trust_env=False) as http,
        http.post(f"{address}/api/v1/query", data={"query": query}) as answer,
    ):
        return await answer.json()


def test_without_a_prometheus_the_stand_in_is_used_said_and_never_makes_up_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(prometheus_program.VARIABLE, str(tmp_path / "none"))
    log = Log()

    async def run() -> None:
        outside = Outside(bare(metrics={"good": "99.5"}), tmp_path, print)
        await outside.open()
        assert outside.metrics_address == outside.addresses["prometheus"]
        outside.attach(cast("Any", log), "drill-x")
        await outside.ready()
        await outside.told()
        address = outside.metrics_address
        assert (await ask(address, "good"))["data"]["result"][0]["value"][1] == "99.5"
        told = await outside.change_metrics(MetricStep({"good": "80"}))
        assert told.startswith("good 99.5 → 80 (told after ")
        assert (await ask(address, "good"))["data"]["result"][0]["value"][1] == "80"
        for _ in range(2):
            assert (await ask(address, "rate(good[1m])"))["status"] == "error"
        await outside.change_metrics(MetricStep({"good": "down"}))
        with pytest.raises(aiohttp.ClientConnectorError):
            await ask(address, "good")
        await outside.change_metrics(MetricStep({"good": "absent"}))
        assert (await ask(address, "good"))["data"]["result"] == []
        await outside.close()

    asyncio.run(run())
    stood, error = (seen for seen in log.seen if not isinstance(seen, Queries))
    assert isinstance(stood, StandIn)
    assert not stood.exact
    assert "is no program" in stood.by
    assert isinstance(error, HarnessError)
    assert "cannot answer 'rate(good[1m])'" in error.message


def test_a_change_that_is_never_told_fails_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_server, "SEEN_WITHIN", 0.2)

    async def run() -> None:
        server = MetricsServer({"good": "1"}, tmp_path, print, print)
        await server.open()
        await server.start(None, "drill-x")
        monkeypatch.setattr(Metrics, "set", lambda *_: None)
        with pytest.raises(NotSeenError, match=r"did not tell good 2 within 0\.2 s; last told: 1"):
            await server.change({"good": "2"})
        await server.close()

    asyncio.run(run())


def test_a_drill_without_metrics_has_none_to_change(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="declares no metrics"):
        asyncio.run(Outside(bare(), tmp_path, print).change_metrics(MetricStep({"a": "1"})))


# Where it comes from


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Prometheus, and with nothing on PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("DRILL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv(prometheus_program.VARIABLE, raising=False)
    return tools


def tool(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
    path.chmod(0o755)
    return path


def test_one_that_is_named_wins_and_a_wrong_name_is_an_error(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(nowhere, "prometheus", "exit 0")
    mine = tool(nowhere, "mine", "exit 0")
    monkeypatch.setenv(prometheus_program.VARIABLE, str(mine))
    assert prometheus_program.obtain(print) == mine
    monkeypatch.setenv(prometheus_program.VARIABLE, "/nowhere/prometheus")
    with pytest.raises(
        ProgramError, match="DRILL_PROMETHEUS is '/nowhere/prometheus', which is no"
    ):
        prometheus_program.obtain(print)


def test_one_on_the_path_is_taken(nowhere: Path) -> None:
    path = tool(nowhere, "prometheus", "exit 0")
    assert prometheus_program.obtain(print) == path


def debian(monkeypatch: pytest.MonkeyPatch, **facts: str) -> None:
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: facts)


def test_debians_package_is_unpacked_once_and_never_installed(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    debian(monkeypatch, ID="ubuntu", ID_LIKE="debian")
    log = nowhere.parent / "log"
    tool(nowhere, "apt-get", f'echo "apt-get $@" >> {log}; touch prometheus_2_amd64.deb')
    unpack = "mkdir -p unpacked/usr/bin && echo program > unpacked/usr/bin/prometheus"
    tool(nowhere, "dpkg-deb", f'echo "dpkg-deb $@" >> {log}; {unpack}')
    said: list[str] = []
    first = prometheus_program.obtain(said.append)
    assert first.read_text() == "program\n"
    assert os.access(first, os.X_OK)
    assert prometheus_program.obtain(said.append) == first
    assert log.read_text().splitlines() == [
        "apt-get -q download prometheus",
        "dpkg-deb -x prometheus_2_amd64.deb unpacked",
    ]
    assert len(said) == 1
    assert {path.name for path in first.parent.iterdir()} <= {"prometheus", ".lock"}


def test_a_download_that_fails_says_why_and_what_to_do(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    debian(monkeypatch, ID="debian")
    tool(nowhere, "apt-get", "echo 'E: Unable to locate package prometheus' >&2; exit 100")
    tool(nowhere, "dpkg-deb", "exit 0")
    with pytest.raises(
        ProgramError, match=r"Unable to locate package.*DRILL_PROMETHEUS=FILE.*apt-get update"
    ):
        prometheus_program.obtain(print)


def test_elsewhere_there_is_none(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    debian(monkeypatch, ID="fedora")
    tool(nowhere, "apt-get", "exit 0")
    tool(nowhere, "dpkg-deb", "exit 0")
    with pytest.raises(ProgramError, match="this is not Debian"):
        prometheus_program.obtain(print)


# How it is started


def test_it_scrapes_one_port_of_this_machine_every_second_and_listens_on_loopback_only() -> None:
    config: Any = configuration(4321, "drill-x")
    (job,) = config["scrape_configs"]
    (target,) = job["static_configs"]
    assert target["targets"] == ["127.0.0.1:4321"]
    assert set(target["labels"].values()) == {"drill-x"}
    assert config["global"]["scrape_interval"] == "1s"
    argv = arguments(Path("/p"), Path("/c"), Path("/f"))
    assert "--web.listen-address=127.0.0.1:0" in argv


def fake(folder: Path, script: str) -> Path:
    path = folder / "fake-prometheus"
    path.write_text(f"#!{sys.executable}\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "line",
    [
        'ts=1 caller=tls_config.go:232 level=info component=web msg="Listening on" address=127.0.0.1:45113',
        'time=1 level=INFO source=tls_config.go:347 msg="Listening on" component=web address=127.0.0.1:45113',
    ],
)
def test_its_port_is_read_from_its_log_in_the_old_and_the_new_form(
    tmp_path: Path, line: str
) -> None:
    program = fake(tmp_path, f"import time\nprint({line!r}, flush=True)\ntime.sleep(60)")

    async def run() -> int:
        one = Prometheus(program, tmp_path / "data")
        await one.start(1, "drill-x")
        await one.stop()
        return one.port

    assert asyncio.run(run()) == 45113


def test_one_that_ends_at_once_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    program = fake(tmp_path, "print('unknown long flag', flush=True)")

    async def run() -> None:
        with pytest.raises(ProgramError, match="Prometheus ended; its log ends with: unknown long"):
            await Prometheus(program, tmp_path / "data").start(1, "drill-x")

    asyncio.run(run())


def real() -> Path | None:
    """Return a Prometheus that is there already; tests download nothing."""
    given = os.environ.get(prometheus_program.VARIABLE) or shutil.which("prometheus")
    cached = cache_root() / "programs" / "prometheus" / "prometheus"
    return Path(given) if given else (cached if cached.is_file() else None)


@pytest.mark.embedded
def test_a_real_one_tells_changed_values_and_its_built_in_functions_work(tmp_path: Path) -> None:
    program = real()
    if program is None:
        pytest.skip("no Prometheus on this machine, and tests download none")

    asked: list[Asked] = []

    async def run() -> None:
        server = MetricsServer(
            {"good": "99.5", COUNTER: "5/s"}, tmp_path / "p", print, asked.append
        )
        await server.open()
        try:
            await server.start(program, "drill-x")
            await server.told()
            assert server.by.startswith("Prometheus ")
            for value, told in (("80", "80"), ("NaN", "NaN")):
                await server.change({"good": value})
                rows = (await ask(server.address, 'good{namespace="drill-x"}'))["data"]["result"]
                assert rows[0]["value"][1] == told
            await server.change({"good": "absent"})
            assert (await ask(server.address, "good"))["data"]["result"] == []
            await asyncio.sleep(2)
            rate = (await ask(server.address, f"irate({COUNTER}[10s])"))["data"]["result"]
            assert float(rate[0]["value"][1]) == pytest.approx(5, rel=0.5)
            await server.change({"good": "down"})
            with pytest.raises(aiohttp.ClientConnectorError):
                await ask(server.address, "good")
            await server.change({"good": "1"})
            assert (await ask(server.address, "good"))["status"] == "success"
            # What it was asked by others, and by nobody else: it has answered many more by now.
            assert await server.counted() == len(asked) == 5
            await server.change({"good": "throttled"})
            with pytest.raises(aiohttp.ContentTypeError):
                await ask(server.address, "good")
            assert await server.counted() == 5
            await server.change({"good": "1"})
            assert (await ask(server.address, "good"))["status"] == "success"
            assert await server.counted() == 6
        finally:
            await server.close()

    asyncio.run(run())
    assert [query.status for query in asked] == [200, 200, 200, 200, 200, 429, 200]
    assert [query.passed for query in asked].count(False) == 1
