"""Many seeds of all scenarios over the twin, on all cores. What has been run is kept: a stopped search goes on."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from oarlock.workers.process.collecting import collect_rarely
from tests import ROOT
from tests.simulation.checker import Violation
from tests.simulation.families import CHURNED, FAMILIES
from tests.simulation.memory_rig import MemoryRig

CHUNK = 50
"""Seeds that a process runs before it reports."""
ROOMS = ("broker", "cluster", "controllers", "workers", "tests/simulation")


class Place(NamedTuple):
    """A scenario of a family."""

    family: str
    scenario: str

    def __str__(self) -> str:
        return f"{self.family}: {self.scenario}"


class Failure(NamedTuple):
    place: Place
    seed: int
    said: str


class Part(NamedTuple):
    """What a process has run: how many seeds, for how many seconds of its CPU, and what happened in them."""

    seeds: int
    cpu_s: float
    seen: Mapping[str, int]
    failure: Failure | None


@dataclass
class Search:
    """Seeds ``first`` to ``next`` - 1 have been run by the code with this fingerprint and have kept every invariant."""

    fingerprint: str
    only: str
    first: int
    next: int
    cpu_s: float = 0.0
    seen: Counter[str] = field(default_factory=Counter)

    @classmethod
    def begun(cls, file: Path, only: str, first: int) -> Search:
        """As far as an earlier search over the same code and scenarios has come; from the start where there is none."""
        new = cls(fingerprint(), only, first, first)
        try:
            kept: dict[str, Any] = json.loads(file.read_text())
            old = cls(**{**kept, "seen": Counter(kept["seen"])})
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return new
        same = (old.fingerprint, old.only, old.first) == (new.fingerprint, new.only, new.first)
        return old if same else new

    def keep(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(vars(self)))

    def add(self, part: Part) -> None:
        self.next += part.seeds
        self.cpu_s += part.cpu_s
        self.seen.update(part.seen)

    @property
    def churned_hours(self) -> float:
        """Of simulated time, of all runs together, while faults came."""
        return self.seen[CHURNED] / 3_600_000

    @property
    def per_minute(self) -> float:
        """Seeds a minute of a core."""
        return 60 * (self.next - self.first) / self.cpu_s if self.cpu_s else 0.0


def fingerprint() -> str:
    """Of all code that a run depends on."""
    digest = hashlib.sha256()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in (".py", ".lua"):
                digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def places(only: str = "") -> list[Place]:
    """The scenarios whose names contain the text. A seed runs the scenario of its number."""
    found = [Place(family.name, scenario) for family in FAMILIES.values() for scenario in family.scenarios]
    return [place for place in found if only in str(place)]


def run(chosen: Sequence[Place], first: int, count: int) -> Part:
    """Run seeds one after the other, up to the first that fails."""
    rig, seen, begun = MemoryRig(), Counter[str](), time.process_time()
    for done, seed in enumerate(range(first, first + count)):
        place = chosen[seed % len(chosen)]
        family = FAMILIES[place.family]
        try:
            with family.around():
                seen.update(family.run(rig, place.scenario, seed))
        except Violation as violation:
            return Part(done, time.process_time() - begun, seen, Failure(place, seed, str(violation)))
    return Part(count, time.process_time() - begun, seen, None)


def parts(chosen: Sequence[Place], first: int, last: int, processes: int) -> Iterator[Part]:
    """Run all seeds from ``first`` to ``last``; parts come in the order of their seeds."""
    begins = range(first, last + 1, CHUNK)
    counts = [min(CHUNK, last + 1 - begin) for begin in begins]
    with ProcessPoolExecutor(processes, initializer=collect_rarely) as pool:
        try:
            yield from pool.map(run, [chosen] * len(counts), begins, counts)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
