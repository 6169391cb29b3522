"""CPU of a worker a turn of a controller of one's own when there is nothing to do: an object with three children.

A worker's loop in this process, over a real Redis: claims of up to 32 keys, turns, ends of turns. Beside it, by the
same loop, ReplicaSets with three pods. The first turn over each object calls the user's function and compares; those
after it find the same versions as before. Both are measured, and a run in which anything was written is refused.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

import oarlock
from benchmarks import planted, report
from benchmarks.report import Unfit, median, say, spread
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch
from oarlock.controllers.builtin import register_builtin
from oarlock.controllers.entries import DesiredController
from oarlock.controllers.objects.whole import decode_whole
from oarlock.controllers.registry import CONTROLLERS, WATCHED, register
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sdk.entries import entries_of
from oarlock.testing.fleet.worker_thread import NoLimit, NotShown
from oarlock.workers.counters.table import own_row
from oarlock.workers.counters.turn_counts import TurnCounts
from oarlock.workers.counters.turn_slots import TurnSlots
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.projection import Projector
from oarlock.workers.process.clock import SystemClock
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.engine.runner import Ended, TurnRunner

NAMESPACE = "shop"
_AT = "2026-01-05T08:00:00Z"


@oarlock.desired(
    oarlock.Kind("example.com/v1", "Website"), children=["apps/v1 Deployment", "v1 Service", "v1 ConfigMap"]
)
def website(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    """A Deployment of some size, a Service and a ConfigMap."""
    name, labels = obj["metadata"]["name"], {"app.kubernetes.io/name": obj["metadata"]["name"]}
    template = {**planted._TEMPLATE, "metadata": {"labels": labels}}
    spec = {"replicas": obj["spec"]["replicas"], "selector": {"matchLabels": labels}, "template": template}
    ready = (children.get("Deployment", name) or {}).get("status", {}).get("readyReplicas", 0)
    return oarlock.Result(
        [
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels}, "spec": spec},
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "labels": labels},
                "spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
            },
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"index.html": "x" * 200}},
        ],
        {"ready": ready},
    )


class NoApi:
    """Refuses to be asked: a turn that has something to do is not what is measured."""

    def send(self, *_: Any) -> Future[Any]:
        raise Unfit("a turn wanted to write")

    def reserve(self, count: int, behind: int = 0) -> Any:
        raise Unfit("a turn wanted to write")

    def tell(self, *_: Any) -> None:
        raise Unfit("a turn had something to tell")

    def probe(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    register_builtin()
    for entry in entries_of([website]):
        register(entry)
    with (
        tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder,
        EmbeddedRedis(Path(folder) / "redis") as server,
    ):
        client = connect(server.url("admin"), timeout_s=60.0)
        say(f"Redis {client.info('server')['redis_version']}; filling the cache with {options.objects:,} objects each")
        broker = planted.plant(client, {"three": (options.objects, 3)})
        names = [f"site-{number:05d}" for number in range(options.objects)]
        size = _plant(broker, names)
        while broker.republish(2_000):
            pass
        broker.open(())
        mine = RedisBroker(connect(server.url("worker")), planted.EPOCH)
        sites, sets = [f"{NAMESPACE}/{name}" for name in names], planted.keys("three", options.objects)
        first = _run(broker, mine, "website", sites)
        again, pods = [], []
        for number in range(1, options.rounds + 1):
            again.append(_run(broker, mine, "website", sites))
            pods.append(_run(broker, mine, "replicaset", sets))
            say(f"round {number}: {again[-1]:.1f} us a turn, of a ReplicaSet {pods[-1]:.1f} us")
    rows = [
        ("website, first look", f"{first:,.1f}"),
        ("website, as before", spread(again)),
        ("ReplicaSet of 3 pods", spread(pods)),
    ]
    report.show(f"worker CPU a no-op turn, {options.rounds} rounds", ("", "us"), rows)
    report.finish(
        {
            "benchmark": "desired",
            "worker_cpu_us_noop": round(median(again), 1),
            "worker_cpu_us_first_look": round(first, 1),
            "worker_cpu_us_replicaset": round(median(pods), 1),
            "bytes_an_object": size,
            "objects": options.objects,
            "rounds": options.rounds,
        }
    )


def _engine(mine: RedisBroker, queue: str) -> tuple[Engine, TurnRunner]:
    clock, settings = SystemClock(), Settings(kube_api_qps=0)
    engine = Engine(mine, NoApi(), settings, clock, (queue,))  # type: ignore[arg-type]
    runner = TurnRunner(
        engine, TurnSlots(1)[0], NotShown(), TurnCounts(own_row()), settings, clock, NoLimit, _no_failure
    )
    return engine, runner


def _no_failure(ended: Ended, in_a_row: int) -> None:
    if ended.failure is not None:
        raise Unfit(f"a turn failed: {ended.failure}")


_ENGINES: dict[str, tuple[Engine, TurnRunner]] = {}


def _run(broker: RedisBroker, mine: RedisBroker, queue: str, keys: Sequence[str]) -> float:
    """CPU in microseconds a turn, over a backlog of all the keys."""
    engine, runner = _ENGINES.setdefault(queue, _engine(mine, queue))
    holder = f"bench-{uuid.uuid4().hex[:8]}"
    engine.register(holder, "bench")
    for at in range(0, len(keys), 500):
        broker.add(queue, keys[at : at + 500])
    done, began = 0, time.process_time_ns()
    while isinstance(batch := engine.claim(holder, Settings().batch_keys_quick), Batch):
        runner.run(batch)
        done += len(batch.claims)
    took_ns = time.process_time_ns() - began
    if done != len(keys):
        raise Unfit(f"{done} turns were done, not {len(keys)}")
    return took_ns / done / 1e3


def _plant(broker: RedisBroker, names: Sequence[str]) -> int:
    """Sites and children that are as they are wanted. Returns the bytes of one with its children."""
    owners = KnownOwners()
    by_resource: dict[str, list[dict[str, Any]]] = {resource: [] for resource in _RESOURCES}
    size = 0
    for name in names:
        for resource, obj in _family(name):
            by_resource[resource].append(obj)
    for resource, objects in by_resource.items():
        planted.stage(broker, Projector(WATCHED[resource], owners), iter(objects))
    for resource, obj in _family(names[0]):
        watched = WATCHED[resource]
        size += len(watched.encode(watched.from_json(json.dumps(obj).encode())[1]))
    return size


_RESOURCES = ("websites.example.com", "deployments.apps", "services.v1", "configmaps.v1")


def _family(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    controller = CONTROLLERS["website"]
    assert isinstance(controller, DesiredController)
    meta = {"name": name, "namespace": NAMESPACE, "uid": planted._uid(f"site {name}"), "creationTimestamp": _AT}
    meta |= {"resourceVersion": _version(), "generation": 1}  # type: ignore[dict-item]
    own: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Website", "metadata": meta}
    own |= {"spec": {"replicas": 3}, "status": {"ready": 3}}
    yield "websites.example.com", own
    whole = WATCHED["websites.example.com"].from_json(json.dumps(own).encode())[1]
    for child in controller.want(decode_whole(msgspec.msgpack.encode(whole)), (), ()).children:
        obj = json.loads(child.body)
        obj["metadata"] |= {"uid": planted._uid(f"{child.kind} {name}"), "creationTimestamp": _AT}
        obj["metadata"] |= {"resourceVersion": _version(), "managedFields": [{"manager": "oarlock-website"}]}
        if child.kind == "Deployment":
            obj["status"] = {"readyReplicas": 3, "replicas": 3, "updatedReplicas": 3, "observedGeneration": 1}
        yield child.resource, obj


_versions = iter(range(2_000, 10**9))


def _version() -> str:
    return str(next(_versions))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.desired", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--objects", type=int, default=2_000, help="keys of a run")
    return parser


if __name__ == "__main__":
    report.main(main)
