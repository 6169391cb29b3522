"""A controller with an effect outside, for real worker processes: a line in the file that $PAYMENTS names.

A line is written by one call, so a kill leaves it out or whole.
"""

from __future__ import annotations

import os
import time
from typing import Any

import oarlock

WORKS_S = 0.15
"""Long enough for kills to strike in its midst."""


@oarlock.resource("shop.example.com/v1")
class Payment(oarlock.Object):
    status: dict[str, Any] = {}


def note(what: str, ctx: oarlock.Context) -> None:
    target = os.open(os.environ["PAYMENTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(target, f"{what} {ctx.key} {ctx.idempotency_key} {os.getpid()}\n".encode())
    finally:
        os.close(target)


@oarlock.steps(Payment, finalizer="shop.example.com/refund")
def payment(obj: Payment, ctx: oarlock.Context) -> None:
    if obj.status.get("paid"):
        return
    note("begun", ctx)
    time.sleep(WORKS_S)
    ctx.still_mine()
    note("paid", ctx)
    ctx.status({"paid": True})


@payment.finalize
def refund(obj: Payment, ctx: oarlock.Context) -> None:
    note("refunded", ctx)
