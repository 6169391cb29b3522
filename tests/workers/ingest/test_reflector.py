"""One reflector against a scripted watch and a real Redis: duplicates, gaps, 410, bookmarks, lists, two at once."""

from __future__ import annotations

import logging
import random

import msgspec
import pytest
import redis
from redis.exceptions import NoPermissionError

from oarlock.broker import keys
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.broker.values.events import Event, Ingested
from oarlock.broker.versions import newer
from oarlock.cluster.http.frames import WatchEvent
from oarlock.controllers.registry import WATCHED
from oarlock.workers.ingest.applier import BATCH_EVENTS
from oarlock.workers.ingest.lister_watcher import End, Ending
from oarlock.workers.ingest.reflector import ASK_AGAIN_MS, CHECK_EVERY_MS, PATIENCE_MS, REST_MS, ReflectorState
from oarlock.workers.ingest.relist import STAGING_LOCK_MS
from oarlock.workers.ingest.standby import LOOK_MS
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, pod_json, replicaset_json
from tests.workers.ingest.ingest_rig import Process, Rig


def owned(i: int, restarts: int = 0, namespace: str = "x") -> dict[str, object]:
    return pod_json(namespace, f"p{i}", f"u{i}", labels={"app": "a"}, owner="web", owner_uid="rs1", restarts=restarts)


@pytest.fixture
def opened(rig: Rig) -> Rig:
    """An open epoch over one owner with five pods, and process "a" in it."""
    rig.api.put(REPLICASETS, replicaset_json("x", "web", "rs1", labels={"app": "a"}))
    for i in range(5):
        rig.api.put(PODS, owned(i))
    rig.start("a")
    rig.open()
    rig.work()
    return rig


def calls_of(process: Process) -> list[tuple[str, tuple[object, ...]]]:
    """Records the broker's calls of a process from now on."""
    calls: list[tuple[str, tuple[object, ...]]] = []
    broker = process.coordinator.broker
    assert broker is not None
    for name in ("ingest", "send_stage", "commit_list", "watermark", "look", "add"):

        def wrapped(*args: object, _name: str = name, _call: object = getattr(broker, name), **rest: object) -> object:
            calls.append((_name, args))
            return _call(*args, **rest)  # type: ignore[operator]

        setattr(broker, name, wrapped)
    return calls


def test_versions_are_compared_by_length_first() -> None:
    assert newer("10", "9")
    assert not newer("9", "10")
    assert not newer("10", "10")
    assert newer("1", "")


def test_events_of_one_moment_are_one_batch_contiguous_from_the_position(opened: Rig) -> None:
    process = opened.processes[0]
    before = process.reflectors[PODS].position
    first = opened.api.put(PODS, owned(0, restarts=1))
    last = opened.api.put(PODS, owned(1, restarts=1))
    process.catch_up()
    calls = calls_of(process)
    opened.settle()
    ingests = [args for name, args in calls if name == "ingest"]
    assert [(args[0], args[1], args[2]) for args in ingests] == [(PODS, before, str(last))]
    events = ingests[0][3]
    assert isinstance(events, list)
    assert [event.rv for event in events] == [str(first), str(last)]
    assert opened.work() == 1


def test_a_batch_has_at_most_a_hundred_events(opened: Rig) -> None:
    process = opened.processes[0]
    for i in range(BATCH_EVENTS + 50):
        opened.api.put(PODS, owned(i % 5, restarts=i + 1))
    process.catch_up()
    calls = calls_of(process)
    opened.settle()
    sizes = [len(args[3]) for name, args in calls if name == "ingest"]  # type: ignore[arg-type]
    assert sizes == [BATCH_EVENTS, 50]
    assert opened.check_cache() == 2


def test_a_step_that_left_nothing_asks_for_no_other(opened: Rig) -> None:
    process = opened.processes[0]
    reflector = process.reflectors[PODS]
    for i in range(BATCH_EVENTS + 5):
        opened.api.put(PODS, owned(i % 5, restarts=i + 1))
    process.catch_up()
    now_ms = opened.clock.mono_ms()
    assert [reflector.step(now_ms, True) for _ in range(3)] == [0, CHECK_EVERY_MS, CHECK_EVERY_MS]
    opened.api.put(PODS, owned(0, restarts=900))
    process.catch_up()
    process.sources[PODS].cut(End(Ending.CLOSED))
    assert reflector.step(now_ms, True) == 0, "the watch has ended, and nobody will say so again"


def test_a_batch_of_large_objects_is_cut_by_bytes(opened: Rig) -> None:
    process = opened.processes[0]
    for i in range(6):
        large = replicaset_json("x", f"large{i}", f"rs-l{i}", labels={"app": "l"})
        large["spec"]["template"]["spec"]["padding"] = random.Random(i).randbytes(400_000).hex()  # as many deflated
        opened.api.put(REPLICASETS, large)
    process.catch_up()
    calls = calls_of(process)
    opened.settle()
    assert [len(args[3]) for name, args in calls if name == "ingest"] == [3, 3]  # type: ignore[arg-type]
    assert opened.check_cache() == 2


