"""`oarlock shadow report` over courses that a real Redis keeps, read by the user who may only read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import msgspec
import pytest

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.shadow_store import DIFFERENCES_MAX, Difference, Kept, ShadowStore
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.shadow.course import Course, Doubt, begin
from oarlock.workers.turn.shadow.judge import EQUAL, SAME, UNEXPLAINED
from oarlock.workers.turn.shadow.wanted import NOTHING, Wanted
from tests.cli.cli_helpers import call, problems
from tests.workers.turn.shadow.test_judge import A, saw

QUEUE = "replicaset"
TAG = Settings(dry_run=True, fleet_id="shadow").tag


EPOCHS = count(3)


@pytest.fixture
def store(server: EmbeddedRedis) -> Iterator[ShadowStore]:
    """As a worker has it, in an epoch of its own."""
    number = next(EPOCHS)
    with closing(connect(server.url("admin"))) as client:
        epoch.bootstrap(client, number, TAG)
    with closing(connect(server.url("worker"), shard=TAG)) as client:
        yield RedisBroker(client, number, shard=TAG).shadow()


@pytest.fixture
def redis(server: EmbeddedRedis, store: ShadowStore) -> EmbeddedRedis:
    """The server that has the epoch of the store."""
    return server


def course(wanted: Wanted = NOTHING, ago_ms: int = 0, **fields: Any) -> Course:
    found = begin(saw(A), wanted, int(time.time() * 1000) - ago_ms)
    return msgspec.structs.replace(found, **fields)


def keep(store: ShadowStore, key: str, kept: Course, *differences: Difference, **windows: int) -> None:
    named = {"equal-rank" if verdict == "equal" else verdict: count for verdict, count in windows.items()}
    assert store.keep(QUEUE, Kept({key: msgspec.msgpack.encode(kept)}, named, differences))


def ask(redis: EmbeddedRedis, *arguments: str) -> tuple[int, dict[str, Any]]:
    result = call("shadow", "report", *arguments, "--redis", redis.url("metrics"), "-o", "json")
    return result.exit_code, json.loads(result.stdout)


def test_nothing_to_tell(redis: EmbeddedRedis, store: ShadowStore) -> None:
    keep(store, "shop/web", course(windows={SAME: 3, EQUAL: 1}), same=3, equal=1)
    assert ask(redis) == (
        0,
        {
            "now_ms": pytest.approx(time.time() * 1000, abs=60_000),
            "unexplained": 0,
            "controllers": [
                {"controller": QUEUE, "windows": 4, "same": 3, "explained": "equal-rank 1", "unexplained": 0}
            ],
            "owners": [],
            "differences": [],
        },
    )
    result = call("shadow", "report", "--all", "--redis", redis.url("metrics"))
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines() if line]
    assert lines[0] == ["CONTROLLER", "WINDOWS", "SAME", "EXPLAINED", "UNEXPLAINED"]
    assert lines[3][:4] == [QUEUE, "shop/web", "4", "3"]
    assert lines[-1] == ["nothing", "is", "unexplained"]


def test_a_window_that_closed_badly(redis: EmbeddedRedis, store: ShadowStore) -> None:
    now_ms = int(time.time() * 1000)
    text = "upstream created 2, 1 was to be created"
    bad = Difference(now_ms - 7_200_000, QUEUE, "shop/web", UNEXPLAINED, text)
    keep(store, "shop/web", course(windows={UNEXPLAINED: 1}), bad, unexplained=1)
    code, told = ask(redis)
    assert (code, told["unexplained"]) == (1, 1)
    assert [row["owner"] for row in told["owners"]] == [f"{QUEUE} shop/web"]
    assert told["differences"] == [bad._asdict()]
    code, told = ask(redis, "--since", "1h")
    assert (code, told["unexplained"], told["differences"]) == (0, 0, [])


@pytest.mark.parametrize(
    ("wanted", "ago_ms", "fields", "bad", "why"),
    [
        (Wanted(creates={"": 2}), 5_000, {}, 0, None),
        (Wanted(creates={"": 2}), 90_000, {}, 1, "not-done"),
        (Wanted(creates={"": 2}), 90_000, {"seen": saw(A, refused=True)}, 0, "refused"),
        (NOTHING, 0, {"doubts": (Doubt(2**50, "a doubt"),)}, 0, None),
        (NOTHING, 0, {"doubts": (Doubt(1, "a doubt"),)}, 1, ""),
    ],
)
def test_what_stands(
    redis: EmbeddedRedis,
    store: ShadowStore,
    wanted: Wanted,
    ago_ms: int,
    fields: dict[str, Any],
    bad: int,
    why: str | None,
) -> None:
    keep(store, "shop/web", course(wanted, ago_ms, **fields))
    code, told = ask(redis)
    assert (code, told["unexplained"]) == (min(1, bad), bad)
    assert [row["why"] for row in told["owners"]] == ([] if why is None else [why])


def test_hostile_names_are_made_harmless(redis: EmbeddedRedis, store: ShadowStore) -> None:
    bad = Difference(1, QUEUE, "shop/\x1b[31mweb", UNEXPLAINED, "upstream deleted \x1b]0;x\x07")
    keep(store, "shop/\x1b[31mweb", course(windows={UNEXPLAINED: 1}), bad, unexplained=1)
    assert "\x1b" not in call("shadow", "report", "--redis", redis.url("metrics")).stdout


def test_what_is_no_course_is_left_out(redis: EmbeddedRedis, store: ShadowStore) -> None:
    assert store.keep(QUEUE, Kept({"shop/web": b"no course"}, {}, ()))
    assert ask(redis)[1]["owners"] == []


def test_an_owner_that_goes_takes_its_course_with_it(store: ShadowStore) -> None:
    keep(store, "shop/web", course(), same=1)
    assert store.keep(QUEUE, Kept({"shop/web": None}, {}, ()))
    assert store.courses(QUEUE, ["shop/web"]) == [None]
    assert store.windows() == {(QUEUE, "same"): 1}


def test_the_differences_are_bounded(store: ShadowStore) -> None:
    many = [Difference(at, QUEUE, "shop/web", EQUAL, "text") for at in range(DIFFERENCES_MAX // 8)]
    for _ in range(10):
        assert store.keep(QUEUE, Kept({}, {}, many))
    assert len(store.differences(20_000)) < DIFFERENCES_MAX * 1.05


def test_where_no_dry_run_is(redis: EmbeddedRedis) -> None:
    result = call("shadow", "report", "--fleet-id", "other", "--redis", redis.url("metrics"))
    assert result.exit_code == 2
    (line,) = problems(result)
    assert "no epoch of the dry run other; is its `oarlock ingest --dry-run` running?" in line


def test_a_name_that_no_dry_run_may_have(redis: EmbeddedRedis) -> None:
    result = call("shadow", "report", "--fleet-id", "oarlock", "--redis", redis.url("metrics"))
    assert result.exit_code == 2
    assert problems(result)[0].startswith("oarlock: --fleet-id=oarlock cannot name a fleet that runs dry")
