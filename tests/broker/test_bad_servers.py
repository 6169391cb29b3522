"""Memory full, and keys of a type nobody expects: nothing is lost, and the error says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from redis.exceptions import ResponseError

from oarlock.broker import keys
from oarlock.broker.values.claims import Claim, Idle
from oarlock.broker.values.errors import BrokerFull, ClaimLost, DataDamaged
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Change, Entry, Verdict
from tests.broker.broker_cases import (
    LEASE_MS,
    QUEUE,
    RedisCase,
    claim,
    claim_one,
    claim_reply,
    finish,
    opened,
    state_of,
)

pytestmark = pytest.mark.real


@pytest.fixture
def full(real: RedisCase) -> Iterator[RedisCase]:
    """Two keys in work, one delayed; then the memory is used up."""
    opened(real, "ns/a", holders=("w1", "w2"))
    real.worker.add(QUEUE, ["ns/a", "ns/b"])
    real.claims = claim(real)  # type: ignore[attr-defined]
    real.worker.announce(real.claims[0], "u", [Entry("create", "pods/x")], lease_ms=LEASE_MS)  # type: ignore[attr-defined]
    real.worker.add_after(QUEUE, "ns/later", 10)
    real.admin.config_set("maxmemory", FULL)
    yield real
    real.admin.config_set("maxmemory", 0)


FULL = 1_000


def pass_time(case: RedisCase, ms: int) -> None:
    """The test's clock is a key and needs a byte."""
    case.admin.config_set("maxmemory", 0)
    case.advance(ms)
    case.admin.config_set("maxmemory", FULL)


GROWING: dict[str, Callable[[RedisCase], object]] = {
    "ingest": lambda case: case.ingestor.ingest("pods", "100", "101", [Event("ns/p", "101", "u", b"p")]),
    "ingest nothing": lambda case: case.ingestor.ingest("pods", "100", "101", []),
    "announce": lambda case: case.worker.announce(claims(case)[0], "u", [Entry("create", "pods/y")], lease_ms=LEASE_MS),
    "add": lambda case: case.worker.add(QUEUE, ["ns/new"]),
    "add_after": lambda case: case.worker.add_after(QUEUE, "ns/new", 50),
    "stage": lambda case: case.ingestor.stage("pods", "g2", []),
    "register": lambda case: case.worker.register("w9", "s", [QUEUE]),
}


def claims(case: RedisCase) -> list[Claim]:
    found: list[Claim] = case.claims  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("step", GROWING)
def test_what_grows_is_refused_when_memory_is_full(full: RedisCase, step: str) -> None:
    before = full.state()
    with pytest.raises(BrokerFull, match="Redis is full: raise its maxmemory"):
        GROWING[step](full)
    after = full.state()
    assert {**after, "record_ttl": None} == {**before, "record_ttl": None}


def test_what_ends_and_renews_works_when_memory_is_full(full: RedisCase) -> None:
    """finish, release, renew, reclaim, due, claim, forget: a fleet goes on with what it has."""
    pass_time(full, 2_000)
    assert full.worker.renew(["w1"], lease_ms=LEASE_MS) == []
    assert full.state()["leases"][f"{QUEUE}:ns/a"] == full.now_ms() + LEASE_MS
    assert full.worker.due()[0] == 1
    first, second = claims(full)
    assert finish(full, first, Verdict.RETRY, None) == 1
    assert finish(full, second, Verdict.OK, 700) == 0
    assert full.state()["delayed"][QUEUE] == {"ns/a": full.now_ms() + 5, "ns/b": full.now_ms() + 700}
    assert claim_one(full).key == "ns/later"
    full.worker.release("w1", blamed=f"{QUEUE}:ns/later")
    assert claim_one(full, "w2").key == "ns/later"
    full.worker.renew([], lease_ms=LEASE_MS)
    pass_time(full, LEASE_MS - 2_500)
    full.worker.renew([], lease_ms=LEASE_MS)
    pass_time(full, 2_500)
    assert full.worker.reclaim() == [f"{QUEUE}:ns/later"]
    assert state_of(full, "ns/later") == "parked", "alone, and for the second time"
    full.worker.forget(QUEUE, "ns/a")
    assert full.ingestor.look("replicasets", ids=["ns/a"])[1] != []


