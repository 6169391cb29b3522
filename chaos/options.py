"""What a campaign is to run, and the plan that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarlock.chaos.faults.episodes import EPISODES, Episode, Needs, planned
from oarlock.chaos.faults.mixes import MIXES, POINTS, USUAL, Mix
from oarlock.chaos.faults.schedule import Planned, Timing, schedule
from oarlock.workers.process.settings import Settings

SETTLE_LIMIT_S = 30.0
"""How long everything may take to come to rest after the faults."""

SHORTER = Settings(lease_ms=3_000, renew_every_ms=900, request_timeout_ms=1_500)
"""The settings of a campaign: with D = 7 s instead of 14, five losses of Redis leave time for everything else."""


@dataclass(frozen=True)
class Options:
    """What to run. ``settings``: of the fleet. ``second_fleet``: have another run beside it for a while.

    ``mix``: one of ``MIXES``. ``only``: one sort of ``EPISODES`` instead of a mixture. ``shards``: into how many the
    fleet is divided.
    """

    seed: int
    duration_s: float
    faults: int
    nodes: int
    workers: int
    ingestors: int
    root: Path
    settings: Settings = SHORTER
    second_fleet: bool = False
    mix: str = USUAL
    only: str = ""
    shards: int = 1

    @property
    def mixed(self) -> Mix:
        return MIXES[self.mix]

    @property
    def traps(self) -> Path | None:
        """The folder of the traps, where workers are to meet some."""
        return self.root / "traps" if self.mix == POINTS else None

    @property
    def api_alone(self) -> bool:
        """Whether there is no one Redis, or no one fleet in it, that could be watched."""
        return self.shards > 1 or (self.episode is not None and self.episode.needs in (Needs.PAIR, Needs.SENTINELS))

    @property
    def episode(self) -> Episode | None:
        """The sort of fault that is played alone, if one is."""
        return EPISODES[self.only] if self.only else None

    @property
    def timing(self) -> Timing:
        return Timing(self.settings.drain_ms / 1000, self.settings.lease_ms / 1000)

    def plan(self) -> list[Planned]:
        """The faults of the campaign, by time."""
        if self.only:
            return planned(self.only, self.seed, self.faults, self.duration_s, self.timing)
        return schedule(self.seed, self.faults, self.duration_s, self.timing, self.mixed)

    def environment(self) -> dict[str, str]:
        """The settings that differ from the defaults, for the processes."""
        usual = Settings().to_env()
        return {name: value for name, value in self.settings.to_env().items() if value != usual.get(name)}

    def told_settings(self) -> dict[str, Any]:
        """For the verdict."""
        settings = self.settings
        return {
            "lease_ms": settings.lease_ms,
            "renew_every_ms": settings.renew_every_ms,
            "request_timeout_ms": settings.request_timeout_ms,
            "drain_ms": settings.drain_ms,
            "settle_limit_s": SETTLE_LIMIT_S,
            "nodes": self.nodes,
            "workers": self.workers,
            "mix": self.mix,
            "supervisors": min(self.mixed.hosts, self.workers) * self.shards,
            "shards": self.shards,
            "ingestors": self.ingestors,
        }
