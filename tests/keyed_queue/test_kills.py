"""Real consumers, killed with SIGKILL in a burst: each key ends at its last version, and never has two holders."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import redis

from oarlock.queue import KeyedQueue
from oarlock.workers.process.death_signal import command_dying_with_this_process
from tests import ROOT
from tests.keyed_queue.killed_consumer import QUEUE, VERSIONS

KEYS, KILLS, CONSUMERS = 60, 12, 3
BETWEEN_KILLS_S = 0.6


def start(url: str, journal: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.keyed_queue.killed_consumer", url, str(journal)]
    return subprocess.Popen(command_dying_with_this_process(command), cwd=ROOT)


def await_that(holds: Callable[[], bool], what: str, limit_s: float = 60.0) -> None:
    until_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until_s, what
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.real
def test_consumers_killed_in_a_burst(url: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    queue, theirs, journal = KeyedQueue(QUEUE, url, group=""), redis.Redis.from_url(url), tmp_path / "journal"
    running = [start(url, journal) for _ in range(CONSUMERS)]
    kills = 0

    def touch() -> None:
        key = f"k{chance.randrange(KEYS)}"
        theirs.hincrby(VERSIONS, key)
        queue.add(key)

    try:
        await_that(lambda: queue.stats().consumers == CONSUMERS, "all are up")
        for _ in range(KILLS + 2):  # in the end nobody is killed for a while
            until_s = time.monotonic() + BETWEEN_KILLS_S
            while time.monotonic() < until_s or not queue.stats().running:
                touch()
            if kills < KILLS:
                kills += 1
                victim = running.pop(0)
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                running.append(start(url, journal))
        await_that(lambda: (s := queue.stats()).queued + s.running + s.delayed == 0, "all is done")
    finally:
        for each in running:
            each.kill()
            each.wait()
    judge(journal, {key.decode(): int(version) for key, version in theirs.hgetall(VERSIONS).items()})  # type: ignore[union-attr]


def judge(journal: Path, versions: dict[str, int]) -> None:
    runs: dict[str, dict[int, dict[str, tuple[int, int]]]] = defaultdict(lambda: defaultdict(dict))
    for line in journal.read_text().splitlines():
        word, key, token, version, at_ns = line.split()
        assert word not in runs[key][int(token)], "a token is used once"
        runs[key][int(token)][word] = int(version), int(at_ns)
    cut_short = 0
    for key, version in versions.items():
        by_token = [runs[key][token] for token in sorted(runs[key])]
        for run, later in pairwise(by_token):
            last_ns = run.get("end", run["begin"])[1]
            assert last_ns < later["begin"][1], f"two holders of {key} at once"
            cut_short += "end" not in run
        assert by_token[-1]["end"][0] == version, f"{key} was not looked at in its last version"
    assert cut_short > 0, "no kill met a function at work"
