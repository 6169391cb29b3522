"""Each benchmark runs to its end, however small, and ends with the JSON that docs/benchmarks describes.

Nothing here looks at how fast anything was.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests import ROOT

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
    pages = "".join(page.read_text() for page in sorted((ROOT / "docs" / "benchmarks").glob("*.md")))
    sections = re.split(r"^#+ ", pages, flags=re.MULTILINE)
    (mine,) = [part for part in sections if part.startswith(f"{name}\n")]
    (common,) = [part for part in sections if part.startswith("Keys of every benchmark\n")]
    keys = re.findall(r"^\| `([^`]+)`", mine + common, flags=re.MULTILINE)
    assert len(keys) == len(set(keys)), "documented twice"
    return set(keys)


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


def test_peers() -> None:
    """Those that are not installed are named; RQ always is."""
    facts = run("peers", "--rounds", "1", "--owners", "60", "--jobs", "300")
    assert set(facts) == documented("peers")
    assert facts["ratio_vs_best_peer"] > 0
    assert facts["cpu_us_rq"] > facts["redis_us_rq"] > 0
    assert all((facts[f"cpu_us_{name}"] is None) == (name in facts["absent"]) for name in ("huey", "taskiq", "arq"))


def test_pods() -> None:
    facts = run("pods", "--rounds", "1", "--pods", "60", "--passes", "1")
    assert set(facts) == documented("pods")
    assert set(facts["turns"]) == {"counts_3", "pods_3", "counts_50", "pods_50"}


def test_budget() -> None:
    facts = run("budget", "--workers", "2", "--seconds", "2")
    assert set(facts) == documented("budget")
    assert facts["per_s_many"]["2"] > 0


def test_webhook() -> None:
    facts = run("webhook", "--rounds", "1", "--owners", "4", "--pods", "2", "--slow", "2")
    assert set(facts) == documented("webhook")
    assert facts["ratio"] > 0


def test_latency() -> None:
    facts = run("latency", "--owners", "5")
    assert set(facts) == documented("latency")
    assert 0 < facts["own_p50_ms_1"] <= facts["own_p99_ms_1"]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="makes network namespaces")
def test_scale_out() -> None:
    facts = run(
        *("scale_out", "--rounds", "1", "--workers", "1", "2"),
        *("--owners", "3", "--small-owners", "5", "--writes-in-flight", "4"),
    )
    assert set(facts) == documented("scale_out")
    assert 5 <= facts["latency_ms"] < 100
    for pods in (10, 1):
        assert facts[f"share_{pods}"]["1"] == 1
        assert facts[f"share_{pods}"]["2"] > 0
        assert set(facts[f"cpu_ms_per_pod_{pods}"]["2"]) == {
            *("api", "redis", "ingestor", "relay", "worker", "supervisor"),
        }


def test_keyed_queue() -> None:
    facts = run("keyed_queue", "--rounds", "1", "--keys", "300", "--rq-keys", "20")
    assert set(facts) == documented("keyed_queue")
    assert (facts["keys_a_round"], facts["rq_keys_a_round"]) == (300, 20)
    assert facts["ratio_vs_rq_lock"] > 0


def test_fair() -> None:
    facts = run("fair", "--flood", "600", "--rounds", "1", "--every-ms", "1", "--depths", "8", "100", "--claims", "3")
    assert set(facts) == documented("fair")


def test_look() -> None:
    facts = run(
        *("look", "--keys", "600", "--namespaces", "7", "--told", "64", "--histories", "100"),
        *("--failing", "40", "--parked", "3", "--runs", "1"),
    )
    assert set(facts) == documented("look")
    assert len(facts["commands"]) == 8
    assert all(each["redis_ms"] > 0 for each in facts["commands"].values())


def test_board() -> None:
    facts = run(
        *("board", "--keys", "600", "--namespaces", "7", "--told", "64", "--histories", "100"),
        *("--failing", "40", "--parked", "3", "--seconds", "2"),
    )
    assert set(facts) == documented("board")
    assert facts["percent_of_a_core"]["nobody"] < facts["percent_of_a_core"]["keys, 3"]


def test_history() -> None:
    facts = run("history", "--keys", "64", "--before", "30", "--rounds", "2", "--blocks", "2")
    assert set(facts) == documented("history")
    assert 300 < facts["history_bytes"] <= 1_000


def test_ingest() -> None:
    facts = run("ingest", "--rounds", "1", "--pods", "200", "--per-s", "50", "--seconds", "2")
    assert set(facts) == documented("ingest")
    assert facts["events_per_s"] > 0


def test_large() -> None:
    facts = run("large", "--small", "0", "--pods", "300", "--churn", "10", "--churn-s", "2", "--rest-s", "1")
    assert set(facts) == documented("large")
    (size,) = facts["sizes"]
    assert (size["pods"], size["nodes"]) == (300, 6)
    assert 10 < size["reopened_s"] < 60


def test_operators() -> None:
    facts = run("operators", "--rounds", "1", "--objects", "100", "--rest-s", "3")
    assert set(facts) == documented("operators")
    assert (facts["objects"], facts["workers"]) == (100, 2)
    for killed in ("oarlock", "oarlock_worker"):
        assert [facts[f"{count}_{killed}"] for count in ("duplicates", "missing", "unsaid")] == [0, 0, 0]
    assert facts["ratio_vs_kopf"] > 0


def test_operators_kills() -> None:
    facts = run(
        *("operators.kills", "--objects", "40", "--workers", "2", "--kills", "4"),
        *("--changes", "1", "--rest-s", "1", "--seed", "3"),
    )
    assert set(facts) == documented("operators.kills")
    assert facts["broken"] == 0
    assert facts["kills_worker"] + facts["kills_ingestor"] >= 4
    assert facts["children_created"] >= 40
    assert facts["effects"] + facts["effects_deleted"] >= 4  # one that is deleted early is never told


def test_desired() -> None:
    facts = run("desired", "--rounds", "1", "--objects", "50")
    assert set(facts) == documented("desired")
    assert (facts["objects"], facts["rounds"]) == (50, 1)
    assert facts["worker_cpu_us_noop"] > 0


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


def test_failover() -> None:
    facts = run("failover", "--kills", "3")
    assert set(facts) == documented("failover")
    assert facts["kills"] == 3
    assert facts["writes_in_flight"] >= 3
    assert 0 < facts["p50_ms"] <= facts["p90_ms"] <= facts["p99_ms"] <= facts["max_ms"]
    assert facts["over_creations"] == 0


def test_daemonset() -> None:
    facts = run("daemonset", "--rounds", "1", "--nodes", "6", "--fewer-nodes", "3", "--rest-s", "0.1", "--chunks", "2")
    assert set(facts) == documented("daemonset")
    assert (facts["nodes"], facts["nodes_fewer"]) == (6, 3)
    assert facts["turns_create"] >= 1
    assert facts["turns_update"] >= 6, "a tenth of six nodes is one at a time"
    assert facts["api_writes_per_pod_create"] >= 1
    assert facts["api_writes_per_pod_update"] >= 2
    assert facts["redis_round_trips_noop"] <= 3
    assert facts["redis_round_trips_one_chunk"] <= 3
    assert set(facts["cpu_ms_per_pod_update"]) == {"api", "redis", "ingestor", "worker", "supervisor"}
    assert set(facts["growth_create"]) == set(facts["growth_update"])


def test_nodes() -> None:
    facts = run("nodes", "--rounds", "1", "--nodes", "4", "--fewer-nodes", "2", "--sets", "4", "--fewer-sets", "2")
    assert set(facts) == documented("nodes")
    assert facts["keys_by_heartbeats"] == 0
    assert facts["set_keys_by_other_label"] == 0
    assert facts["full"]["pods"] == 8
    for which, nodes in (("full", 4), ("fewer_sets", 4), ("fewer_nodes", 2)):
        for change in ("set", "unset"):
            assert 1 <= facts[which][change]["node_turns"] <= nodes
            assert facts[which][change]["set_turns"] >= facts[which]["sets"] // 2


def test_fixture() -> None:
    facts = run("fixture", "--starts", "1", "--tests", "2", "--rounds", "1")
    assert set(facts) == documented("fixture")
    assert (facts["starts"], facts["tests"]) == (1, 2)
    assert facts["ready_ms_p50_memory"] > 0


def test_blocking() -> None:
    facts = run("blocking", "--rounds", "1", "--objects", "20", "--passes", "1")
    assert facts.keys() == documented("blocking")
    assert facts["turns_per_s_blocking_4"] > 0
