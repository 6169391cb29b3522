"""The rate of a controller of one's own, in a whole cluster: the real turns on threads."""

from __future__ import annotations

import threading
import time

import oarlock
from oarlock.testing import Cluster

BELLS, RATE = 12, 5


class BellSpec(oarlock.Struct):
    times: int = 1


@oarlock.resource("rates.example.com/v1")
class Bell(oarlock.Object):
    spec: BellSpec


ALL_RUNG = threading.Event()
RUNG: list[str] = []


@oarlock.steps(Bell, rate_per_s=RATE)
def bell(obj: Bell, ctx: oarlock.Context) -> None:
    RUNG.append(obj.name)
    if len(set(RUNG)) == BELLS:
        ALL_RUNG.set()


def test_a_burst_of_objects_is_looked_at_no_faster_than_the_rate() -> None:
    """A slow machine only makes it take longer, and the first second's worth goes at once."""
    with Cluster(operator=[bell], controllers="") as cluster:
        begun = time.monotonic()
        for i in range(BELLS):
            named = {"apiVersion": "rates.example.com/v1", "kind": "Bell", "metadata": {"name": f"b{i}"}}
            cluster.create({**named, "spec": {}})
        assert ALL_RUNG.wait(30)
        assert time.monotonic() - begun >= (BELLS - RATE) / RATE
