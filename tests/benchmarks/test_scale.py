"""The model of large clusters: which station is the limit, how costs grow, and what it makes of runs that were made."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks import scale
from benchmarks.report import Unfit
from benchmarks.scale import Measured, Place, forecast, growth
from tests.benchmarks.runs.test_runs import documented

COSTS = {"redis": 0.2, "ingestor": 0.25, "worker": 0.5, "supervisor": 0.05, "api": 0.6}


def size(pods: int, ready_s: float, **costs: float) -> Measured:
    return Measured(pods, ready_s, {**COSTS, **costs}, 500.0, 80.0, 2)


@pytest.mark.parametrize(
    ("place", "ready_s", "limit", "then"),
    [
        pytest.param(Place(cores=2), 8.0, "cores", "api", id="one machine: 1.6 ms of 2 cores"),
        pytest.param(Place(), 6.0, "api", "ingestor", id="a core for each process"),
        pytest.param(Place(api_pods_per_s=500), 20.0, "api", "ingestor", id="an API server that takes 500 a second"),
        pytest.param(Place(workers=1, api_pods_per_s=1e9), 5.0, "worker", "ingestor", id="one worker"),
        pytest.param(Place(workers=8, api_pods_per_s=1e9), 2.5, "ingestor", "redis", id="eight workers"),
        pytest.param(Place(2, 8, api_pods_per_s=1e9), 1.25, "ingestor", "redis", id="two shards halve both"),
    ],
)
def test_the_slowest_station_is_the_limit(place: Place, ready_s: float, limit: str, then: str) -> None:
    told = forecast(COSTS, place, 10_000)
    assert (told.ready_s, told.limit, told.next_limit()) == (pytest.approx(ready_s), limit, then)
    assert max(told.use.values()) == told.use[limit] == 1.0


def test_costs_grow_by_the_logarithm_and_never_fall_below_what_was_measured() -> None:
    sizes = [size(1_000, 1.0, redis=0.2, worker=0.5), size(10_000, 1.0, redis=0.3, worker=0.4)]
    told = growth(sizes, 100_000)
    assert told["redis"] == pytest.approx(0.4)
    assert told["worker"] == 0.4
    assert told["api"] == pytest.approx(0.6)
    assert growth(sizes[:1], 100_000) == sizes[0].cpu_ms, "one size says nothing of growth"


def test_each_size_is_told_from_the_smaller_ones_alone() -> None:
    sizes = [size(20_000, 99.0, redis=9.0), size(5_000, 4.0), size(10_000, 8.5)]
    checked = scale.check(sizes, 2)
    assert [(each.pods, round(told.ready_s, 6)) for each, told in checked] == [(10_000, 8.0), (20_000, 16.0)]


def last_line(tmp_path: Path, *sizes: tuple[int, float]) -> Path:
    facts: dict[str, Any] = {"benchmark": "large", "machine": {"cores": 2}, "sizes": []}
    for pods, ready_s in sizes:
        costs = {"redis_bytes_per_pod": 500, "history_bytes_per_pod": 80, "cpu_ms_per_pod": COSTS}
        facts["sizes"].append({"pods": pods, "ready_s": ready_s, **costs})
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.txt"
    path.write_text("a line of progress\n\n" + json.dumps(facts) + "\n")
    return path


def test_the_whole_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = last_line(tmp_path, (5_000, 4.0), (10_000, 8.0)), last_line(tmp_path, (20_000, 16.0))
    scale.main([str(first), str(second), "--pods", "1000000", "--shards", "1", "4", "--workers", "4"])
    shown = capsys.readouterr().out
    facts = json.loads(shown.splitlines()[-1])
    assert [(each["pods"], each["model_s"]) for each in facts["checked"]] == [(10_000, 8.0), (20_000, 16.0)]
    assert [(each["limit"], each["next_limit"]) for each in facts["shards"]] == [("api", "ingestor"), ("api", "worker")]
    assert facts["shards"][0]["ready_s"] == 1_000.0
    assert set(facts) == documented("scale")
    assert "an ingestor" in shown, "the limit without that of the API server"


def test_no_bound_is_no_station() -> None:
    assert forecast(COSTS, Place(api_pods_per_s=math.inf), 1).use["api"] == 0.0


@pytest.mark.parametrize("text", ["", "no JSON", '{"benchmark": "queue"}', '{"sizes": [{"pods": 5}], "machine": {}}'])
def test_what_is_no_last_line_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "out.txt"
    path.write_text(text)
    with pytest.raises(Unfit, match=r"last line of benchmarks\.large"):
        scale.read([path])


def test_one_size_is_not_enough(tmp_path: Path) -> None:
    with pytest.raises(Unfit, match="two sizes"):
        scale.read([last_line(tmp_path, (5_000, 4.0)), last_line(tmp_path, (5_000, 4.0))])
