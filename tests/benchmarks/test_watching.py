"""A watch of a benchmark goes on where the server ended it: no event is lost or counted twice, and no end is taken for
the end of the work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from benchmarks.report import Unfit
from benchmarks.versus_kcm_place import Seen
from benchmarks.watching import until_settled
from oarlock.cluster.answer import Answer
from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.resources import PODS, REPLICASETS, Resource
from oarlock.cluster.watch import Broken, Deaf, Expired
from oarlock.workers.process.io_loop import IoLoop

Life = tuple[list[WatchEvent], Exception | None]
"""What a watch tells, and how it ends; None: the server closes it in order."""


def pod(version: int, name: str) -> WatchEvent:
    labels = {"app.kubernetes.io/name": "web"}
    metadata = {"name": name, "resourceVersion": str(version), "labels": labels}
    return WatchEvent("ADDED", str(version), orjson.dumps({"metadata": metadata}))


def bookmark(version: int) -> WatchEvent:
    return WatchEvent("BOOKMARK", str(version), b"{}")


@dataclass
class Scripted:
    """The client of a place: of PODS each watch is the next life; after the last, and of others, nothing is told."""

    lives: Sequence[Life]
    asked: list[str] = field(default_factory=list)

    async def watch_batches(self, resource: Resource, rv: str, **_: object) -> AsyncGenerator[list[WatchEvent], None]:
        if resource is PODS:
            self.asked.append(rv)
            if len(self.asked) <= len(self.lives):
                told, end = self.lives[len(self.asked) - 1]
                yield told
                if end is not None:
                    raise end
                return
        await asyncio.Event().wait()


@dataclass
class Where:
    """As much of a Place or a Tree as a watch needs."""

    client: Scripted
    io: IoLoop

    def position(self, resource: Resource) -> str:
        return "10"


@pytest.fixture
def io() -> Any:
    loop = IoLoop()
    yield loop
    loop.close()


def after_all_lives(where: Where) -> None:
    """Until the watch after the last life has been asked for, or has ended."""

    async def wait() -> None:
        async with asyncio.timeout(10):
            while len(where.client.asked) <= len(where.client.lives):
                await asyncio.sleep(0.001)

    where.io.run(wait(), 15.0)


@pytest.mark.parametrize(
    ("first", "position"),
    [
        (([pod(11, "a")], None), "11"),
        (([pod(11, "a"), bookmark(15)], None), "15"),
        (([bookmark(12)], None), "12"),
        (([], None), "10"),
        (([pod(11, "a")], Deaf("nothing heard")), "11"),
        (([pod(11, "a")], Broken("cut off")), "11"),
    ],
    ids=["closed", "closed after a bookmark", "nothing but a bookmark", "nothing at all", "deaf", "cut off"],
)
def test_a_watch_that_ended_goes_on_from_its_last_event(io: IoLoop, first: Life, position: str) -> None:
    where = Where(Scripted([first, ([pod(20, "b")], None)]), io)
    with Seen(where, REPLICASETS, "replicas", 1) as seen:  # type: ignore[arg-type]
        after_all_lives(where)
        seen.check()
        assert where.client.asked == ["10", position, "20"]
        assert len(seen.pods) == sum(each.type == "ADDED" for each in first[0]) + 1


@pytest.mark.parametrize(
    "end", [Expired("too old"), Broken("refused", Answer(403, b""))], ids=["history is gone", "refused"]
)
def test_what_cannot_be_gone_on_with_spoils_the_run(io: IoLoop, end: Exception) -> None:
    where = Where(Scripted([([pod(11, "a")], end)]), io)
    with Seen(where, REPLICASETS, "replicas", 1) as seen:  # type: ignore[arg-type]

        async def ended() -> None:
            async with asyncio.timeout(10):
                while not any(each.done() for each in seen._watching):
                    await asyncio.sleep(0.001)

        io.run(ended(), 15.0)
        with pytest.raises(Unfit, match="watch of pods"):
            seen.check()


def test_an_ended_watch_is_not_the_end_of_the_work(io: IoLoop) -> None:
    where = Where(Scripted([([pod(11, "a")], None), ([pod(12, "b")], None)]), io)
    until_settled(where, PODS, ["a", "b"], named, lambda: None, 10.0)  # type: ignore[arg-type]
    assert where.client.asked == ["10", "11"]


def named(body: bytes) -> tuple[str, bool]:
    return orjson.loads(body)["metadata"]["name"], True
