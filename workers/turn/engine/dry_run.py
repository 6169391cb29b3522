"""The engine of a fleet that writes nothing: it takes every turn to its end and records what it would have written.

Reads are real. Each write is answered as the API answers one that succeeds, so a turn decides all there is to decide.
What would follow from a write that did not happen is left out: nothing is announced, so there are no expectations, no
back-offs of nodes and no resourceVersions to wait for. There is no way from here to a write: the engine has a ReadApi,
which has no method for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from oarlock.broker.protocol import Broker
from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.turns import Entry, Finish
from oarlock.cluster.answer import Answer
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.read_api import ReadApi
from oarlock.workers.turn.engine.running_turn import RunningTurn
from oarlock.workers.turn.engine.turn_engine import UNKNOWN, TurnEngine
from oarlock.workers.turn.steps import Announce, Grant, Look, Reserve, Send, Step, Write

DONE, CREATED = 200, 201
MADE = "dry-run "
"""Begins the UID of what a turn believes that it has created."""


@dataclass(slots=True)
class Decision:
    """What a turn would have written, in order, and what it read. ``entries``: what it would have announced; that of a
    create says for which node it is. ``nodes``: the version of the local cache of nodes that it was decided on.
    ``rv``: the resourceVersion that the children equal. ``beyond``: digest of the pods that it looked at besides.
    """

    claim: Claim
    writes: list[Write] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    nodes: str = ""
    rv: str = ""
    beyond: str = ""


Record = Callable[[Sequence[tuple[Decision, Finish]]], None]
"""Keeps the decisions of turns that end, before their keys are given back."""


def keep_nothing(_: Sequence[tuple[Decision, Finish]]) -> None:
    """For who asks for each decision himself, with ``DryRunEngine.decision``."""


class DryRunEngine(TurnEngine):
    """One worker's, as every TurnEngine."""

    count_dropped = True  # no answer ever tells, and upstream writes the count where it is kept

    def __init__(
        self,
        broker: Broker,
        api: ReadApi,
        settings: Settings,
        clock: Clock,
        queues: Sequence[str] | None = None,
        record: Record = keep_nothing,
    ) -> None:
        super().__init__(broker, api, settings, clock, queues)
        self._order.in_full()  # what is recorded tells of each pod
        self._record = record
        self._decisions: dict[tuple[str, str, str], Decision] = {}
        """Of the batch in hand, by queue, key and nonce."""

    def start(self, batch: Batch, claim: Claim) -> RunningTurn:
        """As every engine; from here on there is a decision of this claim."""
        controller = CONTROLLERS.get(claim.queue)
        if controller is not None:
            decision = self.decision(claim)
            decision.rv = batch.watermarks.get(controller.dependents, UNKNOWN).rv
            if "nodes" in controller.local_caches:
                decision.nodes = self._local_caches["nodes"].version
        return super().start(batch, claim)

    def decision(self, claim: Claim) -> Decision:
        """What the turn over this claim has decided, so far."""
        at = claim.queue, claim.key, claim.nonce
        found = self._decisions.get(at)
        if found is None:  # a turn takes the children out of its claim
            found = self._decisions[at] = Decision(claim._replace(children=[*claim.children]))
        return found

    def _ending(self, finishes: Sequence[Finish]) -> Sequence[Finish]:
        """Record what was decided, then end the turns without what only a write would have brought."""
        decided = [(self._decisions.pop((each.queue, each.key, each.nonce), None), each) for each in finishes]
        self._record([(decision, finish) for decision, finish in decided if decision is not None])
        return [_bare(each) for each in finishes]

    def carry_out(self, running: RunningTurn, step: Step) -> Any:
        """As every engine; which pods it looks at is kept."""
        result = super().carry_out(running, step)
        if isinstance(step, Look) and step.resource == "pods":
            found = sorted(f"{each.uid} {each.rv}" for each in result)
            self.decision(running.claim).beyond = blake2b(" ".join(found).encode(), digest_size=6).hexdigest()
        return result

    def _act(self, running: RunningTurn, step: Announce | Reserve | Send) -> Any:
        decision = self.decision(running.claim)
        match step:
            case Announce():
                decision.entries += step.entries
                return []
            case Reserve():
                return Grant(step.wanted, 0)
            case Send():
                decision.writes += step.writes
                answers = [_answer(write) for write in step.writes]
                for write, answer in zip(step.writes, answers, strict=True):
                    running.outcome.note.wrote(write, answer)
                return answers

    def may_go_on(self) -> bool:
        """One decision a turn is recorded."""
        return False

    def answered(self, running: RunningTurn, step: Step, result: Any) -> None:
        """Answers to reads tell nothing here."""

    def ended(self, running: RunningTurn) -> None:
        """There is nothing to tell anybody: events are about writes."""

    def _begin_batch(self) -> None:
        super()._begin_batch()
        self._decisions.clear()


def _bare(finish: Finish) -> Finish:
    did = f"dry run: {finish.did}" if finish.did else ""
    return finish._replace(changes=(), did=did)


def _answer(write: Write) -> Answer:
    """That of a server that did it. A turn reads the body of what it has created; of a change, whether it was done."""
    if write.verb != "create":
        return Answer(DONE)
    made = orjson.loads(write.body)
    made["metadata"] |= {"uid": f"{MADE}{write.name}", "resourceVersion": "1", "generation": 1}
    return Answer(CREATED, orjson.dumps(made))
