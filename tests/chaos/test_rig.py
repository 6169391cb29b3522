"""Whom the campaign may hit: processes of its own two hosts, the supervisors with their workers, and nobody else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from oarlock.chaos.rig.rig import Rig, descends_from

PARENT = """import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
time.sleep(60)"""


def test_the_second_host_is_a_supervisor_and_its_living_workers(tmp_path: Path) -> None:
    async def play() -> None:
        rig = Rig(tmp_path, nodes=1, workers=2, ingestors=1, settings={})
        tree = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE)
        assert tree.stdout is not None
        worker = int(await tree.stdout.readline())
        try:
            rig._beside["supervisor", 1] = tree
            (tmp_path / "host-1").mkdir()
            listed = [
                {"role": "supervisor", "pid": tree.pid, "name": "s"},
                {"role": "worker", "pid": worker, "name": "w"},
                {"role": "worker", "pid": 1, "name": "of a list that is old"},
            ]
            (tmp_path / "host-1" / "workers.json").write_text(json.dumps(listed))
            assert [(each.pid, each.fleet) for each in rig.targets("supervisor")] == [(tree.pid, 1)]
            assert [(each.pid, each.name) for each in rig.targets("worker")] == [(worker, "w")]
            assert descends_from(worker, tree.pid)
            assert not descends_from(tree.pid, worker)
        finally:
            os.kill(worker, signal.SIGKILL)
            tree.kill()
            await tree.wait()
        assert rig.targets("supervisor") == []

    asyncio.run(play())


def test_workers_are_shared_among_the_hosts(tmp_path: Path) -> None:
    def counts(workers: int, hosts: int) -> list[int]:
        return Rig(tmp_path, nodes=1, workers=workers, ingestors=1, settings={}, hosts=hosts)._counts

    assert counts(6, 2) == [3, 3]
    assert counts(7, 2) == [4, 3]
    assert counts(8, 4) == [2, 2, 2, 2]
    assert counts(1, 2) == [1, 0]
