"""What a fleet sends under an API budget (`--fleet-api-qps`), by the API server's own account.

A real `oarlock up` with 1, 2 and 10 worker processes. More pods are asked for than the budget lets through in the time,
as many small owners and as one large one. After a few seconds every write of a worker counts that the server's audit
log has, events too: the whole of it a second, and the least and most of any second. A run in which another number of
workers was there is refused.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import report
from benchmarks.audited import await_audited, whole_lines
from benchmarks.report import Unfit, percentile, say
from benchmarks.tree import Tree

SHAPES = {"many": "owners of 20 pods", "one": "one owner"}
SETTLES_S = 4.0
"""Until the shares have come to those who want them: two reports."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Requests a second in a run: over all of it, and by whole seconds."""

    per_s: float
    seconds: Sequence[int]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    found: dict[tuple[str, int], Sent] = {}
    with mock.patch.dict(os.environ, OARLOCK_FLEET_API_QPS=str(options.qps)):
        for shape, title in SHAPES.items():
            for workers in options.workers:
                found[shape, workers] = sent = _run(shape, workers, options)
                say(f"{title}, {workers} workers: {sent.per_s:.1f} a second of {options.qps:g}")
    _report(options, found)


def _run(shape: str, workers: int, options: argparse.Namespace) -> Sent:
    pods = round(options.qps * (SETTLES_S + options.seconds) * 1.5)
    sets = {"large": pods} if shape == "one" else {f"web-{i:04d}": 20 for i in range(pods // 20)}
    with Tree(workers=workers) as tree:
        if len(tree.workers()) != workers:
            raise Unfit(f"{len(tree.workers())} workers, not {workers}")
        tree.apply(sets)
        tree.await_true(lambda: tree.count_pods() > 0, "the first pod")
        time.sleep(SETTLES_S)
        begun_s = time.time()
        time.sleep(options.seconds)
        until_s = time.time()
        await_audited(tree, tree.state.audit_log)
        return _sent(tree.state.audit_log, begun_s, until_s)


def _sent(audit_log: Path, begun_s: float, until_s: float) -> Sent:
    """From the writes of workers, by when the server received them."""
    by_second: Counter[int] = Counter()
    for line in whole_lines(audit_log):
        if b"(worker" not in line:
            continue
        event = json.loads(line)
        received_s = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        if begun_s <= received_s < until_s and event["userAgent"].startswith("oarlock/"):
            by_second[int(received_s - begun_s)] += 1
    whole = [by_second[second] for second in range(int(until_s - begun_s))]
    return Sent(by_second.total() / (until_s - begun_s), whole)


def _report(options: argparse.Namespace, found: Mapping[tuple[str, int], Sent]) -> None:
    rows, facts = [], dict[str, Any](benchmark="budget", qps=options.qps, seconds=options.seconds)
    for (shape, workers), sent in found.items():
        middle = percentile(sent.seconds, 0.5)
        seconds = f"{min(sent.seconds)} / {middle:g} / {max(sent.seconds)}"
        rows.append((f"{SHAPES[shape]}, {workers} workers", f"{sent.per_s:.1f}", seconds))
        facts.setdefault(f"per_s_{shape}", {})[str(workers)] = round(sent.per_s, 1)
        facts.setdefault(f"most_in_a_second_{shape}", {})[str(workers)] = max(sent.seconds)
    report.show(f"a budget of {options.qps:g} a second", ("", "sent a second", "least / p50 / most of a second"), rows)
    report.finish(facts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.budget", description=__doc__)
    add = parser.add_argument
    add("--qps", type=float, default=100.0)
    add("--seconds", type=float, default=15.0, help="counted, of each run")
    add("--workers", type=int, nargs="+", default=[1, 2, 10])
    return parser


if __name__ == "__main__":
    report.main(main)
