"""A thousand objects with two children each: oarlock with two workers beside kopf, on the same API server.

Each side runs alone, one after the other, the order turned each round. First a burst: all objects are created at once,
and it is timed until the last says that its children are there. Then a kill: as many objects are created again. When a
quarter of their children exist, the whole operator is killed with SIGKILL and started again at once. For oarlock there
is a third part, in which one worker is killed and nobody starts anything again. An observer with watches of its own
counts what there is.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.operators import wanted
from benchmarks.operators.place import NAMESPACE, Place, Seen
from benchmarks.operators.sides import Fleet, Kopf, Side
from benchmarks.operators.usage import Usage
from benchmarks.report import Unfit, median, say, spread

START_LIMIT_S = 60.0
OPERATOR = Path(__file__).with_name("pair.py")
GREETING = "hello"
COUNTS = ("duplicates", "missing", "unsaid")
WORDS = ("too many", "missing", "status lost")


@dataclass(frozen=True, slots=True)
class Burst:
    """Of one side: seconds to the last that is ready, CPU seconds of the operator, MB at the most."""

    seconds: float
    cpu_s: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Kill:
    """Seconds from the kill to the last change. At rest: children that are too many, children that are missing, and
    objects whose children are there and whose status does not say so.
    """

    seconds: float
    duplicates: int
    missing: int
    unsaid: int


class Load:
    """Objects of one side, and what of them an observer sees."""

    def __init__(self, place: Place, seen: Seen, prefix: str, count: int) -> None:
        self._place, self._seen = place, seen
        self.names = [f"{prefix}-{number:05d}" for number in range(count)]
        self._mine = frozenset(self.names)

    def create(self) -> None:
        self._place.create(wanted.PAIRS, [wanted.pair(name, GREETING) for name in self.names])

    def children(self) -> dict[tuple[str, str], int]:
        """(resource, name of the owner) -> how many it owns."""
        counts: dict[tuple[str, str], int] = {}
        for resource in (wanted.CONFIGMAPS, wanted.SERVICES):
            for child in list(self._seen.objects[resource.plural].values()):
                owner = next((each["name"] for each in child["metadata"].get("ownerReferences", ())), "")
                if owner in self._mine:
                    counts[resource.plural, owner] = counts.get((resource.plural, owner), 0) + 1
        return counts

    def unready(self) -> int:
        """How many do not say that they are."""
        self._seen.check()
        pairs = self._seen.objects[wanted.PAIRS.plural]
        return sum(pairs.get(name, {}).get("status", {}).get("ready") is not True for name in self.names)

    def ready(self) -> bool:
        return not self.unready()

    def wrong(self) -> tuple[int, int]:
        """(too many, missing)."""
        counts = self.children()
        return sum(count - 1 for count in counts.values()), 2 * len(self.names) - len(counts)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    bursts: dict[str, list[Burst]] = {}
    kills: dict[str, list[Kill]] = {}
    for number in range(1, options.rounds + 1):
        with tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder, Place(Path(folder)) as place:
            spec = {"greeting": {"type": "string"}}
            place.define([wanted.definition("pairs", "Pair", spec)], wanted.PAIRS)
            with Seen(place, (wanted.PAIRS, wanted.CONFIGMAPS, wanted.SERVICES)) as seen:
                for side in _sides(options, place)[:: 1 if number % 2 else -1]:
                    burst, found = _one(options, place, seen, side, f"{side.title.split(',')[0]}-{number}")
                    if burst is not None:
                        bursts.setdefault(side.title, []).append(burst)
                    for what, kill in found.items():
                        kills.setdefault(what, []).append(kill)
                    say(f"round {number}, {side.title}: {burst}, {found}")
    _tell(options, bursts, kills)


def _sides(options: argparse.Namespace, place: Place) -> list[Side]:
    sides: list[Side] = [
        Fleet(place.directory, place.kubeconfig, OPERATOR, options.workers),
        Kopf(place.directory, place.kubeconfig, NAMESPACE),
    ]
    if options.generated:
        sides.append(Kopf(place.directory, place.kubeconfig, NAMESPACE, generated=True))
    return sides


def _one(
    options: argparse.Namespace, place: Place, seen: Seen, side: Side, prefix: str
) -> tuple[Burst | None, dict[str, Kill]]:
    """All that is measured of one side."""
    generated = side.title.endswith("generated names")
    prefix += "-gen" * generated
    with side:
        side.start()
        warm = Load(place, seen, f"{prefix}-warm", 1)
        warm.create()
        place.await_true(warm.ready, f"{side.title} to be at work", START_LIMIT_S)
        burst = (
            None if generated else _burst(options, place, side, Load(place, seen, f"{prefix}-burst", options.objects))
        )
        kills = {side.title: _kill(options, place, seen, side, f"{prefix}-kill", lambda: _again(side))}
        if isinstance(side, Fleet):
            kills["oarlock, one worker"] = _kill(options, place, seen, side, f"{prefix}-worker", side.kill_worker)
    pairs = seen.objects[wanted.PAIRS.plural].items()
    place.delete(wanted.PAIRS, {name: each["metadata"]["uid"] for name, each in pairs if name.startswith(prefix)})
    place.await_true(lambda: not any(seen.objects.values()), "an empty namespace", options.limit_s)
    return burst, kills


def _burst(options: argparse.Namespace, place: Place, side: Side, load: Load) -> Burst:
    with Usage(side.roots) as usage:
        began = time.monotonic()
        load.create()
        place.await_true(load.ready, f"{options.objects} objects of {side.title}", options.limit_s)
        seconds = time.monotonic() - began
    if load.wrong() != (0, 0):
        raise Unfit(f"{side.title} has (too many, missing) children: {load.wrong()}")
    return Burst(seconds, usage.cpu_s, usage.peak_kb / 1024)


def _again(side: Side) -> None:
    side.kill()
    side.start()


def _kill(
    options: argparse.Namespace, place: Place, seen: Seen, side: Side, prefix: str, kill: Callable[[], None]
) -> Kill:
    rest_s = options.rest_s + side.patience_s
    load = Load(place, seen, prefix, options.objects)
    creating = threading.Thread(target=load.create)
    creating.start()
    place.await_true(lambda: len(load.children()) >= options.objects // 2, "a quarter of the children", options.limit_s)
    before = load.unready()
    began = time.monotonic()
    kill()
    creating.join()
    if not before:
        raise Unfit("all was done before the kill: ask for more objects")

    def settled() -> bool:
        """As wanted, or at rest with what will not come any more."""
        rests = time.monotonic() - max(seen.changed_s, began) > rest_s
        return rests or (load.ready() and not load.wrong()[1])

    place.await_true(settled, "all as wanted", options.limit_s)
    return Kill(seen.changed_s - began, *load.wrong(), load.unready())


def _tell(options: argparse.Namespace, bursts: dict[str, list[Burst]], kills: dict[str, list[Kill]]) -> None:
    figures: tuple[tuple[str, Callable[[Burst], float], int], ...] = (
        ("s to all ready", lambda burst: burst.seconds, 2),
        ("objects/s", lambda burst: options.objects / burst.seconds, 0),
        ("CPU s", lambda burst: burst.cpu_s, 2),
        ("MB at most", lambda burst: burst.peak_mb, 0),
    )
    rows = [
        (title, *(spread([of(each) for each in mine], digits) for _, of, digits in figures))
        for title, mine in bursts.items()
    ]
    title = f"{options.objects} objects x 2 children; median [least-most] of {options.rounds} rounds"
    report.show(title, ("", *(heading for heading, _, _ in figures)), rows)
    rows = [
        (
            title,
            spread([each.seconds for each in mine], 2),
            *(str(sum(getattr(each, name) for each in mine)) for name in COUNTS),
        )
        for title, mine in kills.items()
    ]
    report.show("a SIGKILL in the middle of the burst", ("killed", "s to the last change", *WORDS), rows)
    facts: dict[str, Any] = {"benchmark": "operators"}
    for name, mine in bursts.items():
        facts[f"ready_s_{name}"] = round(median(each.seconds for each in mine), 3)
        facts[f"cpu_s_{name}"] = round(median(each.cpu_s for each in mine), 3)
        facts[f"peak_mb_{name}"] = round(median(each.peak_mb for each in mine), 1)
    for title, found in kills.items():
        name = {"oarlock, one worker": "oarlock_worker", "kopf, generated names": "kopf_generated"}.get(title, title)
        facts[f"after_kill_s_{name}"] = round(median(each.seconds for each in found), 3)
        facts |= {f"{count}_{name}": sum(getattr(each, count) for each in found) for count in COUNTS}
    ratios = [theirs.seconds / ours.seconds for ours, theirs in zip(bursts["oarlock"], bursts["kopf"], strict=True)]
    cpu = [theirs.cpu_s / ours.cpu_s for ours, theirs in zip(bursts["oarlock"], bursts["kopf"], strict=True)]
    facts |= {"ratio_vs_kopf": round(median(ratios), 2), "cpu_ratio_vs_kopf": round(median(cpu), 2)}
    report.finish({**facts, "objects": options.objects, "workers": options.workers, "rounds": options.rounds})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--objects", type=int, default=1_000)
    add("--workers", type=int, default=2, help="worker processes of oarlock (default 2)")
    add("--no-generated", dest="generated", action="store_false", help="leave out kopf's kill with generated names")
    add("--rest-s", type=float, default=15.0, help="without any change: then nothing more will come")
    add("--limit-s", type=float, default=600.0, help="how long a part may take")
    return parser


if __name__ == "__main__":
    report.main(main)
