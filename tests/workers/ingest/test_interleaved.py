"""Ingestors interleaved by a seed, killed between any two of their calls to Redis, answers lost, watches cut, history
gone, Redis emptied. After every step the cache is the API at its watermark; at the end no key was lost.

OARLOCK_TEST_SEEDS=500 runs more seeds; a failure names its seed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable

import pytest
import redis

from oarlock.workers.ingest.lister_watcher import End, Ending
from oarlock.workers.ingest.reflector import REST_MS, ReflectorState
from oarlock.workers.process.settings import Settings
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, RandomCluster, pod_json, replicaset_json
from tests.workers.ingest.ingest_rig import Killed, Process, Rig

SEEDS = range(int(os.environ.get("OARLOCK_TEST_SEEDS", "10")))
STEPS = 350
QUICK = Settings(lease_ms=600, renew_every_ms=100, request_timeout_ms=200, send_margin_ms=100)
"""A drain of two seconds, so that a run sees several epochs open."""


class Schedule:
    """One seeded run. ``count`` tells what happened in it."""

    def __init__(self, rig: Rig, processes: int) -> None:
        self.rig, self.rng = rig, rig.rng
        self.cluster = RandomCluster(rig.api, rig.rng)
        self.count: Counter[str] = Counter()
        self._started = 0
        for _ in range(processes):
            self.start()
        self.marks: dict[tuple[int, str], int] = {}

    def start(self) -> None:
        self._started += 1
        self.rig.start(f"p{self._started}")

    def run(self, steps: int, losses: bool) -> None:
        acts: list[tuple[int, Callable[[], None]]] = [
            (30, self.round),
            (12, self.change),
            (12, self.arrive),
            (6, self.pass_time),
            (5, self.work),
            (3, self.kill),
            (4, self.lose_answer),
            (4, self.cut_watch),
            (2, self.cut_history),
            (2, self.disturb_list),
            (5, self.restart),
            (2, self.bookmarks),
            (3, self.overtake),
            (int(losses), self.flush),  # few: a drain takes a good part of a run
        ]
        for _ in range(steps):
            act = self.rng.choices([each for _, each in acts], [weight for weight, _ in acts])[0]
            self.count[act.__name__] += 1
            act()
            self.check()

    def check(self) -> None:
        self.count["checked"] += self.rig.check_cache()
        number = self.rig.server.epoch().epoch
        for resource in (PODS, REPLICASETS):
            mark = int(self.rig.server.mark(number, resource) or 0)
            assert mark >= self.marks.get((number, resource), 0), "a watermark went back"
            self.marks[number, resource] = mark

    def heal(self) -> None:
        """No more faults: everything arrives."""
        self.rig.api.put(REPLICASETS, replicaset_json("x", "last", "rs-last", labels={"app": "last"}))
        self.rig.api.put(PODS, pod_json("x", "last-orphan", "pod-last", labels={"app": "last"}))
        while len(self.rig.processes) < 2:
            self.start()
        for process in self.rig.processes:
            process.client.fault = None
        for _ in range(60):
            for process in self.rig.processes:
                process.catch_up()
                for source in process.sources.values():
                    source.answers = source.bookmarks = True
            self.rig.run_for(500, step_ms=100)
            self.check()
        self.rig.work()

    # -- acts ------------------------------------------------------------------------------------------------------

    def process(self) -> Process | None:
        return self.rng.choice(self.rig.processes) if self.rig.processes else None

    def round(self) -> None:
        if process := self.process():
            self._rounds(process, self.rng.randrange(1, 6))

    def _rounds(self, process: Process, rounds: int) -> None:
        try:
            for _ in range(rounds):
                process.round()
        except Killed:
            self.rig.processes.remove(process)
        self.count["stood by"] += process.reflectors[PODS].state is ReflectorState.STANDBY

    def change(self) -> None:
        for _ in range(self.rng.randrange(1, 5)):
            self.cluster.change()

    def arrive(self) -> None:
        """A part of what has happened reaches a process; its two resources are not in step."""
        if process := self.process():
            source = process.sources[self.rng.choice((PODS, REPLICASETS))]
            source.visible = self.rng.randint(min(source.visible, self.rig.api.rv), self.rig.api.rv)

    def pass_time(self) -> None:
        self.rig.advance(self.rng.choice((1, 5, 20, 200, 1_000, 3_000)))

    def work(self) -> None:
        self.count["turns"] += self.rig.work()

    def kill(self) -> None:
        if process := self.process():
            self._arm(process, Killed())

    def lose_answer(self) -> None:
        if process := self.process():
            self._arm(process, redis.ConnectionError("lost"))

    def _arm(self, process: Process, error: BaseException) -> None:
        """At one of the next commands, before or after it was carried out."""
        left, after = [self.rng.randrange(8)], self.rng.random() < 0.5

        def fault(done: bool) -> None:
            if left[0] == 0 and done == after:
                process.client.fault = None
                self.count["lost" if isinstance(error, redis.ConnectionError) else "killed"] += 1
                raise error
            left[0] -= done

        process.client.fault = fault

    def cut_watch(self) -> None:
        if process := self.process():
            how = self.rng.choice((Ending.CLOSED, Ending.BROKEN, Ending.DEAF))
            process.sources[self.rng.choice((PODS, REPLICASETS))].cut(End(how, "cut"))

    def cut_history(self) -> None:
        self.rig.api.floor[self.rng.choice((PODS, REPLICASETS))] = self.rig.api.rv

    def disturb_list(self) -> None:
        if process := self.process():
            source = process.sources[self.rng.choice((PODS, REPLICASETS))]
            source.answers = self.rng.random() < 0.7
            if source.listing is not None and self.rng.random() < 0.5:
                source.listing.begin_afresh()
            elif source.listing is not None:
                source.listing.cut = End(Ending.BROKEN, "cut")

    def restart(self) -> None:
        if len(self.rig.processes) < 3:
            self.start()

    def bookmarks(self) -> None:
        if process := self.process():
            process.sources[self.rng.choice((PODS, REPLICASETS))].bookmarks = self.rng.random() < 0.5

    def overtake(self) -> None:
        """Bursts that one process applies before another hears of them, so that this one rests, or stands by."""
        for _ in range(6):
            self.change()
            for process in self.rig.processes[:2]:
                process.sources[PODS].catch_up()
                self._rounds(process, 8)
            self.rig.advance(REST_MS)

    def flush(self) -> None:
        self.rig.server.admin.flushall()
        self.rig.server.clock(self.rig.clock.wall_ms())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("losses", [False, True], ids=["one-epoch", "with-losses"])
def test_any_interleaving(make_rig: Callable[..., Rig], seed: int, losses: bool) -> None:
    rig = make_rig(seed=seed, settings=QUICK, standby_events=3)
    schedule = Schedule(rig, processes=random.Random(seed).choice((1, 2, 3)))
    if seed % 2:
        rig.open()
    schedule.run(STEPS, losses)
    schedule.heal()
    number = rig.server.epoch().epoch
    for resource in (PODS, REPLICASETS):
        last = max([event[0] for event in rig.api.events[resource]], default=0)
        assert int(rig.server.mark(number, resource) or 0) >= last
    assert rig.check_cache() == 2
    assert rig.check_turns() > 0
    assert schedule.count["killed"] + schedule.count["lost"] > 0, "a run without faults proves nothing"
    assert schedule.count["checked"] > 60
    print(f"seed {seed}: {dict(schedule.count)}, epochs: {number}")
