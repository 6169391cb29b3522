"""A process a shard under one parent: started again, ended together, and none left when the parent is killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarlock.broker import epoch
from tests.workers.ingest.ingest_processes import Child, Stage, until

# Each says who it is, and ends as its file says, or when it is asked to.
LIVES = """
import json, os, signal, sys, time
from pathlib import Path
from oarlock.workers.supervisor.shard_processes import run_each

folder = Path(sys.argv[1])

def life(shard):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.write(1, json.dumps({"shard": shard, "pid": os.getpid()}).encode() + b"\\n")
    while not (folder / shard).exists():
        time.sleep(0.01)
    return int((folder / shard).read_text())

fork, refused = os.fork, iter(sys.argv[2:])

def refusing():
    if next(refused, ""):
        raise BlockingIOError("no more processes")
    return fork()

os.fork = refusing
sys.exit(run_each(["0", "1", "2"], life))
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Child]:
    child = Child([sys.executable, "-c", LIVES, str(tmp_path)])
    yield child
    child.end(signal.SIGKILL)


def pids(parent: Child) -> dict[str, int]:
    return {told["shard"]: told["pid"] for told in (parent.said(), parent.said(), parent.said())}


def test_one_that_is_killed_is_started_again_and_no_other(parent: Child) -> None:
    before = pids(parent)
    assert before.keys() == {"0", "1", "2"}
    os.kill(before["1"], signal.SIGKILL)
    again = parent.said()
    assert again["shard"] == "1"
    assert again["pid"] != before["1"]
    assert is_alive(before["0"])
    assert is_alive(before["2"])


def test_one_that_cannot_be_started_is_started_later(tmp_path: Path) -> None:
    """Where the system has no more processes the others live, and it is tried again."""
    parent = Child([sys.executable, "-c", LIVES, str(tmp_path), "refused"])
    assert pids(parent).keys() == {"0", "1", "2"}
    parent.end(signal.SIGKILL)


def test_all_end_when_the_parent_is_asked_to(parent: Child) -> None:
    children = pids(parent)
    code, _ = parent.end(signal.SIGTERM, limit_s=30)
    assert code == 0
    assert not any(is_alive(pid) for pid in children.values())


def test_all_die_with_the_parent(parent: Child) -> None:
    children = pids(parent)
    parent.end(signal.SIGKILL)
    until(lambda: not any(is_alive(pid) for pid in children.values()), 30, "the children end")


def test_what_cannot_be_used_ends_all_of_them(parent: Child, tmp_path: Path) -> None:
    children = pids(parent)
    (tmp_path / "1").write_text("2")
    assert parent.process.wait(30) == 2
    assert not any(is_alive(pid) for pid in children.values())


def test_one_ingest_command_serves_all_shards_and_another_division_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    try:
        stage.cluster.create_owner("web", "web")  # in the namespace default, which is of shard 1
        stage.cluster.create_pod("p", "web")
        both = stage.ingestor(shards=2, lease_ms=5_000)  # within two of them the other must see a renewal
        assert {both.said(60)["shard"], both.said(60)["shard"]} == {"0", "1"}
        admin = stage.server.admin
        assert [epoch.current(admin, shard).phase for shard in "01"] == ["OPEN", "OPEN"]
        cached = {shard: [*admin.scan_iter(f"oarlock:1:{{{shard}}}:cache:pods:*")] for shard in "01"}
        assert [len(cached[shard]) for shard in "01"] == [0, 1]
        other = stage.ingestor(shards=3, lease_ms=5_000)
        assert other.ended(60) == 2
        told = "the fleet is divided into 2, this process into 3, and it is alive"
        said = [line for line in other.errors if line.startswith("oarlock: ")]
        assert len(said) == 1
        assert told in said[0]
        assert [epoch.current(admin, shard).epoch for shard in "012"] == [1, 1, 0]
        notes = stage.cluster.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/oarlock")
        assert notes["metadata"]["annotations"]["oarlock.io/shards"] == "2"
    finally:
        stage.close()
