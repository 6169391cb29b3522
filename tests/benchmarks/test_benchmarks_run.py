"""Each benchmark runs to its end, however small, and ends with the JSON that docs/benchmarks.md describes.

Nothing here looks at how fast anything was.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import CpuMeter, cpu_ns, rss_kb
from benchmarks.report import percentile, spread
from benchmarks.round_trips import turns

ROOT = Path(__file__).parents[2]
LIMIT_S = 110


def run(name: str, *arguments: str) -> dict[str, Any]:
    """The JSON object a benchmark ends with."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert facts["benchmark"] == name
    return facts


def documented(name: str) -> set[str]:
    """Keys that the section of a benchmark lists."""
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    (mine,) = [part for part in section if part.startswith(f"{name}\n")]
    common = next(part for part in section if part.startswith("Keys of every benchmark"))
    keys = re.findall(r"^\| `([^`]+)`", mine + common, flags=re.MULTILINE)
    assert len(keys) == len(set(keys)), "documented twice"
    return set(keys)


@pytest.mark.slow
def test_queue() -> None:
    facts = run(
        *("queue", "--rounds", "1", "--passes", "1", "--chunks", "2"),
        *("--owners-3", "60", "--owners-50", "5", "--jobs", "20"),
    )
    assert set(facts) == documented("queue")
    assert (facts["turns_a_round"], facts["turns_a_round_50"], facts["rq_jobs_a_round"]) == (60, 5, 20)
    assert facts["ratio_vs_rq_simple"] > 0
    assert facts["redis_round_trips_noop"] <= 3
    assert facts["redis_round_trips_one_chunk"] <= 3


@pytest.mark.slow
def test_converge() -> None:
    facts = run(
        *("converge", "--rounds", "1", "--large", "12", "--many", "2"),
        *("--rss-few", "1", "--rss-more", "2", "--rest-s", "0.1"),
    )
    assert set(facts) == documented("converge")
    assert facts["over_creations"] == 0
    assert facts["pods_large"] == 12
    assert facts["worker_rss_mb_more"] > 1
    assert set(facts["cpu_ms_per_pod_large"]) == {"api", "redis", "ingestor", "worker", "supervisor"}


@pytest.mark.slow
def test_failover() -> None:
    facts = run("failover", "--kills", "3")
    assert set(facts) == documented("failover")
    assert facts["kills"] == 3
    assert facts["writes_in_flight"] >= 3
    assert 0 < facts["p50_ms"] <= facts["p90_ms"] <= facts["p99_ms"] <= facts["max_ms"]
    assert facts["over_creations"] == 0


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(200, 0, -1)]
    assert percentile(values, 0.5) == 100.0
    assert percentile(values, 0.99) == 198.0
    assert percentile(values, 1.0) == 200.0
    assert percentile([7.0], 0.5) == 7.0


def test_a_spread_names_the_median_and_the_ends() -> None:
    assert spread([3.0, 1.0, 2.0]) == "2.0 [1.0-3.0]"


def test_a_turn_reaches_from_its_claim_to_its_finish() -> None:
    calls = ["claim", "blpop", "claim", "finish", "claim", "record", "record", "finish", "claim"]
    assert turns(calls) == [["claim", "finish"], ["claim", "record", "record", "finish"]]


def test_time_on_the_cpu_is_counted() -> None:
    """By a process that does nothing else, so that it grows at all."""
    worker = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        meter = CpuMeter([("busy", worker.pid)])
        while not meter.spent_ns()["busy"]:
            pass
        assert rss_kb(worker.pid) > 1_000
    finally:
        worker.kill()
        worker.wait()
    with pytest.raises(FileNotFoundError):
        cpu_ns(worker.pid)
