"""From the SIGKILL of a worker to the next claim of the key it held, by another worker.

On a real `oarlock up` with two workers. Each time a new ReplicaSet is created; the API server takes its time with the
answer to a create (a fault on demand), so that the worker that claimed the key is in the middle of its writes when it
is killed, at a random moment, while the other one is idle. The start is the wall clock just before the system call; the
end is the time Redis itself gives (MONITOR) to the command with which the next claim wrote its lock, another nonce of
another holder. Both come from the clock of the same machine; nothing of the product's own is asked. A kill after which
the key was with its worker no longer, or before which the other was not idle, is not counted and done again.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import report
from benchmarks.audited import await_audited
from benchmarks.converge import creations
from benchmarks.report import Unfit, percentile, say
from benchmarks.tree import NAMESPACE, Tree
from oarlock.broker.expectations import Expectations
from oarlock.sandbox.demo.takeover import Monitor

_QUEUE = "replicaset"
_LOCK = re.compile(r"holder=(\S+) nonce=(\S+)")
PODS = 4
TAKEOVER_LIMIT_S = 10.0
SLOW_CREATES: dict[str, Any] = {
    "action": "delayBeforeCommit",
    "verbs": ["create"],
    "resources": ["pods"],
    "userAgent": "(worker)",
    "delayMs": [150, 150],
}


@dataclass(frozen=True, slots=True)
class Kill:
    """One that counts: ms to the next claim, and how many writes had no answer when it came."""

    ms: float
    pending: int


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    say(f"{options.kills} kills, seed {options.seed}")
    moments = random.Random(options.seed)
    kills: list[Kill] = []
    began_s, attempts = time.time(), 0
    with Tree(workers=2, faults=True) as tree:
        tree.admin(SLOW_CREATES)
        tree.apply({})
        monitor = Monitor(tree.redis, (_QUEUE,), tree.keys)
        try:
            while len(kills) < options.kills:
                attempts += 1
                if attempts > 2 * options.kills + 10:
                    raise Unfit(f"only {len(kills)} of {attempts} kills could be counted")
                kill = _kill(tree, monitor, f"web-{attempts:04d}", moments.uniform(0.0, 0.1))
                if kill is not None:
                    kills.append(kill)
                    if len(kills) % 20 == 0:
                        said = [each.ms for each in kills]
                        say(f"{len(kills)} kills: p50 {percentile(said, 0.5):.1f} ms, most {max(said):.1f} ms")
        finally:
            monitor.close()
        sets = {f"web-{number:04d}": PODS for number in range(1, attempts + 1)}
        tree.admin(None)
        tree.await_true(lambda: tree.settled(sets), "all ReplicaSets", 120.0, 0.2)
        await_audited(tree, tree.state.audit_log)
        created, _ = creations(tree.state.audit_log, began_s)
    _report(kills, attempts, created - PODS * attempts)


def _kill(tree: Tree, monitor: Monitor, name: str, after_s: float) -> Kill | None:
    """Create a ReplicaSet, kill the worker that creates its pods; None where that was not what came about."""
    # Owners of before are looked at once more, D after their kill: that is no reason to wait for it.
    tree.await_true(lambda: tree.quiet(but_delayed=True) and len(_idle(tree)) == 2, "two idle workers")
    monitor.claims.clear()
    key = f"{NAMESPACE}/{name}"
    tree.apply({name: PODS})
    tree.await_true(lambda: _pending(tree, key) > 0, f"creates of {key}", every_s=0.001)
    time.sleep(after_s)
    lock, pending = _lock(tree, key), _pending(tree, key)
    pid = tree.workers().get(lock[0])
    if not pending or pid is None or not set(_idle(tree)) - {lock[0]}:
        return None
    killed_s = time.time()
    os.kill(pid, signal.SIGKILL)
    task, limit = f"{_QUEUE}:{key}", time.monotonic() + TAKEOVER_LIMIT_S
    while time.monotonic() < limit:
        for at_s, claimed, nonce, holder in list(monitor.claims):
            if claimed == task and nonce != lock[1]:
                # Claimed anew before the kill, or not yet released by it: the worker had finished in between.
                return Kill((at_s - killed_s) * 1000, pending) if at_s > killed_s and holder != lock[0] else None
        time.sleep(0.002)
    raise Unfit(f"{key} was not claimed again within {TAKEOVER_LIMIT_S:.0f} s after its worker was killed")


def _idle(tree: Tree) -> list[str]:
    """Workers that wait in Redis for a key."""
    now_ms = int(time.time() * 1000)
    waiting = {_text(name) for name in tree.redis.zrangebyscore(tree.keys.of("waiters"), now_ms, "+inf")}
    return [name for name in tree.workers() if name in waiting]


def _lock(tree: Tree, key: str) -> tuple[str, str]:
    """Holder and nonce; "" where there is no lock."""
    found = _LOCK.search(_text(tree.redis.hget(tree.keys.locks(_QUEUE), key) or b""))
    return (found[1], found[2]) if found else ("", "")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _pending(tree: Tree, key: str) -> int:
    """Announced creates without an answer."""
    fields = [word for pair in tree.redis.hgetall(tree.keys.expect(_QUEUE, key)).items() for word in pair]
    record = Expectations.parse(fields)
    return len(record.creates) if record is not None else 0


def _report(kills: Sequence[Kill], attempts: int, over_creations: int) -> None:
    times = [kill.ms for kill in kills]
    shares = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "max_ms": 1.0}
    figures = {name: round(percentile(times, share), 2) for name, share in shares.items()}
    rows = [(name.removesuffix("_ms"), f"{value:.1f}") for name, value in figures.items()]
    report.show(f"from SIGKILL to the next claim of the key, {len(kills)} kills", ("", "ms"), rows)
    report.finish(
        {
            "benchmark": "failover",
            **figures,
            "kills": len(kills),
            "attempts": attempts,
            "writes_in_flight": sum(kill.pending for kill in kills),
            "over_creations": over_creations,
        }
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__)
    add = parser.add_argument
    add("--kills", type=int, default=200)
    add("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    report.main(main)
