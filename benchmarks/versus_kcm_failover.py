"""SIGKILL of the process in charge, until somebody else acts: upstream's leader, and a worker with writes in flight."""

from __future__ import annotations

import json
import time

from benchmarks.report import Unfit, say
from benchmarks.tree import replicaset
from benchmarks.versus_kcm_place import Place, Seen, await_true
from benchmarks.versus_kcm_sides import OPEN, Fleet, Upstream
from oarlock.broker import epoch
from oarlock.broker.keys import Keys
from oarlock.cluster.resources import REPLICASETS
from oarlock.sandbox.demo.takeover import kill_busy_worker

PODS = 300
STAND_BY_S = 3.0
"""Two tries of upstream's for the Lease (leader-elect-retry-period): long enough to have seen who holds it."""


def of_upstream(place: Place) -> float:
    """Seconds from the kill of the leading manager to the next pod, an owner being created at once, another waiting."""
    namespace = place.new_namespace()
    try:
        with (
            Upstream(place, "replicaset", OPEN, standby=True) as upstream,
            Seen(place, REPLICASETS, "replicas", 1) as seen,
        ):
            place.create(REPLICASETS, namespace, [replicaset("warm", 1)])
            await_true(lambda: "warm" in seen.complete, "the leader's first pod", 60.0)
            upstream.start_one()
            time.sleep(STAND_BY_S)
            before = len(seen.pods)
            killed_s = time.monotonic()
            upstream.running[0].kill()
            place.create(REPLICASETS, namespace, [replicaset("next", 1)])
            await_true(lambda: len(seen.pods) > before, "the other manager's first pod", 60.0)
            took_s = seen.pods[-1][0] - killed_s
    finally:
        place.clear(namespace)
    say(f"failover, upstream: {took_s:.2f} s")
    return took_s


def of_fleet(place: Place, kills: int, workers: int, ingestors: int) -> list[float]:
    """ms from the kill of a worker with creates in flight to the next claim of each key it held, by Redis's MONITOR."""
    namespace, claimed_ms = place.new_namespace(), []
    try:
        with (
            Fleet(place, OPEN, workers=workers, ingestors=ingestors) as fleet,
            Seen(place, REPLICASETS, "replicas", PODS) as seen,
        ):
            place.create(REPLICASETS, namespace, [replicaset("warm", PODS)])
            await_true(lambda: "warm" in seen.complete, "the first owner", 60.0)
            with fleet.admin() as client:
                keys = Keys(epoch.current(client).epoch)
                for number in range(2 * kills + 5):
                    name = f"web-{number:04d}"
                    pids = {
                        each["name"]: each["pid"]
                        for each in json.loads((fleet.state / "workers.json").read_text())
                        if each["role"] == "worker"
                    }
                    place.create(REPLICASETS, namespace, [replicaset(name, PODS)])
                    task = f"replicaset:{namespace}/{name}"
                    takeover = kill_busy_worker(client, keys, ("replicaset",), pids, task, wait_s=5.0, least_pending=1)
                    await_true(lambda name=name: name in seen.complete, f"{PODS} pods of {name}", 60.0)
                    if takeover is not None and takeover.complete:
                        claimed_ms += takeover.claimed_ms.values()
                        say(f"failover, fleet: {', '.join(f'{ms:.1f}' for ms in takeover.claimed_ms.values())} ms")
                    elif takeover is not None:
                        raise Unfit(f"not all that {takeover.worker} held was claimed again")
                    if len(claimed_ms) >= kills:
                        break
                    time.sleep(0.3)
            made, asked = len(seen.pods), (len(seen.complete)) * PODS
            if made != asked:
                raise Unfit(f"{made} pods were created, not {asked}")
    finally:
        place.clear(namespace)
    return claimed_ms
