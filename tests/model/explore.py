"""The search: every state within bounds, breadth first; the shortest way to a violation; states that cannot rest."""

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)


class Violation(Exception):
    """An invariant does not hold."""


class Step(NamedTuple, Generic[S]):
    """`fault`: what is not there to be counted on when rest is asked for."""

    label: str
    state: S
    fault: bool = False


Steps = Callable[[S], Iterable[Step[S]]]
"""All that may happen in a state. Raises Violation for what must not."""


class Result(NamedTuple):
    """`cut`: the limit was reached before all was seen. `why`: of the violation, "" if there is none; `trace`: the
    shortest way there. `stuck`: states without a way to rest, and one of them.
    """

    states: int
    seconds: float
    cut: bool = False
    why: str = ""
    trace: tuple[str, ...] = ()
    stuck: int = 0
    example: Any = None

    @property
    def holds(self) -> bool:
        return not self.why and not self.stuck


def safe(starts: Iterable[S], steps: Steps[S], limit: int = 10**6) -> Result:
    """Whether the invariants hold in every state that can be reached."""
    began = time.monotonic()
    came: dict[S, tuple[S, str] | None] = dict.fromkeys(starts)
    left = deque(came)
    while left and len(came) < limit:
        state = left.popleft()
        try:
            for label, after, _ in steps(state):
                if after not in came:
                    came[after] = (state, label)
                    left.append(after)
        except Violation as violation:
            trace: list[str] = []
            last = state
            while (before := came[last]) is not None:
                last = before[0]
                trace.append(before[1])
            trace.append(f"from {last}")
            return Result(len(came), time.monotonic() - began, False, str(violation), tuple(trace[::-1]))
    return Result(len(came), time.monotonic() - began, bool(left))


def lively(
    starts: Iterable[S],
    steps: Steps[S],
    rested: Callable[[S], bool],
    proves: Callable[[S], bool] = lambda _: True,
    limit: int = 10**6,
) -> Result:
    """Whether rest can be reached from every state without another fault.

    A state that does not `prove` anything is left out: it is at a bound of the search. Where the search is cut off, so
    is every state from which a last one can be reached.
    """
    began = time.monotonic()
    seen = set(starts)
    left = deque(seen)
    before: dict[S, list[S]] = {}
    while left and len(seen) < limit:
        state = left.popleft()
        for _, after, fault in steps(state):
            if not fault:
                before.setdefault(after, []).append(state)
            if after not in seen:
                seen.add(after)
                left.append(after)
    good = {state for state in seen if rested(state)}
    good.update(left)  # cut off: nothing is known of what follows these
    back = deque(good)
    while back:
        for state in before.get(back.popleft(), ()):
            if state not in good:
                good.add(state)
                back.append(state)
    stuck = [state for state in seen - good if proves(state)]
    example = min(stuck, key=lambda state: (len(repr(state)), repr(state)), default=None)
    return Result(len(seen), time.monotonic() - began, bool(left), stuck=len(stuck), example=example)
