"""A ctx without a cluster: `record(www, FakeContext(record, www))` runs a function of the steps style as it stands.

What a request leads to is decided by the code of the fleet's turn (`oarlock.workers.turn.custom.user_requests`); only
the cache and the API server are replaced, by a few dicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from oarlock.broker.values.claims import Claim
from oarlock.controllers.entries import StepsController
from oarlock.controllers.requests import LostClaim, Request, SetStatus
from oarlock.controllers.watched import Watched
from oarlock.sdk.context import AsyncContext, Context
from oarlock.sdk.definitions import Definition
from oarlock.sdk.entries import entries_of
from oarlock.sdk.objects import Object, to_json
from oarlock.testing.steps.world import World
from oarlock.workers.turn.custom.user_requests import Answers
from oarlock.workers.turn.steps import Announce, Look, Read, Send, Step, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

Obj = dict[str, Any]
NOBODY: Mapping[str, int] = {}


class Wrote(NamedTuple):
    """A write that was sent: create, apply, patch, delete or status. `name` of another namespace: `namespace/name`."""

    verb: str
    kind: str
    name: str
    body: Obj


@dataclass(slots=True)
class Did:
    """What a function has done, in order. `status`: the whole one, None if it wrote none.

    `events`: (Normal or Warning, reason, message). `again_s`: after how long it is to run again, None if not asked for.
    """

    writes: list[Wrote] = field(default_factory=list)
    status: Obj | None = None
    events: list[tuple[str, str, str]] = field(default_factory=list)
    again_s: float | None = None


class Line:
    """The function's end of the line to its turn, and the turn."""

    def __init__(
        self,
        definition: Definition,
        obj: Object | Obj,
        children: Iterable[Obj],
        others: Iterable[Obj],
        refuse: Mapping[str, int],
        lost: bool,
    ) -> None:
        entries = entries_of([definition])
        found = [each for each in entries if isinstance(each, StepsController)]
        if not found:
            raise ValueError(f"{definition.name} says what is wanted: call it with oarlock.Children instead of a ctx")
        (self._controller,) = found
        own: Obj = to_json(obj) if isinstance(obj, Object) else {**obj}
        namespace = own["metadata"].get("namespace", "")
        kinds = [each for each in entries if isinstance(each, Watched)]
        self._world, self._lost, self.did = World(definition.name, kinds, namespace, refuse), lost, Did()
        self._me = self._world.add(own)
        self.own = self._world.whole(self._me)
        reference = {"apiVersion": definition.kind.api_version, "kind": definition.kind.kind, "name": self.own.name}
        for child in children:
            self._world.add(child, {**reference, "uid": self.own.uid, "controller": True})
        for other in others:
            self._world.add(other)
        claim = self._claim()
        self._outcome = TurnOutcome(claim)
        self._answers = Answers(claim, self.own, self._controller, self._outcome)

    def _claim(self) -> Claim:
        owned = {each: self._world.owned(each, self.own.uid) for each in self._controller.owned}
        name, first = self._controller.queue, owned.get(self._controller.dependents, [])
        return Claim(name, self.own.key, "", self._world.cached(self._me), first, None, "", False, 0, owned)

    def ask(self, request: Request) -> Any:
        steps = self._answers.answer(request)
        result: Any = None
        try:
            while True:
                result = self._carry_out(steps.send(result))
        except StopIteration as end:
            answer = end.value
        self._note(request, answer)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask_later(self, request: Request) -> Any:
        return self.ask(request)

    def _carry_out(self, step: Step) -> Any:
        match step:
            case Look():
                return self._world.look(step)
            case Read(resource, namespace, names):
                return [self._world.read((resource, namespace, name)) for name in names]
            case Announce() | Send() if self._lost:
                raise LostClaim("the test has given the object to another worker")
            case Send(writes):
                self.did.writes += map(self._wrote, writes)
                return [self._world.write(each) for each in writes]
        return []

    def _wrote(self, write: Write) -> Wrote:
        verb = "patch" if write.verb == "merge" else write.verb
        name = write.name if write.namespace in ("", self.own.namespace) else f"{write.namespace}/{write.name}"
        body: Obj = orjson.loads(write.body or b"{}")
        meta = {part: value for part, value in body.get("metadata", {}).items() if part not in _TURNS_OWN}
        return Wrote(verb, self._world.kind(write.resource), name, _without_empty({**body, "metadata": meta}))

    def _note(self, request: Request, answer: Any) -> None:
        did, outcome = self.did, self._outcome
        did.events = [(each.type, each.reason, each.message) for each in outcome.events]
        did.again_s = None if outcome.due_ms is None else outcome.due_ms / 1000
        if isinstance(request, SetStatus) and not isinstance(answer, Exception):
            did.status = self._world.object(self._me).get("status", {})


_TURNS_OWN = ("uid", "resourceVersion")
"""What the turn adds to a write, so that it cannot land on another version."""


def _without_empty(body: Obj) -> Obj:
    return {part: value for part, value in body.items() if part != "metadata" or value}


class FakeContext(Context):
    """The ctx of a sync function of `definition`, over `obj`.

    `children`: those that are there, with an owner reference or without. `others`: what its watches may find; their
    `names=` and `wakes=` are called. `refuse`: {"create": 409} has such writes refused; 0: they get no answer. `lost`:
    the object is another worker's by now. `did`: what the function has done. Raises ValueError.
    """

    def __init__(
        self,
        definition: Definition,
        obj: Object | Obj,
        children: Iterable[Obj] = (),
        others: Iterable[Obj] = (),
        *,
        refuse: Mapping[str, int] = NOBODY,
        lost: bool = False,
    ) -> None:
        line = Line(definition, obj, children, others, refuse, lost)
        super().__init__(definition, orjson.loads(line.own.body), line)
        self.did = line.did


class FakeAsyncContext(AsyncContext):
    """As `FakeContext`, for an async function."""

    def __init__(
        self,
        definition: Definition,
        obj: Object | Obj,
        children: Iterable[Obj] = (),
        others: Iterable[Obj] = (),
        *,
        refuse: Mapping[str, int] = NOBODY,
        lost: bool = False,
    ) -> None:
        line = Line(definition, obj, children, others, refuse, lost)
        super().__init__(definition, orjson.loads(line.own.body), line)
        self.did = line.did
