"""Records a takeover for docs/picture.svg: a worker is killed with SIGKILL, and another claims its keys.

On a real `oarlock up` with four workers. Four ReplicaSets are scaled up, two at a time, so that two workers are at
work and two are idle; creates take 150 ms on their way into the API server. One of the workers is killed in the middle
of its writes. What is drawn is what Redis said, asked every millisecond: which worker holds which key, and which keys
are queued. `make bench NAME=picture` draws it anew; the last line of the output is the JSON of what was recorded.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import picture_svg, report
from benchmarks.audited import await_audited
from benchmarks.converge import creations
from benchmarks.picture_svg import Moment, Recording
from benchmarks.report import Unfit, say
from benchmarks.tree import NAMESPACE, Tree

QUEUE = "replicaset"
PAIRS = (("cart", "search"), ("login", "mail"))
PODS = 30
KILL_AFTER_S = 0.25
"""From the first claim of the second pair: both workers are in the middle of their creates."""
SLOW_CREATES: dict[str, Any] = {
    "action": "delayBeforeCommit",
    "verbs": ["create"],
    "resources": ["pods"],
    "userAgent": "(worker)",
    "delayMs": [150, 150],
}
PICTURE = Path(__file__).parents[1] / "docs" / "picture.svg"
_HOLDER = re.compile(r"holder=(\S+)")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.picture", description=__doc__)
    parser.add_argument("--to", type=Path, default=PICTURE, help="where the picture goes")
    parser.add_argument("--tries", type=int, default=5, help="runs until one can be drawn")
    options = parser.parse_args(arguments)
    for number in range(1, options.tries + 1):
        with Tree(workers=4, faults=True) as tree:
            recording = record(tree)
        if recording is not None:
            options.to.write_text(picture_svg.draw(recording))
            say(f"drawn: {options.to}, {options.to.stat().st_size / 1024:.1f} KB")
            report.finish(
                {
                    "benchmark": "picture",
                    "taken_over_ms": [round(each, 1) for each in recording.taken_over_ms()],
                    "asked_for": recording.asked_for,
                    "created": recording.created,
                    "moments": len(recording.moments),
                }
            )
            return
        say(f"run {number}: the worker had finished before it was killed, or held one key only")
    raise Unfit(f"no run of {options.tries} could be drawn")


def record(tree: Tree) -> Recording | None:
    """One takeover; None where the one that was killed did not hold both keys of a pair."""
    names = [name for pair in PAIRS for name in pair]
    tree.apply(dict.fromkeys(names, 0))
    tree.await_true(lambda: tree.settled(dict.fromkeys(names, 0)) and tree.quiet(), "the empty ReplicaSets")
    tree.admin(SLOW_CREATES)
    began_s = time.time()
    moments: list[Moment] = []
    for pair in PAIRS:
        for name in pair:
            tree.scale(name, PODS)
        end_s = time.time() + 5.0
        while not any(key in _look(tree, moments).held for key in pair) and time.time() < end_s:
            time.sleep(0.001)
    _watch(tree, moments, KILL_AFTER_S)
    victim = moments[-1].held.get(PAIRS[0][0], "")
    lost = sorted(key for key, worker in moments[-1].held.items() if worker == victim)
    pid = tree.workers().get(victim)
    if pid is None or len(lost) < len(PAIRS[0]):
        return None
    killed_s = time.time()
    os.kill(pid, signal.SIGKILL)
    wanted = dict.fromkeys(names, PODS)
    end_s = time.time() + 30.0
    while time.time() < end_s and not (not moments[-1].held and not moments[-1].queued and tree.settled(wanted)):
        _watch(tree, moments, 0.1)
    if not tree.settled(wanted):
        raise Unfit("the pods were not ready in time")
    await_audited(tree, tree.state.audit_log)
    created, _ = creations(tree.state.audit_log, began_s)
    return Recording(names, lost, victim, killed_s, moments, PODS * len(names), created)


def _watch(tree: Tree, moments: list[Moment], for_s: float) -> None:
    end_s = time.time() + for_s
    while time.time() < end_s:
        _look(tree, moments)
        time.sleep(0.001)


def _look(tree: Tree, moments: list[Moment]) -> Moment:
    """What Redis says now; kept where it is not what it said before."""
    with tree.redis.pipeline(transaction=True) as pipe:
        pipe.hgetall(tree.keys.locks(QUEUE))
        pipe.hgetall(tree.keys.state(QUEUE))
        locks, states = pipe.execute()
    held, queued = {}, []
    for key, text in locks.items():
        found = _HOLDER.search(text.decode())
        if found is not None:
            held[_name(key)] = found[1]
    queued = sorted(_name(key) for key, state in states.items() if state.startswith(b"queued"))
    now = Moment(time.time(), held, queued)
    if not moments or (moments[-1].held, moments[-1].queued) != (now.held, now.queued):
        moments.append(now)
    return now


def _name(key: bytes) -> str:
    return key.decode().removeprefix(f"{NAMESPACE}/")


if __name__ == "__main__":
    report.main(main)
