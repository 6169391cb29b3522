"""When which fault comes: a function of the seed, the number of faults and the time there is.

Each loss of Redis needs a drain, in which next to nothing can be hit; the other faults go into the time that is left,
evenly with jitter. In every other drain an ingestor is killed, because an ingestor begins the epoch. In all drains that
would cost too much: each such kill makes the drain begin anew.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from oarlock.chaos.faults.mixes import MIXES, USUAL, Mix
from oarlock.chaos.faults.points import POINTS

WARM_UP_S = 1.0


class Planned(NamedTuple):
    """A fault to come. ``detail``: worker: "busy" or "any"; point: its name; pause: "host" or "worker"; redis:
    "flushall" or "kill".
    """

    at_s: float
    kind: str
    detail: str = ""
    lasts_s: float = 0.0


@dataclass(frozen=True)
class Timing:
    """What the schedule has to know of the fleet's settings."""

    drain_s: float
    lease_s: float


def mix(faults: int, duration_s: float, timing: Timing, of: Mix = MIXES[USUAL]) -> dict[str, int]:
    """How many of each kind: their shares, at least one of each from ten on, and no more losses than fit."""
    total, first = sum(of.shares.values()), next(iter(of.shares))
    counts = {kind: faults * share // total for kind, share in of.shares.items()}
    if faults >= 10:
        counts = {kind: max(1, count) for kind, count in counts.items()}
    fitting = int(of.losses_share_max * (duration_s - WARM_UP_S) / (timing.drain_s + of.after_loss_s))
    counts["redis"] = min(counts.get("redis", 0), fitting)
    if first != "redis":
        counts[first] = max(0, faults - sum(count for kind, count in counts.items() if kind != first))
    return counts


def schedule(seed: int, faults: int, duration_s: float, timing: Timing, of: Mix = MIXES[USUAL]) -> list[Planned]:
    """All faults of a campaign, by time; seconds from its beginning."""
    chance = random.Random(f"schedule {seed}")
    counts = {kind: 0 for each in MIXES.values() for kind in each.shares} | mix(faults, duration_s, timing, of)
    plan: list[Planned] = []
    drains: list[tuple[float, float]] = []
    losses = counts["redis"]
    needed_s = timing.drain_s + of.after_loss_s
    for index in range(losses):
        share_s = (duration_s - WARM_UP_S) / losses
        begin_s = WARM_UP_S + index * share_s
        at_s = begin_s + chance.uniform(0.1, 1.0) * max(0.0, share_s - needed_s)
        plan.append(Planned(at_s, "redis", ("flushall", "kill")[(index + seed) % 2]))
        drains.append((at_s, at_s + needed_s))
    clear = _between(drains, WARM_UP_S, duration_s)
    chosen = drains[seed % 2 :: 2] if losses > 1 else []
    in_drain = min(counts["ingestor"], len(chosen))
    for begin_s, end_s in chosen[:in_drain]:
        plan.append(Planned(chance.uniform(begin_s + 0.2, end_s - of.after_loss_s), "ingestor"))
    plan += [Planned(at_s, "ingestor") for at_s in _spread(chance, counts["ingestor"] - in_drain, clear)]
    plan += [Planned(at_s, "supervisor") for at_s in _spread(chance, counts["supervisor"], clear)]
    for index, at_s in enumerate(_spread(chance, counts["pause"], clear)):
        lasts_s = timing.lease_s + chance.uniform(0.5, 2.0)
        plan.append(Planned(at_s, "pause", ("host", "host", "worker")[index % 3], lasts_s))
    for at_s in _spread(chance, counts["worker"], clear):
        plan.append(Planned(at_s, "worker", "busy" if chance.random() < 0.85 else "any"))
    names = list(POINTS)
    for index, at_s in enumerate(_spread(chance, counts["point"], clear)):
        if index % len(names) == 0:
            chance.shuffle(names)
        plan.append(Planned(at_s, "point", names[index % len(names)]))
    return sorted(plan)


def _between(taken: Sequence[tuple[float, float]], begin_s: float, end_s: float) -> list[tuple[float, float]]:
    spans, at_s = [], begin_s
    for from_s, to_s in taken:
        if from_s > at_s:
            spans.append((at_s, from_s))
        at_s = max(at_s, to_s)
    if end_s > at_s:
        spans.append((at_s, end_s))
    return spans


def _spread(chance: random.Random, count: int, spans: Sequence[tuple[float, float]]) -> list[float]:
    """``count`` moments in the spans, one somewhere in each ``count``-th part of their length."""
    whole_s = sum(end - begin for begin, end in spans)
    moments = []
    for index in range(count):
        left_s = (index + chance.random()) * whole_s / count
        for begin, end in spans:
            if left_s <= end - begin:
                moments.append(begin + left_s)
                break
            left_s -= end - begin
    return moments
