"""Redis does not roll back a script that fails: one that is killed by its arguments must have changed nothing."""

from __future__ import annotations

import random
import secrets
from typing import Any

import pytest
from redis.exceptions import InvalidResponse, ResponseError

from oarlock.broker.steps import script_texts
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Entry
from tests.broker.broker_cases import QUEUE, TEST_CLOCK, RedisCase, claim, opened

NONCE, HOLDER = "the-nonce", "w1"
SPEC = f"{QUEUE} replicasets pods/owner/uid replicasets/orphan/wanted pods/node/name pods/first-pods:0/mirror"

# Arguments that each script takes gladly in the state of ``busy``. They are spoiled one at a time.
GOOD: dict[str, list[Any]] = {
    "add": [QUEUE, "unpark", "asked", "ns/parked", "ns/new", "ns/a"],
    "add_after": [QUEUE, "ns/new", 500],
    "claim": [HOLDER, "n2", 5000, 14000, 8, 262144, "", 2, SPEC],
    "announce": [
        QUEUE,
        "ns/a",
        NONCE,
        5000,
        "uid-ns/a",
        "create",
        "pods/x",
        "",
        "delete",
        "pods/y",
        "uid=u rv=5",
        "backoff",
        "n1",
        "generation=1 delay_ms=1000 at_ms=5",
    ],
    "finish": [
        *(2, QUEUE, "ns/a", NONCE, "ok", 500, "created 1 pod", 3),
        *("drop", "create pods/w", "", "set", "blocked pods/v", "uid=u", "need", "pods", "120"),
        *(QUEUE, "ns/b", NONCE, "retry", "", "", 0),
    ],
    "release": [HOLDER, f"{QUEUE}:ns/a"],
    "reclaim": [200],
    "renew": [5000, HOLDER, "nobody"],
    "due": [500],
    "forget": [QUEUE, "ns/failed"],
    "register": ["w2", "supervisor", QUEUE, "daemonset"],
    "ingest": [
        *("pods", "100", "105", "told", 1, "d1", "apart"),
        *("set", "ns/p1", "103", "u1", "blob", f"owner=uid-ns/a mirror *d1\n{QUEUE}:ns/a"),
        *("del", "ns/p0", "104", "u0", "", f"\n{QUEUE}:ns/b {QUEUE}:ns/z"),
        *("observed", "ns/p2", "105", "u2", "blob", f"\n{QUEUE}:ns/a"),
    ],
    "stage": [
        *("replicasets", "g2", 30000, 1, "d1", "apart"),
        *("ns/p1", "90", "u1", "blob", f"owner=uid-ns/a *d1\n{QUEUE}:ns/a"),
    ],
    "commit_list": ["pods", "staged", "130"],
    "republish": [500],
    "open": ["pods", "replicasets"],
    "pause": ["why"],
    "page": ["pods", "owner=uid-ns/a orphan=ns", 10, 1000, "", "1:0", "ns/p1"],
    "steer": ["pause", "namespace ns", "by=me a reason", 60000],
    "drain": ["drain", "supervisor", "by=me a reason"],
    "acts": [50],
    "budget": [5000, 100000, 10000, 8, f"{HOLDER} 1 1500 1 3 9 {QUEUE}=90000 events=5", "nobody 0 0 - 0 0"],
    "report": ["ingestor-a", "deaf=pods pods=80000"],
    "look": ["pods", "index", "owner=uid-ns/a", "orphan=ns"],
}
SPOILED = ("", "x", "-1", "0", "1e999", "nan", "99999999999999999999", "a b", "a:b", "\n", "\xff\n\n", 2.5)


