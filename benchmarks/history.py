"""What it costs Redis that keys remember their turns: claim and finish of no-op turns, with histories and without.

Two servers get the same calls in turns, block by block: one has the scripts as they are, the other has them with
nothing in the functions that read and write histories. The CPU time is that of Redis's main thread, as Redis counts it
itself. Every key has turns by one worker and another until it remembers all that it may. Then three cases: turns that
do nothing, turns of which every other one writes a status, and whole turns of a worker over ReplicaSets at rest, of
which the worker's CPU time counts too.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import redis

from benchmarks import planted, report
from benchmarks.pods import Costs, Reader
from benchmarks.report import Unfit, median, say, spread
from oarlock.broker.connection.client import connect
from oarlock.broker.steps import script_texts
from oarlock.broker.values.claims import Batch, ClaimLimits, LoadSpec
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis

QUEUE = "replicaset"
SPECS = [LoadSpec(QUEUE, "replicasets")]
BATCH, PODS = 32, 3
LIMITS = ClaimLimits(lease_ms=5_000, drain_ms=14_000, keys_max=BATCH)
HOLDERS = [f"w-host-1a2b3c4d-{n}" for n in range(4)]
NOOP, MIXED = ("",), ("", "status")
WITH, WITHOUT = 1, 2
"""Epochs of the two: a script is known by its epoch."""
WORK = re.compile(r"^local function (read_turns|end_turn|keep_turns)\((.*?)\)\n.*?^end$", re.DOTALL | re.MULTILINE)


def without_histories(stamped: Callable[..., str]) -> Callable[..., str]:
    """The texts of scripts, those of one epoch with nothing in what reads and writes histories."""

    def emptied(name: str, of: int, *clock: str) -> str:
        text = stamped(name, of, *clock)
        return WORK.sub(r"local function \1(\2) return {} end", text) if of == WITHOUT else text

    return emptied


class Side:
    """One of the two servers."""

    def __init__(self, client: redis.Redis, number: int, keys: int) -> None:
        self.client, self.broker, self.round = client, planted.plant(client, {"web": (keys, PODS)}, number), 0
        planted.open_turns(self.broker)
        self.keys, self._nonces = planted.keys("web", keys), count()
        for holder in HOLDERS:
            self.broker.register(holder, "host", [QUEUE])
        self._reader = Reader(self.broker, HOLDERS[0], in_full=False)
        self._reader.drain(Costs())  # what planting queued

    def turns(self, rounds: int, kinds: Sequence[str]) -> float:
        """CPU time of Redis for the claim and the finish of a turn, in us. Each key has a turn a round."""
        spent = 0.0
        for _ in range(rounds):
            self.round += 1
            self.broker.add(QUEUE, self.keys, why="set pods/shop/web-0000-4tts7")
            begun = self._cpu_us()
            for at in range(0, len(self.keys), BATCH):
                self._batch(HOLDERS[(self.round + at // BATCH) % len(HOLDERS)], kinds[self.round % len(kinds)])
            spent += self._cpu_us() - begun
        return spent / rounds / len(self.keys)

    def whole_turns(self, rounds: int, _kinds: Sequence[str]) -> float:
        """CPU time of Redis and of a worker for the whole of a turn that finds nothing to do, in us."""
        spent = 0.0
        for _ in range(rounds):
            self.broker.add(QUEUE, self.keys, why="set pods/shop/web-0000-4tts7")
            begun_us = self._cpu_us() + time.process_time_ns() / 1e3
            if self._reader.drain(Costs()) != len(self.keys):
                raise Unfit("not every key had its turn")
            spent += self._cpu_us() + time.process_time_ns() / 1e3 - begun_us
        return spent / rounds / len(self.keys)

    def bytes_of_histories(self) -> float:
        """The median."""
        halves = (self.broker.keys.turns(QUEUE), self.broker.keys.history(QUEUE))
        texts = [self.client.hmget(half, self.keys) for half in halves]
        return median(len(turns or b"") + len(history or b"") for turns, history in zip(*texts, strict=True))

    def _batch(self, holder: str, did: str) -> None:
        batch = self.broker.claim(holder, f"n{next(self._nonces)}", SPECS, LIMITS)
        if not isinstance(batch, Batch) or len(batch.claims) != BATCH:
            raise Unfit(f"a claim did not get {BATCH} keys")
        if (
            min(self.broker.finish([Finish(QUEUE, one.key, one.nonce, Verdict.OK, did=did) for one in batch.claims]))
            < 0
        ):
            raise Unfit("a lock was lost")

    def _cpu_us(self) -> float:
        facts = self.client.info("cpu")
        return 1e6 * (float(facts["used_cpu_user_main_thread"]) + float(facts["used_cpu_sys_main_thread"]))


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    script_texts.stamped = without_histories(script_texts.stamped)
    with ExitStack() as ended:
        sides = {number: Side(_server(ended), number, options.keys) for number in (WITH, WITHOUT)}
        for side in sides.values():
            side.turns(options.before, MIXED)
        if sides[WITHOUT].bytes_of_histories() or not sides[WITH].bytes_of_histories():
            raise Unfit("the two do not differ in what they remember")
        facts: dict[str, Any] = {"benchmark": "history", "keys": options.keys, "blocks": options.blocks}
        rows = []
        cases = (("noop", NOOP, Side.turns), ("mixed", MIXED, Side.turns), ("whole", NOOP, Side.whole_turns))
        for title, kinds, turns in cases:
            us = _blocks(sides, options, title, kinds, turns)
            cost = [more - less for more, less in zip(us[WITH], us[WITHOUT], strict=True)]
            share = 100 * median(cost) / median(us[WITHOUT])
            rows.append((title, spread(us[WITH], 2), spread(us[WITHOUT], 2), spread(cost, 2), f"{share:.1f} %"))
            facts[title] = [round(each, 2) for each in (median(us[WITH]), median(us[WITHOUT]), median(cost), share)]
        facts["history_bytes"] = round(sides[WITH].bytes_of_histories())
    title = (
        f"CPU, us a turn: of Redis for claim and finish; whole: of Redis and a worker for all of it; histories of"
        f" {facts['history_bytes']} bytes; median [least-most]"
    )
    report.show(title, ("turns", "with histories", "without", "the difference", "of a turn"), rows)
    report.finish(facts)


def _blocks(
    sides: dict[int, Side],
    options: argparse.Namespace,
    title: str,
    kinds: Sequence[str],
    turns: Callable[[Side, int, Sequence[str]], float],
) -> dict[int, list[float]]:
    us: dict[int, list[float]] = {WITH: [], WITHOUT: []}
    for number in range(1, options.blocks + 1):
        for which in sorted(sides, reverse=number % 2 == 0):
            us[which].append(turns(sides[which], options.rounds, kinds))
        say(f"{title} {number}: {us[WITH][-1]:.2f} us a turn with histories, {us[WITHOUT][-1]:.2f} without")
    return us


def _server(ended: ExitStack) -> redis.Redis:
    folder = ended.enter_context(tempfile.TemporaryDirectory(prefix="oarlock-bench-"))
    return connect(ended.enter_context(EmbeddedRedis(Path(folder) / "redis")).url("admin"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    add = parser.add_argument
    add("--keys", type=int, default=1_024, help=f"a multiple of {BATCH}, the keys of a claim")
    add("--before", type=int, default=80, help="turns of each key before the first block")
    add("--rounds", type=int, default=8, help="turns of each key in a block")
    add("--blocks", type=int, default=15)
    return parser


if __name__ == "__main__":
    report.main(main)
