"""The twin for threads: the protocol's methods are all locked, and waits end when there is something."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from oarlock.broker.memory.threads import STEPS
from oarlock.broker.protocol import Broker
from oarlock.broker.values.claims import Batch, Idle
from oarlock.broker.values.errors import EpochOver
from oarlock.broker.values.turns import Finish, Verdict
from tests.broker.broker_cases import QUEUE, ThreadsCase, claim_reply, opened

LONG_S = 20.0


@pytest.fixture
def case() -> ThreadsCase:
    return opened(ThreadsCase())  # type: ignore[return-value]


def test_every_method_of_the_protocol_is_a_step() -> None:
    methods = {name for name in vars(Broker) if not name.startswith("_")} - {"epoch"}
    assert methods == {*STEPS, "wait"}


def asleep(case: ThreadsCase, pool: ThreadPoolExecutor) -> Future[str | None]:
    """A worker that found nothing and waits."""
    assert claim_reply(case) is Idle.EMPTY
    while case.worker.wait([QUEUE], 0):
        """Take the tokens of what was before."""
    waiting = pool.submit(case.worker.wait, [QUEUE], LONG_S)
    while not case.store.changed._waiters:  # type: ignore[attr-defined]
        """Until it sleeps."""
    return waiting


@pytest.mark.parametrize(
    ("happens", "found"),
    [
        (lambda case: case.worker.add(QUEUE, ["default/web"]), QUEUE),
        (lambda case: case.store.wake_all(), None),
    ],
)
def test_a_wait_ends_at_once(case: ThreadsCase, happens: Callable[[ThreadsCase], object], found: str | None) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = asleep(case, pool)
        happens(case)
        assert waiting.result(5) is found


def test_a_wait_of_an_epoch_that_ends_is_refused(case: ThreadsCase) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = asleep(case, pool)
        case.store.bootstrap(2)
        with pytest.raises(EpochOver):
            waiting.result(5)


def test_a_timer_is_told_of(case: ThreadsCase) -> None:
    told: list[str] = []
    case.store.on_timer = lambda: told.append(threading.current_thread().name)
    case.worker.add_after(QUEUE, "default/web", 60_000)
    assert told == [threading.current_thread().name]
    assert case.worker.wait_timer(0)


def test_threads_share_the_keys_and_lose_none(case: ThreadsCase) -> None:
    """Four workers and two that add: each key is in work once at a time, and after its last add once more."""
    broker = case.worker
    keys, rounds = [f"default/{number}" for number in range(20)], 30
    added: dict[str, int] = dict.fromkeys(keys, 0)
    counting = threading.Lock()
    seen: dict[str, int] = dict.fromkeys(keys, 0)
    in_work: set[str] = set()
    twice: list[str] = []
    adders = 2
    over = threading.Event()

    def add() -> None:
        for _ in range(rounds):
            for key in keys:
                with counting:
                    added[key] += 1
                broker.add(QUEUE, [key])

    def work(holder: str) -> None:
        broker.register(holder, "s", [QUEUE])
        while True:
            reply = claim_reply(case, holder)
            if not isinstance(reply, Batch):
                if over.is_set():
                    return
                broker.wait([QUEUE], 0.05)
                continue
            for each in reply.claims:
                twice.extend([each.key] if each.key in in_work else [])
                in_work.add(each.key)
                seen[each.key] = added[each.key]
                in_work.discard(each.key)
                assert broker.finish([Finish(QUEUE, each.key, each.nonce, Verdict.OK)]) == [0]

    with ThreadPoolExecutor(6) as pool:
        workers = [pool.submit(work, f"w{number}") for number in range(4)]
        for each in [pool.submit(add) for _ in range(adders)]:
            each.result(LONG_S)
        over.set()
        for each in workers:
            each.result(LONG_S)
    assert twice == []
    assert seen == added
