"""The fleet's processes coming and going: a lane each, from who is there at one look and not at the next. Pure.

A worker is there while it is registered; an ingestor while it says what it hears.
"""

from __future__ import annotations

from dataclasses import dataclass

from oarlock.cli.board.past import KEPT_S
from oarlock.cli.watch.fleet_look import FleetLook

INGESTORS = "ingestors"
LANES_MAX = 300
"""So many are kept: those that work, then those that left last."""


@dataclass(slots=True)
class Lane:
    """A worker of a supervisor, or an ingestor. Times are unix ms by this process's clock. ``began_ms`` of an ingestor:
    when it was first seen. ``gone_ms``: when a process was first missed; 0: it is there.
    """

    shard: str
    name: str
    group: str
    began_ms: int
    gone_ms: int = 0
    keys: int = 0


class Lanes:
    """What was seen so far. Where a look shows only some of a shard's workers, none of that shard is missed."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, str], Lane] = {}

    def see(self, look: FleetLook, now_ms: int) -> None:
        """Note who is there, and who no more."""
        there: dict[tuple[str, str], Lane] = {}
        for each in look.workers:
            name = (each.shard, each.worker)
            if name not in there:
                known = self._lanes.get(name)
                began_ms = now_ms - (each.up_ms or 0) if known is None else known.began_ms
                there[name] = Lane(each.shard, each.worker, each.supervisor, began_ms)
            there[name].keys += bool(each.key)
        seen_whole = {
            each.shard
            for each in look.shards
            if (each.registered or 0) <= sum(shard == each.shard for shard, _ in there)
        }
        for shard in look.shards:
            for ingestor in (each for each in shard.ingestors if not each.late):
                name = (shard.shard, ingestor.ingestor)
                before = self._lanes.get(name)
                there[name] = Lane(*name, INGESTORS, now_ms if before is None or before.gone_ms else before.began_ms)
        for name, lane in self._lanes.items():
            if name not in there:
                lane.keys = 0
                if not lane.gone_ms and (lane.group == INGESTORS or lane.shard in seen_whole):
                    lane.gone_ms = now_ms
        self._lanes |= there
        kept = sorted(self._lanes.items(), key=lambda each: _order(each[1], now_ms), reverse=True)[:LANES_MAX]
        self._lanes = {name: lane for name, lane in kept if not lane.gone_ms or lane.gone_ms > now_ms - KEPT_S * 1_000}

    def rows(self) -> list[list[str | int]]:
        """[shard, name, group, began_ms, gone_ms, keys] of each, by group and begin."""
        lanes = sorted(self._lanes.values(), key=lambda each: (each.shard, each.group, each.began_ms, each.name))
        return [[each.shard, each.name, each.group, each.began_ms, each.gone_ms, each.keys] for each in lanes]


def _order(lane: Lane, now_ms: int) -> tuple[int, bool]:
    """Who is to be kept has more of it."""
    return lane.gone_ms or now_ms + 1, lane.group == INGESTORS