def test_a_bookmark_moves_the_watermark_with_an_empty_batch(opened: Rig) -> None:
    process = opened.processes[0]
    opened.api.rv += 5
    process.catch_up()
    process.sources[PODS].bookmarks = True
    opened.settle()
    assert opened.server.mark(1, PODS) == process.reflectors[PODS].position == str(opened.api.rv)


def test_a_bookmark_at_the_watermark_confirms_it(opened: Rig) -> None:
    """Else the first delete after two quiet minutes would ask for a live list."""
    process = opened.processes[0]
    calls = calls_of(process)
    watching = process.sources[PODS].watching
    assert watching is not None
    mark = process.reflectors[PODS].position
    for _ in range(3):
        watching.extra = [WatchEvent("BOOKMARK", mark, b"{}")]
        opened.settle()
    assert [args for name, args in calls if name == "ingest"] == [(PODS, mark, mark, [])] * 3


def test_one_that_is_behind_drops_what_is_applied_and_rests_instead_of_sending(opened: Rig) -> None:
    first, second = opened.processes[0], opened.start("b")
    opened.settle()
    for burst in range(6):
        for i in range(5):
            opened.api.put(PODS, owned(i, restarts=burst + 1))
        for process in (first, second):
            process.catch_up()
        opened.settle(first)
        if burst == 0:
            calls = calls_of(second)
        opened.settle(second)
        opened.advance(REST_MS)
        opened.settle(second)
    sent = [args for name, args in calls if name == "ingest" and args[3]]
    assert len(sent) == 2, "twice in vain, then it looks first"
    assert second.reflectors[PODS].position == first.reflectors[PODS].position
    assert second.reflectors[PODS].applier.counts.skipped == 30
    assert second.reflectors[PODS].applier.counts.applied == 0


def test_nobody_waits_for_events_after_some_that_queued_no_key(opened: Rig) -> None:
    """Their owners are queued already, so what comes next may come later, and more of it at once."""
    process = opened.processes[0]
    opened.work()
    for restarts in range(1, 4):
        opened.api.put(PODS, owned(0, restarts=restarts))
        process.catch_up()
        opened.settle(process)
    opened.work()
    opened.api.put(PODS, owned(0, restarts=4))
    process.catch_up()
    opened.settle(process)
    assert process.sources[PODS].watching.paced[-4:] == [True, False, False, True]


def test_one_that_is_behind_takes_over_when_the_other_is_gone(opened: Rig) -> None:
    first, second = opened.processes[0], opened.start("b")
    opened.settle()
    for burst in range(4):
        opened.api.put(PODS, owned(0, restarts=burst + 1))
        for process in (first, second):
            process.catch_up()
            opened.settle(process)
        opened.advance(REST_MS)
        opened.settle(second)
    opened.processes.remove(first)
    last = opened.api.put(PODS, owned(0, restarts=99))
    second.catch_up()
    opened.settle(second)
    opened.advance(REST_MS)
    opened.settle(second)
    assert opened.server.mark(1, PODS) == str(last)
    assert second.reflectors[PODS].applier.counts.applied == 1


def test_410_goes_on_from_the_shared_watermark_where_that_is_newer(opened: Rig) -> None:
    first, second = opened.processes[0], opened.start("b")
    opened.settle()
    behind = second.reflectors[PODS].position
    opened.api.put(PODS, owned(0, restarts=1))
    first.catch_up()
    opened.settle(first)
    opened.api.floor[PODS] = int(behind) + 1
    opened.settle(second)
    opened.run_for(PATIENCE_MS + LOOK_MS, second, step_ms=LOOK_MS)
    assert second.sources[PODS].lists == 0
    assert second.sources[PODS].watched_from[-1] == opened.server.mark(1, PODS)


def test_410_without_a_newer_watermark_is_answered_with_a_staged_list(opened: Rig) -> None:
    process = opened.processes[0]
    opened.api.put(PODS, owned(0, restarts=1))
    opened.api.delete(PODS, "x/p1")
    opened.api.put(PODS, owned(7))
    opened.api.floor[PODS] = opened.api.rv
    calls = calls_of(process)
    opened.settle()
    assert process.sources[PODS].lists == 1, "it looks first whether another ingestor is ahead"
    opened.run_for(PATIENCE_MS + LOOK_MS, process, step_ms=LOOK_MS)
    assert process.sources[PODS].lists == 2, "one at the start, one now"
    assert [name for name, _ in calls if name in ("send_stage", "commit_list")] == [
        *("send_stage", "send_stage", "commit_list")
    ]
    assert opened.check_cache() == 2
    assert opened.work() == 1, "the owner is told of the pod that went, too"
    assert len(list(opened.server.admin.scan_iter("oarlock:1:*cache:pods:*"))) == 1, "the old one is swept"


