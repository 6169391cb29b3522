"""The controllers of `benchmarks.blocking`: each run of a function waits 20 ms, as for an API, and does no more."""

from __future__ import annotations

import asyncio
import time

import oarlock

WAIT_S = 0.02


@oarlock.resource("bench.example.com/v1")
class Blocking(oarlock.Object):
    pass


@oarlock.resource("bench.example.com/v1")
class Awaiting(oarlock.Object):
    pass


@oarlock.steps(Blocking)
def blocking(obj: Blocking, ctx: oarlock.Context) -> None:
    time.sleep(WAIT_S)


@oarlock.steps(Awaiting)
async def awaiting(obj: Awaiting, ctx: oarlock.AsyncContext) -> None:
    await asyncio.sleep(WAIT_S)


@oarlock.resource("bench.example.com/v1")
class Alone(oarlock.Object):
    pass


@oarlock.steps(Alone)
def alone(obj: Alone, ctx: oarlock.Context) -> None:
    """One at a time in each worker: OARLOCK_CONCURRENT_ALONE_SYNCS is the number of workers."""
    time.sleep(WAIT_S)
