"""The rig that the fault of a campaign needs, and the means to carry the fault out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from oarlock.chaos.faults.episodes import Needs
from oarlock.chaos.faults.network import Network
from oarlock.chaos.faults.traps import FOLDER
from oarlock.chaos.options import Options
from oarlock.chaos.record.monitor import Clock, MonitorRecorder, NoRecorder
from oarlock.chaos.record.saved import MONITOR
from oarlock.chaos.rig.redis_program import ClockFile, find_library, path_with, program_with_clock, program_with_log
from oarlock.chaos.rig.rig import COMMAND, Rig
from oarlock.chaos.rig.rq_apart import RqApart
from oarlock.chaos.rig.two_hosts import TwoHosts
from oarlock.sandbox.redis import redis_binary

TRAPPED = (sys.executable, "-m", "oarlock.chaos.rig.trapped_program", "oarlock.cli")


class Stage:
    """``rig``: not started. ``network``, ``clock``: where they can be set. ``programs``: for a Redis of the campaign's.

    Raises NoClock or NoRedisBinary.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self.programs: Path = options.root / "bin"
        self.clock: tuple[ClockFile, Clock] | None = None
        needs = options.episode.needs if options.episode else None
        self.network = Network(options.root, options.seed) if needs is Needs.NETWORK else None
        self.rig: Rig = self._rig(needs, options.environment() | self._redis_program(needs))

    def recorder(self) -> MonitorRecorder | NoRecorder:
        """The recorder of the single Redis; one that records nothing where there is none."""
        path = self._options.root / MONITOR
        if self._options.api_alone:
            return NoRecorder(path)
        return MonitorRecorder(self.rig.redis_url, path, self.clock[1] if self.clock else None)

    def _rig(self, needs: Needs | None, environment: dict[str, str]) -> Rig:
        options = self._options
        if needs in (Needs.PAIR, Needs.SENTINELS):
            return TwoHosts(
                options.root,
                nodes=options.nodes,
                workers=options.workers,
                settings=environment,
                sentinels=needs is Needs.SENTINELS,
            )
        command: Sequence[str] = COMMAND
        if options.traps is not None:
            command = TRAPPED
            environment = environment | {FOLDER: str(options.traps)}
        kind = RqApart if needs is Needs.RQ else Rig
        return kind(
            options.root,
            nodes=options.nodes,
            workers=options.workers,
            ingestors=options.ingestors,
            settings=environment,
            network=self.network,
            shards=options.shards,
            hosts=options.mixed.hosts,
            ingestors_beside=options.mixed.ingestors,
            command=command,
        )

    def _redis_program(self, needs: Needs | None) -> dict[str, str]:
        """The environment in which `oarlock up` finds a Redis that the fault can be done to."""
        match needs:
            case Needs.CLOCK:
                self.clock = ClockFile(self._options.root / "clock"), Clock()
                program_with_clock(self.programs, redis_binary.find(), self.clock[0], find_library())
            case Needs.LOG:
                program_with_log(self.programs, redis_binary.find())
            case _:
                return {}
        return {"PATH": path_with(self.programs)}
