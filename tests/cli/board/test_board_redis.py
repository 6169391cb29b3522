"""The board over a real Redis, with no more rights than the chart's users have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import click
import pytest
import redis
from aiohttp.test_utils import TestClient, TestServer

from oarlock.broker import epoch
from oarlock.broker.redis_broker import RedisBroker
from oarlock.cli.board.access import Access
from oarlock.cli.board.server import Board, Options
from oarlock.cli.look.view import Where, looking
from oarlock.cli.top.fleet import Fleet
from oarlock.cli.top.sources import rq_client, which_addresses
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.rq.failed_turns import FailedTurns
from oarlock.workers.rq.job import KeyJob
from tests.cli.cli_helpers import call, problems

QUEUE, KEY = "replicaset", "shop/web"
Play = Callable[["TestClient[Any, Any]"], Awaitable[None]]


@pytest.fixture
def failed(client: redis.Redis, broker: RedisBroker) -> RedisBroker:
    """The key is queued and has a traceback."""
    broker.add(QUEUE, [KEY])
    FailedTurns(client, "w-1").add(KeyJob.of(QUEUE, KEY, client), "Traceback:\n  ValueError: no size")
    return broker


def play(of: Play, url: str, *, write: bool = False) -> None:
    async def run() -> None:
        where = Where(url)
        with (
            click.Context(click.Command("board")),
            looking(where, only_read=not write, needs_epoch=False) as views,
        ):
            fleet = Fleet(views, rq_client(views), which_addresses((), where))
            board = Board(fleet, Access((), ""), Options("", 0.2, write))
            async with TestClient(TestServer(board.app())) as client:
                await of(client)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_the_user_that_may_only_read_sees_all(server: EmbeddedRedis, failed: RedisBroker) -> None:
    async def of(client: TestClient[Any, Any]) -> None:
        look = await (await client.get("/api/look")).json()
        assert look["head"]["figures"]["epoch"] == "3 OPEN"
        assert not [problem for problem in look["head"]["problems"] if "not read" in problem or "answer" in problem]
        assert [row["task"] for row in look["keys"]["rows"]] == [["0", QUEUE, KEY]]
        found = await (await client.get("/api/find", params={"key": f"rs/{KEY}"})).json()
        assert found == {"tasks": [["0", QUEUE, KEY]]}
        about = await (await client.get("/api/key", params={"queue": QUEUE, "key": KEY})).json()
        assert "somebody asked for it" in " ".join(about["sentences"])
        assert about["traceback"] == ["Traceback:", "  ValueError: no size"]

    play(of, server.url("metrics"))


def test_a_pause_and_its_reason_stand_in_the_head(server: EmbeddedRedis, broker: RedisBroker) -> None:
    broker.steer("pause", "namespace shop", "by=ada storage is being moved")

    async def of(client: TestClient[Any, Any]) -> None:
        look = await (await client.get("/api/look")).json()
        assert [
            each for each in look["head"]["problems"] if "namespace shop" in each and "storage is being moved" in each
        ]

    play(of, server.url("metrics"))


def test_without_an_epoch_it_says_so_and_goes_on_when_there_is_one(server: EmbeddedRedis, client: redis.Redis) -> None:
    async def of(asked: TestClient[Any, Any]) -> None:
        look = await (await asked.get("/api/look")).json()
        assert look["head"]["problems"] == ["no epoch; is an ingestor running?"]
        epoch.bootstrap(client, 4)
        while (await (await asked.get("/api/look")).json())["head"]["figures"]["epoch"] != "4 DRAIN":
            await asyncio.sleep(0.05)

    play(of, server.url("metrics"))


def requeued(server: EmbeddedRedis, user: str) -> tuple[int, str]:
    found: list[tuple[int, str]] = []

    async def of(client: TestClient[Any, Any]) -> None:
        answer = await client.post("/api/requeue", json={"shard": "0", "queue": QUEUE, "key": KEY})
        found.append((answer.status, await answer.text()))

    play(of, server.url(user), write=True)
    return found[0]


def test_a_requeue_needs_a_user_that_may_write_and_is_in_the_audit(server: EmbeddedRedis, failed: RedisBroker) -> None:
    status, told = requeued(server, "metrics")
    assert (status, "is not queued" in told) == (400, True)
    status, told = requeued(server, "worker")
    assert (status, KEY in told) == (200, True)
    audit = call("audit", "--redis", server.url("metrics")).stdout
    assert f"requeue {QUEUE}:{KEY}" in audit
    assert "by=board" in audit


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--write",), "--write needs a token: give --token-file FILE, or set OARLOCK_BOARD_TOKEN"),
        (("--token-file", "/nowhere"), "--token-file /nowhere: it cannot be read: No such file or directory"),
        (("--path-prefix", "oarlock"), "--path-prefix 'oarlock' is no path; write /oarlock"),
        (("--bind", "8088"), "--bind '8088' is no address"),
        (
            ("--bind", "0"),
            "--bind '0' is no address; give HOST:PORT that is free, such as 127.0.0.1:8088, or :8088 for",
        ),
        (
            ("--bind", "h:x"),
            "--bind 'h:x': 'x' is no port; give HOST:PORT that is free, such as 127.0.0.1:8088, or :80",
        ),
        (("--host", "board.example:8088"), "--host 'board.example:8088' is no name; write board.example, without"),
        (("--host", "https://board.example"), "--host 'https://board.example' is no name; write board.example"),
        (("--host", ""), "--host '' is no name; write board.example"),
        (("--host", "board.example.", "--bind", "127.0.0.1:0"), "no Redis answers at 127.0.0.1:1"),
        (("--metrics", "ftp://x"), "--metrics: 'x' is no such address"),
        (("--bind", "127.0.0.1:0"), "no Redis answers at 127.0.0.1:1"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], problem: str) -> None:
    result = call("board", *arguments, "--redis", "redis://127.0.0.1:1/0", env={"OARLOCK_BOARD_TOKEN": ""})
    assert result.exit_code == 2
    (line,) = problems(result)
    assert problem in line


def test_a_short_token_is_refused_and_not_shown() -> None:
    result = call("board", "--redis", "redis://127.0.0.1:1/0", env={"OARLOCK_BOARD_TOKEN": "short-secret"})
    (line,) = problems(result)
    assert (result.exit_code, "16 characters" in line, "short-secret" in line) == (2, True, False)
