"""How long a lone key waits while another namespace floods its queue, and what a claim costs however long the queue is.

The flood is of ReplicaSets at rest, all in one namespace, for one worker process as it is started. While it lasts, keys
come one by one: some elsewhere, each in a namespace of its own, some in the namespace that floods. How long each waited
is what the fleet itself wrote into its history. What a claim costs is Redis's own count (INFO commandstats).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import redis

from benchmarks import planted, report
from benchmarks.fleet_peer import QUEUE, FleetPeer
from benchmarks.report import Unfit, median, percentile, say
from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, ClaimLimits, LoadSpec
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis

LIMIT_S = 120.0
BATCH = 8
LIMITS = ClaimLimits(lease_ms=3_600_000, drain_ms=14_000, keys_max=BATCH)
SPEC = LoadSpec(QUEUE, "replicasets", (("pods", "owner", "uid"),))
_NONCES = count()
Waits = dict[str, list[float]]
"""Where a key came -> ms that each waited."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    waits = _floods(options)
    costs = {depth: _claims_us(depth, options) for depth in options.depths}
    rows = [
        (where, f"{len(each):,}", *(f"{percentile(each, share):,.0f}" for share in (0.5, 0.99, 1)))
        for where, each in waits.items()
    ]
    report.show(
        f"ms that a key waited under floods of {options.flood:,} keys", ("", "keys", "p50", "p99", "most"), rows
    )
    report.show(
        f"Redis, us a key of a claim of {BATCH}",
        ("queued keys", "least", "median"),
        [(f"{depth:,}", f"{min(each):.1f}", f"{median(each):.1f}") for depth, each in costs.items()],
    )
    report.finish(
        {
            "benchmark": "fair",
            "flood": options.flood,
            "waited_ms": {
                where: {f"p{share:g}": percentile(each, share / 100) for share in (50, 99, 100)}
                for where, each in waits.items()
            },
            "claim_us": {str(depth): {"least": min(each), "median": median(each)} for depth, each in costs.items()},
        }
    )


def _floods(options: argparse.Namespace) -> Waits:
    waits: Waits = {"elsewhere": [], "in the namespace that floods": []}
    with _server() as (server, client, folder):
        say(f"planting {options.flood:,} ReplicaSets with 3 pods each")
        broker = planted.plant(client, {"web": (options.flood, 3)})
        with FleetPeer(client, broker, server.url("worker"), folder) as fleet:
            fleet.let_go()
            _await(fleet)
            for number in range(options.rounds):
                waited = _flood(broker, fleet, client, number, options)
                for where, each in zip(waits, waited, strict=True):
                    waits[where] += each
                lone, late = (f"{len(each)} waited {percentile(each, 0.99):,.0f} ms (p99)" for each in waited)
                say(f"round {number + 1}: of keys elsewhere {lone}, of late ones {late}")
    return waits


def _flood(
    broker: RedisBroker, fleet: FleetPeer, client: redis.Redis, number: int, options: argparse.Namespace
) -> tuple[list[float], list[float]]:
    """ms that each key waited that came elsewhere, and in the namespace that floods."""
    fleet.hold()
    keys = planted.keys("web", options.flood)
    for at in range(0, len(keys), 500):
        broker.add(QUEUE, keys[at : at + 500])
    lone, late = list[str](), list[str]()
    fleet.let_go()
    while fleet.left() > BATCH:
        lone.append(f"lone-{number}-{len(lone)}/web")
        broker.add(QUEUE, lone[-1:])
        if len(lone) % 5 == 0:
            late.append(f"{planted.NAMESPACE}/late-{number}-{len(late)}")
            broker.add(QUEUE, late[-1:])
        time.sleep(options.every_ms / 1_000)
    _await(fleet)
    if len(lone) < 10:
        raise Unfit(f"the flood was over after {len(lone)} lone keys: take a larger one")
    look = Inspector(client, planted.EPOCH)
    found = [[each.turns[0] for each in (look.key(QUEUE, key) for key in some) if each.turns] for some in (lone, late)]
    if (len(found[0]), len(found[1])) != (len(lone), len(late)):
        raise Unfit("keys had no turn")
    return [float(turn.waited_ms) for turn in found[0]], [float(turn.waited_ms) for turn in found[1]]


def _claims_us(depth: int, options: argparse.Namespace) -> list[float]:
    """Microseconds of Redis a key, of each claim, with so many keys queued each time."""
    with _server() as (_, client, _):
        epoch.bootstrap(client, planted.EPOCH)
        broker = RedisBroker(client, planted.EPOCH)
        broker.open([])
        broker.register("w-1", "s-1", [QUEUE])
        names = (f"team-{number % options.namespaces:04d}/web-{number:07d}" for number in count())
        for at in range(0, depth, 1_000):
            broker.add(QUEUE, [next(names) for _ in range(min(1_000, depth - at))])
        found = []
        for _ in range(options.claims):
            client.config_resetstat()
            batch = broker.claim("w-1", f"n{next(_NONCES)}", [SPEC], LIMITS)
            spent = client.info("commandstats")["cmdstat_evalsha"]["usec"]
            if not isinstance(batch, Batch) or len(batch.claims) != min(BATCH, depth):
                raise Unfit("a claim did not get what is queued")
            found.append(spent / len(batch.claims))
            broker.finish([Finish(QUEUE, each.key, each.nonce, Verdict.OK) for each in batch.claims])
            broker.add(QUEUE, [next(names) for _ in batch.claims])
        say(f"{depth:,} queued: {median(found):.1f} us a key")
        return found


@contextmanager
def _server() -> Iterator[tuple[EmbeddedRedis, redis.Redis, Path]]:
    with (
        tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder,
        EmbeddedRedis(Path(folder) / "redis") as server,
    ):
        yield server, connect(server.url("admin"), timeout_s=60.0), Path(folder)


def _await(fleet: FleetPeer) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not fleet.at_rest():
        if time.monotonic() > deadline:
            raise Unfit(f"the fleet was not at rest after {LIMIT_S:.0f} s")
        time.sleep(0.02)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fair", description=__doc__)
    parser.add_argument("--flood", type=int, default=10_000, help="keys that come at once in one namespace")
    parser.add_argument("--rounds", type=int, default=5, help="floods")
    parser.add_argument("--every-ms", type=float, default=4, help="between two lone keys")
    parser.add_argument(
        "--depths", type=int, nargs="+", default=[8, 1_000, 300_000], help="queued keys, for the claims"
    )
    parser.add_argument("--namespaces", type=int, default=50, help="namespaces of these keys")
    parser.add_argument("--claims", type=int, default=400)
    return parser


if __name__ == "__main__":
    report.main(main)
