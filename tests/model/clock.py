"""When an entry of the record has been silent for D: a model with a clock, of one entry and those who may send it.

A send lands within LAND ticks. A holder may send for LEASE ticks after its last call of `record`, which an empty call
lengthens; one that has lost its lock may use up what it had left. So D = LEASE + LAND after a claim nothing of earlier
holders is under way.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

LEASE, LAND = 2, 1
D = LEASE + LAND


class ClockRule(NamedTuple):
    """`stamped`: by a "claim", the first after a send; or as it must not be: by the "record" that announces the send.

    `marks_repeats`: a repeated send is announced, which makes the next claim set the time anew. `repeats`: how many
    there are; None: no bound. `renewed`: every claim sets the time anew, sent or not. `deadline`: a holder stops
    sending what it has announced when its lease is over.
    """

    stamped: str = "claim"
    marks_repeats: bool = True
    repeats: int | None = 1
    renewed: bool = False
    deadline: bool = True


class Clock(NamedTuple):
    """Times are what is left of them. `sent`: announced since the last claim; `until`: None before the first claim.

    `lease`: how long the holder may send, None where the key is free; `announced`: by this holder. `old`: how long an
    earlier holder may still send. `flying`: how long the last send may still land. `repeats`: made so far.
    """

    sent: bool = True
    until: int | None = None
    lease: int | None = LEASE
    announced: bool = True
    old: int = 0
    flying: int = 0
    repeats: int = 0


class StillFlying(Exception):
    """The entry ended although a send of it may still land."""


def moves(clock: Clock, rule: ClockRule) -> Iterator[tuple[str, Clock]]:
    """What may happen next to an entry that has not ended. Raises StillFlying."""
    if clock.lease is None or clock.lease < LEASE:
        yield "claim", _claimed(clock, rule)
    if clock.old:
        yield "an earlier holder sends", clock._replace(flying=LAND)
    if clock.lease is not None:
        if clock.announced and clock.lease:
            yield "send", clock._replace(flying=LAND)
        if 0 < clock.lease < LEASE:
            yield "record, empty", clock._replace(lease=LEASE)
        if clock.lease and not clock.announced and (rule.repeats is None or clock.repeats < rule.repeats):
            yield "announce a repeat", _announced(clock, rule)
        if _is_over(clock) and not clock.announced and (clock.flying or clock.old):
            raise StillFlying
        yield "finish", clock._replace(lease=None, announced=False)
        yield "the lock is lost", clock._replace(lease=None, announced=False, old=_left(clock))
    yield (
        "a tick",
        clock._replace(
            until=clock.until and clock.until - 1,
            lease=clock.lease and clock.lease - 1,
            old=max(0, clock.old - 1) if rule.deadline else clock.old,
            flying=max(0, clock.flying - 1),
        ),
    )


def _left(clock: Clock) -> int:
    """What a holder that lost its lock may still send for; one that announced nothing sends nothing."""
    return max(clock.old, clock.lease or 0) if clock.announced else clock.old


def _claimed(clock: Clock, rule: ClockRule) -> Clock:
    old = _left(clock)
    starts = rule.renewed or (rule.stamped == "claim" and (clock.sent or clock.until is None))
    return clock._replace(sent=False, until=D if starts else clock.until, lease=LEASE, announced=False, old=old)


def _announced(clock: Clock, rule: ClockRule) -> Clock:
    repeats = clock.repeats + 1 if rule.repeats is not None else 0
    until = D if rule.stamped == "record" else clock.until
    return clock._replace(sent=clock.sent or rule.marks_repeats, until=until, announced=True, repeats=repeats)


def _is_over(clock: Clock) -> bool:
    return clock.until == 0 and not clock.sent


def ends_too_early(rule: ClockRule) -> tuple[int, tuple[str, ...]]:
    """States seen, and the shortest way to an entry that ends while a send of it may land; () if there is none."""
    first = Clock(until=D if rule.stamped == "record" else None)
    came: dict[Clock, tuple[Clock, str] | None] = {first: None}
    left = deque(came)
    while left:
        clock = left.popleft()
        try:
            for label, after in moves(clock, rule):
                if after not in came:
                    came[after] = (clock, label)
                    left.append(after)
        except StillFlying:
            trace = ["the entry ends"]
            last = clock
            while (before := came[last]) is not None:
                last = before[0]
                trace.append(before[1])
            return len(came), tuple(trace[::-1])
    return len(came), ()


def ticks_until_over(rule: ClockRule, patience: int = 100) -> int | None:
    """How long an entry lives whose key is claimed every tick and which is sent again whenever it may be."""
    clock = Clock()
    for tick in range(patience):
        clock = _claimed(clock._replace(lease=None, announced=False, old=0), rule)
        if _is_over(clock):
            return tick
        if rule.repeats is None or clock.repeats < rule.repeats:
            clock = _announced(clock, rule)
        clock = clock._replace(until=clock.until and clock.until - 1)
    return None
