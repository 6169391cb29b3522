"""The search: every state within bounds, breadth first; the shortest way to a violation; states that cannot rest."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.model.rule import Rule
from tests.model.state import OPEN, State, active
from tests.model.world import Violation, World, steps


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
    example: State | None = None

    @property
    def holds(self) -> bool:
        return not self.why and not self.stuck


def safe(starts: Iterable[State], rule: Rule, world: World, limit: int = 10**6) -> Result:
    """Whether the invariants hold in every state that can be reached."""
    began = time.monotonic()
    came: dict[State, tuple[State, str] | None] = dict.fromkeys(starts)
    left = deque(came)
    while left and len(came) < limit:
        state = left.popleft()
        try:
            for label, after, _ in steps(state, rule, world):
                if after not in came:
                    came[after] = (state, label)
                    left.append(after)
        except Violation as violation:
            trace: list[str] = []
            last = state
            while (before := came[last]) is not None:
                last = before[0]
                trace.append(before[1])
            trace.append(f"from {[pod.state for pod in last.api]}, wanted {last.want}")
            return Result(len(came), time.monotonic() - began, False, str(violation), tuple(trace[::-1]))
    return Result(len(came), time.monotonic() - began, bool(left))


def full(state: State) -> bool:
    return active(state.api) == state.want


def one_short(state: State) -> bool:
    """All but one; none where none is wanted."""
    return max(0, state.want - 1) <= active(state.api) <= state.want


def one_over(state: State) -> bool:
    return state.want <= active(state.api) <= state.want + 1


def lively(
    starts: Iterable[State], rule: Rule, world: World, rested: Callable[[State], bool] = full, limit: int = 10**6
) -> Result:
    """Whether rest can be reached from every state without another fault.

    A state in which a name has borne as many pods as the search allows proves nothing and is left out; where the search
    is cut off, so is every state from which a last one can be reached.
    """
    began = time.monotonic()
    seen = set(starts)
    left = deque(seen)
    before: dict[State, list[State]] = {}
    while left and len(seen) < limit:
        state = left.popleft()
        for _, after, fault in steps(state, rule, world):
            if not fault:
                before.setdefault(after, []).append(state)
            if after not in seen:
                seen.add(after)
                left.append(after)
    good = {state for state in seen if _is_at_rest(state) and rested(state)}
    good.update(left)  # cut off: nothing is known of what follows these
    back = deque(good)
    while back:
        for state in before.get(back.popleft(), ()):
            if state not in good:
                good.add(state)
                back.append(state)
    stuck = [s for s in seen - good if max(pod.uid for pod in s.api) < world.uids]
    example = min(stuck, key=lambda s: (len(s.late) + len(s.sending) + len(s.events), s), default=None)
    return Result(len(seen), time.monotonic() - began, bool(left), stuck=len(stuck), example=example)


def _is_at_rest(state: State) -> bool:
    outstanding = state.sending or state.late or state.events or state.phase != OPEN
    return not outstanding and state.seen_want == state.want
