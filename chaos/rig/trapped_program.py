"""``python -m oarlock.chaos.rig.trapped_program oarlock.cli ARGUMENTS``: the command, with traps in its workers.

The product knows nothing of traps. Here the methods at which the named points lie are wrapped in this process, before
the command runs; what it forks has them wrapped, too. Points in the kernel's hands ("sent") lie right after the bytes
were given to it: they reach the other side though their sender dies.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redis.connection import AbstractConnection

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps.script_runner import ScriptRunner
from oarlock.broker.values.claims import Batch, Idle
from oarlock.chaos.faults.traps import FOLDER, Traps
from oarlock.cluster.http.pool import _Connection
from oarlock.controllers.pods.slow_start import SlowStart
from oarlock.workers.rq.worker import KeyWorker
from oarlock.workers.turn.engine.api import KubeApi
from oarlock.workers.turn.engine.turn_engine import TurnEngine
from oarlock.workers.turn.engine.waiting_turns import WaitingTurns

_SCRIPTS = ("claim", "announce", "finish")
_REQUESTS = (
    (re.compile(rb"POST \S*/pods[? ]"), "create"),
    (re.compile(rb"DELETE \S*/pods/"), "delete"),
    (re.compile(rb"PATCH \S*/replicasets/[^/? ]+[? ]"), "size"),
    (re.compile(rb"PATCH \S*/status[? ]"), "status"),
)
_WRITES = {
    ("create", "pods"): "create-answered",
    ("delete", "pods"): "delete-answered",
    ("patch", "replicasets"): "size-answered",
}


def lay(traps: Traps) -> None:
    """Wrap what lies around the points."""
    _name_the_worker(traps)
    for script in _SCRIPTS:
        _around(RedisBroker, script, traps, f"{script}-before", f"{script}-read")
    _around(RedisBroker, "finish_and_claim", traps, "finish-before", "finish-read")
    _between_command_and_reply(traps)
    _between_request_and_answer(traps)
    _around(WaitingTurns, "next", traps, "waiting")
    _beside(traps)
    _between_waves(traps)


def _around(owner: type, method: str, traps: Traps, before: str, after: str = "") -> None:
    known: Callable[..., Any] = getattr(owner, method)

    def wrapped(self: Any, *args: Any, **options: Any) -> Any:
        traps.reached(before)
        result = known(self, *args, **options)
        if after and not isinstance(result, Idle):
            traps.reached(after)
        return result

    setattr(owner, method, wrapped)


def _name_the_worker(traps: Traps) -> None:
    """Only processes that are workers die, and each under the name that it holds keys by."""
    work = KeyWorker.work

    def wrapped(self: KeyWorker, *args: Any, **options: Any) -> bool:
        assert self.identity is not None
        traps.holder = self.identity.holder
        return work(self, *args, **options)

    KeyWorker.work = wrapped  # type: ignore[method-assign]


def _between_command_and_reply(traps: Traps) -> None:
    run, run_both, script = ScriptRunner._run, ScriptRunner._run_both, [""]
    send = AbstractConnection.send_packed_command

    def run_named(self: ScriptRunner, name: str, *args: Any) -> list[Any]:
        script[0] = name
        try:
            return run(self, name, *args)
        finally:
            script[0] = ""

    def run_both_named(self: ScriptRunner, first: Any, second: Any) -> Any:
        script[0] = first[0]
        try:
            return run_both(self, first, second)
        finally:
            script[0] = ""

    def sent(self: AbstractConnection, command: Any, check_health: bool = True) -> None:
        send(self, command, check_health)  # type: ignore[no-untyped-call]
        if script[0] in _SCRIPTS and any(b"EVALSHA" in each[:40] for each in command):
            traps.reached(f"{script[0]}-sent")

    ScriptRunner._run = run_named  # type: ignore[method-assign]
    ScriptRunner._run_both = run_both_named  # type: ignore[method-assign]
    AbstractConnection.send_packed_command = sent  # type: ignore[method-assign]


def _between_request_and_answer(traps: Traps) -> None:
    """On the I/O thread."""
    send, answered = _Connection.send, KubeApi._sent

    def sent(self: _Connection, request: bytes, waiting: Any, streams: bool = False) -> None:
        send(self, request, waiting, streams)
        for pattern, what in _REQUESTS:
            if pattern.match(request):
                traps.reached(f"{what}-sent")

    async def then(self: KubeApi, write: Any, options: Any) -> Any:
        answer = await answered(self, write, options)
        point = "status-answered" if write.verb == "status" else _WRITES.get((write.verb, write.resource))
        if point:
            traps.reached(point)
        return answer

    _Connection.send = sent  # type: ignore[method-assign]
    KubeApi._sent = then  # type: ignore[method-assign]


def _beside(traps: Traps) -> None:
    claim = TurnEngine.claim

    def wrapped(self: TurnEngine, *args: Any, **options: Any) -> Any:
        found = claim(self, *args, **options)
        if options.get("beside") is not None and isinstance(found, Batch):
            traps.reached("claim-beside")
        return found

    TurnEngine.claim = wrapped  # type: ignore[method-assign]


def _between_waves(traps: Traps) -> None:
    answered = SlowStart.answered

    def wrapped(self: SlowStart, failures: int) -> None:
        answered(self, failures)
        if self.batch:
            traps.reached("between-waves")

    SlowStart.answered = wrapped  # type: ignore[method-assign]


if __name__ == "__main__":
    lay(Traps(Path(os.environ[FOLDER])))
    module, *words = sys.argv[1:]
    sys.argv[:] = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=False)
