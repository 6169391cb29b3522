"""The broker in memory: the same steps, results and exceptions as ``RedisBroker``, for tests and simulations.

One ``MemoryStore`` stands for the Redis server. A ``MemoryBroker`` is one process's view of one epoch of it, so a view
of an earlier epoch is refused as Redis would refuse it. Time is the store's clock. Not for threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from oarlock.broker.budget import BudgetLimits, Lent, Report
from oarlock.broker.memory import announce, budget, cache, claim, finish, leases
from oarlock.broker.memory.state import EpochState
from oarlock.broker.memory.steering import drains, limits, pauses
from oarlock.broker.pauses import Paused
from oarlock.broker.values.claims import Batch, Claim, Claimed, ClaimLimits, Idle, LoadSpec
from oarlock.broker.values.errors import EpochOver
from oarlock.broker.values.events import Compared, Event, Ingested
from oarlock.broker.values.objects import PAGE, Cached, Delta, Page, PageLimits, PageMark
from oarlock.broker.values.turns import Entry, Finish, NameTaken


class MemoryStore:
    """The data that a Redis server would have. ``clock`` gives ms; it may jump, as Redis's own can."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.epoch = 0
        self.state = EpochState()

    def bootstrap(self, number: int) -> None:
        """Begin an epoch: empty, phase DRAIN. Handles of another epoch get EpochOver from now on."""
        self.epoch, self.state = number, EpochState()

    def flush(self) -> None:
        """Lose everything, as FLUSHALL, a restart or a failover to nothing would."""
        self.epoch, self.state = 0, EpochState()


