"""How often a turn asks Redis, counted by Redis itself: MONITOR of one worker's own client in a real fleet of one.

A no-op turn is asked for by putting the key of a ReplicaSet at rest into the queue; a one-chunk turn by scaling it up
by one. Counted is every command that arrives on the connection on which the worker claims, from the claim that took the
key to the finish that ended it; what scripts do inside, RQ's heartbeats and the waiting on an empty queue are not part
of a turn. Each turn has its claim to itself, so nothing is shared out over a batch.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import redis
from redis.exceptions import RedisError

from benchmarks.report import Unfit, median, say
from benchmarks.tree import NAMESPACE, Tree
from broker import script_texts
from broker.redis_broker import RedisBroker

_NAME = "counted"
_QUEUE = "replicaset"


@dataclass(frozen=True, slots=True)
class Trips:
    """Round trips of each turn seen: of turns that found nothing to do, and of turns that created one pod."""

    noop: list[int]
    one_chunk: list[int]

    def facts(self) -> dict[str, Any]:
        return {
            "redis_round_trips_noop": max(self.noop),
            "redis_round_trips_one_chunk": max(self.one_chunk),
        }

    def rows(self) -> list[tuple[str, str]]:
        rows = (("a turn that finds nothing to do", self.noop), ("a turn that creates one pod", self.one_chunk))
        return [
            (f"{what}, {len(seen)} of them, claimed alone", f"{median(seen):.0f} (at most {max(seen)})")
            for what, seen in rows
        ]


class Calls:
    """The commands of one connection, by the names of our scripts, from MONITOR in a thread."""

    def __init__(self, client: redis.Redis, epoch: int) -> None:
        self._names = {script_texts.sha(name, epoch): name for name in script_texts.NAMES}
        self._by_address: dict[str, list[str]] = {}
        self._monitor = client.monitor()  # type: ignore[no-untyped-call]
        self._monitor.__enter__()
        self._thread = threading.Thread(target=self._read, name="monitor", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while True:
                told = self._monitor.next_command()
                if told["client_type"] == "lua":
                    continue
                words = str(told["command"]).split(" ", 2)
                name = self._names.get(words[1], "?") if words[0].upper() == "EVALSHA" else words[0].lower()
                self._by_address.setdefault(f"{told['client_address']}:{told['client_port']}", []).append(name)
        except (RedisError, OSError, ValueError):
            return  # closed

    def of_claimer(self) -> list[str]:
        """Everything on the one connection that claims."""
        claimers = [calls for calls in self._by_address.values() if "claim" in calls]
        if len(claimers) != 1:
            raise Unfit(f"{len(claimers)} connections claimed keys, not one")
        return list(claimers[0])

    def close(self) -> None:
        if self._monitor.connection is not None:
            self._monitor.connection.disconnect()
        self._thread.join(1.0)


def turns(calls: Sequence[str]) -> list[list[str]]:
    """The calls of each turn, from its claim to its finish; claims that took nothing are left out."""
    found: list[list[str]] = []
    turn: list[str] = []
    for call in calls:
        turn = [call] if call == "claim" else [*turn, call]
        if call == "finish":
            found.append(turn)
            turn = []
    return found


def measure(count: int) -> Trips:
    """``count`` turns of each sort."""
    say(f"counting the round trips of {count} no-op turns and {count} turns that create a pod ...")
    with Tree(workers=1, nodes=1, ingestors=1) as tree:
        broker = RedisBroker(tree.redis, tree.keys_epoch)
        tree.apply({_NAME: 1})
        tree.await_true(lambda: tree.settled({_NAME: 1}), "the first pod")
        calls = Calls(tree.redis, tree.keys_epoch)
        try:
            for _ in range(count):
                tree.await_true(tree.quiet, "rest")
                broker.add(_QUEUE, [f"{NAMESPACE}/{_NAME}"])
            tree.await_true(tree.quiet, "rest")
            noop = turns(calls.of_claimer())
            for replicas in range(2, count + 2):
                tree.scale(_NAME, replicas)
                tree.await_true(partial(tree.settled, {_NAME: replicas}), "the next pod")
            tree.await_true(tree.quiet, "rest")
            everything = turns(calls.of_claimer())
        finally:
            calls.close()
    created = [turn for turn in everything[len(noop) :] if "record" in turn]
    # More no-op turns than asked for: an event may still have been on its way, and woken the key.
    if len(noop) < count or len(created) != count or any("record" in turn for turn in noop):
        raise Unfit(f"{len(noop)} no-op turns and {len(created)} turns with a create were seen, not {count} each")
    return Trips([len(turn) for turn in noop], [len(turn) for turn in created])
