"""What a shard sees of the API: its own objects, nodes, and that time passes elsewhere."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.listing import Page
from oarlock.workers.ingest.lister_watcher import End, Ending
from oarlock.workers.ingest.projection import place_of
from oarlock.workers.ingest.shard_lister_watcher import (
    LOOKED_AT_ONCE,
    PROGRESS_EVERY_MS,
    Ours,
    ShardListerWatcher,
)
from oarlock.workers.process.shards import SHARDS_MAX, has_key, names, shard_of, share

PINNED = {"default": "114", "kube-system": "114", "shop": "110", "batch": "100", "team-7": "013", "ü": "023"}
"""The shard of a namespace, of two, three and five; by sha256sum. Another answer moves every workload of a cluster."""
OURS, THEIRS = "batch", "shop"  # of three: "0" and "1"


class Scripted:
    """A source whose streams give what the test put in."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []
        self.page: list[Page] = []
        self.ended: End | None = None
        self.closed = 0
        self.paced: list[bool] = []

    def watch(self, rv: str) -> Scripted:
        return self

    def pages(self, limit: int) -> _Pages:
        return _Pages(self)

    def heard_ms(self) -> int:
        return 7

    def take(self, most: int) -> list[WatchEvent]:
        taken, self.events = self.events[:most], self.events[most:]
        return taken

    def end(self) -> End | None:
        return None if self.events else self.ended

    def close(self) -> None:
        self.closed += 1

    def pace(self, awaited: bool) -> None:
        self.paced.append(awaited)


class _Pages:
    def __init__(self, source: Scripted) -> None:
        self._source = source

    def take(self, most: int) -> list[Page]:
        taken, self._source.page = self._source.page[:most], self._source.page[most:]
        return taken

    def end(self) -> End | None:
        return self._source.ended

    def close(self) -> None:
        self._source.closed += 1


class Clock:
    now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


def event(rv: int, namespace: str | None, kind: str = "MODIFIED", **more: Any) -> WatchEvent:
    meta: dict[str, Any] = {"name": "x", **({"namespace": namespace} if namespace is not None else {})}
    return WatchEvent(kind, str(rv), orjson.dumps({**more, "metadata": meta}))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def source() -> Scripted:
    return Scripted()


def watch(source: Scripted, clock: Clock) -> Any:
    return ShardListerWatcher(source, Ours("0", 3), clock).watch("1")


def rvs(events: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(each.type, each.rv) for each in events]


def test_whether_somebody_waits_is_told_on(source: Scripted, clock: Clock) -> None:
    watch(source, clock).pace(awaited=False)
    assert source.paced == [False]


@pytest.mark.parametrize(("namespace", "shards"), PINNED.items())
def test_the_shard_of_a_namespace_never_changes(namespace: str, shards: str) -> None:
    assert "".join(shard_of(namespace, count) for count in (2, 3, 5)) == shards


def test_shards_are_about_as_large_as_one_another() -> None:
    for count in range(2, SHARDS_MAX + 1):
        found = [shard_of(f"namespace-{i}", count) for i in range(2_000)]
        assert set(found) == set(names(count))
        assert max(found.count(each) for each in names(count)) < 1.3 * 2_000 / count


def test_keys_and_workers_of_a_shard() -> None:
    assert has_key("batch/crunch", "0", 3)
    assert not has_key("batch/crunch", "1", 3)
    assert has_key("node-3", "0", 3)
    assert has_key("node-3", "1", 3)
    assert has_key("batch/crunch", "0", 1)
    assert [share(7, shard, 3) for shard in range(3)] == [3, 2, 2]
    assert [share(3, shard, 3) for shard in range(3)] == [1, 1, 1]


def test_own_events_pass_and_a_run_of_others_becomes_one_bookmark(source: Scripted, clock: Clock) -> None:
    source.events = [event(2, OURS), event(3, THEIRS), event(4, THEIRS), event(5, OURS), event(6, THEIRS)]
    found = watch(source, clock).take(200)
    assert rvs(found) == [("MODIFIED", "2"), ("MODIFIED", "5"), ("BOOKMARK", "6")]


@pytest.mark.parametrize("most", [2, 3, 10])
def test_no_more_come_than_were_asked_for(source: Scripted, clock: Clock, most: int) -> None:
    """With the bookmark of a run of others behind them."""
    source.events = [*(event(rv, OURS) for rv in range(2, most + 1)), event(most + 1, THEIRS), event(most + 2, OURS)]
    stream = watch(source, clock)
    assert rvs(stream.take(most)) == [("MODIFIED", str(rv)) for rv in range(2, most + 1)]
    assert rvs(stream.take(most)) == [("MODIFIED", str(most + 2))]
    source.events = [event(20, OURS), *(event(rv, THEIRS) for rv in range(21, 30)), event(30, OURS)]
    assert len(stream.take(most)) <= most


