"""A namespace floods the queue: somebody changes hundreds of its objects again and again.

The API server takes its time over each status, as a busy one does. The embedded one is as fast as the fleet otherwise.
"""

from __future__ import annotations

import itertools
import random
import threading

from tests.planted.api import MERGE, replicaset
from tests.planted.fault import Fault
from tests.planted.fleet import Fleet

NAMESPACE = "churn"
OWNERS = 600
WRITERS = 3
PATH = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"


class Flood:
    """Threads that write specs. Each write wakes its owner, and each turn has to report that it has observed it."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, fleet: Fleet) -> list[str]:
        fleet.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        slow = {"action": "delayBeforeCommit", "resources": ["replicasets/status"], "userAgent": "(worker)"}
        fleet.api.faults(fleet.seed, [{**slow, "delayMs": [200, 400]}])
        names = [f"job-{number}" for number in range(OWNERS)]
        random.Random(fleet.seed).shuffle(names)
        for writer in range(WRITERS):
            arguments = fleet, names[writer::WRITERS]
            self._threads.append(threading.Thread(target=self._write, args=arguments, daemon=True))
            self._threads[-1].start()
        return [rf"\b{NAMESPACE}\b"]

    def end(self, fleet: Fleet) -> None:
        self._over.set()
        for each in self._threads:
            each.join()
        fleet.api.faults(fleet.seed, [])

    def _write(self, fleet: Fleet, names: list[str]) -> None:
        with fleet.connected() as api:
            for name in names:
                if not self._over.is_set():
                    api.call("POST", PATH, replicaset(NAMESPACE, name, 0))
            for number, name in enumerate(itertools.cycle(names)):
                if self._over.is_set():
                    return
                api.call("PATCH", f"{PATH}/{name}", {"spec": {"minReadySeconds": number % 7}}, MERGE)


_flood = Flood()
FAULT = Fault(
    "a namespace floods the queue",
    "The queue is long: one namespace fills it",
    (rf"\b{NAMESPACE} .*\b(9\d|100)\.\d%.* replicasets were written|\d{{3}} {NAMESPACE}\n(.*\n)*.*set replicasets/",),
    _flood.begin,
    _flood.end,
)