def test_all_is_well_again_when_there_is_memory(full: RedisCase) -> None:
    full.admin.config_set("maxmemory", 0)
    assert full.ingestor.ingest("pods", "100", "101", [Event("ns/p", "101", "u", b"p")]).verdict == "OK"


# -- planted keys ------------------------------------------------------------------------------------------------------

PLANTED = [
    *(f"{QUEUE}:{part}" for part in ("stream", "state", "delayed", "parked", "locks", "failures", "crashes")),
    *(f"{QUEUE}:{part}" for part in ("bucket", "needs", "unsettled", "expect:ns/a", "wake")),
    *("leases", "waiters", "timer", "holder:w1", "unread:pods"),
    *("changes:pods:first-pods", "changes_at:pods:first-pods"),
]
MOVING: dict[str, Callable[[RedisCase], object]] = {
    "add": lambda case: case.worker.add(QUEUE, ["ns/new", "ns/a"], unpark=True),
    "add_after": lambda case: case.worker.add_rate_limited(QUEUE, "ns/new"),
    "claim": lambda case: claim(case, "w1"),
    "announce": lambda case: case.worker.announce(claims(case)[0], "u", [Entry("create", "pods/y")], lease_ms=LEASE_MS),
    "finish": lambda case: finish(case, claims(case)[0], Verdict.RETRY),
    "finish of a key that was changed meanwhile": lambda case: finish(case, claims(case)[1]),
    "finish with a look again": lambda case: finish(case, claims(case)[0], Verdict.OK, 700),
    "finish with a need": lambda case: finish(case, claims(case)[0], Verdict.OK, None, Change.min_rv("pods", "150")),
    "release": lambda case: case.worker.release("w1", blamed=f"{QUEUE}:ns/a"),
    "reclaim": lambda case: case.worker.reclaim(),
    "due": lambda case: case.worker.due(),
    "ingest": lambda case: case.ingestor.ingest(
        "pods",
        "100",
        "130",
        [Event("ns/p", "101", "u", b"p", ("owner=u", "mirror"), (f"{QUEUE}:ns/a", f"{QUEUE}:ns/new"))],
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_key_of_a_wrong_type_loses_nothing(real: RedisCase, planted: str) -> None:
    """Redis does not roll back. With the key in the way a step fails whole or does its work; without it all goes on.

    Every key that was to be looked at before is looked at afterwards.
    """
    for step, run in MOVING.items():
        real.admin.flushall()
        real.epoch = 0
        real.bootstrap()
        opened(real, "ns/a", holders=("w1", "w2"))
        real.worker.add(QUEUE, ["ns/a", "ns/b"])
        real.claims = claim(real, "w1")  # type: ignore[attr-defined]
        real.worker.add(QUEUE, ["ns/queued", "ns/b"])
        real.worker.add_after(QUEUE, "ns/later", 1_000)
        real.advance(LEASE_MS)
        name = real.worker.keys.base + planted  # type: ignore[attr-defined]
        kept = real.admin.dump(name)
        real.admin.unlink(name)
        if planted in (f"{QUEUE}:wake", "timer", "leases"):
            real.admin.hset(name, "a", "b")
        else:
            real.admin.rpush(name, "x")
        refused = refusal(run, real)
        assert refused in ("", "LOST") or "WRONGTYPE" in refused, (step, refused)
        go_on(real, ended=refused not in ("", "LOST"))
        real.admin.unlink(name)
        if kept is not None:
            real.admin.restore(name, 0, kept)
        if refused or kept is None:
            looked_at = everything_looked_at(real)
            expected = {"ns/a", "ns/b", "ns/queued", "ns/later"}
            if not refused and step in ("add", "add_after", "ingest"):
                expected |= {"ns/new"}
            if not refused and step == "finish with a need":
                expected -= {"ns/a"}  # the cache has yet to pass what it needs
            assert looked_at >= expected, (step, looked_at)


@pytest.mark.parametrize("planted", ["changes:pods:first-pods", "changes_at:pods:first-pods", "unread:pods"])
def test_a_batch_that_cannot_be_logged_changes_nothing(real: RedisCase, planted: str) -> None:
    """Not even the keys it wakes: what it would have done is all done by its repetition."""
    opened(real, "ns/a")
    name = real.worker.keys.base + planted  # type: ignore[attr-defined]
    real.admin.rpush(name, "x")
    dumped = {key: real.admin.dump(key) for key in real.admin.scan_iter("*")}
    assert "WRONGTYPE" in refusal(MOVING["ingest"], real)
    go_on(real, ended=True)
    assert {key: real.admin.dump(key) for key in real.admin.scan_iter("*")} == dumped
    real.admin.unlink(name)
    assert refusal(MOVING["ingest"], real) == ""


LAST_NUMBERS: dict[str, Callable[[RedisCase, str], object]] = {
    "failures": lambda case, own: case.admin.hset(own + "failures", "ns/a", 2**63 - 1),
    "stream": lambda case, own: case.admin.xadd(own + "stream", {"key": "ns/x"}, id=f"{2**64 - 1}-{2**64 - 1}"),
}


@pytest.mark.parametrize("planted", LAST_NUMBERS)
def test_a_number_after_which_none_comes_ends_the_epoch(real: RedisCase, planted: str) -> None:
    """Nothing of ours counts so far. The step dies in its middle, where the key has left its lock already."""
    opened(real, "ns/a", holders=("w1", "w2"))
    real.worker.add(QUEUE, ["ns/a"])
    real.claims = claim(real, "w1")  # type: ignore[attr-defined]
    real.worker.add(QUEUE, ["ns/a"])  # changed meanwhile
    LAST_NUMBERS[planted](real, f"{real.worker.keys.base}{QUEUE}:")  # type: ignore[attr-defined]
    with pytest.raises(DataDamaged):
        finish(real, claims(real)[0], Verdict.RETRY)
    assert real.admin.get(keys.epoch()) is None


def go_on(case: RedisCase, *, ended: bool) -> None:
    """Who meets damage ends the epoch, which this test wants to look into."""
    assert case.admin.get(keys.epoch()) == (None if ended else str(case.epoch).encode())
    case.admin.set(keys.epoch(), case.epoch)


def refusal(run: Callable[[RedisCase], object], case: RedisCase) -> str:
    """Why a step did nothing; "" where it did."""
    try:
        run(case)
    except (ResponseError, DataDamaged) as error:
        return str(error)
    except ClaimLost:
        return "LOST"
    return ""


def everything_looked_at(case: RedisCase) -> set[str]:
    """Time goes on, the workers of before are given up, and whoever claims sees these keys."""
    for holder in ("w1", "w2"):
        case.worker.release(holder)
    case.worker.register("w3", "s", [QUEUE])
    seen: set[str] = set()
    for _ in range(4):
        case.worker.renew(["w3"], lease_ms=LEASE_MS)
        case.worker.reclaim()
        case.worker.due()
        for one in claim(case, "w3", keys_max=50):
            seen.add(one.key)
            finish(case, one)
        case.advance(2_500)
    return seen


def test_what_a_pause_held_comes_back_when_memory_is_full(full: RedisCase) -> None:
    full.admin.config_set("maxmemory", 0)
    full.worker.add(QUEUE, ["shop/held"])
    full.worker.steer("pause", "namespace shop", "by=me")
    assert claim_reply(full, "w2") is Idle.EMPTY
    assert state_of(full, "shop/held") == "held"
    full.admin.config_set("maxmemory", FULL)
    assert full.worker.steer("resume", "namespace shop", "by=me") is True
    assert full.worker.due()[0] == 1
    assert state_of(full, "shop/held") == "queued"
