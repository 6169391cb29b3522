"""The recorder of processes: the ends of those that should never end by themselves."""

from __future__ import annotations

import asyncio
import time

from oarlock.chaos.judge.evidence.evidence import End
from oarlock.chaos.rig.rig import Rig, Target

ROLES = ("redis", "supervisor", "ingestor")
"""Workers end for many a good reason; of the API server `oarlock up` itself takes notice."""
LOOK_EVERY_S = 0.05


class ProcessEnds:
    """``run`` until cancelled. ``ends``: every end that was seen, by whatever cause."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._known: dict[int, Target] = {}
        self._began_s: dict[int, float] = {}
        self.ends: list[End] = []

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        """Compare with the last look."""
        now = {each.pid: each for role in ROLES for each in self._rig.targets(role)}
        for pid, target in self._known.items():
            if pid not in now:
                self.ends.append(End(time.time(), target.role, pid, self._began_s.pop(pid)))
        for pid in now:
            self._began_s.setdefault(pid, time.time())
        self._known = now
