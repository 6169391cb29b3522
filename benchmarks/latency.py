"""Our own part of the idle latency: from the event that tells of a new owner to the request for its first pod.

An idle fleet on the embedded API server, one owner of one pod at a time. A tap lies between the two, so both moments
are those of the network: the event has left for the ingestors, the request has come from a worker. What the API server
needs to accept the owner, to tell of it and to make the pod is not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from benchmarks import report
from benchmarks.report import Unfit, percentile, say
from benchmarks.tree import NAMESPACE, replicaset
from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.cluster.access import config
from oarlock.cluster.client import Client
from oarlock.cluster.resources import NAMESPACES, REPLICASETS
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.death_signal import command_dying_with_this_process

START_LIMIT_S = 60.0
APART_S = 0.05
"""Until the next owner: the pod has come, and statuses are told."""
WARM = 20
"""Owners that come first and do not count."""


class Scene:
    """Redis, API server, tap, ingestors and workers. A context manager; ``end_tap`` gives what the tap has seen."""

    def __init__(self, *, workers: int, ingestors: int) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="oarlock-latency-"))
        self._workers, self._ingestors = workers, ingestors
        self._ending = ExitStack()
        self._ending.callback(shutil.rmtree, self._root, ignore_errors=True)

    def __enter__(self) -> Scene:
        try:
            self._start()
        except BaseException:
            self._ending.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def _start(self) -> None:
        self._redis = EmbeddedRedis(self._root / "redis")
        self._ending.enter_context(self._redis)
        api = self._run("api", ["-m", "oarlock.sandbox.apiserver", "--nodes", "5", "--state-dir", str(self._root)])
        url = _first_line(api)["url"]
        self.kubeconfig = self._root / "kubeconfig"
        here = urlsplit(url).netloc
        self._tap = self._run("tap", ["-m", "benchmarks.latency_tap", here])
        tapped = self._root / "tapped"
        tapped.write_text(self.kubeconfig.read_text().replace(here, f"127.0.0.1:{_first_line(self._tap)['port']}"))
        own = ["--kubeconfig", str(tapped), "--redis"]
        for number in range(1, self._ingestors + 1):
            ingest = ["-m", "oarlock.cli", "ingest", "--embedded", *own, self._redis.url("ingestor")]
            self._run(f"ingestor-{number}", ingest)
        work = ["-m", "oarlock.cli", "worker", "--workers", str(self._workers), *own, self._redis.url("worker")]
        self._run("workers", [*work, "--state-dir", str(self._root)])
        self._await_ready()

    def _run(self, name: str, words: list[str]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command_dying_with_this_process([sys.executable, *words]),
            env={**os.environ, "OARLOCK_KUBE_API_QPS": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self._root / f"{name}.log").open("wb"),
        )
        self._ending.callback(_end, process)
        return process

    def _await_ready(self) -> None:
        client, deadline_s = connect(self._redis.url("admin")), time.monotonic() + START_LIMIT_S
        listed = self._root / "workers.json"
        while time.monotonic() < deadline_s:
            told = json.loads(listed.read_text()) if listed.exists() else []
            workers = sum(each["role"] == "worker" for each in told)
            if workers == self._workers and epoch.current(client).phase == "OPEN":
                client.close()
                return
            time.sleep(0.05)
        raise Unfit(f"the fleet was not up within {START_LIMIT_S:.0f} s; see {self._root}")

    def end_tap(self) -> Mapping[str, Mapping[str, int]]:
        """What the tap has seen; the fleet is cut off then."""
        told, _ = self._tap.communicate(timeout=10)
        seen: dict[str, dict[str, int]] = json.loads(told)
        return seen


def _first_line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline() or b"{}")
    if not line:
        raise Unfit(f"{process.args!r} did not start")
    return line


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(30)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    facts: dict[str, Any] = {"benchmark": "latency", "owners": options.owners}
    rows = []
    for count in (1, 2):
        with Scene(workers=count, ingestors=count) as scene:
            asyncio.run(_one_by_one(scene.kubeconfig, WARM + options.owners))
            own_ms = parts(scene.end_tap(), WARM + options.owners)[WARM:]
        name = f"{count} + {count}"
        found = {f"p{share:g}": round(percentile(own_ms, share / 100), 2) for share in (50, 90, 99)}
        say(f"{name}: p50 {found['p50']} ms; load {os.getloadavg()[0]:.1f}")
        rows.append((f"{name} processes", *(f"{ms:.2f}" for ms in found.values())))
        facts |= {f"own_{share}_ms_{count}": ms for share, ms in found.items()}
    report.show("from the event to the request, ms", ("ingestors + workers", "p50", "p90", "p99"), rows)
    report.finish(facts)


def parts(seen: Mapping[str, Mapping[str, int]], owners: int) -> list[float]:
    """Ms from the event to the request, by owner, in their order. Raises Unfit unless each has both."""
    told_ns, asked_ns = seen["told_ns"], seen["asked_ns"]
    names = [_name(number) for number in range(owners)]
    if lacking := [name for name in names if name not in told_ns or name not in asked_ns]:
        raise Unfit(f"the tap has not seen {len(lacking)} of {owners} owners, such as {lacking[0]}")
    return [(asked_ns[name] - told_ns[name]) / 1e6 for name in names]


async def _one_by_one(kubeconfig: Path, owners: int) -> None:
    """Past the tap. Each waits until the one before has its pod."""
    client = Client(config.load(kubeconfig), role="bench")
    try:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await client.create(NAMESPACES, "", orjson.dumps(namespace))
        for number in range(owners):
            name = _name(number)
            answer = await client.create(REPLICASETS, NAMESPACE, orjson.dumps(replicaset(name, 1)))
            if not answer.ok:
                raise Unfit(f"{name} could not be created: {answer.message}")
            deadline_s = time.monotonic() + 30.0
            while not orjson.loads((await client.get(REPLICASETS, NAMESPACE, name)).body)["status"].get(
                "readyReplicas"
            ):
                if time.monotonic() > deadline_s:
                    raise Unfit(f"{name} has no pod after 30 s")
                await asyncio.sleep(APART_S)
    finally:
        await client.close()


async def _is_ready(client: Client, name: str) -> bool:
    answer = await client.get(REPLICASETS, NAMESPACE, name)
    return orjson.loads(answer.body)["status"].get("readyReplicas") == 1


def _name(number: int) -> str:
    return f"latency-{number:05d}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--owners", type=int, default=200, help="one after the other")
    return parser


if __name__ == "__main__":
    report.main(main)
