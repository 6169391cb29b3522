"""How far a fleet goes: from the costs of small clusters that were measured, what a large one over shards would take.

Input are last lines of `benchmarks.large`. The model is that of bottlenecks: a station that spends so long on a pod
passes no more than one over it, times its servers; all together pass what the slowest one does. docs/scale.md has the
formula. The same model tells how long the clusters of the input should have taken, beside how long they took.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.report import Unfit

STATIONS = {
    "redis": "a Redis",
    "ingestor": "an ingestor",
    "worker": "the workers",
    "api": "the API server",
    "cores": "the cores",
}
FLEET = ("redis", "ingestor", "worker", "supervisor")


@dataclass(frozen=True, slots=True)
class Measured:
    """One size of a run on one machine. ``cpu_ms``: a pod, by role, all processes of the role together."""

    pods: int
    ready_s: float
    cpu_ms: Mapping[str, float]
    redis_bytes: float
    history_bytes: float
    cores: int

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> list[Measured]:
        """The sizes of one last line. Raises Unfit."""
        try:
            return [
                cls(
                    size["pods"],
                    size["ready_s"],
                    size["cpu_ms_per_pod"],
                    size["redis_bytes_per_pod"],
                    size["history_bytes_per_pod"],
                    facts["machine"]["cores"],
                )
                for size in facts["sizes"]
            ]
        except (KeyError, TypeError) as error:
            raise Unfit(f"not a last line of benchmarks.large: {error!r}") from None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cluster runs. Each shard has a Redis and an ingestor that applies, each of them one thread at a time.

    ``workers``: of all shards together. ``cores``: of the one machine for all; 0: each process has its own.
    ``api_pods_per_s``: what the API server takes, with all writes that a pod needs; 0: its CPU counts instead.
    """

    shards: int = 1
    workers: int = 2
    cores: int = 0
    api_pods_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """``use``: of each station, the share of the time for which it is busy. ``limit``: the station that is always."""

    ready_s: float
    limit: str
    use: Mapping[str, float] = field(default_factory=dict)

    def next_limit(self) -> str:
        """The station that would be the limit if the first one were not."""
        return max((name for name in self.use if name != self.limit), key=lambda name: self.use[name])


def demand_ms(costs: Mapping[str, float], place: Place) -> dict[str, float]:
    """For how long a pod keeps each station busy, servers that work side by side counted."""
    fleet_ms = sum(costs.get(role, 0.0) for role in FLEET)
    demand = {
        "redis": costs["redis"] / place.shards,
        "ingestor": costs["ingestor"] / place.shards,
        "worker": costs["worker"] / place.workers,
        "api": 1e3 / place.api_pods_per_s if place.api_pods_per_s else costs["api"],
    }
    if place.cores:
        demand["cores"] = (fleet_ms + costs["api"]) / place.cores
    return demand


def forecast(costs: Mapping[str, float], place: Place, pods: int) -> Forecast:
    """How long until so many pods are ready, all of their owners asked for at once."""
    demand = demand_ms(costs, place)
    limit = max(demand, key=lambda name: demand[name])
    slowest_ms = demand[limit]
    return Forecast(pods * slowest_ms / 1e3, limit, {name: ms / slowest_ms for name, ms in demand.items()})


def growth(sizes: Sequence[Measured], pods: int) -> dict[str, float]:
    """The costs at ``pods``: a line through those measured over the logarithm of the size, of each role. They rise as
    caches of one size catch less of a larger cluster, so by the logarithm at most.
    """
    roles = sorted(set().union(*(size.cpu_ms for size in sizes)))
    at = [math.log(size.pods) for size in sizes]
    return {role: _line(at, [size.cpu_ms.get(role, 0.0) for size in sizes], math.log(pods)) for role in roles}