def test_what_has_no_namespace_is_every_shards(source: Scripted, clock: Clock) -> None:
    source.events = [event(2, None), event(3, "")]
    assert len(watch(source, clock).take(200)) == 2
    for shard in names(3):
        assert Ours(shard, 3)(event(1, None).object)
        assert Ours(shard, 3)(event(1, OURS).object) == (shard == "0")


def test_progress_alone_is_told_four_times_a_second(source: Scripted, clock: Clock) -> None:
    stream = watch(source, clock)
    told = []
    for rv in range(2, 102):  # 10 ms apart
        source.events = [event(rv, THEIRS)]
        told += rvs(stream.take(200))
        clock.now_ms += 10
    clock.now_ms += PROGRESS_EVERY_MS
    told += rvs(stream.take(200))  # with nothing new: what was held back
    assert len(told) == 5
    assert told[0] == ("BOOKMARK", "2")
    assert told[-1] == ("BOOKMARK", "101")


def test_an_own_event_is_never_held_back(source: Scripted, clock: Clock) -> None:
    stream = watch(source, clock)
    source.events = [event(2, THEIRS)]
    assert rvs(stream.take(200)) == [("BOOKMARK", "2")]
    source.events = [event(3, THEIRS)]
    assert stream.take(200) == []
    source.events = [event(4, OURS)]
    assert rvs(stream.take(200)) == [("MODIFIED", "4")]
    clock.now_ms += PROGRESS_EVERY_MS
    assert stream.take(200) == [], "4 has told that 3 is past"


def test_bookmarks_of_the_server_pass(source: Scripted, clock: Clock) -> None:
    source.events = [event(2, THEIRS), WatchEvent("BOOKMARK", "9", b"{}")]
    assert rvs(watch(source, clock).take(200)) == [("BOOKMARK", "9")]


def test_the_end_comes_after_what_was_held_back(source: Scripted, clock: Clock) -> None:
    stream = watch(source, clock)
    source.events = [event(2, THEIRS)]
    stream.take(200)
    source.events = [event(3, THEIRS)]
    assert stream.take(200) == []
    source.ended = End(Ending.CLOSED)
    assert stream.end() is None
    assert rvs(stream.take(200)) == [("BOOKMARK", "3")]
    assert stream.end() == source.ended


def test_a_flood_of_others_is_passed_over_in_steps_that_end(source: Scripted, clock: Clock) -> None:
    stream = watch(source, clock)
    source.events = [event(rv, THEIRS) for rv in range(2, 2 + 3 * LOOKED_AT_ONCE)]
    found = stream.take(200)
    assert [each.type for each in found] == ["BOOKMARK"]
    assert source.events, "it did not go through all of them at once"
    assert len(stream.take(200)) == 1, "without waiting: there is more"


def test_never_more_than_asked_for(source: Scripted, clock: Clock) -> None:
    source.events = [event(rv, OURS if rv % 2 else THEIRS) for rv in range(2, 400)]
    stream, seen = watch(source, clock), []
    while found := stream.take(10):
        assert len(found) <= 10
        seen += [each.rv for each in found if each.type == "MODIFIED"]
    assert seen == [str(rv) for rv in range(2, 400) if rv % 2]


def test_pages_keep_their_version_and_their_ends(source: Scripted, clock: Clock) -> None:
    ours, theirs, node = (event(1, each).object for each in (OURS, THEIRS, None))
    source.page = [Page("9", (ours, theirs), True, False), Page("9", (theirs, node), False, True)]
    pages = ShardListerWatcher(source, Ours("0", 3), clock).pages(500)
    found = [*pages.take(1), *pages.take(1)]
    assert found == [Page("9", (ours,), True, False), Page("9", (node,), False, True)]
    pages.close()
    assert source.closed == 1


@pytest.mark.parametrize(
    ("raw", "namespace"),
    [
        (b'{"metadata":{"name":"x","namespace":"shop"}}', "shop"),
        (b'{"spec":{"namespace":"wrong"},"metadata":{"annotations":{"namespace":"wrong"},"namespace":"shop"}}', "shop"),
        (b'{"metadata":{"name":"node-3","annotations":{"a":"{\\"namespace\\":\\"wrong\\"}"}}}', ""),
        (b'{ "metadata" : { "namespace" : "sh\\u006fp" } }', "shop"),
        (b'{"metadata":{"namespace":7}}', ""),
        (b"{}", ""),
        (b"no json", ""),
        (b'{"metadata":{"namespace":"\xff"}}', ""),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b',"metadata":{"namespace":"shop"}}', ""),
    ],
    ids=range(9),
)
def test_the_namespace_is_that_of_the_metadata(raw: bytes, namespace: str) -> None:
    assert place_of(raw)[0] == namespace
