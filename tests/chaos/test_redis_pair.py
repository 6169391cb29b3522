"""The pair of Redis servers that the campaigns exchange under a fleet, for real."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from oarlock.chaos.rig.redis_pair import Pair
from oarlock.sandbox.redis.redis_binary import installed

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not any(each.version >= (7, 0) for each in installed()), reason="no Redis from 7.0"),
]


def test_a_promoted_replica_and_an_old_master_that_goes_on(tmp_path: Path) -> None:
    async def play() -> None:
        pair = Pair(tmp_path, sentinels=False)
        try:
            await pair.start()
            old, new = pair.master, pair.other(pair.master)
            assert pair.ask(old, "SET", "before", "1")
            pair.follow(new, None)
            assert pair.ask(old, "SET", "apart", "1"), "the old one takes writes on"
            assert pair.ask(new, "GET", "apart") is None
            assert pair.ask(new, "SET", "anew", "1")
            pair.follow(old, new)
            await pair.replicated(old)
            assert (pair.ask(old, "GET", "anew"), pair.ask(old, "GET", "apart")) == (b"1", None)
        finally:
            pair.stop()

    asyncio.run(play())


def test_sentinels_name_the_other_one_when_the_master_dies(tmp_path: Path) -> None:
    async def play() -> None:
        pair = Pair(tmp_path, sentinels=True)
        try:
            await pair.start()
            old, new = pair.master, pair.other(pair.master)
            old.kill()
            await pair.named(new)
            assert pair.master is new
            old.start()
            await pair.rejoined()
            assert (await asyncio.to_thread(pair.ask, pair.other(pair.master), "ROLE"))[0] == b"slave"
        finally:
            pair.stop()

    asyncio.run(play())
