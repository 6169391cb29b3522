"""A fleet under an API budget in virtual time: supervisors that report over the twin, and workers that only send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.workers.budget.buckets import Buckets
from oarlock.workers.budget.lending import Lending
from oarlock.workers.counters.table import Row, Table
from oarlock.workers.process.settings import Settings
from tests.manual_clock import ManualClock

TICK_MS = 10
LANE = "replicaset"


@dataclass(eq=False)
class Worker:
    """``lane``: of its requests; ``per_s``: how many it would send; None: as many as it may."""

    holder: str
    row: Row
    buckets: Buckets
    lane: str = LANE
    per_s: float | None = None
    sent_ms: list[int] = field(default_factory=list)
    owed: float = 0.0
    waiting: bool = False

    def tick(self, now_ms: int) -> None:
        """Send what it would and may."""
        self.owed = 1_000.0 if self.per_s is None else self.owed + self.per_s * TICK_MS / 1_000
        got = self.buckets.take(self.lane, int(self.owed))
        self.owed -= got
        self.sent_ms += [now_ms] * got
        if (self.owed >= 1) != self.waiting:
            self.waiting = not self.waiting
            self.buckets.waits(self.lane, 1 if self.waiting else -1)


class Cut:
    """A broker that can be cut off."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker, self.silent = broker, False

    def budget(self, *args: object, **options: object) -> object:
        if self.silent:
            raise BrokerUnreachable("silent")
        return self._broker.budget(*args, **options)  # type: ignore[arg-type]


class BudgetFleet:
    """``workers``: how many each supervisor has."""

    def __init__(self, *workers: int, qps: float = 100.0, **settings: float) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock.wall_ms)
        self.store.bootstrap(1)
        self.broker = MemoryBroker(self.store, 1)
        self.settings = Settings(fleet_api_qps=qps, **settings)  # type: ignore[arg-type]
        self.supervisors: list[tuple[Lending, Cut, list[Worker]]] = []
        for each in workers:
            self.add(each)

    def add(self, count: int) -> list[Worker]:
        """Another supervisor."""
        at, table, cut = len(self.supervisors), Table(count), Cut(self.broker)
        limits = self.settings.budget
        assert limits is not None
        team = [
            Worker(f"w{at}-{i}", row, Buckets(row, limits.most, self.settings.lease_ms, self.clock.mono_ms))
            for i, row in enumerate(table.rows)
        ]
        for worker in team:
            self.broker.register(worker.holder, f"s{at}", [LANE])
        self.supervisors.append((Lending(cut, self.settings, self.clock), cut, team))  # type: ignore[arg-type]
        return team

    @property
    def workers(self) -> list[Worker]:
        return [worker for _, _, team in self.supervisors for worker in team]

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 1_000 / TICK_MS)):
            for lending, _, team in self.supervisors:
                lending.run_due({worker.holder: worker.row for worker in team})
                for worker in team:
                    worker.tick(self.clock.mono_ms())
            self.clock.advance(TICK_MS)

    def rate(self, seconds: float, workers: Sequence[Worker] | None = None) -> float:
        """Requests a second over the last so many."""
        since_ms = self.clock.mono_ms() - seconds * 1_000
        of = self.workers if workers is None else workers
        return sum(at >= since_ms for worker in of for at in worker.sent_ms) / seconds

    def busiest_second(self) -> int:
        """The most requests in any window of a second."""
        times = sorted(at for worker in self.workers for at in worker.sent_ms)
        most = first = 0
        for at, time_ms in enumerate(times):
            while times[first] <= time_ms - 1_000:
                first += 1
            most = max(most, at - first + 1)
        return most
