"""How long the keys of killed workers were without a holder."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from oarlock.chaos.judge.evidence.evidence import Blow
from oarlock.chaos.judge.fences import Fences, Hold


def percentile(values: Sequence[float], share: float) -> float | None:
    """Nearest rank; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


@dataclass
class Recovery:
    """ms from a kill to the next claim of each key that was held. ``parked``: keys that killed twice in a row."""

    fences: Fences
    worker_ms: list[float] = field(default_factory=list)
    supervisor_ms: list[float] = field(default_factory=list)
    parked: int = 0
    kills_holding: int = 0
    kills_with_write_in_flight: int = 0

    def read(self, blows: Iterable[Blow]) -> Recovery:
        """Read all deaths of workers, alone or with their supervisor."""
        by_holder: dict[str, list[Hold]] = {}
        for hold in self.fences.holds:
            by_holder.setdefault(hold.holder, []).append(hold)
        for blow in blows:
            if blow.kind not in ("worker", "supervisor"):
                continue
            holding = in_flight = False
            for holder in blow.holders:
                for hold in by_holder.get(holder, []):
                    if hold.from_s <= blow.at_s < hold.to_s and hold.by != "finish":
                        holding = True
                        self._next_claim(blow, hold)
                in_flight = in_flight or bool(self.fences.pending_with(holder, blow.at_s))
            self.kills_holding += holding
            self.kills_with_write_in_flight += holding and in_flight
        return self

    def _next_claim(self, blow: Blow, hold: Hold) -> None:
        if hold.state == "parked":
            self.parked += 1
            return
        views = self.fences.views[hold.task]
        at = bisect.bisect_right(views, blow.at_s, key=lambda view: view.at_s)
        if at < len(views) and views[at].epoch == hold.epoch:
            taken = self.worker_ms if blow.kind == "worker" else self.supervisor_ms
            taken.append((views[at].at_s - blow.at_s) * 1000)
