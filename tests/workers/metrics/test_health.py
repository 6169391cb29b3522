"""Checks as the API server tells them, and what is alive and ready in which state."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from oarlock.workers.counters.supervision import Supervision
from oarlock.workers.counters.table import Table, own_row
from oarlock.workers.ingest.ingestor import DEAF_MS, ReflectorStatus, Status
from oarlock.workers.ingest.reflector import ReflectorState
from oarlock.workers.metrics.fleet_reader import FleetFigures
from oarlock.workers.metrics.latest import Look
from oarlock.workers.metrics.serving import ingestor_view, supervisor_view
from oarlock.workers.metrics.serving.endpoints import epoch_open, redis_answers
from oarlock.workers.metrics.serving.health import Check, Endpoint
from oarlock.workers.metrics.serving.ingestor_view import IngestorView
from oarlock.workers.metrics.serving.supervisor_view import SupervisorView
from tests.manual_clock import ManualClock

SILENT = Look(None, 1.0)


def look(phase: str = "OPEN", epoch: int = 3, intact: bool = True) -> Look:
    return Look((FleetFigures("0", epoch, intact, phase, 1, 0),), 0.001)


def said(checks: Mapping[str, Check]) -> dict[str, str]:
    """The checks that fail, with what they say."""
    return {name: why for name, check in checks.items() if (why := check())}


TWO = Endpoint("readyz", {"redis": lambda: "", "epoch": lambda: "it drains"})
WELL = Endpoint("livez", {"ping": lambda: ""})


@pytest.mark.parametrize(
    ("endpoint", "below", "query", "status", "body"),
    [
        (WELL, "", "", 200, "ok"),
        (WELL, "", "verbose", 200, "[+]ping ok\nlivez check passed\n"),
        (WELL, "", "verbose=1&x=y", 200, "[+]ping ok\nlivez check passed\n"),
        (TWO, "", "", 500, "[+]redis ok\n[-]epoch failed: it drains\nreadyz check failed\n"),
        (TWO, "", "exclude=epoch", 200, "ok"),
        (TWO, "", "exclude=epoch&verbose", 200, "[+]redis ok\n[+]epoch excluded: ok\nreadyz check passed\n"),
        (TWO, "redis", "", 200, "ok"),
        (TWO, "epoch", "", 500, "[-]epoch failed: it drains\nreadyz check failed\n"),
        (TWO, "none", "", 404, "no check 'none'; there are: redis, epoch\n"),
        (WELL, "", "verbose&exclude=x", 200, "[+]ping ok\nwarn: no check named 'x'\nlivez check passed\n"),
    ],
)
def test_how_checks_are_told(endpoint: Endpoint, below: str, query: str, status: int, body: str) -> None:
    answer = endpoint.answer(below, query)
    assert (answer.status, answer.body.decode()) == (status, body)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (look(), ""),
        (look("DRAIN"), "epoch 3 is in phase DRAIN"),
        (look("HELD"), "epoch 3 is in phase HELD"),
        (look("", 0), "there is no epoch"),
        (look("OPEN", 3, intact=False), "of another Redis server"),
        (SILENT, "Redis did not answer"),
        (Look((*(look().fleets or ()), *(look("DRAIN").fleets or ())), 0.1), "phase DRAIN"),
    ],
)
def test_whether_an_epoch_is_open(seen: Look, words: str) -> None:
    why = epoch_open(seen)()
    assert words in why
    assert bool(why) == bool(words)
    assert bool(redis_answers(seen)()) == (seen is SILENT)


def test_a_supervisor_is_alive_while_it_comes_round_whatever_becomes_of_redis() -> None:
    clock, table = ManualClock(), Table(2)
    supervision = Supervision(table)
    view = SupervisorView(table, 1, "api:6443", clock.mono_ms)
    supervision.tick(clock.mono_ms())
    clock.advance(supervisor_view.TICK_LIMIT_MS)
    assert said(view.alive()) == {}
    assert said(view.ready(SILENT)).keys() == {"redis", "epoch", "workers"}
    clock.advance(1)
    assert said(view.alive()) == {"supervisor": "has not come round for 20 s"}
    supervision.tick(clock.mono_ms())
    supervision.started(table.rows[0], 4711)
    assert said(view.ready(look())) == {}
    supervision.leaving()
    assert said(view.ready(look())) == {"shutdown": "it was asked to stop"}
    assert said(view.alive()) == {}


class Told:
    """An ingestor as its view reads it."""

    def __init__(self, heard_ms: int, epoch: int = 3, phase: str = "OPEN") -> None:
        reflectors = {"pods": ReflectorStatus(ReflectorState.WATCHING, "7", heard_ms, 1, 2, 0, 1)}
        self.told = Status("i", "member", epoch, phase, reflectors)

    def status(self, now_ms: int) -> Status:
        return self.told


@pytest.mark.parametrize(
    ("told", "failing"),
    [
        (Told(0), set()),
        (Told(DEAF_MS), set()),
        (Told(DEAF_MS + 1), {"watch"}),
        (Told(-1), {"watch"}),
        (Told(5, 0, ""), {"joined"}),
        (Told(5, 3, "DRAIN"), {"joined"}),
    ],
)
def test_an_ingestor_is_ready_while_it_hears_in_an_open_epoch(told: Told, failing: set[str]) -> None:
    clock, row = ManualClock(), own_row()
    row.ints[row.layout.tick_ms] = clock.mono_ms()
    view = IngestorView(told, row, "api", clock.mono_ms, lambda: 0)  # type: ignore[arg-type]
    assert said(view.ready(look())).keys() == failing
    assert said(view.ready(SILENT)).keys() == failing | {"redis", "epoch"}
    assert said(view.alive()) == {}, "neither Redis nor the API server is a reason to start again"


def test_an_ingestor_that_hangs_is_not_alive() -> None:
    clock, row, io_ms = ManualClock(), own_row(), [0]
    row.ints[row.layout.tick_ms] = clock.mono_ms()
    view = IngestorView(Told(5), row, "api", clock.mono_ms, lambda: io_ms[0])  # type: ignore[arg-type]
    io_ms[0] = ingestor_view.IO_LIMIT_MS + 1
    assert said(view.alive()).keys() == {"io"}
    clock.advance(ingestor_view.TICK_LIMIT_MS + 1)
    assert said(view.alive()).keys() == {"io", "ingestor"}
