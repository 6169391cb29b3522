"""What benchmarks reckon with: percentiles, round trips, the writes and the CPU of processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.processes import CpuMeter, cpu_ns, rss_kb
from benchmarks.report import percentile, spread
from benchmarks.round_trips import Call, turns
from benchmarks.worker_writes import WorkerWrites


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(200, 0, -1)]
    assert percentile(values, 0.5) == 100.0
    assert percentile(values, 0.99) == 198.0
    assert percentile(values, 1.0) == 200.0
    assert percentile([7.0], 0.5) == 7.0


def test_a_spread_names_the_median_and_the_ends() -> None:
    assert spread([3.0, 1.0, 2.0]) == "2.0 [1.0-3.0]"


def test_a_turn_reaches_from_its_claim_to_its_finish() -> None:
    calls = [
        *(Call("claim"), Call("blpop"), Call("claim"), Call("finish", (1, "q:a")), Call("claim")),
        *(Call("announce"), Call("announce"), Call("finish", (1, "q:a")), Call("hgetall"), Call("claim")),
    ]
    assert turns(calls, "q:a") == [["claim", "finish"], ["claim", "announce", "announce", "finish"]]
    assert turns(calls, "q:b") == []


def test_a_turn_that_shares_its_claim_is_not_counted() -> None:
    together = [Call("claim"), Call("finish", (2, "q:a"))]
    one_by_one = [Call("claim"), Call("finish", (1, "q:a")), Call("announce"), Call("finish", (1, "q:b"))]
    alone = [Call("claim"), Call("look"), Call("finish", (1, "q:a"))]
    assert turns([*together, *one_by_one, *alone], "q:a") == [["claim", "look", "finish"]]


def test_a_turn_without_its_end_is_not_counted() -> None:
    assert turns([Call("claim"), Call("announce")], "q:a") == []


def test_writes_of_workers_are_counted_from_where_the_log_stood(tmp_path: Path) -> None:
    def line(verb: str, resource: str, agent: str, **more: str) -> str:
        event = {"verb": verb, "userAgent": f"oarlock/1 ({agent})", "objectRef": {"resource": resource, **more}}
        return json.dumps(event, separators=(",", ":")) + "\n"

    log = tmp_path / "audit.log"
    log.write_text(line("create", "pods", "worker"))
    counted = WorkerWrites(log)
    assert counted.since() == {}
    with log.open("a") as more:
        more.write(line("create", "pods", "worker") * 2 + line("create", "pods", "bench"))
        more.write(line("patch", "daemonsets", "worker", subresource="status"))
    assert counted.since() == {"create pods": 2, "patch daemonsets/status": 1}


def test_time_on_the_cpu_is_counted() -> None:
    """By a process that does nothing else, so that it grows at all; looked at once it is a Python, not before."""
    busy = "print(flush=True)\nwhile True: pass"
    worker = subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE)
    try:
        assert worker.stdout is not None
        worker.stdout.readline()
        meter = CpuMeter([("busy", worker.pid)])
        while not meter.spent_ns()["busy"]:
            pass
        assert rss_kb(worker.pid) > 1_000
    finally:
        worker.kill()
        worker.communicate()
    with pytest.raises(FileNotFoundError):
        cpu_ns(worker.pid)