def _line(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Least squares; never below the least that was measured."""
    middle, level = sum(xs) / len(xs), sum(ys) / len(ys)
    wide = sum((each - middle) ** 2 for each in xs)
    slope = sum((a - middle) * (b - level) for a, b in zip(xs, ys, strict=True)) / wide if wide else 0.0
    return max(min(ys), level + slope * (x - middle))


def check(sizes: Sequence[Measured], workers: int) -> list[tuple[Measured, Forecast]]:
    """Each size but the smallest, with what the model makes of all smaller ones."""
    ranked = sorted(sizes, key=lambda size: size.pods)
    return [
        (size, forecast(growth(ranked[:at], size.pods), Place(workers=workers, cores=size.cores), size.pods))
        for at, size in enumerate(ranked)
        if at
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    sizes = read(options.measured)
    checked = check(sizes, options.measured_workers)
    rows = [
        (
            f"{size.pods:,}",
            f"{size.ready_s:.1f}",
            f"{told.ready_s:.1f}",
            f"{told.ready_s / size.ready_s - 1:+.0%}",
            STATIONS[told.limit],
        )
        for size, told in checked
    ]
    report.show("each size by the smaller ones", ("pods", "measured, s", "model, s", "off", "limit"), rows)
    costs, largest = growth(sizes, options.pods), max(sizes, key=lambda size: size.pods)
    places = [Place(shards, options.workers, 0, options.api_pods_per_s) for shards in options.shards]
    told = [(place, forecast(costs, place, options.pods)) for place in places]
    free = [forecast(costs, replace(place, api_pods_per_s=math.inf), options.pods) for place in places]
    rows = [
        (
            f"{place.shards}",
            f"{each.ready_s:,.0f}",
            STATIONS[each.limit],
            f"{without.ready_s:,.0f}",
            STATIONS[without.limit],
            f"{largest.redis_bytes * options.pods / place.shards / 1e6:,.0f}",
        )
        for (place, each), without in zip(told, free, strict=True)
    ]
    titles = ("shards", "ready, s", "limit", "with an API server without bounds, s", "limit", "Redis, MB a shard")
    report.show(f"{options.pods:,} pods, {options.workers} workers", titles, rows)
    report.finish(
        {
            "benchmark": "scale",
            "pods": options.pods,
            "workers": options.workers,
            "api_pods_per_s": options.api_pods_per_s,
            "cpu_ms_per_pod": {role: round(ms, 4) for role, ms in costs.items()},
            "checked": [
                {"pods": size.pods, "measured_s": size.ready_s, "model_s": round(told.ready_s, 2)}
                for size, told in checked
            ],
            "shards": [
                {
                    "shards": place.shards,
                    "ready_s": round(each.ready_s, 1),
                    "limit": each.limit,
                    "next_limit": each.next_limit(),
                    "use": {name: round(share, 3) for name, share in each.use.items()},
                }
                for place, each in told
            ],
        }
    )


def read(paths: Iterable[Path]) -> list[Measured]:
    """The sizes in the last lines of these files, each once; the later file wins. Raises Unfit."""
    found: dict[int, Measured] = {}
    for path in paths:
        try:
            facts = json.loads(path.read_text().strip().splitlines()[-1])
        except (OSError, ValueError, IndexError) as error:
            raise Unfit(f"{path} has no last line of benchmarks.large: {error}") from None
        found |= {size.pods: size for size in Measured.read(facts)}
    if len(found) < 2:
        raise Unfit("two sizes are needed at least; give the outputs of `make bench NAME=large`")
    return list(found.values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    add = parser.add_argument
    add("measured", type=Path, nargs="+", help="files with what `benchmarks.large` printed")
    add("--measured-workers", type=int, default=2, help="of those runs")
    add("--pods", type=int, default=1_000_000)
    add("--shards", type=int, nargs="+", default=[1, 2, 4, 8], help="numbers of shards to tell of")
    add("--workers", type=int, default=16, help="of all shards together")
    add("--api-pods-per-s", type=float, default=1_000.0, help="pods that the API server takes; 0: as the embedded one")
    return parser


if __name__ == "__main__":
    report.main(main)
