"""A campaign: a burst of objects, while random workers and the ingestor are killed with SIGKILL. Then the verdict.

The user creates Bundles and Effects, changes some of them, drops and asks again for children, and deletes some, all at
moments of a seeded schedule. A second thread kills, at moments of the same seed. When all is at rest the judge reads
the API server's audit log, its lists and the log of the outside, and nothing of the product.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.audited import await_audited, whole_lines
from benchmarks.operators import outside, wanted
from benchmarks.operators.judge import Verdict, judge, names
from benchmarks.operators.place import NAMESPACE, Place, Seen
from benchmarks.operators.sides import Fleet
from benchmarks.report import Unfit, say
from oarlock.cluster.resources import Resource

OPERATOR = Path(__file__).with_name("campaign_operator.py")
BUNDLES = Resource(wanted.PAIRS.api_version, "bundles", "Bundle")
EFFECTS = Resource(wanted.PAIRS.api_version, "effects", "Effect")
RESOURCES = (BUNDLES, EFFECTS, wanted.CONFIGMAPS)
CHILDREN_MAX = 4
START_LIMIT_S = 60.0
INGESTOR_SHARE = 0.15


class Killer:
    """Kills on a thread of its own, from entry to exit. ``kills``: by role. ``failure``: what ended it."""

    def __init__(self, fleet: Fleet, seed: int, every_s: tuple[float, float]) -> None:
        self._fleet, self._random, self._every_s = fleet, random.Random(f"kills {seed}"), every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.kills: Counter[str] = Counter()
        self.failure: Exception | None = None

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._random.uniform(*self._every_s)):
            role = "ingestor" if self._random.random() < INGESTOR_SHARE else "worker"
            try:
                if role == "ingestor":
                    self._fleet.kill_ingestor()
                else:
                    self._fleet.kill_worker(self._random.randrange(256))
            except Exception as error:
                self.failure = error
                return
            self.kills[role] += 1


class User:
    """What the user does, and what is to be there then."""

    def __init__(self, place: Place, seen: Seen, seed: int) -> None:
        self._place, self._seen, self._random = place, seen, random.Random(f"user {seed}")
        self.bundles: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.effects: set[str] = set()

    def create(self, bundles: int, effects: int) -> None:
        for name in (f"b-{number:05d}" for number in range(bundles)):
            self.bundles[name], self.texts[name] = self._random.randint(1, CHILDREN_MAX), "first"
        made = [_made(BUNDLES, name, children=count, text="first") for name, count in self.bundles.items()]
        self.effects = {f"e-{number:05d}" for number in range(effects)}
        self._place.create(EFFECTS, [_made(EFFECTS, name, value="first") for name in sorted(self.effects)])
        for start in range(0, len(made), 100):
            self._place.create(BUNDLES, made[start : start + 100])
            if start:
                self.change(10, 2)

    def change(self, bundles: int, effects: int, text: str = "changed") -> None:
        """Some of those that were made first: another number of children, another text."""
        some = self._some(sorted(self._seen.objects[BUNDLES.plural].keys() & self.bundles.keys()), bundles)
        self.bundles |= {name: self._random.randint(0, CHILDREN_MAX) for name in some}
        self.texts |= dict.fromkeys(some, text)
        changes = {name: {"spec": {"children": self.bundles[name], "text": text}} for name in some}
        self._place.patch(BUNDLES, changes)
        some = self._some(sorted(self._seen.objects[EFFECTS.plural].keys() & self.effects), effects)
        self._place.patch(EFFECTS, {name: {"spec": {"value": f"{text} {name}"}} for name in some})

    def delete(self, bundles: int, effects: int) -> None:
        for resource, mine, count in ((BUNDLES, list(self.bundles), bundles), (EFFECTS, list(self.effects), effects)):
            there = self._seen.objects[resource.plural]
            some = self._some(sorted(there.keys() & set(mine)), count)
            self._place.delete(resource, {name: there[name]["metadata"]["uid"] for name in some})
            for name in some:
                self.bundles.pop(name, None)
                self.effects.discard(name)

    def _some(self, of: list[str], count: int) -> list[str]:
        return self._random.sample(of, min(count, len(of)))

    def done(self) -> bool:
        """Whether all is there, and nothing else. Only a wait: the judge has a view of its own."""
        self._seen.check()
        there = self._seen.objects
        wanted_names = {child for name, count in self.bundles.items() for child in names(name, count)}
        maps = there[wanted.CONFIGMAPS.plural]
        return (
            maps.keys() == wanted_names
            and all(each["data"]["text"] == self.texts[name.rpartition("-")[0]] for name, each in list(maps.items()))
            and there[EFFECTS.plural].keys() == self.effects
            and all(
                each.get("status", {}).get("generation") == each["metadata"]["generation"]
                for each in list(there[EFFECTS.plural].values())
            )
        )


def _made(resource: Resource, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    say(f"seed {options.seed}: {options.objects} objects, {options.workers} workers")
    folder = Path(tempfile.mkdtemp(prefix="oarlock-kills-"))
    with (
        outside.serving(folder / "outside.log") as url,
        Place(folder) as place,
        Fleet(folder, place.kubeconfig, OPERATOR, options.workers, OUTSIDE=url) as fleet,
    ):
        verdict, kills, seconds = _play(options, place, fleet)
    _tell(options, verdict, kills, seconds)
    if verdict.broken:
        raise Unfit(f"{len(verdict.broken)} rules were broken, the first: {verdict.broken[0]}; see {folder}")
    shutil.rmtree(folder)


def _play(options: argparse.Namespace, place: Place, fleet: Fleet) -> tuple[Verdict, Counter[str], float]:
    effects = options.objects // 10
    number, text = {"type": "integer"}, {"type": "string"}
    bundle = wanted.definition("bundles", "Bundle", {"children": number, "text": text})
    place.define([bundle, wanted.definition("effects", "Effect", {"value": text})], EFFECTS)
    fleet.start()
    with Seen(place, RESOURCES) as seen:
        user = User(place, seen, options.seed)
        _warm(place, seen)
        began = time.monotonic()
        with Killer(fleet, options.seed, (options.kill_min_s, options.kill_max_s)) as killer:
            user.create(options.objects - effects, effects)
            user.delete(options.objects // 20, max(1, effects // 10))
            for turn in range(options.changes):
                user.change(options.objects // 10, max(1, effects // 5), f"change {turn}")
                _wait(place, killer, killer.kills.total() + 3)
            _wait(place, killer, options.kills)
        if killer.failure is not None:
            raise killer.failure
        place.await_true(user.done, "all as wanted", options.limit_s)
        seconds = time.monotonic() - began
        time.sleep(options.rest_s)  # what a dead worker sent, or a late one decides, would show by then
        at_end = {each.plural: _listed(place, each) for each in RESOURCES}
    await_audited(place, place.audit_log)
    audited = place.directory / "judged.log"
    audited.write_bytes(b"".join(whole_lines(place.audit_log)))
    return judge(audited, at_end, place.directory / "outside.log"), killer.kills, seconds


def _warm(place: Place, seen: Seen) -> None:
    """Until the operator has looked after one object."""
    place.create(BUNDLES, [_made(BUNDLES, "warm", children=1, text="first")])
    place.await_true(lambda: "warm-0" in seen.objects[wanted.CONFIGMAPS.plural], "the operator", START_LIMIT_S)
    place.patch(BUNDLES, {"warm": {"spec": {"children": 0}}})


def _wait(place: Place, killer: Killer, kills: int) -> None:
    place.await_true(lambda: killer.kills.total() >= kills or bool(killer.failure), f"{kills} kills", 300.0)


def _listed(place: Place, resource: Resource) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        found = []
        async with aclosing(place.client.list_pages(resource, namespace=NAMESPACE)) as pages:
            async for page in pages:
                found += [json.loads(item) for item in page.items]
        return found

    listed: list[dict[str, Any]] = place.io.run(read(), 60.0)
    return listed


def _tell(options: argparse.Namespace, verdict: Verdict, kills: Counter[str], seconds: float) -> None:
    for sentence in verdict.broken[:20]:
        say(f"broken: {sentence}")
    rows = [(name.replace("_", " "), str(count)) for name, count in sorted(verdict.counts.items())]
    rows += [(f"kills of a {role}", str(count)) for role, count in sorted(kills.items())]
    report.show(f"seed {options.seed}: {len(verdict.broken)} rules broken; {seconds:.1f} s", ("", "count"), rows)
    counts = {name: verdict.counts.get(name, 0) for name in COUNTS}
    report.finish(
        {
            "benchmark": "operators.kills",
            **counts,
            "kills_worker": kills["worker"],
            "kills_ingestor": kills["ingestor"],
            "broken": len(verdict.broken),
            "seconds": round(seconds, 2),
            "objects": options.objects,
            "workers": options.workers,
            "seed": options.seed,
        }
    )


COUNTS = (
    "children_wanted",
    "children_created",
    "children_applied_again",
    "children_deleted",
    "effects",
    "effects_told",
    "effects_deleted",
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators.kills", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1)
    add("--objects", type=int, default=1_000, help="a tenth of them have an effect outside")
    add("--workers", type=int, default=4)
    add("--kills", type=int, default=40, help="at the least")
    add("--changes", type=int, default=5, help="rounds of changes after the burst, each after three more kills")
    add("--kill-min-s", type=float, default=0.1, help="between two kills")
    add("--kill-max-s", type=float, default=0.6)
    add("--rest-s", type=float, default=8.0, help="from all as wanted to the verdict")
    add("--limit-s", type=float, default=300.0)
    return parser


if __name__ == "__main__":
    report.main(main)