def busy(case: RedisCase) -> RedisCase:
    """A bit of everything: running keys with a record, parked, delayed and failed ones, a list being staged."""
    opened(case, "ns/a", "ns/b")
    case.ingestor.ingest("pods", "100", "100", [])
    case.ingestor.stage("pods", "staged", [Event("ns/p0", "100", "u0", b"p0", ("owner=uid-ns/a",), (f"{QUEUE}:ns/b",))])
    case.worker.add(QUEUE, ["ns/parked"])
    for _ in range(2):
        claim(case)
        case.worker.release(HOLDER, blamed=f"{QUEUE}:ns/parked")
        case.worker.register(HOLDER, "supervisor", [QUEUE])
    case.worker.add_after(QUEUE, "ns/later", 1000)
    case.worker.add_rate_limited(QUEUE, "ns/failed")
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    for one in claim(case):
        case.admin.hset(case.worker.keys.locks(QUEUE), one.key, f"holder={HOLDER} nonce={NONCE} since_ms=1")  # type: ignore[attr-defined]
        case.worker.announce(one._replace(nonce=NONCE), f"uid-{one.key}", [Entry("create", "pods/w")], lease_ms=5000)
    case.worker.add(QUEUE, ["ns/queued"])
    case.advance(2000)
    return case


def run(case: RedisCase, name: str, arguments: list[Any]) -> Any:
    broker: Any = case.worker
    sha = script_texts.sha(name, case.epoch, TEST_CLOCK)
    return case.admin.evalsha(sha, 2, broker.keys.epoch, broker.keys.base, *arguments)


def refusal(case: RedisCase, name: str, arguments: list[Any]) -> str:
    """Why the script was killed; "" where it was not."""
    try:
        run(case, name, arguments)
    except (ResponseError, InvalidResponse) as error:  # Valkey 8.0 leaves a line break of an argument in its answer
        return str(error)
    return ""


def test_every_script_has_an_example() -> None:
    assert set(GOOD) == set(script_texts.NAMES)


@pytest.mark.real
@pytest.mark.parametrize("name", script_texts.NAMES)
def test_a_script_killed_by_its_arguments_changes_nothing(name: str, real: RedisCase) -> None:
    """Each argument left out, or replaced by each of a list of bad ones; a seeded sample of two at a time."""
    busy(real)
    dumped = {key: (real.admin.dump(key), real.admin.pttl(key)) for key in real.admin.scan_iter("*")}

    def restore() -> None:
        with real.admin.pipeline(transaction=False) as pipe:
            pipe.flushall()
            for key, (value, ttl) in dumped.items():
                pipe.restore(key, max(0, ttl), value)
            pipe.execute()

    def record_free(state: dict[str, Any]) -> dict[str, Any]:
        return {part: value for part, value in state.items() if part != "record_ttl"}

    before = record_free(real.state())
    assert run(real, name, GOOD[name])[0] == b"OK"
    good = GOOD[name]
    trials = [good[:i] + good[i + 1 :] for i in range(len(good))]
    trials += [[*good[:i], bad, *good[i + 1 :]] for i in range(len(good)) for bad in SPOILED]
    number = secrets.randbits(32)
    print(f"seed {number}")
    chance = random.Random(number)
    for _ in range(40):
        spoiled = list(good)
        for _ in range(2):
            spoiled[chance.randrange(len(good))] = chance.choice(SPOILED)
        trials.append(spoiled)
    failed = 0
    restore()
    for arguments in trials:
        refused = refusal(real, name, arguments)
        if refused:
            failed += 1
            assert record_free(real.state()) == before, (arguments, refused)
        else:
            restore()
    takes_any_text = ("add", "forget", "register", "open", "pause", "look", "release", "commit_list")
    assert failed > 0 or name in takes_any_text, "nothing was spoiled enough"


@pytest.mark.real
@pytest.mark.parametrize(
    ("at", "bad"),
    [
        *((4, "fine"), (5, "soon"), (6, "two\nlines"), (7, "4"), (8, "drip")),
        *((14, "drip"), (16, "x"), (16, "-1"), (16, "")),
    ],
)
def test_a_finish_with_a_word_that_none_of_ours_says_is_refused(real: RedisCase, at: int, bad: str) -> None:
    busy(real)
    arguments = list(GOOD["finish"])
    arguments[at] = bad
    assert refusal(real, "finish", arguments)