class MemoryBroker:
    """``broker.protocol.Broker`` on a ``MemoryStore``."""

    def __init__(self, store: MemoryStore, epoch: int) -> None:
        self.epoch = epoch
        self.store = store

    def _enter(self, step: str) -> tuple[EpochState, int]:
        if self.store.epoch != self.epoch:
            raise EpochOver(f"{step}: epoch {self.epoch} is over")
        return self.store.state, self.store.clock()

    # -- the work queue ------------------------------------------------------------------------------------------

    def add(self, queue: str, key_names: Iterable[str], *, unpark: bool = False, why: str = "asked") -> int:
        state, now = self._enter("add")
        q, added = state.queue(queue), 0
        for key in key_names:
            if unpark and q.parked.pop(key, None) is not None:
                q.state.pop(key, None)
                q.crashes.pop(key, None)
            added += state.add(queue, key, why, now)
        state.wake(now)
        return added

    def add_after(self, queue: str, key: str, delay_ms: int) -> None:
        state, now = self._enter("add_after")
        state.add_after(queue, key, delay_ms, now)
        state.wake(now)

    def add_rate_limited(self, queue: str, key: str) -> int:
        state, now = self._enter("add_after")
        delay_ms = state.back_off_ms(queue, key, now)
        state.add_after(queue, key, delay_ms, now)
        state.wake(now)
        return delay_ms

    def forget(self, queue: str, key: str) -> None:
        state, _ = self._enter("forget")
        state.queue(queue).failures.pop(key, None)

    def num_requeues(self, queue: str, key: str) -> int:
        return self.store.state.queue(queue).failures.get(key, 0) if self.store.epoch == self.epoch else 0

    def register(self, holder: str, supervisor: str, queues: Sequence[str]) -> bool:
        state, now = self._enter("register")
        if supervisor in state.drains:
            state.drains[supervisor] = now
            return False
        state.holders[holder], state.serves[holder], state.seen[holder] = (supervisor, now), tuple(queues), now
        state.leaving.discard(holder)
        state.registered.update(queues)
        return True

    def claim(self, holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits) -> Batch | Idle:
        return claim.claim(*self._enter("claim"), holder, nonce, specs, limits)

    def load(self, batch: Batch) -> Batch:
        return cache.load(self._enter("load")[0], batch)

    def local_cache(self, resource: str) -> Delta:
        return cache.local_cache(self._enter("local_cache")[0], resource)

    def announce(self, claim: Claim, owner_uid: str, entries: Sequence[Entry], *, lease_ms: int) -> list[NameTaken]:
        return announce.announce(*self._enter("announce"), claim, owner_uid, entries, lease_ms)

    def finish(self, turns: Sequence[Finish]) -> list[int]:
        return finish.finish(*self._enter("finish"), turns)

    def finish_and_claim(
        self, turns: Sequence[Finish], holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits
    ) -> tuple[list[int], Claimed]:
        failures, found = self.finish(turns), self.claim(holder, nonce, specs, limits)
        return failures, lambda: found

    def release(self, holder: str, *, blamed: str = "", ended: str = "") -> list[str]:
        return leases.release(*self._enter("release"), holder, blamed, ended)

    def reclaim(self, limit: int = 200) -> list[str]:
        return leases.reclaim(*self._enter("reclaim"), limit)

    def renew(self, holders: Sequence[str], *, lease_ms: int) -> list[str]:
        return leases.renew(*self._enter("renew"), holders, lease_ms)

    def budget(self, limits: BudgetLimits, reports: Sequence[Report], *, lease_ms: int) -> Lent:
        return budget.budget(*self._enter("budget"), lease_ms, limits, reports)

    def due(self, limit: int = 500) -> tuple[int, int | None]:
        state, now = self._enter("due")
        moved = 0
        waiting = pauses.end_pauses(state, now)
        for queue in sorted(state.registered):
            q = state.queue(queue)
            for entries in filter(None, (q.delayed, q.parked)):
                ready = sorted((at, key) for key, at in entries.items() if at <= now)[:limit]
                for _, key in ready:
                    del entries[key]
                    if entries is q.parked:
                        q.state.pop(key, None)
                    state.add(queue, key, "parked" if entries is q.parked else "due", now)
                moved += len(ready)
                waiting += entries.values()
        returned = pauses.return_held(state, now)
        advanced, times = limits.advance_lines(state, now, limit)
        returned, waiting = returned + advanced, waiting + times
        state.wake(now)
        return moved + returned, max(0, min(waiting) - now) if waiting else None

    def steer(self, act: str, scope: str, note: str, *, for_ms: int | None = None) -> bool | None:
        return pauses.steer(*self._enter("steer"), act, scope, note, for_ms)

    def drain(self, act: str, name: str, note: str) -> list[str] | None:
        return drains.drain(*self._enter("drain"), act, name, note)

    def acts(self, limit: int = 50) -> list[str]:
        return pauses.acts(self._enter("acts")[0], limit)

    def pauses(self) -> Paused:
        state, _ = self._enter("pauses")
        return Paused(dict(state.pauses), state.pauses_kept)

    def wait(self, queues: Sequence[str], timeout_s: float = 1.0) -> str | None:
        """Take a token if there is one. It never blocks: the test that moves the clock decides when to ask again."""
        state, _ = self._enter("wait")
        for queue in queues:
            if state.queue(queue).wake_tokens:
                state.queue(queue).wake_tokens -= 1
                return queue
        return None

    def wait_timer(self, timeout_s: float = 1.0) -> bool:
        """As ``wait``, for the token of the timer."""
        state, _ = self._enter("wait")
        found, state.timer_tokens = state.timer_tokens > 0, max(0, state.timer_tokens - 1)
        return found

    # -- the object cache ----------------------------------------------------------------------------------------

    def ingest(
        self, resource: str, from_rv: str, to_rv: str, events: Sequence[Event], *, told: bool = False
    ) -> Ingested:
        done = cache.ingest(*self._enter("ingest"), resource, from_rv, to_rv, events)
        return done if told or not done.woken else done._replace(woken=())

    def compare(self, resource: str, generation: str, versions: Sequence[tuple[str, str]]) -> Compared:
        state, _ = self._enter("compare")
        return cache.compare(state, resource, generation, versions)

    def pass_to(self, resource: str, from_rv: str, to_rv: str) -> bool:
        state, now = self._enter("ingest")
        if state.watermark.get(resource) != from_rv:
            return False
        return cache.ingest(state, now, resource, from_rv, to_rv, []).verdict == "OK"

    def stage(self, resource: str, generation: str, events: Sequence[Event], *, lock_ms: int = 30_000) -> bool:
        return cache.stage(*self._enter("stage"), resource, generation, events, lock_ms)

    def send_stage(
        self, resource: str, generation: str, parts: Sequence[Sequence[Event]], *, lock_ms: int = 30_000
    ) -> Callable[[], bool]:
        staged = [self.stage(resource, generation, events, lock_ms=lock_ms) for events in parts]
        return lambda: all(staged)

    def commit_list(self, resource: str, generation: str, rv: str) -> Ingested:
        return cache.commit_list(*self._enter("commit_list"), resource, generation, rv)

    def republish(self, chunk: int = 500) -> int:
        return cache.republish(*self._enter("republish"), chunk)

    def report(self, ingestor: str, text: str) -> None:
        leases.report(*self._enter("report"), ingestor, text)

    def open(self, resources: Sequence[str]) -> str:
        state, now = self._enter("open")
        for resource in resources:
            if resource not in state.watermark:
                return resource
        state.phase = "HELD" if state.pause_reason else "OPEN"
        state.wake_all(now)
        return ""

    def pause(self, reason: str) -> str:
        state, now = self._enter("pause")
        state.pause_reason = reason
        if reason and state.phase == "OPEN":
            state.phase = "HELD"
        elif not reason and state.phase == "HELD":
            state.phase = "OPEN"
            state.wake_all(now)
        return state.phase

    def look(self, resource: str, *, ids: Sequence[str] = (), index: Sequence[str] = ()) -> tuple[str, list[Cached]]:
        return cache.look(self._enter("look")[0], resource, ids, index)

    def look_apart(self, resource: str, name: str) -> bytes:
        state = self._enter("look")[0]
        part = state.apart.get((resource, cache.generation(state, resource)), {}).get(name)
        return part.content if part is not None else b""

    def page(
        self, resource: str, entries: Sequence[str], mark: PageMark | None = None, limits: PageLimits = PAGE
    ) -> Page | None:
        return cache.page(self._enter("page")[0], resource, entries, mark, limits)

    def watermark(self, resource: str) -> str | None:
        return self.store.state.watermark.get(resource) if self.store.epoch == self.epoch else None

    def watermarks(self) -> dict[str, str]:
        return dict(self._enter("watermarks")[0].watermark)
