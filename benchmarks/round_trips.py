"""How often a turn asks Redis, counted by Redis itself: MONITOR of one worker's own client in a real fleet of one.

A no-op turn is asked for by putting the key of an owner at rest into its queue; a one-chunk turn by scaling a
ReplicaSet up by one, or by having one node more where a DaemonSet belongs. Counted is every command that arrives on
the connection on which the worker claims, from the claim that took the key to the finish that ended it; what scripts
do inside, RQ's heartbeats and the waiting on an empty queue are not part of a turn. Only turns count that had claim and
finish to themselves, so nothing is shared out over a batch; and turns are asked for until enough of them were seen, as
a key that some event has queued already takes no further turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import redis
from redis.exceptions import RedisError

from benchmarks.phase import await_rest
from benchmarks.report import Unfit, median, say
from benchmarks.tree import NAMESPACE, Tree, daemonset
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps import script_texts
from oarlock.cluster.resources import DAEMONSETS, NODES

_NAME = "counted"
_LABEL = "bench.oarlock.io/counted"
_ATTEMPTS = 4
"""So many times the turns wanted are asked for at most."""


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


class Call(NamedTuple):
    """A command, by the name of its script or its own. ``ended``: of a finish, how many turns it ended and the task
    of the first, "queue:key".
    """

    name: str
    ended: tuple[int, str] = (0, "")


class Calls:
    """The commands of each connection, from MONITOR in a thread."""

    def __init__(self, client: redis.Redis, epoch: int) -> None:
        self._names = {script_texts.sha(name, epoch): name for name in script_texts.NAMES}
        self._by_address: dict[str, list[Call]] = {}
        self._monitor = client.monitor()  # type: ignore[no-untyped-call]
        self._monitor.__enter__()
        self._thread = threading.Thread(target=self._read, name="monitor", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while True:
                told = self._monitor.next_command()
                if told["client_type"] != "lua":
                    address = f"{told['client_address']}:{told['client_port']}"
                    self._by_address.setdefault(address, []).append(self._call(str(told["command"])))
        except (RedisError, OSError, ValueError):
            return  # closed

    def _call(self, command: str) -> Call:
        words = command.split(" ", 8)  # EVALSHA sha 2 epoch base, then the arguments
        if words[0].upper() != "EVALSHA":
            return Call(words[0].lower())
        name = self._names.get(words[1], "?")
        return Call(name, (int(words[5]), f"{words[6]}:{words[7]}")) if name == "finish" else Call(name)

    def of_claimer(self) -> list[Call]:
        """Everything on the one connection that claims."""
        claimers = [calls for calls in list(self._by_address.values()) if any(call.name == "claim" for call in calls)]
        if len(claimers) != 1:
            raise Unfit(f"{len(claimers)} connections claimed keys, not one")
        return list(claimers[0])

    def close(self) -> None:
        if self._monitor.connection is not None:
            self._monitor.connection.disconnect()
        self._thread.join(1.0)


def turns(calls: Sequence[Call], task: str) -> list[list[str]]:
    """The calls of each turn of ``task``, from its claim to its finish.

    Left out are claims that took nothing, and those that took more than this key.
    """
    found: list[list[str]] = []
    claimed: list[Call] = []
    for call in [*calls, Call("claim")]:  # what follows the last claim may not be complete, but a finish ends it
        if call.name != "claim":
            claimed.append(call)
            continue
        ends = [each.ended for each in claimed if each.name == "finish"]
        if ends == [(1, task)]:
            names = [each.name for each in claimed]
            found.append(names[: names.index("finish") + 1])
        claimed = [call]
    return found


def of_replicaset(count: int) -> Trips:
    """``count`` turns of each sort of a ReplicaSet."""
    with Tree(workers=1, nodes=1, ingestors=1) as tree:
        tree.apply({_NAME: 1})
        replicas = 1

        def one_more() -> None:
            nonlocal replicas
            replicas += 1
            tree.scale(_NAME, replicas)

        return _measure(tree, "replicaset", count, one_more)


def of_daemonset(count: int) -> Trips:
    """``count`` turns of each sort of a DaemonSet."""
    with Tree(workers=1, nodes=1 + _ATTEMPTS * count, ingestors=1) as tree:
        tree.create(DAEMONSETS, [daemonset(_NAME, node_label=_LABEL)])
        nodes = iter(sorted(tree.names(NODES)))

        def one_more() -> None:
            tree.change_nodes([next(nodes)], {"metadata": {"labels": {_LABEL: "yes"}}})

        one_more()
        return _measure(tree, "daemonset", count, one_more)


def _measure(tree: Tree, queue: str, count: int, one_more: Callable[[], None]) -> Trips:
    say(f"{queue}: counting the round trips of {count} no-op turns and {count} turns that create a pod ...")
    task, broker = f"{queue}:{NAMESPACE}/{_NAME}", RedisBroker(tree.redis, tree.keys_epoch)
    tree.await_true(lambda: tree.count_pods() == 1, "the first pod", every_s=0.05)
    await_rest(tree, 60.0)
    calls = Calls(tree.redis, tree.keys_epoch)
    try:
        noop = _seen(tree, calls, task, count, lambda: broker.add(queue, [f"{NAMESPACE}/{_NAME}"]))
        created = [turn for turn in _seen(tree, calls, task, count, one_more, "announce") if "announce" in turn]
    finally:
        calls.close()
    if any("announce" in turn for turn in noop):
        raise Unfit("a turn that should have found nothing to do has announced a write")
    return Trips([len(turn) for turn in noop], [len(turn) for turn in created])


def _seen(
    tree: Tree, calls: Calls, task: str, count: int, ask: Callable[[], object], having: str = "claim"
) -> list[list[str]]:
    """Turns of ``task`` since the beginning, once ``count`` of them hold the call ``having``; ``ask`` brings on one."""
    found: list[list[str]] = []
    for _ in range(_ATTEMPTS * count):
        ask()
        await_rest(tree, 60.0)
        found = turns(calls.of_claimer(), task)
        if sum(having in turn for turn in found) >= count:
            return found
    raise Unfit(f"of {_ATTEMPTS * count} turns asked for only {len(found)} were seen: {found}")
