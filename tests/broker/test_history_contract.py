"""What a key remembers: the triggers that queued it, and its last turns. None of it decides anything."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from oarlock.broker.keys import Keys
from oarlock.broker.looks.history import PastTurn, Queued, Triggers, lost_ms, past_turns
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.memory import history as twin
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Change, Finish, Verdict
from tests.broker import broker_state
from tests.broker.broker_cases import QUEUE, START_MS, Case, MemoryCase, RedisCase, claim, claim_one, opened

KEY = "ns/a"


def why(case: Case, key: str = KEY) -> Queued | None:
    return Queued.parse(case.state().get("why", {}).get(QUEUE, {}).get(key, ""))


def turns(case: Case, key: str = KEY) -> list[PastTurn]:
    return past_turns(*texts(case, key), key)


def texts(case: Case, key: str = KEY) -> tuple[str, str]:
    """The newest turns and the older ones."""
    newest, older = (case.state().get(half, {}).get(QUEUE, {}).get(key, "") for half in ("turns", "history"))
    return newest, older


def turn(case: Case, did: str = "", verdict: Verdict = Verdict.OK, *, why: str = "asked", key: str = KEY) -> None:
    """A turn of the key, which takes 7 ms after it has waited for 3."""
    case.worker.add(QUEUE, [key], why=why)
    case.advance(3)
    one = claim_one(case)
    case.advance(7)
    case.worker.finish([Finish(QUEUE, key, one.nonce, verdict, did=did)])


def pod(name: str, rv: int, *, gone: bool = False) -> Event:
    return Event(f"ns/{name}", str(rv), f"u-{name}", None if gone else b"%d" % rv, (), (f"{QUEUE}:{KEY}",))


# -- what queued it --------------------------------------------------------------------------------------------------


def test_events_fold_into_the_first_the_last_and_their_number(queue_case: Case) -> None:
    case = opened(queue_case)
    case.ingestor.ingest("pods", "100", "102", [pod("p1", 101), pod("p2", 102)])
    case.advance(50)
    case.ingestor.ingest("pods", "102", "104", [pod("p2", 103), pod("p1", 104, gone=True)])
    assert why(case) == Queued(START_MS, Triggers(4, "set pods/ns/p1", "del pods/ns/p1"))


def test_all_events_of_a_batch_are_told_of_a_running_key_that_nothing_had_asked_for(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, [KEY])
    claim_one(case)
    assert why(case) is None
    case.ingestor.ingest("pods", "100", "103", [pod("p1", 101), pod("p2", 102), pod("p1", 103, gone=True)])
    assert why(case) == Queued(START_MS, Triggers(3, "set pods/ns/p1", "del pods/ns/p1"))


def test_an_event_that_changes_nothing_is_no_trigger(queue_case: Case) -> None:
    case = opened(queue_case)
    case.ingestor.ingest("pods", "100", "101", [pod("p1", 101)])
    case.ingestor.ingest("pods", "101", "102", [pod("p1", 101)._replace(rv="102")])
    assert why(case) == Queued(START_MS, Triggers(1, "set pods/ns/p1", "set pods/ns/p1"))


def test_the_claim_takes_it_along_and_what_comes_then_is_for_the_next_turn(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, [KEY])
    case.advance(20)
    claim_one(case)
    lock = case.state()["locks"][QUEUE][KEY]
    assert (lock.partition(" why=")[2], why(case)) == (f"{START_MS} 1 asked", None)
    case.worker.add(QUEUE, [KEY], why="daemonset ns/d")
    assert why(case) == Queued(START_MS + 20, Triggers(1, "daemonset ns/d", "daemonset ns/d"))


def delayed(case: Case) -> None:
    case.worker.add_after(QUEUE, KEY, 100)
    assert why(case) is None
    case.advance(100)
    case.worker.due()


def at_once(case: Case) -> None:
    case.worker.add_after(QUEUE, KEY, 0)


def released(case: Case) -> None:
    case.worker.add(QUEUE, [KEY])
    claim_one(case)
    case.worker.release("w1")


def reclaimed(case: Case) -> None:
    case.worker.add(QUEUE, [KEY])
    claim_one(case)
    case.worker.renew([], lease_ms=5_000)
    for _ in range(5):
        case.advance(1_001)
        case.worker.renew([], lease_ms=5_000)
    assert case.worker.reclaim() == [f"{QUEUE}:{KEY}"]


def unparked_by_time(case: Case) -> None:
    for holder in ("w1", "w2"):
        case.worker.register(holder, "supervisor", [QUEUE])
        case.worker.add(QUEUE, [KEY])
        claim_one(case, holder)
        case.worker.release(holder, blamed=f"{QUEUE}:{KEY}")
    assert case.state()["state"][QUEUE][KEY] == "parked"
    case.advance(1_000)
    case.worker.due()


def listed(case: Case) -> None:
    assert case.ingestor.stage("pods", "second", [pod("p1", 101)])
    case.ingestor.commit_list("pods", "second", "101")
    while case.ingestor.republish():
        pass


def passed(case: Case) -> None:
    case.worker.add(QUEUE, [KEY])
    one = claim_one(case)
    case.worker.finish([Finish(QUEUE, KEY, one.nonce, Verdict.OK, None, (Change.min_rv("pods", "101"),))])
    case.ingestor.ingest("pods", "100", "101", [])


@pytest.mark.parametrize(
    ("how", "first", "last"),
    [
        pytest.param(delayed, "due", "due", id="delayed"),
        pytest.param(at_once, "due", "due", id="without a delay"),
        pytest.param(released, "lost w1", "lost w1", id="its worker died"),
        pytest.param(reclaimed, "lost w1", "lost w1", id="its lease ended"),
        pytest.param(unparked_by_time, "lost w2", "parked", id="its pause is over"),
        pytest.param(listed, "list pods", "list pods", id="a new list"),
        pytest.param(passed, "read pods", "read pods", id="the cache has its write"),
    ],
)
def test_what_is_said_of_each_way_into_the_queue(
    how: Callable[[Case], None], first: str, last: str, queue_case: Case
) -> None:
    case = opened(queue_case)
    how(case)
    said = why(case)
    assert said is not None
    words = [each.split() for each in (said.triggers.first, said.triggers.last)]
    assert [" ".join(each[:2]) for each in words] == [first, last]
    for each in words:
        assert (len(each) == 3 and each[2].isdigit()) if each[0] == "lost" else len(each) <= 2
    assert broker_state.problems(case.state()) == []


# -- its turns -------------------------------------------------------------------------------------------------------


def test_a_turn_says_when_who_how_long_what_and_why(queue_case: Case) -> None:
    case = opened(queue_case)
    turn(case, "created 3 pods")
    assert turns(case) == [PastTurn("ok", "created 3 pods", 1, START_MS + 10, 3, 7, "w1", Triggers(1, "asked"))]


def test_the_newest_comes_first_and_turns_alike_share_a_line(queue_case: Case) -> None:
    case = opened(queue_case)
    for did in ("created 1 pod", "", "", "", "deleted 1 pod", ""):
        turn(case, did)
    assert [(each.did, each.turns) for each in turns(case)] == [
        ("-", 1),
        ("deleted 1 pod", 1),
        ("-", 3),
        ("created 1 pod", 1),
    ]
    turn(case, "", Verdict.RETRY)
    assert [(each.verdict, each.did, each.turns) for each in turns(case)][:2] == [("retry", "-", 1), ("ok", "-", 1)]


@pytest.mark.parametrize(("apart_ms", "of_the_last"), [(0, 100), (980, 11), (1_000, 10), (30_000, 10)])
def test_of_turns_alike_one_of_the_last_ten_or_of_ten_seconds_tells_its_worker_its_times_and_its_trigger(
    apart_ms: int, of_the_last: int, queue_case: Case
) -> None:
    case = opened(queue_case)
    case.advance(-case.now_ms() % twin.PERIOD_MS + 1)  # a period tells anew, too
    for number in range(1, 3 * of_the_last // 2):
        turn(case, why=f"set pods/ns/p{number}")
        (line,) = turns(case)
        assert (line.turns, line.ended_ms) == (number, case.now_ms())
        assert line.triggers.first == f"set pods/ns/p{1 if number <= of_the_last else of_the_last + 1}"
        case.advance(apart_ms)


def test_an_owner_that_is_gone_leaves_its_history(queue_case: Case) -> None:
    case = opened(queue_case)
    turn(case, "", Verdict.GONE)
    assert [each.verdict for each in turns(case)] == ["gone"]


def test_how_a_worker_ended_stands_with_all_that_it_held(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    claim(case, "w1")
    case.worker.release("w1", blamed=f"{QUEUE}:ns/a", ended="worker ended by SIGSEGV")
    for key in ("ns/a", "ns/b"):
        (lost,) = turns(case, key)
        assert (lost.verdict, lost.did) == ("lost", "worker ended by SIGSEGV")


def test_a_turn_whose_worker_died_is_lost(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, [KEY], why="set pods/ns/p1")
    claim_one(case)
    case.advance(40)
    case.worker.release("w1")
    assert turns(case) == [PastTurn("lost", "-", 1, START_MS + 40, 0, 40, "w1", Triggers(1, "set pods/ns/p1"))]


def test_a_finish_that_came_too_late_is_no_turn(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, [KEY])
    one = claim_one(case)
    case.worker.release("w1")
    assert case.worker.finish([Finish(QUEUE, KEY, one.nonce, Verdict.OK, did="created 1 pod")]) == [-1]
    assert [each.verdict for each in turns(case)] == ["lost"]


def test_a_call_that_ends_several_turns_says_each(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, [f"ns/{i}" for i in range(5)])
    claims = claim(case)
    case.worker.finish([Finish(QUEUE, one.key, one.nonce, Verdict.OK, did=f"did {one.key}") for one in claims])
    assert [turns(case, f"ns/{i}")[0].did for i in range(5)] == [f"did ns/{i}" for i in range(5)]


# -- how much --------------------------------------------------------------------------------------------------------


def test_a_key_remembers_a_thousand_bytes(queue_case: Case) -> None:
    case = opened(queue_case)
    for n in range(60):
        turn(case, f"{n:02} create pods x3", why="set pods/ns/a-abcde")
        assert sum(map(len, texts(case))) <= 1_000
    told = [(each.did[:2], each.ended_ms) for each in turns(case)]
    assert told == [(f"{n}", START_MS + 10 * (n + 1)) for n in range(59, 59 - len(told), -1)]
    assert len(told) >= 20
    turn(case, "y" * 2_000)
    assert turns(case)[0].did == "y" * twin.DID_BYTES_MAX


def test_what_wrote_outlives_what_wrote_nothing_but_a_status(queue_case: Case) -> None:
    """All turns but the newest quiet ones are folded, so the times of the others stay right."""
    case = opened(queue_case)
    turn(case, "create pods x3")
    turn(case, "create pods: 403 exceeded quota", Verdict.RETRY)
    for n in range(100):
        turn(case, "status" if n % 2 else "", why=f"set pods/ns/a-{n:05}")
    last, *_ = found = turns(case)
    assert [(each.did, each.verdict, each.turns, each.ended_ms) for each in found[-3:]] == [
        ("quiet", "ok", 103 - len(found), START_MS + 10 * (105 - len(found))),
        ("create pods: 403 exceeded quota", "retry", 1, START_MS + 20),
        ("create pods x3", "ok", 1, START_MS + 10),
    ]
    assert (last.did, last.triggers.first, last.ended_ms) == ("status", "set pods/ns/a-00099", START_MS + 1_020)
    assert [each.did for each in found[:4]] == ["status", "-", "status", "-"]
    assert len(found) > 12


def test_a_quiet_turn_between_others_goes_when_bytes_are_short(queue_case: Case) -> None:
    case = opened(queue_case)
    for n in range(60):
        turn(case, f"{n:02} create pods x3" if n % 2 else "", why="set pods/ns/a-abcde")
    found = turns(case)
    assert [each.did for each in found[:4]] == ["59 create pods x3", "-", "57 create pods x3", "-"]
    assert sum(each.did == "-" for each in found) < sum(each.did != "-" for each in found)
    wrote = [(each.did[:2], each.ended_ms) for each in found if each.did != "-"]
    assert wrote == [(f"{n:02}", START_MS + 10 * (n + 1)) for n in range(59, 59 - 2 * len(wrote), -2)]


def test_the_names_of_workers_are_kept_once(queue_case: Case) -> None:
    case = opened(queue_case)
    holders = ["w-host-1a2b-0", "w-host-1a2b-11", "w-other-3c4d-0", "odd"]
    for n, holder in enumerate(holders * 20):
        case.worker.register(holder, "supervisor", [QUEUE])
        case.worker.add(QUEUE, [KEY])
        one = claim_one(case, holder)
        case.worker.finish([Finish(QUEUE, KEY, one.nonce, Verdict.OK, did=f"{n}")])
        assert [each.holder for each in turns(case)][:4] == [*reversed(holders[: n % 4 + 1]), *reversed(holders)][
            : min(4, n + 1)
        ]
    assert sorted(texts(case)[1].split("\n")[0].split()[1:]) == ["odd", "w-host-1a2b-", "w-other-3c4d-"]


def test_a_name_without_a_turn_goes(queue_case: Case) -> None:
    case = opened(queue_case)
    for n in range(60):
        case.worker.register(f"w-host{n}-0", "supervisor", [QUEUE])
        case.worker.add(QUEUE, [KEY])
        one = claim_one(case, f"w-host{n}-0")
        case.worker.finish([Finish(QUEUE, KEY, one.nonce, Verdict.OK, did=f"{n}")])
    _, told = texts(case)
    names, told_turns = told.split("\n")[0].split()[1:], past_turns("", told, KEY)
    assert len(told_turns) >= 5
    assert {each.holder[:-1] for each in told_turns} <= set(names)
    assert len(told.split("\n")[0]) <= twin.NAMES_BYTES_MAX + len(" w-host59-") * len(told_turns)
    assert len(names) < 60


def test_a_long_trigger_is_cut(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, [KEY], why="x" * 500)
    said = why(case)
    assert said is not None
    assert said.triggers.first == "x" * 160


def size_of(case: Case, key: str = KEY) -> int:
    return sum(twin._size(f"{QUEUE}:{key}", text) for text in texts(case, key))


def bytes_counted(case: Case) -> int:
    return int(case.state().get("history_bytes", 0))


def test_the_bytes_of_all_are_counted(queue_case: Case) -> None:
    """By what is there, so that the count cannot drift."""
    case = opened(queue_case)
    for n in range(6):
        turn(case, f"{n}" * 150, key=f"ns/{n % 2}")
    assert texts(case, "ns/0")[1]
    assert bytes_counted(case) == sum(size_of(case, f"ns/{n}") for n in range(2)) > 0


def test_a_day_after_its_last_turn_a_history_goes(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.renew([], lease_ms=5_000)
    turn(case, "old")
    case.advance(twin.AGE_MAX_MS - twin.PERIOD_MS)
    turn(case, "new", key="ns/b")
    case.worker.renew([], lease_ms=5_000)
    assert texts(case)[0]
    case.advance(twin.PERIOD_MS)
    case.worker.renew([], lease_ms=5_000)
    assert list(case.state()["turns"][QUEUE]) == ["ns/b"]
    assert bytes_counted(case) == size_of(case, "ns/b")


def test_the_oldest_go_when_a_fleet_has_too_much(queue_case: Case) -> None:
    case = opened(queue_case)
    for n in range(150):
        turn(case, "did", key=f"ns/{n:03}")
    _count(case, twin.FLEET_BYTES_MAX)
    turn(case, "one more", key="ns/last")
    kept = sorted(case.state()["turns"][QUEUE])
    assert kept == [*(f"ns/{n}" for n in range(100, 150)), "ns/last"]
    assert bytes_counted(case) <= twin.FLEET_BYTES_MAX


def test_a_count_that_is_wrong_ends_with_the_histories(queue_case: Case) -> None:
    case = opened(queue_case)
    _count(case, 10 * twin.FLEET_BYTES_MAX)
    turn(case, "did")
    turn(case, "did more")
    assert bytes_counted(case) == size_of(case)


def _count(case: Case, count: int) -> None:
    """As if so many bytes were there."""
    if isinstance(case, MemoryCase):
        case.store.state.history_bytes = count
    else:
        assert isinstance(case, RedisCase)
        case.admin.set(Keys(case.epoch).of("history_bytes"), count)


@pytest.mark.real
def test_they_are_the_first_to_go_when_redis_is_nearly_full(real: RedisCase) -> None:
    case = opened(real)
    turn(case, "did")
    used = int(case.admin.info("memory")["used_memory"])
    try:
        case.admin.config_set("maxmemory", used * 3)
        case.worker.renew([], lease_ms=5_000)
        assert texts(case)[0]
        case.admin.config_set("maxmemory", int(used * 1.05))
        case.worker.renew([], lease_ms=5_000)
        assert {"turns", "history", "histories", "history_bytes"}.isdisjoint(case.state())
        turn(case, "and goes on")
    finally:
        case.admin.config_set("maxmemory", 0)
    assert [each.did for each in turns(case)] == ["and goes on"]


# -- read ------------------------------------------------------------------------------------------------------------


@pytest.mark.real
def test_the_inspector_reads_it_with_the_rights_of_metrics(real: RedisCase) -> None:
    case = opened(real)
    turn(case, "created 1 pod")
    case.worker.add(QUEUE, [KEY], why="set pods/ns/p1")
    metrics: redis.Redis = real.clients["metrics"]
    view = Inspector(metrics, case.epoch, now_ms=case.now_ms).key(QUEUE, KEY)
    assert view.why == Queued(START_MS + 10, Triggers(1, "set pods/ns/p1", "set pods/ns/p1"))
    assert [each.did for each in view.turns] == ["created 1 pod"]
    claim_one(case)
    view = Inspector(metrics, case.epoch, now_ms=case.now_ms).key(QUEUE, KEY)
    assert view.why is None
    assert view.lock is not None
    assert view.lock.why == Queued(START_MS + 10, Triggers(1, "set pods/ns/p1", "set pods/ns/p1"))


OURS = "create pods: 403 quota < retry 4x3 1+2 1/1 2 pods/%-p"
READ = PastTurn("retry", "create pods: 403 quota", 3, 9, 1, 2, "w-1", Triggers(2, "set pods/ns/a-p"))


@pytest.mark.parametrize("line", ["", "x", "did < 1 2 3 w 1 asked", "did < x 1+1 1/1 4 asked", "did < 1 1+1 1 5 asked"])
def test_a_line_that_is_none_of_ours_is_left_out(line: str) -> None:
    assert past_turns("", f"9 w-\n{line}\n{OURS}", KEY) == [READ]


@pytest.mark.parametrize("text", ["", "x", "\udcff", OURS, f"ok did < 1 5 w1 since_ms=3 why=2 1 asked\n9 w-\n{OURS}"])
def test_a_text_that_is_none_of_ours_tells_nothing(text: str) -> None:
    assert past_turns("", text, KEY) == past_turns(text, "", KEY) == []


def test_a_worker_without_a_name_is_unknown() -> None:
    (read,) = past_turns("", "9\n- < 0 1+2 1/7 1 due", KEY)
    assert (read.holder, read.triggers.first) == ("?7", "due")


SPOILED = ("ok did < 1 5 w1 since_ms=3 why=2 1 asked", "\n\n", "x" * 5_000, f"9 w-\n{'y' * 3_000}", f"9x w-\n{OURS}")


@pytest.mark.real
@pytest.mark.parametrize("spoiled", SPOILED)
def test_newest_turns_that_are_none_of_ours_are_dropped_by_the_next_turn(spoiled: str, real: RedisCase) -> None:
    case = opened(real)
    case.admin.hset(Keys(case.epoch).turns(QUEUE), KEY, spoiled)
    turn(case, "create pods")
    assert [each.did for each in turns(case)] == ["create pods"]
    assert spoiled not in texts(case)[0]


@pytest.mark.real
@pytest.mark.parametrize("spoiled", SPOILED)
def test_older_turns_that_are_none_of_ours_tell_nothing(spoiled: str, real: RedisCase) -> None:
    case = opened(real)
    case.admin.hset(Keys(case.epoch).history(QUEUE), KEY, spoiled)
    done = [f"{n} create pods" for n in range(5)]
    for did in done:
        turn(case, did)
    assert [each.did for each in turns(case)] == done[::-1]
    assert sum(map(len, texts(case))) <= 1_000


def test_turns_like_the_newest_leave_the_older_ones_alone(queue_case: Case) -> None:
    """They read and write the short text alone."""
    case = opened(queue_case)
    for n in range(10):
        turn(case, f"{n} create pods")
    turn(case)
    _, older = texts(case)
    assert older
    for _ in range(50):
        turn(case)
        newest, now_older = texts(case)
        assert now_older == older
        assert len(newest) <= twin.TURNS_BYTES
    assert [each.turns for each in turns(case)] == [51] + [1] * 10


def test_a_long_newest_turn_takes_room_from_the_older_ones(queue_case: Case) -> None:
    case = opened(queue_case)
    for n in range(40):
        turn(case, f"{n:02} " + "y" * (n % 4) * 70, why="set pods/ns/" + "z" * 140)
        assert sum(map(len, texts(case))) <= 1_000
        assert turns(case)[0].did.startswith(f"{n:02} ")


def test_numbers_that_none_of_ours_wrote_are_not_read() -> None:
    long = "9" * 5_000
    assert past_turns("", f"{long} w-\n{OURS}", KEY) == past_turns("", f"9 w-\n- < {long} 1+2 1/7 1 due", KEY) == []
    assert past_turns(f"9 w-\n- < 1 1+2 {long}/1 1 due", "", KEY) == []
    assert (Queued.parse(f"{long} 1 due"), lost_ms(f"1 1 lost w {long}")) == (None, None)
    assert Triggers.parse(f"{long} due").first == "unknown"


def test_what_is_no_reason_is_none() -> None:
    assert (Queued.parse(""), Queued.parse("x y"), Triggers.parse("x")) == (
        None,
        None,
        Triggers(0, "unknown", "unknown"),
    )