def test_nobody_lists_while_another_ingestor_is_ahead_of_what_the_server_keeps(opened: Rig) -> None:
    """The server is busy, so its history is short. A list would keep it busier, and bring nothing."""
    first, second = opened.processes[0], opened.start("b")
    opened.settle()
    second.sources[PODS].refuses = True
    for burst in range(100):
        opened.api.put(PODS, owned(0, restarts=burst + 1))
        first.catch_up()
        opened.settle(first)
        opened.advance(LOOK_MS)
        opened.settle(second)
    assert (first.sources[PODS].lists, second.sources[PODS].lists) == (1, 0)
    assert len(second.sources[PODS].watched_from) <= 3, "it tried again after some seconds"
    opened.processes.remove(first)
    opened.api.put(PODS, owned(0, restarts=999))
    opened.run_for(2 * PATIENCE_MS, second, step_ms=LOOK_MS)
    assert second.sources[PODS].lists == 1, "the other one is gone"
    assert opened.check_cache() == 2


def test_of_two_that_need_a_list_one_reads_it_and_both_go_on(opened: Rig) -> None:
    first, second = opened.processes[0], opened.start("b")
    opened.settle()
    opened.api.put(PODS, owned(0, restarts=1))
    opened.api.floor[PODS] = opened.api.rv
    for _ in range(30):
        first.round()
        second.round()
        opened.advance(50)
    opened.settle()
    assert first.reflectors[PODS].state == second.reflectors[PODS].state == ReflectorState.WATCHING
    assert first.reflectors[PODS].position == second.reflectors[PODS].position == str(opened.api.rv)
    assert opened.check_cache() == 2


def test_one_that_is_kept_from_listing_asks_seldom_and_hears_at_once(opened: Rig) -> None:
    """A list of a large cluster takes long. The other one asks for few first pages meanwhile, and goes on with it."""
    first, second = opened.processes[0], opened.start("b")
    opened.settle()
    for number in range(8):
        opened.api.put(PODS, owned(number, restarts=1))
    opened.api.floor[PODS] = opened.api.rv
    first.sources[PODS].answers = False
    opened.run_for(PATIENCE_MS + LOOK_MS, first, step_ms=LOOK_MS)
    assert first.reflectors[PODS].state is ReflectorState.LISTING
    first.sources[PODS].answers = True
    first.round()
    first.sources[PODS].answers = False  # its first page has come, the others take long
    listed_before = second.sources[PODS].lists
    opened.run_for(20_000, first, second)
    assert first.reflectors[PODS].state is ReflectorState.LISTING
    assert 2 <= second.sources[PODS].lists - listed_before <= 12
    first.sources[PODS].answers = True
    opened.settle(first)
    opened.run_for(ASK_AGAIN_MS, second)
    assert second.reflectors[PODS].state in (ReflectorState.STANDBY, ReflectorState.WATCHING)
    assert opened.check_cache() == 2


def test_a_list_goes_on_while_another_one_streams(opened: Rig) -> None:
    """The one that streams never notices; the list, older by then, is refused."""
    first, second = opened.processes[0], opened.start("b")
    opened.settle()
    second.reflectors[PODS].relist()
    opened.settle(second)  # pages are there at once: all but the commit
    second.reflectors[PODS].relist()
    second.round()
    for i in range(4):
        opened.api.put(PODS, owned(i, restarts=5))
        first.catch_up()
        opened.settle(first)
        second.round()
        assert opened.check_cache() == 2
    opened.settle(second)
    assert second.reflectors[PODS].listed
    assert second.reflectors[PODS].position == opened.server.mark(1, PODS)
    assert opened.check_cache() == 2


def test_a_list_that_begins_afresh_leaves_nothing_of_the_first_behind(opened: Rig) -> None:
    process = opened.processes[0]
    reflector, source = process.reflectors[PODS], process.sources[PODS]
    reflector.relist()
    for _ in range(3):
        process.round()
    assert source.listing is not None
    opened.api.delete(PODS, "x/p0")
    source.listing.begin_afresh()
    for _ in range(40):
        process.round()
        opened.advance(5)
    assert reflector.listed
    assert "x/p0" not in opened.server.cache(1, PODS)
    assert opened.check_cache() == 2
    opened.run_for(2_000)
    assert len(list(opened.server.admin.scan_iter("oarlock:1:*cache:pods:*"))) == 1


