"""What both operators of the comparison do: a Pair has a ConfigMap and a Service, and is ready once both are there.

This file is oarlock's; `pair_kopf.py` is kopf's.
"""

from __future__ import annotations

import oarlock
from benchmarks.operators.wanted import children_of


class PairSpec(oarlock.Struct):
    greeting: str


class PairStatus(oarlock.Struct):
    ready: bool = False


@oarlock.resource("bench.example.com/v1")
class Pair(oarlock.Object):
    spec: PairSpec
    status: PairStatus | None = None


@oarlock.desired(Pair, children=["v1 ConfigMap", "v1 Service"])
def pair(mine: Pair, children: oarlock.Children) -> oarlock.Result:
    """Ready is said of children that were seen, not of those that were asked for."""
    wanted = children_of(mine.name, mine.spec.greeting)
    ready = all(children.get(each["kind"], mine.name) for each in wanted)
    return oarlock.Result(wanted, status=PairStatus(ready))
