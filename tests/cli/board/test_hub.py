"""How often the board looks: for all who watch together, and no more often than it may cost."""

from __future__ import annotations

import asyncio

import pytest

from oarlock.cli.board import hub
from oarlock.cli.board.hub import Hub
from oarlock.cli.watch.fleet_look import FleetLook
from tests.cli.watch.looks import QUEUE, busy

INTERVAL_S = 0.05


def pauses(monkeypatch: pytest.MonkeyPatch, cost_s: float) -> list[float]:
    """How long the hub sleeps after each of three looks while somebody watches, where each costs so much processor
    time. Nobody sleeps here: what a look takes on this machine is all that a pause is shorter by.
    """
    spent_s, slept = 0.0, list[float]()

    def look() -> FleetLook:
        nonlocal spent_s
        spent_s += cost_s
        return busy()

    async def watch() -> None:
        made, enough = Hub(look, [QUEUE], INTERVAL_S, lambda: spent_s), asyncio.Event()

        async def sleep(pause_s: float) -> None:
            slept.append(pause_s)
            if len(slept) == 3:
                enough.set()
                await asyncio.Event().wait()

        with monkeypatch.context() as patch, made.watch():
            patch.setattr(hub.asyncio, "sleep", sleep)
            running = asyncio.create_task(made.run())
            await asyncio.wait_for(enough.wait(), 20)
            running.cancel()

    asyncio.run(watch())
    return slept


def test_dear_looks_are_made_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(0 <= each <= INTERVAL_S for each in pauses(monkeypatch, 0.0))
    assert all(INTERVAL_S < each <= 0.6 for each in pauses(monkeypatch, 0.6 / hub.PRICE))
    assert all(0.6 < each <= hub.APART_MAX_S for each in pauses(monkeypatch, 10.0))


def test_nobody_watches() -> None:
    looks: list[FleetLook] = []

    async def wait() -> None:
        made = Hub(lambda: looks.append(busy()) or busy(), [QUEUE], 0.01)  # type: ignore[func-returns-value]
        running = asyncio.create_task(made.run())
        await asyncio.sleep(0.1)
        running.cancel()

    asyncio.run(wait())
    assert looks == []