def test_a_stager_that_died_holds_up_the_next_for_the_lock_only(opened: Rig) -> None:
    first, second = opened.processes[0], opened.start("b")
    opened.settle()
    first.reflectors[PODS].relist()
    for _ in range(3):
        first.round()
    opened.processes.remove(first)
    second.reflectors[PODS].relist()
    opened.run_for(STAGING_LOCK_MS - 500)
    assert not second.reflectors[PODS].listed
    opened.run_for(1_000)
    assert second.reflectors[PODS].listed
    opened.run_for(1_000)
    assert len(list(opened.server.admin.scan_iter("oarlock:1:*cache:pods:*"))) == 1, "the dead one's part is swept"


def test_a_stager_keeps_its_lock_while_it_waits_for_a_page(opened: Rig) -> None:
    first, second = opened.processes[0], opened.start("b")
    opened.settle()
    reflector, source = first.reflectors[PODS], first.sources[PODS]
    reflector.relist()
    for _ in range(3):
        first.round()
    source.answers = False
    opened.run_for(STAGING_LOCK_MS, first)
    second.reflectors[PODS].relist()
    opened.run_for(2 * STAGING_LOCK_MS)
    assert not second.reflectors[PODS].listed
    source.answers = True
    opened.run_for(1_000)
    assert reflector.listed
    assert second.reflectors[PODS].listed


def test_a_redis_that_is_behind_is_caught_up_from_its_watermark(opened: Rig) -> None:
    process = opened.processes[0]
    back_to, blob = opened.server.mark(1, PODS), opened.server.cache(1, PODS)
    names = RedisNames(opened)
    kept = names.dump()
    opened.api.put(PODS, owned(0, restarts=1))
    process.catch_up()
    opened.settle()
    names.restore(kept)
    assert opened.server.cache(1, PODS) == blob
    opened.api.put(PODS, owned(1, restarts=1))
    process.catch_up()
    opened.run_for(1_000)
    assert back_to in process.sources[PODS].watched_from
    assert opened.check_cache() == 2
    assert opened.server.mark(1, PODS) == str(opened.api.rv)


def test_a_redis_that_is_behind_is_noticed_within_a_second_though_nothing_happens(opened: Rig) -> None:
    process = opened.processes[0]
    back_to = opened.server.mark(1, PODS)
    names = RedisNames(opened)
    kept = names.dump()
    opened.api.put(PODS, owned(0, restarts=1))
    process.catch_up()
    opened.settle()
    names.restore(kept)
    opened.run_for(1_000)
    assert process.sources[PODS].watched_from[-1] == back_to
    assert opened.server.mark(1, PODS) == str(opened.api.rv)


class RedisNames:
    """Everything of the pods' cache, to be put back: a rollback inside an epoch."""

    def __init__(self, rig: Rig) -> None:
        self._admin = rig.server.admin

    def dump(self) -> dict[bytes, bytes]:
        names = [*self._admin.scan_iter("oarlock:1:*pods*"), *self._admin.scan_iter("oarlock:1:*watermark*")]
        return {name: self._admin.dump(name) for name in names}

    def restore(self, kept: dict[bytes, bytes]) -> None:
        for name, value in kept.items():
            self._admin.restore(name, 0, value, replace=True)


@pytest.mark.parametrize("how", [Ending.BROKEN, Ending.DEAF])
def test_a_watch_that_failed_is_replaced_after_a_probe_from_where_it_was(opened: Rig, how: Ending) -> None:
    process = opened.processes[0]
    source, position = process.sources[PODS], process.reflectors[PODS].position
    source.cut(End(how, "cut"))
    opened.settle()
    assert process.reflectors[PODS].state is ReflectorState.PROBING
    opened.run_for(500)
    assert source.watched_from[-1] == position
    assert source.lists == 1, "the one of the start"
    changed = opened.api.put(PODS, owned(0, restarts=1))
    process.catch_up()
    opened.settle()
    assert opened.server.mark(1, PODS) == str(changed)


