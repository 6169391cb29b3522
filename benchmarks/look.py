"""How long people wait for a look at a fleet with very many queued keys, and how long Redis is busy with it.

A Redis is planted with keys of ReplicaSets that are cached, all of them queued, and some of them in work, failing,
delayed and parked; with histories up to what a fleet may remember. Each command is then run whole, as a process of its
own, from the start of the interpreter to its end. Redis's time is what it counts itself for the commands that came
meanwhile (INFO commandstats), and the longest one that its slow log has.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, cycle, islice, product
from pathlib import Path
from typing import Any

import redis

from benchmarks import planted, report
from benchmarks.report import Unfit, median, say, spread
from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, ClaimLimits, LoadSpec
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.controllers.builtin import REPLICASETS
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.projection import Projector

QUEUE = "replicaset"
LIMITS = ClaimLimits(lease_ms=3_600_000, drain_ms=14_000, keys_max=32)
BATCH = 32
WORKERS = 64
DID = ("create pods x3", "status", "", "status", "", "delete pods", "status", "")
REFUSED = 'create pods: 403 pods "web-1" is forbidden: exceeded quota: few, requested: pods=1'
LIMIT_S = 60
OWN = (b"CONFIG", b"SLOWLOG", b"INFO commandstats")
OURS = ("config|resetstat", "slowlog|reset", "slowlog|get")
"""What this program asks Redis itself, between the runs."""
_NONCES = count()


@dataclass(slots=True)
class Planted:
    """A key of each sort: queued behind nearly all others, in work, with a full history, failing, parked."""

    queued: str
    busy: str
    told: str
    failing: str
    parked: str


@dataclass(slots=True)
class Asked:
    """What the runs of a command took: seconds of each, of these on a CPU, ms that Redis was busy; its longest call."""

    took_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    redis_ms: list[float] = field(default_factory=list)
    longest_us: int = 0
    longest: str = ""


def main(arguments: Sequence[str] | None = None) -> None:
    asked_for = parser("look", __doc__)
    asked_for.add_argument("--runs", type=int, default=15)
    options = asked_for.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder,
        EmbeddedRedis(Path(folder) / "redis") as server,
    ):
        client = connect(server.url("admin"))
        client.config_set("slowlog-log-slower-than", 100)
        begun = time.monotonic()
        there = plant(client, options)
        used_mb = int(client.info("memory")["used_memory"]) >> 20
        say(f"planted {options.keys:,} keys in {time.monotonic() - begun:.0f} s: {used_mb} MB in Redis")
        commands = {
            "top --once": ("top", "--once"),
            "top -o json": ("top", "-o", "json"),
            "queue": ("queue",),
            "explain, queued": ("explain", there.queued),
            "explain, in work": ("explain", there.busy),
            "explain, failing": ("explain", there.failing),
            "explain, parked": ("explain", there.parked),
            "history": ("history", f"rs/{there.told}"),
        }
        asked = {title: Asked() for title in commands}
        for number in range(1, options.runs + 1):
            for title, command in commands.items():
                ask(client, [*command, "--redis", server.url("metrics")], asked[title])
            say(f"run {number}: " + ", ".join(f"{title} {each.took_s[-1]:.2f} s" for title, each in asked.items()))
    tell(options, used_mb, asked)


def plant(client: redis.Redis, options: argparse.Namespace) -> Planted:
    """All there is to look at. Turns come first: while few keys are queued, a claim gets those that are asked for."""
    epoch.bootstrap(client, planted.EPOCH)
    broker = RedisBroker(client, planted.EPOCH)
    keys = [f"team-{n % options.namespaces:03d}/web-{n:06d}" for n in range(options.keys)]
    planted.stage(broker, Projector(REPLICASETS, KnownOwners()), (_replicaset(key) for key in keys))
    broker.open([])
    workers = [f"w-host-1a2b3c4d-{n}" for n in range(WORKERS)]
    for worker in workers:
        broker.register(worker, "host", [QUEUE])
    rest = iter(keys)
    told, failing = list(islice(rest, options.told)), list(islice(rest, options.failing))
    parked, busy = list(islice(rest, options.parked)), list(islice(rest, WORKERS))
    for did in (REFUSED, *DID * 4):
        for at in range(0, len(told), BATCH):
            _turns(broker, workers[at // BATCH % WORKERS], told[at : at + BATCH], did)
    for at in range(0, len(failing), BATCH):
        _turns(broker, workers[at // BATCH % WORKERS], failing[at : at + BATCH], REFUSED, Verdict.RETRY)
    for n, (key, _) in enumerate(product(parked, range(2))):
        broker.register(f"w-dead-{n}", "host", [QUEUE])
        _claimed(broker, f"w-dead-{n}", [key])
        broker.release(f"w-dead-{n}", blamed=f"{QUEUE}:{key}")
    for worker, key in zip(workers, busy, strict=True):
        _claimed(broker, worker, [key])
    for half in (broker.keys.turns(QUEUE), broker.keys.history(QUEUE)):
        texts = client.hmget(half, told)
        others = zip(keys[-options.histories :], cycle(texts), strict=False)
        while some := {key: text for key, text in islice(others, 1_000) if text is not None}:
            client.hset(half, mapping=some)
    while broker.republish(2_000):  # queues the keys of all objects, as after a first list
        pass
    there = Planted(keys[-1], busy[0], told[0], failing[0], parked[0])
    counts = [
        int(client.xlen(broker.keys.stream(QUEUE)) + client.zcard(broker.keys.backlog(QUEUE))),
        int(client.hlen(broker.keys.failures(QUEUE))),
        int(client.zcard(broker.keys.parked(QUEUE))),
        int(client.hlen(broker.keys.locks(QUEUE))),
    ]
    wanted = [options.keys - options.parked - WORKERS, options.failing, options.parked, WORKERS]
    if counts != wanted:
        raise Unfit(f"queued, failing, parked and in work are {counts}, not {wanted}")
    return there


def _replicaset(key: str) -> dict[str, Any]:
    namespace, name = key.split("/")
    return planted.replicaset(name, 3, namespace)


def _claimed(broker: RedisBroker, worker: str, keys: Sequence[str]) -> Batch:
    broker.add(QUEUE, keys, why=f"set pods/{keys[0]}-4tts7")
    batch = broker.claim(worker, f"n{next(_NONCES)}", [LoadSpec(QUEUE, "replicasets")], LIMITS)
    if not isinstance(batch, Batch) or sorted(one.key for one in batch.claims) != sorted(keys):
        raise Unfit(f"a claim did not get the {len(keys)} keys that were queued")
    return batch


def _turns(broker: RedisBroker, worker: str, keys: Sequence[str], did: str, verdict: Verdict = Verdict.OK) -> None:
    batch = _claimed(broker, worker, keys)
    broker.finish([Finish(QUEUE, one.key, one.nonce, verdict, did=did) for one in batch.claims])


def ask(client: redis.Redis, command: Sequence[str], asked: Asked) -> None:
    """Run a command once."""
    client.config_resetstat()
    client.slowlog_reset()
    begun, cpu_begun = time.monotonic(), _children_cpu_s()
    done = subprocess.run(
        [sys.executable, "-m", "oarlock.cli", *command], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    asked.took_s.append(time.monotonic() - begun)
    asked.cpu_s.append(_children_cpu_s() - cpu_begun)
    if done.returncode or not done.stdout:
        raise Unfit(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")
    slow = [entry for entry in client.slowlog_get(100) if not entry["command"].startswith(OWN)]
    busy_us = sum(
        each["usec"] for name, each in client.info("commandstats").items() if name.removeprefix("cmdstat_") not in OURS
    )
    asked.redis_ms.append(busy_us / 1_000)
    longest = max(slow, key=lambda entry: entry["duration"], default=None)
    if longest is not None and longest["duration"] > asked.longest_us:
        asked.longest_us, asked.longest = longest["duration"], b" ".join(longest["command"].split()[:2]).decode()


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tell(options: argparse.Namespace, used_mb: int, asked: dict[str, Asked]) -> None:
    facts: dict[str, Any] = {
        "benchmark": "look",
        "keys": options.keys,
        "runs": options.runs,
        "redis_mb": used_mb,
        "commands": {},
    }
    rows = []
    for title, each in asked.items():
        facts["commands"][title] = {
            "s_p50": round(median(each.took_s), 3),
            "s_max": round(max(each.took_s), 3),
            "cpu_s": round(median(each.cpu_s), 3),
            "redis_ms": round(median(each.redis_ms), 2),
        }
        rows.append(
            (
                title,
                spread(each.took_s, 2),
                spread(each.cpu_s, 2),
                spread(each.redis_ms, 2),
                f"{each.longest_us / 1_000:.2f} {each.longest}" if each.longest_us else "-",
            )
        )
    facts["longest_redis_call_ms"] = round(max(each.longest_us for each in asked.values()) / 1_000, 2)
    headings = ("command", "whole, s", "on a CPU, s", "Redis busy, ms", "its longest call, ms")
    report.show(f"{options.keys:,} keys; median [least-most] of {options.runs} runs", headings, rows)
    report.finish(facts)


def parser(name: str, text: str | None) -> argparse.ArgumentParser:
    """The options of what is planted, for a benchmark of this name."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=text)
    add = made.add_argument
    add("--keys", type=int, default=100_000, help="owners in the cache, nearly all of them queued")
    add("--namespaces", type=int, default=300)
    add("--told", type=int, default=2_048, help="keys over which turns are carried out, so that they have a history")
    add("--histories", type=int, default=50_000, help="keys that get a copy of one of these histories")
    add("--failing", type=int, default=5_000)
    add("--parked", type=int, default=200)
    return made


if __name__ == "__main__":
    report.main(main)
