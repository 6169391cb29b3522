"""All about one key, for its page. It is made anew only so often that all such pages together cost little.

`oarlock explain` reads whole resources, so its price grows with the cluster. A page that somebody opens is made at
once; the next one of the same key waits until that price is paid off.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from oarlock.broker.looks.history import Triggers
from oarlock.cli.explain.history_sentences import did_text, triggers_text
from oarlock.cli.top.fleet import Fleet
from oarlock.cli.top.tabs import Task
from oarlock.workers.process.log_line import printable

PRICE = 100
"""A page that took a ms of processor time is followed by the next one after so many ms: 1 % of a core."""
ANEW_S = 1.0
KEPT_MAX = 50
AT_ONCE = 2
TOLD = ("state", "failures", "crashes", "delayed_in_ms", "parked_in_ms", "suspect", "now_ms", "rollout", "nodes")
"""Facts of `oarlock explain -o json` that the page draws."""


@dataclass(slots=True)
class Kept:
    """A page, and when (monotonic s) the next one may be made."""

    facts: dict[str, Any]
    made_s: float
    again_s: float


class KeyPages:
    """``clock_s`` and ``spent_s``: the time, and the processor time of a thread."""

    def __init__(
        self,
        fleet: Fleet,
        clock_s: Callable[[], float] = time.monotonic,
        spent_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._fleet, self._clock_s, self._spent_s = fleet, clock_s, spent_s
        self._kept: OrderedDict[Task, Kept] = OrderedDict()
        self._making: dict[Task, asyncio.Task[Kept]] = {}
        self._paid_s, self._slots = 0.0, asyncio.Semaphore(AT_ONCE)

    async def page(self, task: Task) -> bytes:
        """As JSON, with how old it is and when to ask again. Raises NotDone."""
        kept, now_s = self._kept.get(task), self._clock_s()
        if kept is None or now_s >= max(kept.again_s, self._paid_s):
            if task not in self._making:
                self._making[task] = asyncio.create_task(self._make(task))
                self._making[task].add_done_callback(lambda _: self._making.pop(task, None))
            kept = await asyncio.shield(self._making[task])
            now_s = self._clock_s()
        again_ms = int(1_000 * max(ANEW_S, max(kept.again_s, self._paid_s) - now_s))
        return orjson.dumps({**kept.facts, "age_ms": int(1_000 * (now_s - kept.made_s)), "again_ms": again_ms})

    def forget(self, task: Task) -> None:
        """Make its next page anew: something was done to the key."""
        self._kept.pop(task, None)

    async def _make(self, task: Task) -> Kept:
        async with self._slots:
            facts, spent_s = await asyncio.to_thread(self._ask, task)
        now_s = self._clock_s()
        self._paid_s = max(self._paid_s, now_s) + PRICE * spent_s
        kept = self._kept[task] = Kept(facts, now_s, now_s + max(ANEW_S, PRICE * spent_s))
        self._kept.move_to_end(task)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return kept

    def _ask(self, task: Task) -> tuple[dict[str, Any], float]:
        begun_s = self._spent_s()
        facts = told(task, self._fleet.facts(task), self._fleet.traceback(task))
        return facts, self._spent_s() - begun_s


def told(task: Task, facts: dict[str, Any], traceback: str) -> dict[str, Any]:
    """What the page of a key shows, from the facts of `oarlock explain`. Pure."""
    return {
        **task._asdict(),
        **{name: facts[name] for name in TOLD if name in facts},
        "sentences": [printable(sentence) for sentence in facts["sentences"]],
        "turns": [
            {
                **turn,
                "did": printable(did_text(turn["did"])),
                "because": printable(triggers_text(Triggers(**turn["triggers"]))),
            }
            for turn in facts["turns"]
        ],
        "since_ms": facts["why"]["since_ms"] if facts["why"] else None,
        "lock": {name: facts["lock"][name] for name in ("holder", "age_ms", "remaining_ms")} if facts["lock"] else None,
        "traceback": [printable(line) for line in traceback.splitlines()],
    }
