"""What `oarlock chaos --only` plays: when, how often, with what Redis, and how it says what it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from oarlock.broker.connection.client import connect
from oarlock.chaos.faults.episodes import EPISODES, fitting, planned
from oarlock.chaos.faults.mixes import MIXES
from oarlock.chaos.faults.network import API, REDIS
from oarlock.chaos.faults.points import POINTS
from oarlock.chaos.faults.proxy import MODES
from oarlock.chaos.faults.schedule import Timing
from oarlock.chaos.record.monitor import Clock
from oarlock.chaos.rig import redis_program
from oarlock.chaos.rig.redis_program import (
    CUT_FILE,
    ClockFile,
    NoClock,
    find_library,
    program_with_clock,
    program_with_log,
)
from oarlock.cli.run.chaos import chaos
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sandbox.redis.redis_binary import ServerBinary, find

TIMING = Timing(drain_s=7.0, lease_s=3.0)


@pytest.mark.parametrize("name", EPISODES)
@pytest.mark.parametrize("duration_s", [45.0, 120.0])
def test_as_many_as_there_is_room_for_and_none_before_the_last_is_over(name: str, duration_s: float) -> None:
    count = fitting(name, duration_s, TIMING)
    plan = planned(name, 7, count, duration_s, TIMING)
    assert [each.detail for each in plan] == [str(number) for number in range(count)]
    assert all(later.at_s >= earlier.at_s + earlier.lasts_s for earlier, later in pairwise(plan))
    assert plan == planned(name, 7, count, duration_s, TIMING)
    assert plan != planned(name, 8, count, duration_s, TIMING)


def test_the_faults_last_as_long_as_they_say() -> None:
    (freeze,) = planned("host-freeze", 7, 1, 45.0, TIMING)
    assert freeze.lasts_s > TIMING.drain_s
    for name in ("redis-cut", "api-cut", "blocked-redis"):
        (cut,) = planned(name, 7, 1, 45.0, TIMING)
        assert cut.lasts_s > 2 * TIMING.lease_s


def test_both_wires_are_played_in_every_way_the_proxy_knows() -> None:
    wires = {name: mode for name in EPISODES for wire, _, mode in [name.partition("-")] if wire in (REDIS, API)}
    modes = {mode for mode in wires.values() if mode != "one-way"} | {"pass", "no-answers", "no-requests"}
    assert modes == set(MODES)
    assert len(wires) == 14


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "redis-cut", "--second-fleet"], "leave one out"),
        (["--only", "redis-cut", "--shards", "2"], "leave out the other option"),
        (["--shards", "4"], "need 8"),
        (["--only", "nonsense"], "redis-cut"),
        (["--mix", "points", "--only", "redis-cut"], "leave out --only"),
    ],
)
def test_what_does_not_go_together_is_said(words: list[str], said: str) -> None:
    done = CliRunner().invoke(chaos, words)
    assert done.exit_code != 0
    assert said in f"{done.output}{done.exception}"


def test_the_list_names_them_all() -> None:
    done = CliRunner().invoke(chaos, ["--list"], standalone_mode=False)
    named = [line.split()[0] for line in done.output.splitlines() if line.startswith("  ")]
    assert named == [*MIXES, *POINTS, *EPISODES]


def test_lines_are_noted_in_our_time_before_and_after_a_jump() -> None:
    clock = Clock()
    assert clock.in_our_time(b'+1000.100000 [0 lua] "GET"', 1000.2) == b'+1000.100000 [0 lua] "GET"'
    clock.expect(-3600.0)
    assert clock.in_our_time(b"+1001.500000 [0 x]", 1002.0).startswith(b"+1001.500000 ")
    assert clock.offset_s == 0.0
    assert clock.in_our_time(b'+-2598.000000 [0 x] "SET"', 1002.1) == b'+1002.000000 [0 x] "SET"'
    assert clock.offset_s == -3600.0


def test_without_the_library_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_program, "_LIBRARIES", ("/nowhere",))
    with pytest.raises(NoClock, match="apt-get install faketime"):
        find_library()


@pytest.mark.real
def test_the_clock_of_a_redis_jumps_there_and_back(tmp_path: Path) -> None:
    try:
        library = find_library()
    except NoClock as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    clock = ClockFile(tmp_path / "clock")
    folder = program_with_clock(tmp_path / "bin", find(), clock, library)
    with EmbeddedRedis(tmp_path / "redis", binary=ServerBinary(str(folder / "redis-server"), find().version)) as server:
        client = connect(server.url("admin"))
        for offset_s in (3_600, -86_400, 0):
            clock.set(offset_s)
            until_s = time.monotonic() + 20.0
            while abs(int(client.time()[0]) - time.time() - offset_s) > 2.0:
                assert time.monotonic() < until_s, f"it does not follow to {offset_s}"
                time.sleep(0.05)
        client.close()


@pytest.mark.real
def test_a_redis_comes_back_without_the_tail_of_its_log(tmp_path: Path) -> None:
    folder = program_with_log(tmp_path / "bin", find())
    program = ServerBinary(str(folder / "redis-server"), find().version)
    with EmbeddedRedis(tmp_path / "redis", binary=program) as server:
        client = connect(server.url("admin"))
        client.set("kept", "1")
        (log,) = (tmp_path / "redis").glob("appendonlydir/*.incr.aof")
        until_s = time.monotonic() + 20.0
        while b"kept" not in log.read_bytes():
            assert time.monotonic() < until_s
            time.sleep(0.02)
        (folder / CUT_FILE).write_text(f"{log.stat().st_size} {log}\n")
        client.set("lost", "1")
        client.close()
        server.kill()
        server.start()
        client = connect(server.url("admin"))
        assert (client.get("kept"), client.get("lost")) == (b"1", None)
        assert not (folder / CUT_FILE).exists(), "it is cut once"
        client.close()
    shutil.rmtree(tmp_path / "redis", ignore_errors=True)


def test_the_program_passes_on_what_it_is_asked(tmp_path: Path) -> None:
    folder = program_with_log(tmp_path / "bin", find())
    said = subprocess.run([folder / "redis-server", "--version"], capture_output=True, text=True, check=True).stdout
    assert f"v={'.'.join(map(str, find().version))}" in said
