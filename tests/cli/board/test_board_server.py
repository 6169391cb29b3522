"""The server of the board over a fleet that is made up: what it gives, to whom, and how often it looks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestClient, TestServer

from oarlock.cli.board import key_pages, server
from oarlock.cli.board.access import HEADERS, Access
from oarlock.cli.board.server import Board, Options
from oarlock.cli.top.tabs import TABS
from oarlock.cli.watch.fleet_look import FleetLook
from tests.cli.board.made_up import FACTS, TOKEN, MadeUp
from tests.cli.watch.looks import QUEUE, busy

INTERVAL_S = 0.2
Play = Callable[["TestClient[Any, Any]"], Awaitable[None]]


def play(
    of: Play,
    fleet: MadeUp | None = None,
    *,
    prefix: str = "",
    write: bool = False,
    token: str = "",
    hosts: tuple[str, ...] = (),
    interval_s: float = INTERVAL_S,
) -> None:
    made_up = fleet or MadeUp()

    async def run() -> None:
        board = made_up.board = Board(made_up, Access(hosts, token), Options(prefix, interval_s, write))  # type: ignore[arg-type]
        async with TestClient(TestServer(board.app())) as client:
            await of(client)

    asyncio.run(asyncio.wait_for(run(), 30))


async def events(client: TestClient[Any, Any], query: str, count: int) -> list[tuple[str, Any]]:
    """The first events of a stream."""
    found: list[tuple[str, Any]] = []
    async with client.get(f"/api/events?{query}") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/event-stream"
        name = ""
        async for line in answer.content:
            word, _, rest = line.decode().rstrip("\n").partition(": ")
            if word == "event":
                name = rest
            elif word == "data":
                found.append((name, json.loads(rest)))
                if len(found) == count:
                    break
    return found


def test_the_page_and_its_files_with_the_headers_that_bind_the_browser() -> None:
    async def of(client: TestClient[Any, Any]) -> None:
        for path in (
            "/",
            "/board.css",
            "/js/main.js",
            "/vendor/uPlot.iife.min.js",
            "/api/look",
            "/healthz",
            "/nowhere",
        ):
            answer = await client.get(path)
            assert answer.status == (404 if path == "/nowhere" else 200)
            for name in HEADERS.keys() - {"Cache-Control"}:
                assert answer.headers[name] == HEADERS[name], (path, name)
        first = await client.get("/board.css")
        again = await client.get("/board.css", headers={"If-None-Match": first.headers["ETag"]})
        assert again.status == 304
        for path in ("/../server.py", "/%2e%2e/server.py", "/js/../../server.py", "/vendor/uPlot.LICENSE"):
            assert (await client.get(path)).status == 404

    play(of)


def test_a_stream_begins_with_all_and_goes_on_with_what_changes() -> None:
    fleet = MadeUp()
    fleet.ages = True

    async def of(client: TestClient[Any, Any]) -> None:
        found = await events(client, "parts=keys", 6)
        assert [name for name, _ in found] == ["hello", "head", "point", "part", "point", "change"]
        hello, head, point, part, _, change = (value for _, value in found)
        assert [tab["name"] for tab in hello["tabs"]] == [tab.name for tab in TABS]
        assert head["figures"]["epoch"] == "7 OPEN"
        assert len(point) == 1 + len(hello["series"])
        assert point[1 + hello["series"].index(QUEUE)] == 2
        assert [row["task"][2] for row in part["rows"]] == ["shop/cart", "shop/web", "batch/crunch", "batch/later"]
        ((at, row),) = change["rows"]
        assert (at, row["task"][2], row["cells"][3]) == (0, "shop/cart", "7.0s")

    play(of, fleet)


def test_parts_that_do_not_change_are_not_sent_again() -> None:
    async def of(client: TestClient[Any, Any]) -> None:
        found = await events(client, "parts=trouble,namespaces,processes,nothing", 8)
        names = [name for name, _ in found]
        assert names[:3] == ["hello", "head", "point"]
        assert sorted(value["part"] for name, value in found if name == "part") == [
            "namespaces",
            "processes",
            "trouble",
        ]
        assert names[-2:] == ["point", "point"]

    play(of)


def test_one_look_for_all_who_watch_and_none_for_nobody() -> None:
    fleet = MadeUp()

    async def of(client: TestClient[Any, Any]) -> None:
        await asyncio.sleep(0)
        assert fleet.looks == 0
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        streams = await asyncio.gather(*(events(client, "parts=keys", 6) for _ in range(5)))
        assert all(len(found) == 6 for found in streams)
        assert fleet.looks <= (loop.time() - begun_s) / INTERVAL_S + 2
        seen = fleet.looks
        answer = await client.get("/api/look")
        assert (await answer.json())["head"]["keys"]["queued"] == "2"
        assert fleet.looks <= seen + 1

    play(of, fleet)


def test_a_page_that_comes_back_gets_the_points_that_it_has_not() -> None:
    async def of(client: TestClient[Any, Any]) -> None:
        await events(client, "parts=keys", 5)
        (_, hello), _, (_, point) = await events(client, "parts=keys", 3)
        assert len(hello["points"]) >= 2
        ((_, later),) = await events(client, f"parts=keys&after={point[0]}", 1)
        assert all(each[0] > point[0] for each in later["points"])

    play(of)


def long_looks(fleet: MadeUp) -> Callable[[], FleetLook]:
    """2 MB a look, more than a socket takes unread, and each row differs from the one before."""
    one = busy().keys[1]

    def look() -> FleetLook:
        fleet.looks += 1
        age_ms = 1_000 * fleet.looks
        return replace(busy(), keys=tuple(replace(one, key=f"shop/{i:0>400}", age_ms=age_ms) for i in range(4_000)))

    return look


def test_a_page_that_takes_nothing_is_left_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SLOW_S", 0.3)
    fleet = MadeUp()
    fleet.look = long_looks(fleet)  # type: ignore[method-assign]

    async def of(client: TestClient[Any, Any]) -> None:
        reader, writer = await asyncio.open_connection(client.host, client.port, limit=1_000)
        writer.write(b"GET /api/events?parts=keys HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readline()
        assert fleet.board is not None
        while fleet.board.hub.watching:
            await asyncio.sleep(0.05)
        assert len(await events(client, "", 3)) == 3
        writer.close()

    play(of, fleet)


def test_more_pages_than_there_may_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "WATCHING_MAX", 0)

    async def of(client: TestClient[Any, Any]) -> None:
        assert (await client.get("/api/events")).status == 503

    play(of)


def test_while_redis_is_gone_the_head_says_so_and_the_last_look_stays() -> None:
    fleet = MadeUp()

    async def of(client: TestClient[Any, Any]) -> None:
        await client.get("/api/look")
        fleet.gone = True
        while True:
            told = await (await client.get("/api/look")).json()
            if told["head"]["lost"]:
                break
        assert told["head"]["problems"] == ["Redis does not answer: connection refused; what is shown is old"]
        assert told["head"]["figures"]["epoch"] == "7 OPEN"
        assert len(told["keys"]["rows"]) == 4

    play(of, fleet, interval_s=0.01)


def test_redis_is_gone_from_the_start() -> None:
    fleet = MadeUp()
    fleet.gone = True

    async def of(client: TestClient[Any, Any]) -> None:
        told = await (await client.get("/api/look")).json()
        assert "connection refused" in told["head"]["problems"][0]
        assert told["keys"]["rows"] == []

    play(of, fleet)


def test_all_about_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_pages, "ANEW_S", 60.0)
    fleet = MadeUp()

    async def of(client: TestClient[Any, Any]) -> None:
        answer = await client.get("/api/key", params={"queue": QUEUE, "key": "shop/web"})
        told = await answer.json()
        assert told["sentences"] == FACTS["sentences"]
        assert told["turns"][0]["because"] == "somebody asked for it"
        assert told["traceback"] == ["Traceback:", "  ValueError: \\u001b[31mred"]
        assert "secret" not in await answer.text()
        assert 60_000 <= told["again_ms"] <= 61_000
        for _ in range(5):
            await client.get("/api/key", params={"queue": QUEUE, "key": "shop/web"})
        assert fleet.asked == [("facts", "shop/web")]

    play(of, fleet)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/api/key?queue=none&key=shop/web", "'none' is no controller; there are: "),
        (f"/api/key?queue={QUEUE}", "key: write namespace/name"),
        (f"/api/key?queue={QUEUE}&key={'x' * 600}", "key: write namespace/name"),
        (f"/api/key?queue={QUEUE}&key=shop/gone", "Redis does not say"),
        ("/api/find?key=", "'' is no key"),
    ],
)
def test_what_cannot_be_told_is_one_line(path: str, problem: str) -> None:
    async def of(client: TestClient[Any, Any]) -> None:
        answer = await client.get(path)
        assert answer.status == 400
        assert (await answer.json())["problem"].startswith(problem)

    play(of)


def test_below_a_path() -> None:
    async def of(client: TestClient[Any, Any]) -> None:
        moved = await client.get("/ops/oarlock", allow_redirects=False)
        assert (moved.status, moved.headers["Location"]) == (301, "/ops/oarlock/")
        for path in ("/ops/oarlock/", "/ops/oarlock/js/main.js", "/ops/oarlock/api/look", "/ops/oarlock/healthz"):
            assert (await client.get(path)).status == 200
        for path in ("/", "/api/look", "/healthz"):
            assert (await client.get(path)).status == 404

    play(of, prefix="/ops/oarlock")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8088", 200),
        ("127.0.0.1", 200),
        ("[::1]:8088", 200),
        ("10.1.2.3:8088", 200),
        ("board.example", 200),
        ("BOARD.example.:443", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("board.example.evil", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_names_of_the_server(host: str, status: int) -> None:
    async def of(client: TestClient[Any, Any]) -> None:
        assert (await client.get("/", headers={"Host": host})).status == status
        assert (await client.get("/api/look", headers={"Host": host})).status == status

    play(of, hosts=("board.example",))


def test_with_a_token_nothing_is_told_without_it() -> None:
    async def of(client: TestClient[Any, Any]) -> None:
        for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
            for path in ("/api/look", "/api/events", f"/api/key?queue={QUEUE}&key=a/b", "/api/find?key=a/b"):
                assert (await client.get(path, headers=given)).status == 401
        for path in ("/", "/healthz"):
            assert (await client.get(path)).status == 200
        assert (await client.get("/api/look", headers={"Authorization": f"Bearer {TOKEN}"})).status == 200

    play(of, token=TOKEN)


BODY = {"shard": "0", "queue": QUEUE, "key": "shop/web"}
GOOD = {"Authorization": f"Bearer {TOKEN}"}


async def requeue(client: TestClient[Any, Any], headers: dict[str, str], body: Any = BODY) -> int:
    answer = await client.post("/api/requeue", json=body, headers=headers)
    return answer.status


def test_without_write_there_is_no_route_that_changes_anything() -> None:
    fleet = MadeUp()

    async def of(client: TestClient[Any, Any]) -> None:
        assert await requeue(client, GOOD) == 405
        routes = {route.method for route in client.app.router.routes()}
        assert routes == {"GET", "HEAD"}

    play(of, fleet, token=TOKEN)
    assert fleet.asked == []


def test_with_write_a_key_is_requeued_by_the_page_alone() -> None:
    fleet = MadeUp()

    async def of(client: TestClient[Any, Any]) -> None:
        own = f"http://127.0.0.1:{client.port}"
        assert await requeue(client, {}) == 401
        assert await requeue(client, {"Authorization": "Bearer nearly-the-token"}) == 401
        assert await requeue(client, {**GOOD, "Origin": "http://evil.example"}) == 403
        assert await requeue(client, {**GOOD, "Origin": "null"}) == 403
        assert await requeue(client, {**GOOD, "Origin": "http://127.0.0.1:1"}) == 403
        assert await requeue(client, {**GOOD, "Sec-Fetch-Site": "cross-site"}) == 403
        form = await client.post("/api/requeue", data=BODY, headers=GOOD)
        assert form.status == 415
        assert await requeue(client, GOOD, {"queue": QUEUE}) == 400
        assert await requeue(client, GOOD, ["x"]) == 400
        assert await requeue(client, GOOD, {**BODY, "queue": "none"}) == 400
        assert fleet.asked == []
        assert await requeue(client, {**GOOD, "Origin": own, "Sec-Fetch-Site": "same-origin"}) == 200
        assert await requeue(client, GOOD) == 200
        assert await requeue(client, {**GOOD, "Origin": "https://board.example"}) == 200

    play(of, fleet, write=True, token=TOKEN, hosts=("board.example",))
    assert fleet.asked == [("requeue", "shop/web", "board", "from 127.0.0.1")] * 3


def test_a_body_is_bounded() -> None:
    async def of(client: TestClient[Any, Any]) -> None:
        async with ClientSession() as other:
            url = f"http://127.0.0.1:{client.port}/api/requeue"
            answer = await other.post(url, json={"key": "x" * 100_000}, headers=GOOD)
            assert answer.status in (400, 413)

    play(of, write=True, token=TOKEN)
