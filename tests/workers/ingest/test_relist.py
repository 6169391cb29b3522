"""A list in pages: while one is staged the next is prepared, and what comes of it is the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cluster.listing import Page
from oarlock.controllers.registry import WATCHED
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.lister_watcher import End, Ending
from oarlock.workers.ingest.projection import Projector
from oarlock.workers.ingest.relist import OBJECTS_AT_ONCE, Listed, Relist, Unlisted
from tests.workers.ingest.ingest_api import PODS, pod_json

RV = "900"


class Pages:
    """Pages that are there from the start."""

    def __init__(self, *pages: Page) -> None:
        self._pages = list(pages)

    def take(self, most: int) -> list[Page]:
        return [self._pages.pop(0) for _ in range(min(most, len(self._pages)))]

    def end(self) -> End | None:
        return None if self._pages else End(Ending.CLOSED)

    def close(self) -> None:
        self._pages.clear()


class Recorded(MemoryBroker):
    """The twin on a clock that goes on, and its calls. What is sent to be staged is staged once it is waited for.
    ``unanswered``: so many of the next stagings come to nothing.
    """

    def __init__(self) -> None:
        ticks = itertools.count(5, 10)
        store = MemoryStore(lambda: next(ticks))
        store.bootstrap(1)
        super().__init__(store, 1)
        self.calls: list[tuple[str, int]] = []
        self.unanswered = 0

    def stage(self, resource: str, generation: str, events: Any, *, lock_ms: int = 30_000) -> bool:
        self.calls.append((generation, len(events)))
        if self.unanswered:
            self.unanswered -= 1
            raise BrokerUnreachable("stage: no answer")
        return super().stage(resource, generation, events, lock_ms=lock_ms)

    def send_stage(self, resource: str, generation: str, parts: Any, *, lock_ms: int = 30_000) -> Callable[[], bool]:
        def staged() -> bool:
            answers = [self.stage(resource, generation, events, lock_ms=lock_ms) for events in parts]
            return all(answers)

        return staged


def page(first: int, count: int, *, begins: bool = False, ends: bool = False) -> Page:
    names = [f"p{number}" for number in range(first, first + count)]
    pods = [pod_json("x", name, f"uid-{name}", labels={"app": "a"}) for name in names]
    for pod in pods:
        pod["metadata"]["resourceVersion"] = "17"  # type: ignore[index]
    return Page(RV, tuple(map(orjson.dumps, pods)), first=begins, last=ends)


def relist(broker: MemoryBroker, *pages: Page) -> Relist:
    generations = iter(("g1", "g2", "g3"))
    projector = Projector(WATCHED[PODS], KnownOwners())
    return Relist(projector, broker, Pages(*pages), lambda: next(generations), "")


def outcome(of: Relist, now_ms: int = 0) -> Listed | Unlisted:
    for step in range(100):
        came, _ = of.step(now_ms + step)
        if came is not None:
            return came
    raise AssertionError("it has no outcome")


def cached(broker: MemoryBroker) -> list[int]:
    """Numbers of the pods that the cache has."""
    return [number for number in range(10) if broker.look(PODS, ids=(f"x/p{number}",))[1]]


def test_a_page_is_prepared_while_the_one_before_is_staged() -> None:
    broker = Recorded()
    of = relist(broker, page(0, 3, begins=True), page(3, 2), page(5, 1, ends=True))
    seen = []
    while not broker.calls:
        of.step(0)
        seen.append(of.objects)
    assert seen[-1] == 5, "the second page was read before the first was staged"
    assert outcome(of) == Listed(RV)
    assert broker.calls == [("g1", 3), ("g1", 2), ("g1", 1)]
    assert cached(broker) == [0, 1, 2, 3, 4, 5]


def test_a_large_page_is_staged_in_parts() -> None:
    broker = Recorded()
    of = relist(broker, page(0, OBJECTS_AT_ONCE + 5, begins=True, ends=True))
    assert outcome(of) == Listed(RV)
    assert broker.calls == [("g1", OBJECTS_AT_ONCE), ("g1", 5)]


@pytest.mark.parametrize("unanswered", [1, 2])
def test_a_page_without_an_answer_is_staged_again_before_the_next(unanswered: int) -> None:
    broker = Recorded()
    of = relist(broker, page(0, 3, begins=True), page(3, 2, ends=True))
    broker.unanswered = unanswered
    raised = 0
    for step in range(100):
        try:
            came, _ = of.step(step)
        except BrokerUnreachable:
            raised += 1
            continue
        if came is not None:
            break
    assert (came, raised) == (Listed(RV), unanswered)
    assert cached(broker) == [0, 1, 2, 3, 4]


def test_a_list_that_begins_afresh_leaves_nothing_of_the_first() -> None:
    broker = Recorded()
    of = relist(broker, page(0, 3, begins=True), page(7, 2, begins=True, ends=True))
    assert outcome(of) == Listed(RV)
    assert [call for call in broker.calls if call[1]] == [("g1", 3), ("g2", 2)]
    assert cached(broker) == [7, 8]


def test_another_stager_ends_it() -> None:
    broker = Recorded()
    assert broker.stage(PODS, "other", [])
    of = relist(broker, page(0, 3, begins=True, ends=True))
    assert outcome(of) == Unlisted("another ingestor stages it", busy=True)


def test_what_is_being_staged_is_waited_for_where_a_list_is_given_up() -> None:
    """Its answers would lie in a connection, and its parts might land later."""
    broker = Recorded()
    of = relist(broker, page(0, 3, begins=True), page(3, 2))
    while of.objects < 5:
        of.step(0)
    assert broker.calls == []
    of.close()
    assert broker.calls == [("g1", 3)]
    broker.unanswered = 1
    of = relist(broker, page(0, 3, begins=True), page(3, 2))
    while of.objects < 5:
        of.step(0)
    of.close()


@pytest.mark.parametrize("answered", [True, False])
def test_a_lock_that_came_to_it_between_two_parts_is_given_back(answered: bool) -> None:
    """The first part was refused, so that the list has a hole: it ends, also where that has no answer."""
    broker = Recorded()
    assert broker.stage(PODS, "other", [])
    of = relist(broker, page(0, OBJECTS_AT_ONCE + 5, begins=True, ends=True))
    of.step(0)
    of.step(0)
    stage = broker.stage

    def commits_between(resource: str, generation: str, events: Any, *, lock_ms: int = 30_000) -> bool:
        if lock_ms == 1 and not answered:
            raise BrokerUnreachable("stage: no answer")
        staged = stage(resource, generation, events, lock_ms=lock_ms)
        if not staged:
            assert broker.commit_list(PODS, "other", RV).verdict == "OK"
        return staged

    broker.stage = commits_between  # type: ignore[method-assign]
    assert outcome(of) == Unlisted("another ingestor stages it", busy=True)
    broker.stage = stage  # type: ignore[method-assign]
    assert broker.stage(PODS, "third", []) is answered, "who is heard holds the lock no more"
