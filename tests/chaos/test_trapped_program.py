"""The program whose workers meet traps: every named point lies where its name says, and is reached there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from redis.connection import AbstractConnection

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps.script_runner import ScriptRunner
from oarlock.broker.values.claims import Batch, Idle
from oarlock.chaos.faults.points import POINTS
from oarlock.chaos.faults.traps import Traps
from oarlock.chaos.rig import trapped_program
from oarlock.cluster.answer import Answer
from oarlock.cluster.http.pool import _Connection
from oarlock.controllers.pods.slow_start import SlowStart
from oarlock.workers.rq.worker import KeyWorker
from oarlock.workers.turn.engine.api import KubeApi
from oarlock.workers.turn.engine.turn_engine import TurnEngine
from oarlock.workers.turn.engine.waiting_turns import WaitingTurns
from oarlock.workers.turn.steps import Write

BATCH = Batch("replicaset", [], {})
PODS = b"/api/v1/namespaces/a/pods"
SETS = b"/apis/apps/v1/namespaces/a/replicasets"


class Log:
    """In place of traps: the order of what was reached, and of what was done."""

    holder = "w-1"

    def __init__(self) -> None:
        self.lines: list[str] = []

    def reached(self, point: str) -> None:
        assert point in POINTS
        self.lines.append(point)

    def doing(self, what: str, result: Any = None) -> Callable[..., Any]:
        def done(*_: Any, **__: Any) -> Any:
            self.lines.append(what)
            return result

        return done


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """The points are laid around methods that do nothing; afterwards all is as it was."""
    log = Log()

    async def answered(*_: Any) -> Answer:
        log.lines.append("answer")
        return Answer(201)

    monkeypatch.setattr(KeyWorker, "work", KeyWorker.work)
    for script, result in (("claim", BATCH), ("announce", []), ("finish", [0]), ("finish_and_claim", ([0], None))):
        monkeypatch.setattr(RedisBroker, script, log.doing(script, result))
    monkeypatch.setattr(AbstractConnection, "send_packed_command", log.doing("command"))
    monkeypatch.setattr(ScriptRunner, "_run", lambda self, name, *args: self.run_it(name, *args))
    monkeypatch.setattr(ScriptRunner, "_run_both", lambda self, first, second: self.run_it(first[0]))
    monkeypatch.setattr(_Connection, "send", log.doing("request"))
    monkeypatch.setattr(KubeApi, "_sent", answered)
    monkeypatch.setattr(WaitingTurns, "next", log.doing("wait"))
    monkeypatch.setattr(TurnEngine, "claim", log.doing("claim", BATCH))
    monkeypatch.setattr(SlowStart, "answered", SlowStart.answered)
    trapped_program.lay(cast(Traps, log))
    return log


@pytest.mark.parametrize("script", ["claim", "announce", "finish"])
def test_before_and_after_a_script(log: Log, script: str) -> None:
    getattr(RedisBroker, script)(object())
    assert log.lines == [f"{script}-before", script, f"{script}-read"]


def test_before_and_after_the_end_of_turns_with_a_claim(log: Log) -> None:
    RedisBroker.finish_and_claim(cast(RedisBroker, object()), [], "w-1", "n", [], cast(Any, None))
    assert log.lines == ["finish-before", "finish_and_claim", "finish-read"]


def test_a_claim_that_found_nothing_has_read_no_keys(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedisBroker, "claim", log.doing("claim", Idle.EMPTY))
    trapped_program._around(RedisBroker, "claim", cast(Traps, log), "claim-before", "claim-read")
    RedisBroker.claim(cast(RedisBroker, object()), "w-1", "n", [], cast(Any, None))
    assert log.lines == ["claim-before", "claim"]


@pytest.mark.parametrize("script", ["claim", "announce", "finish"])
def test_between_a_command_and_its_reply(log: Log, script: str) -> None:
    class Runner:
        def run_it(self, name: str, *args: Any) -> list[Any]:
            AbstractConnection.send_packed_command(cast(Any, None), [b"*3\r\n$4\r\nAUTH\r\n"])
            AbstractConnection.send_packed_command(cast(Any, None), (b"*9\r\n$7\r\nEVALSHA\r\n",), check_health=False)
            log.lines.append("reply")
            return []

    ScriptRunner._run(cast(ScriptRunner, Runner()), script)
    assert log.lines == ["command", "command", f"{script}-sent", "reply"]
    log.lines.clear()
    ScriptRunner._run_both(cast(ScriptRunner, Runner()), (script, ()), ("claim", ()))
    assert log.lines == ["command", "command", f"{script}-sent", "reply"]
    log.lines.clear()
    ScriptRunner._run(cast(ScriptRunner, Runner()), "look")
    assert log.lines == ["command", "command", "reply"]


@pytest.mark.parametrize(
    ("request_line", "point"),
    [
        (b"POST %b?timeout=4000ms HTTP/1.1" % PODS, "create-sent"),
        (b"DELETE %b/web-1?timeout=4000ms HTTP/1.1" % PODS, "delete-sent"),
        (b"PATCH %b/web-5d?timeout=4000ms HTTP/1.1" % SETS, "size-sent"),
        (b"PATCH %b/web-5d/status?timeout=4000ms HTTP/1.1" % SETS, "status-sent"),
        (b"POST /api/v1/namespaces/a/events HTTP/1.1", ""),
        (b"PATCH %b/web-1?timeout=4000ms HTTP/1.1" % PODS, ""),
    ],
)
def test_between_a_request_and_its_answer(log: Log, request_line: bytes, point: str) -> None:
    _Connection(lambda _: None).send(request_line + b"\r\n\r\n", cast(Any, None))
    assert log.lines == ["request", *([point] if point else [])]


@pytest.mark.parametrize(
    ("verb", "resource", "point"),
    [
        ("create", "pods", "create-answered"),
        ("delete", "pods", "delete-answered"),
        ("patch", "replicasets", "size-answered"),
        ("status", "daemonsets", "status-answered"),
        ("patch", "pods", ""),
        ("create", "replicasets", ""),
    ],
)
def test_after_an_answer(log: Log, verb: str, resource: str, point: str) -> None:
    asyncio.run(KubeApi._sent(cast(KubeApi, None), Write(verb, resource, "a", "web"), {}))
    assert log.lines == ["answer", *([point] if point else [])]


def test_beside_others_between_waves_and_while_waiting(log: Log) -> None:
    TurnEngine.claim(cast(TurnEngine, None), "w-1", 8)
    TurnEngine.claim(cast(TurnEngine, None), "w-1", 8, beside=())
    assert log.lines == ["claim", "claim", "claim-beside"]
    log.lines.clear()
    pace = SlowStart(3)
    pace.answered(0)
    pace.answered(0)
    assert log.lines == ["between-waves"], "after the last wave nothing follows"
    log.lines.clear()
    WaitingTurns(64).next(0.1)
    assert log.lines == ["waiting", "wait"]
