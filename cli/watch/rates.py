"""How fast things go: the difference between two looks. Pure. What nobody counts is None, never 0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oarlock.cli.watch.fleet_look import FleetLook


@dataclass(frozen=True, slots=True)
class Rates:
    """A second, in the mean between two looks. ``turns``: turns that began. ``calls``: requests to the API server of
    the processes that are known, ``throttled``: those answered with 429.
    """

    turns: float | None = None
    calls: float | None = None
    throttled: float | None = None


def rates(before: FleetLook | None, after: FleetLook) -> Rates:
    """Between two looks. A counter that began anew (an epoch, a process) is left out until there are two of it."""
    if before is None or (over_s := after.at_s - before.at_s) <= 0:
        return Rates()
    epochs = {each.shard: each for each in before.shards}
    turns = [
        each.began - was.began
        for each in after.shards
        if (was := epochs.get(each.shard)) is not None
        and was.epoch == each.epoch
        and each.began is not None
        and was.began is not None
    ]
    processes = {each.process: each for each in before.api}
    pairs = [
        (old, each)
        for each in after.api
        if (old := processes.get(each.process)) is not None and each.calls >= old.calls
    ]
    return Rates(
        _a_second(turns, over_s),
        _a_second([new.calls - old.calls for old, new in pairs], over_s),
        _a_second([max(0, new.throttled - old.throttled) for old, new in pairs], over_s),
    )


def _a_second(differences: Iterable[int], over_s: float) -> float | None:
    found = list(differences)
    return max(0, sum(found)) / over_s if found else None
