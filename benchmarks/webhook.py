"""What a namespace whose creates take 5 s, as behind a webhook that hangs, does to the others.

A real `oarlock up`. Some owners of a namespace in which the server delays each create of a pod by 5 s, longer than a
request may take, ask for their pods all the time. Owners of another namespace are created beside them. The time is from
there until all of their statuses say that all is ready; each round does it once with the delay and once without.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import orjson

from benchmarks import report
from benchmarks.report import median, say, spread
from benchmarks.tree import NAMESPACE, Tree, replicaset
from oarlock.cluster.resources import NAMESPACES, REPLICASETS

SLOW_NAMESPACE = "behind-a-webhook"
FAULT: dict[str, Any] = {
    "action": "delayBeforeCommit",
    "verbs": ["create"],
    "resources": ["pods"],
    "namespaces": [SLOW_NAMESPACE],
    "delayMs": [5_000, 5_000],
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    took_s: dict[bool, list[float]] = {False: [], True: []}
    for number in range(1, options.rounds + 1):
        for slow in (False, True):
            took_s[slow].append(_run(options, slow))
        say(f"round {number}: {took_s[False][-1]:.2f} s without the slow namespace, {took_s[True][-1]:.2f} s beside it")
    ratios = [beside / alone for alone, beside in zip(took_s[False], took_s[True], strict=True)]
    rows = [
        ("no slow namespace", spread(took_s[False], 2), ""),
        (f"beside {options.slow} owners whose creates take 5 s", spread(took_s[True], 2), spread(ratios, 2)),
    ]
    title = f"{options.owners} owners of {options.pods} pods, median [least-most] of {options.rounds} rounds"
    report.show(title, ("", "ready after s", "x, same round"), rows)
    report.finish(
        {
            "benchmark": "webhook",
            "ready_s": round(median(took_s[False]), 3),
            "ready_s_beside_slow": round(median(took_s[True]), 3),
            "ratio": round(median(ratios), 2),
            "owners": options.owners,
            "slow_owners": options.slow,
            "workers": options.workers,
            "rounds": options.rounds,
        }
    )


def _run(options: argparse.Namespace, slow: bool) -> float:
    sets = {f"web-{number:04d}": options.pods for number in range(options.owners)}
    with Tree(workers=options.workers, faults=True) as tree:
        tree.apply({})
        if slow:
            tree.admin(FAULT)
            _create_slow(tree, options.slow)
            time.sleep(1.0)  # every worker has met some of them
        began_s = time.monotonic()
        tree.apply(sets)
        tree.await_true(lambda: tree.settled(sets), f"the owners of {NAMESPACE}", 120.0, 0.02)
        return time.monotonic() - began_s


def _create_slow(tree: Tree, owners: int) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SLOW_NAMESPACE}}
    tree.io.run(tree.client.create(NAMESPACES, "", orjson.dumps(namespace)))
    for number in range(owners):
        owner = replicaset(f"slow-{number:04d}", 3)
        owner["metadata"]["namespace"] = SLOW_NAMESPACE
        tree.io.run(tree.client.create(REPLICASETS, SLOW_NAMESPACE, orjson.dumps(owner)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.webhook", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--workers", type=int, default=2)
    add("--owners", type=int, default=100, help="of the namespace that is not slow")
    add("--pods", type=int, default=5, help="of each")
    add("--slow", type=int, default=40, help="owners of the slow namespace, of 3 pods each")
    return parser


if __name__ == "__main__":
    report.main(main)
