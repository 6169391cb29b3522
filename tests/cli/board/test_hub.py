"""How often the board looks: for all who watch together, and no more often than it may cost."""

from __future__ import annotations

import asyncio

from oarlock.cli.board import hub
from oarlock.cli.board.hub import Hub
from oarlock.cli.watch.fleet_look import FleetLook
from tests.cli.watch.looks import QUEUE, busy


def looks_in(seconds: float, cost_s: float) -> int:
    """How many looks there are while somebody watches, where each costs so much processor time."""
    looks, spent_s = 0, 0.0

    def look() -> FleetLook:
        nonlocal looks, spent_s
        looks, spent_s = looks + 1, spent_s + cost_s
        return busy()

    async def watch() -> None:
        made = Hub(look, [QUEUE], 0.05, lambda: spent_s)
        running = asyncio.create_task(made.run())
        with made.watch():
            await asyncio.sleep(seconds)
        running.cancel()

    asyncio.run(watch())
    return looks


def test_dear_looks_are_made_less_often() -> None:
    assert looks_in(1.0, 0.0) > 5
    assert looks_in(1.0, 0.6 / hub.PRICE) == 2
    assert looks_in(1.0, 10.0) == 1


def test_nobody_watches() -> None:
    looks: list[FleetLook] = []

    async def wait() -> None:
        made = Hub(lambda: looks.append(busy()) or busy(), [QUEUE], 0.01)  # type: ignore[func-returns-value]
        running = asyncio.create_task(made.run())
        await asyncio.sleep(0.1)
        running.cancel()

    asyncio.run(wait())
    assert looks == []