def test_a_watch_that_ends_in_the_same_way_again_and_again_is_said_once(
    opened: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """As behind a proxy that lets probes through and no watch."""
    process = opened.processes[0]

    def said() -> int:
        told = [each for each in caplog.records if "watch ended" in each.message and each.levelno >= logging.WARNING]
        caplog.clear()
        return len(told)

    for restarts in range(2):
        for _ in range(4):
            before = len(process.sources[PODS].watched_from)
            process.sources[PODS].cut(End(Ending.BROKEN, "cut off"))
            opened.run_for(11_000)
            assert len(process.sources[PODS].watched_from) == before + 1, "another is begun"
        assert said() == 1
        opened.api.put(PODS, owned(0, restarts=restarts + 1))
        process.catch_up()
        opened.settle()


def test_a_list_refused_again_and_again_is_said_once(opened: Rig, caplog: pytest.LogCaptureFixture) -> None:
    source, reflector = opened.processes[0].sources[PODS], opened.processes[0].reflectors[PODS]

    def said() -> list[str]:
        told = [record for record in caplog.records if "list failed" in record.message]
        caplog.clear()
        return [record.message for record in told if record.levelno >= logging.WARNING]

    for _ in range(2):
        source.refusal, lists = End(Ending.BROKEN, "forbidden"), source.lists
        reflector.relist()
        opened.run_for(60_000)
        assert source.lists > lists + 4, "asked again"
        assert said() == ['event="list failed" resource=pods why=forbidden']
        source.refusal = None
        opened.run_for(11_000)
        assert reflector.listed
        assert said() == []


def test_objects_of_a_kind_that_was_said_to_be_absent_come_back_with_it(opened: Rig) -> None:
    """Its definition need not have gone: one API server of several may not know it yet, or no longer for a moment."""
    process = opened.processes[0]
    source, reflector = process.sources[PODS], process.reflectors[PODS]
    reflector.resource = reflector.projector.resource = msgspec.structs.replace(reflector.resource, whole=True)
    source.refusal = End(Ending.ABSENT, "404")
    reflector.relist()
    opened.run_for(1_000)
    assert opened.server.cache(1, PODS) == {}
    source.refusal = None
    opened.run_for(11_000)
    assert opened.server.cache(1, PODS) == opened.api.cached_at(PODS, opened.api.rv)
    assert reflector.state is ReflectorState.WATCHING


def test_a_list_that_finds_the_kind_absent_needs_nothing_to_verify_it(opened: Rig) -> None:
    """The drain ends while it runs. Nothing watches what is absent, so nothing would go on with a verification."""
    process = opened.processes[0]
    source, reflector, before = process.sources[PODS], process.reflectors[PODS], process.reflectors[PODS].lists
    reflector.resource = reflector.projector.resource = msgspec.structs.replace(reflector.resource, whole=True)
    source.refusal = End(Ending.ABSENT, "404")
    reflector.relist()
    while reflector.state is not ReflectorState.LISTING:
        process.round()
    reflector.verify()
    opened.run_for(100)
    assert reflector.absent
    assert reflector.listed
    opened.run_for(30_000)
    assert reflector.lists == before + 2, "and then it is asked for, not listed"


@pytest.mark.parametrize("away", [False, True])
def test_a_kind_that_was_absent_before_a_join_is_listed_again(opened: Rig, away: bool) -> None:
    """Else objects that have come with it meanwhile would stay away: the cache is as old as the empty list."""
    process = opened.processes[0]
    source, reflector, broker = process.sources[PODS], process.reflectors[PODS], process.coordinator.broker
    assert broker is not None
    reflector.resource = reflector.projector.resource = msgspec.structs.replace(reflector.resource, whole=True)
    source.refusal = End(Ending.ABSENT, "404")
    reflector.relist()
    opened.run_for(100)
    assert reflector.absent
    source.refusal = None
    if away:
        reflector.leave()
    reflector.join(broker)
    opened.run_for(1_000)
    assert opened.server.cache(1, PODS) == opened.api.cached_at(PODS, opened.api.rv)


def test_a_server_that_closes_at_once_is_asked_less_and_less_often(opened: Rig) -> None:
    process = opened.processes[0]
    source = process.sources[PODS]
    for _ in range(600):
        source.cut(End(Ending.CLOSED))
        opened.run_for(100)
    assert 5 <= len(source.watched_from) <= 25, "in a minute"


def let_live(opened: Rig, ms: int, end: End | None) -> None:
    """Every watch lives so long, and ends so."""
    opened.run_for(ms, step_ms=500)
    for process in opened.processes:
        for source in process.sources.values():
            if end is not None:
                source.heard = opened.clock.mono_ms()
                source.cut(end)
    opened.settle()


def view_age_ms(opened: Rig) -> int:
    """Since the cached pods were last confirmed."""
    at = opened.server.admin.hget(keys.Keys(1).of("watermark_at"), PODS)
    assert at is not None
    return opened.clock.wall_ms() - int(at)


def test_a_quiet_watch_that_ends_in_order_is_no_deaf_one(opened: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Not one bookmark in ten minutes: the watch goes on at once, nothing is listed, and the cache counts as fresh."""
    process = opened.processes[0]
    source, reflector = process.sources[PODS], process.reflectors[PODS]
    lists, watches, position = source.lists, len(source.watched_from), reflector.position
    caplog.clear()
    for number in range(1, 13):
        let_live(opened, 50_000, End(Ending.CLOSED))
        assert source.watching is not None
        assert source.watching.cut is None, "another one runs at the same moment"
        assert source.watched_from[watches:] == [position] * number
        assert view_age_ms(opened) < 1_000
    assert source.lists == lists
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
    changed = opened.api.put(PODS, owned(0, restarts=1))
    process.catch_up()
    opened.settle()
    assert opened.server.mark(1, PODS) == str(changed)


def test_a_deaf_watch_is_not_taken_for_a_quiet_one(opened: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """It ends without a word of the server's: this is said, and the view is not confirmed by the probe after it."""
    process = opened.processes[0]
    let_live(opened, 50_000, End(Ending.CLOSED))
    caplog.clear()
    opened.run_for(75_000, step_ms=500)
    process.sources[PODS].cut(End(Ending.DEAF, "nothing heard for 75 s"))
    opened.run_for(2_000)
    assert process.reflectors[PODS].state is ReflectorState.WATCHING
    told = [record.message for record in caplog.records if "resource=pods" in record.message]
    assert any("how=deaf" in line for line in told)
    assert any("event=deaf" in line for line in told), "by the ingestor too"
    assert view_age_ms(opened) >= 75_000


def deaf_again(opened: Rig, process: Process) -> None:
    process.sources[PODS].cut(End(Ending.DEAF, "nothing heard for 75 s"))
    opened.run_for(2_000, process)


def test_what_two_watches_in_a_row_do_not_say_a_list_does(opened: Rig) -> None:
    """The first is replaced, as most connections that went silent can be. Where that does not help, nobody may hear."""
    process = opened.processes[0]
    lists = process.sources[PODS].lists
    changed = opened.api.put(PODS, owned(0, restarts=1))
    deaf_again(opened, process)
    assert process.sources[PODS].lists == lists
    deaf_again(opened, process)
    assert process.sources[PODS].lists == lists + 1
    assert int(opened.server.mark(1, PODS) or 0) >= changed
    opened.api.put(PODS, owned(0, restarts=2))
    process.catch_up()
    opened.settle()
    deaf_again(opened, process)
    assert process.sources[PODS].lists == lists + 1, "a watch that spoke is replaced first"


def test_a_deaf_one_lists_nothing_while_another_hears(opened: Rig) -> None:
    process, other = opened.processes[0], opened.start("b")
    opened.settle()
    lists = process.sources[PODS].lists
    deaf_again(opened, process)
    opened.api.put(PODS, owned(0, restarts=1))
    other.sources[PODS].catch_up()
    opened.settle(other)
    process.sources[PODS].cut(End(Ending.DEAF, "nothing heard for 75 s"))
    opened.run_for(2_000, process)
    assert process.sources[PODS].lists == lists
    assert process.reflectors[PODS].position == opened.server.mark(1, PODS)


def test_an_api_that_went_back_is_seen_behind_a_quiet_watch(opened: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Such a server takes a watch from its future, and is silent until it is there again."""
    let_live(opened, 50_000, End(Ending.CLOSED))
    let_live(opened, 50_000, None)
    opened.api.refuses_the_future = False
    opened.api.restore(int(opened.processes[0].reflectors[PODS].position) - 2)
    let_live(opened, 500, End(Ending.CLOSED))
    assert "went back" in caplog.text


def test_an_event_that_is_not_after_the_one_before_ends_the_watch(opened: Rig) -> None:
    process = opened.processes[0]
    source = process.sources[PODS]
    assert source.watching is not None
    good = opened.api.put(PODS, owned(0, restarts=1))
    old = WatchEvent("MODIFIED", "3", b"{}")
    rv, _, _, raw = opened.api.events[PODS][-1]
    source.watching.extra = [WatchEvent("MODIFIED", str(rv), raw), old]
    opened.settle()
    assert opened.server.mark(1, PODS) == str(good), "what came before it counts"
    assert process.reflectors[PODS].state is ReflectorState.PROBING


def test_an_unreadable_object_is_left_out_and_said(opened: Rig, caplog: pytest.LogCaptureFixture) -> None:
    process = opened.processes[0]
    source = process.sources[PODS]
    assert source.watching is not None
    opened.api.rv += 1
    source.watching.extra = [WatchEvent("ADDED", str(opened.api.rv), b'{"metadata":{"name":7}}')]
    opened.settle()
    assert opened.server.mark(1, PODS) == str(opened.api.rv)
    assert process.reflectors[PODS].projector.unreadable == 1
    assert "unreadable object" in caplog.text


@pytest.mark.parametrize(("name", "uid"), [("two words", "u-x"), ("a", "two words"), ("a\nb", "u\nv"), ("\t", " ")])
def test_an_owner_reference_with_white_space_stops_nobody(opened: Rig, name: str, uid: str) -> None:
    """API servers take any text for the name and the uid of a reference; no object can bear either."""
    opened.api.put(PODS, pod_json("x", "odd", "u-odd", labels={"app": "a"}, owner=name, owner_uid=uid))
    opened.processes[0].catch_up()
    opened.settle()
    opened.api.delete(PODS, "x/odd")
    opened.processes[0].catch_up()
    opened.settle()
    assert opened.server.mark(1, PODS) == str(opened.api.rv)
    assert opened.check_cache() == 2


def test_an_answer_that_was_lost_is_made_up_for_by_sending_again(opened: Rig) -> None:
    process = opened.processes[0]
    armed = [True]

    def fault(done: bool) -> None:
        if done and armed[0] and process.reflectors[PODS].applier._batch is not None:
            armed[0] = False
            raise redis.ConnectionError("lost")

    process.client.fault = fault
    changed = opened.api.put(PODS, owned(0, restarts=1))
    process.catch_up()
    opened.run_for(300)
    assert not armed[0]
    assert opened.server.mark(1, PODS) == process.reflectors[PODS].position == str(changed)
    assert opened.check_cache() == 2
    assert opened.work() == 1


def test_an_orphan_wakes_the_owners_that_select_it(opened: Rig) -> None:
    process = opened.processes[0]
    opened.api.put(PODS, pod_json("x", "stray", "u-s", labels={"app": "a"}))
    opened.api.put(PODS, pod_json("x", "other", "u-o", labels={"app": "b"}))
    opened.api.put(PODS, pod_json("y", "elsewhere", "u-e", labels={"app": "a"}))
    process.catch_up()
    opened.settle()
    assert opened.work() == 1
    assert opened.check_turns() == 6


@pytest.mark.parametrize("first", ["owner", "orphan"])
def test_an_orphan_and_its_owner_meet_whoever_applies_which(opened: Rig, first: str) -> None:
    """One ingestor is ahead with pods, the other with owners; the former dies before it hears of the owner."""
    a, b = opened.processes[0], opened.start("b")
    opened.settle()
    owner = replicaset_json("y", "new", "rs-new", labels={"app": "n"})
    orphan = pod_json("y", "stray", "u-s", labels={"app": "n"})
    if first == "owner":
        opened.api.put(REPLICASETS, owner)
        opened.api.put(PODS, orphan)
    else:
        opened.api.put(PODS, orphan)
        opened.api.put(REPLICASETS, owner)
    b.sources[REPLICASETS].catch_up()
    opened.settle(b)
    opened.work()  # the owner's turn: it sees no pod yet
    a.sources[PODS].catch_up()
    opened.settle(a)
    opened.processes.remove(a)
    b.catch_up()
    opened.settle(b)
    opened.advance(REST_MS)
    opened.settle(b)
    opened.work()
    assert opened.check_turns() >= 1


@pytest.mark.parametrize("first", ["owner", "orphan"])
def test_an_owner_learned_late_is_told_of_an_orphan_applied_before(opened: Rig, first: str) -> None:
    """As above, but the one ahead with owners dies: the other hears of the owner in an event that is skipped."""
    a, b = opened.processes[0], opened.start("b")
    opened.settle()
    pair = [(REPLICASETS, replicaset_json("y", "new", "rs-new", labels={"app": "n"}))]
    pair.insert(first == "owner", (PODS, pod_json("y", "stray", "u-s", labels={"app": "n"})))
    for resource, obj in pair:
        opened.api.put(resource, obj)
    b.sources[REPLICASETS].catch_up()
    opened.settle(b)
    opened.processes.remove(b)
    opened.work()
    a.sources[PODS].catch_up()
    opened.settle(a)
    a.catch_up()
    opened.settle(a)
    opened.advance(REST_MS)
    opened.settle(a)
    opened.work()
    assert opened.check_turns() >= 1


def test_a_batch_that_is_dropped_leaves_its_new_owners_in_doubt(opened: Rig) -> None:
    """It comes again, but then the owner is known already: as if it had been learned late."""
    process = opened.processes[0]
    reflector, source = process.reflectors[REPLICASETS], process.sources[REPLICASETS]
    opened.api.put(REPLICASETS, replicaset_json("y", "new", "rs-new", labels={"app": "n"}))
    source.catch_up()
    assert process.coordinator.broker is not None
    assert source.watching is not None

    def lose(done: bool) -> None:
        raise redis.ConnectionError("down")

    process.client.fault = lose
    with pytest.raises(BrokerUnreachable):
        reflector.applier.step(process.coordinator.broker, source.watching)
    assert not process.owners.doubtful
    reflector.leave()
    assert process.owners.doubtful == {("replicaset", "y/new")}


def test_an_owner_learned_while_a_batch_rests_is_told_of_its_orphans(opened: Rig) -> None:
    """Whom an orphan wakes is worked out before the rest; the owner comes, and has its turn, during it."""
    first, second = opened.processes[0], opened.start("b")
    opened.settle()
    for burst in range(2):
        opened.api.put(PODS, owned(0, restarts=burst + 1))
        first.catch_up()
        opened.settle(first)
        second.catch_up()
        opened.settle(second)
    opened.processes.remove(first)
    opened.api.put(PODS, pod_json("y", "stray", "u-s", labels={"app": "n"}))
    opened.api.put(REPLICASETS, replicaset_json("y", "new", "rs-new", labels={"app": "n"}))
    second.catch_up()
    opened.settle(second)
    assert opened.server.mark(1, PODS) != second.sources[PODS].visible, "it rests"
    opened.work()
    opened.advance(REST_MS)
    opened.settle(second)
    opened.work()
    assert opened.check_turns() >= 1


def test_the_doubts_of_one_that_starts_cover_what_two_dead_ones_missed(opened: Rig) -> None:
    a, b = opened.processes[0], opened.start("b")
    opened.settle()
    opened.api.put(REPLICASETS, replicaset_json("y", "new", "rs-new", labels={"app": "n"}))
    opened.api.put(PODS, pod_json("y", "stray", "u-s", labels={"app": "n"}))
    b.sources[REPLICASETS].catch_up()
    opened.settle(b)
    opened.work()
    a.sources[PODS].catch_up()
    opened.settle(a)
    opened.processes.clear()
    opened.work()
    with pytest.raises(AssertionError, match="nobody told it"):
        opened.check_turns()
    opened.start("c")
    opened.settle()
    opened.work()
    assert opened.check_turns() >= 1


def test_an_ingestor_without_a_right_says_so_once_and_goes_on_when_it_has_it(
    opened: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    process = opened.processes[0]
    changed = opened.api.put(PODS, owned(0, restarts=1))
    process.catch_up()

    def refuse(after: bool) -> None:
        raise NoPermissionError("this user has no permissions to run the 'evalsha' command")

    process.client.fault = refuse
    opened.run_for(10_000)
    process.client.fault = None
    opened.run_for(3_000)
    assert opened.server.mark(1, PODS) == str(changed)
    told = [each.message for each in caplog.records if "redis refuses" in each.message]
    assert len(told) == 1
    assert "no permissions to run the 'evalsha' command" in told[0]


def test_in_no_epoch_a_redis_that_refuses_is_told_once(opened: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Most rounds do not ask it then, and so bring no refusal."""
    process = opened.processes[0]
    process.coordinator.suspect("the slot moves")

    def refuse(after: bool) -> None:
        raise redis.ConnectionError("ASK 13907 127.0.0.1:22615")

    def told() -> list[int]:
        return [sum(word in each.message for each in caplog.records) for word in ("redis refuses", "redis answers")]

    with caplog.at_level(logging.INFO):
        process.client.fault = refuse
        opened.run_for(10_000)
        assert told() == [1, 0]
        process.client.fault = None
        opened.run_for(2_000)
        assert told() == [1, 1]


def test_deafness_is_said_once_and_so_is_its_end(opened: Rig, caplog: pytest.LogCaptureFixture) -> None:
    process = opened.processes[0]
    for source in process.sources.values():
        source.heard = opened.clock.mono_ms()
    opened.run_for(80_000, step_ms=500)
    deaf = [record for record in caplog.records if "event=deaf" in record.getMessage()]
    assert [record.levelname for record in deaf] == ["ERROR", "ERROR"]
    status = process.ingestor.status(opened.clock.mono_ms())
    assert status.reflectors[PODS].heard_ms >= 80_000
    (told,) = opened.server.admin.hgetall(keys.Keys(1).of("ingestors")).items()
    assert told[0].decode() == process.name
    assert b" deaf=pods,replicasets " in told[1]
    process.sources[PODS].heard = opened.clock.mono_ms()
    opened.run_for(500)
    assert sum("hears again" in record.getMessage() for record in caplog.records) == 1
    opened.run_for(5_000)
    assert b" deaf=replicasets " in opened.server.admin.hgetall(keys.Keys(1).of("ingestors"))[told[0]]
    process.ingestor.close()
    assert not opened.server.admin.exists(keys.Keys(1).of("ingestors")), "it has left"


class GapBroker:
    """Answers the first batch with a gap."""

    def __init__(self) -> None:
        self.ingested: list[tuple[str, str]] = []

    def watermark(self, resource: str) -> str | None:
        return "5" if self.ingested else "7"

    def ingest(self, resource: str, from_rv: str, to_rv: str, events: list[Event], *, told: bool) -> Ingested:
        self.ingested.append((from_rv, to_rv))
        return Ingested("OK", to_rv, 1, 0) if len(self.ingested) > 1 else Ingested("GAP", "5")


def test_a_gap_is_watched_again_from_the_watermark_it_names(rig: Rig) -> None:
    process = rig.start()
    reflector, source = process.reflectors[PODS], process.sources[PODS]
    broker = GapBroker()
    reflector.join(broker)  # type: ignore[arg-type]
    rv = rig.api.put(PODS, owned(0))
    source.catch_up()
    for _ in range(5):
        reflector.step(1_000, True)
    assert broker.ingested == [("7", str(rv)), ("5", str(rv))]
    assert source.watched_from == ["7", "5"]


def test_the_resources_are_those_of_the_registry(rig: Rig) -> None:
    assert set(WATCHED) >= set(rig.start().reflectors)
