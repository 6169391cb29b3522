"""The order in which a claim asks queues, in memory: that of ``scripts/lib/weights.lua``."""

from __future__ import annotations

from collections.abc import Sequence

from oarlock.broker.memory.state import EpochState
from oarlock.broker.memory.steering.scopes import weight_in
from oarlock.broker.values.claims import LoadSpec

WEIGHT = "weight queue "


def in_order(state: EpochState, specs: Sequence[LoadSpec]) -> Sequence[LoadSpec]:
    """The queue first that has had the least, where a controller has a weight; else as given."""
    return sorted(specs, key=lambda spec: _stride(state, spec.queue)) if _weighed(state) else specs


def advance(state: EpochState, queue: str, taken: int) -> None:
    if _weighed(state):
        stride = state.strides[""] = _stride(state, queue)
        state.strides[queue] = stride + taken / (weight_in(state.pauses.get(WEIGHT + queue)) or 1.0)


def _weighed(state: EpochState) -> bool:
    return any(scope.startswith(WEIGHT) for scope in state.pauses)


def _stride(state: EpochState, queue: str) -> float:
    """Keys taken by its weight. Nobody saves up what he had no keys for."""
    return max(state.strides.get(queue, 0.0), state.strides.get("", 0.0))
