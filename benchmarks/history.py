"""What it costs Redis that keys remember their turns: claim and finish of no-op turns, with histories and without.

Two servers get the same calls in turns, block by block: one has the scripts as they are, the other has them with
nothing in the functions that read and write histories. The CPU time is that of Redis's main thread, as Redis counts it
itself. Every key has turns by one worker and another until it remembers all that it may. Then two cases: turns that do
nothing, and turns of which every other one writes a status.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import redis

from benchmarks import report
from benchmarks.report import Unfit, median, say, spread
from oarlock.broker import epoch, script_texts
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values import Batch, ClaimLimits, Finish, LoadSpec, Verdict
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis

QUEUE = "replicaset"
SPECS = [LoadSpec(QUEUE, "replicasets")]
BATCH = 32
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
        return WORK.sub(r"local function \1(\2) end", text) if of == WITHOUT else text

    return emptied


class Side:
    """One of the two servers."""

    def __init__(self, client: redis.Redis, number: int, keys: int) -> None:
        epoch.bootstrap(client, number)
        self.client, self.broker, self.round = client, RedisBroker(client, number), 0
        self.keys, self._nonces = [f"shop/web-{n:04d}" for n in range(keys)], count()
        self.broker.open([])
        for holder in HOLDERS:
            self.broker.register(holder, "host", [QUEUE])

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
        for title, kinds in (("noop", NOOP), ("mixed", MIXED)):
            us = _blocks(sides, options, title, kinds)
            cost = [more - less for more, less in zip(us[WITH], us[WITHOUT], strict=True)]
            rows.append((title, spread(us[WITH], 2), spread(us[WITHOUT], 2), spread(cost, 2)))
            facts |= {
                f"redis_us_{title}": round(median(us[WITH]), 2),
                f"redis_us_{title}_without": round(median(us[WITHOUT]), 2),
                f"history_us_{title}": round(median(cost), 2),
            }
        facts["history_bytes"] = round(sides[WITH].bytes_of_histories())
    title = (
        f"Redis's CPU, us a turn, claim and finish; histories of {facts['history_bytes']} bytes; median [least-most]"
    )
    report.show(title, ("turns", "with histories", "without", "the difference"), rows)
    report.finish(facts)


def _blocks(
    sides: dict[int, Side], options: argparse.Namespace, title: str, kinds: Sequence[str]
) -> dict[int, list[float]]:
    us: dict[int, list[float]] = {WITH: [], WITHOUT: []}
    for number in range(1, options.blocks + 1):
        for which in sorted(sides, reverse=number % 2 == 0):
            us[which].append(sides[which].turns(options.rounds, kinds))
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
