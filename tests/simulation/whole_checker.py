"""The invariants of a controller that says what is wanted, looked at with every commit.

No delete takes a child that the last Result holds, however late it lands. Nobody else's object is touched. Deletes and
updates carry the UID and resourceVersion that were compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from greenlet import getcurrent

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import Entry
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.wanted import APPLIED, Wanted
from oarlock.workers.turn.steps import Write
from tests.simulation.checker import Violation
from tests.simulation.protocol_checker import ProtocolChecker
from tests.simulation.whole_world import THEIRS, WholeWorld, owner_uid, wanted_of

Place = tuple[str, str]


class Decision(NamedTuple):
    """What a turn wanted of an owner; ``number`` counts the calls of the function."""

    number: int
    key: str
    uid: str
    places: frozenset[Place]


@dataclass
class WholeChecker(ProtocolChecker):
    """``held``: by owner's UID, the last decision after which a turn found nothing to do."""

    world: WholeWorld
    held: dict[str, Decision] = field(default_factory=dict)
    made: dict[tuple[str, str, str], Decision] = field(default_factory=dict)
    """By resource, name and resourceVersion: who decided a delete."""
    numbers: int = 0
    looked_at_rv: int = 0
    """The last version of the cluster that was looked at."""
    _now: dict[int, Decision | None] = field(default_factory=dict)

    # -- the turn

    def decided(self, own: Whole, wanted: Wanted) -> None:
        """The function was called, in the worker that is running."""
        self.numbers += 1
        places = frozenset((child.resource, child.name) for child in wanted.children)
        self._now[id(getcurrent())] = Decision(self.numbers, own.key, own.uid, places)

    def acts(self) -> None:
        """The worker that is running has something to write."""
        self.acting.add(id(getcurrent()))

    acting: set[int] = field(default_factory=set)

    def claimed(self, key: str, nonce: str) -> None:
        super().claimed(key, nonce)
        self._now[id(getcurrent())] = None
        self.acting.discard(id(getcurrent()))

    def accepted(self, key: str, nonce: str, step: str) -> None:
        super().accepted(key, nonce, step)
        me = id(getcurrent())
        decision = self._now.get(me)
        if step == "finish" and decision is not None and me not in self.acting:
            self.held[decision.uid] = decision
            self.world.count("rests")

    def announced(self, claim: Claim, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.verb != "delete" or not entry.uid or not entry.rv:
                raise Violation(f"announced: {entry}")

    def sent(self, write: Write) -> None:
        self.acts()
        if write.verb == "delete":
            decision = self._now[id(getcurrent())]
            assert decision is not None
            if not (write.uid and write.rv):
                raise Violation(f"a delete without its UID or resourceVersion: {write}")
            before = self.made.get((write.resource, write.name, write.rv))
            if before is None or before.number < decision.number:
                self.made[write.resource, write.name, write.rv] = decision
        elif write.verb == "apply" and write.force:
            meta = orjson.loads(write.body)["metadata"]
            if not (meta.get("uid") and meta.get("resourceVersion")):
                raise Violation(f"an update without its UID or resourceVersion: {write}")

    # -- the API

    def applied(self, before: Whole | None, write: Write) -> None:
        """An apply of ours was committed."""
        if before is None:
            self.world.count("created")
        elif orjson.loads(before.body)["manager"] == THEIRS:
            raise Violation(f"{write.resource}/{write.name} is another's, and was applied over")

    def deleted(self, obj: Whole, write: Write) -> None:
        """A delete of ours was committed."""
        self.world.count("deleted")
        if not owner_uid(obj):
            raise Violation(f"{write.resource}/{write.name} is nobody's, and was deleted")
        held, decision = self.held.get(owner_uid(obj)), self.made[write.resource, write.name, write.rv]
        if held is None or held.number <= decision.number:
            return
        if (write.resource, write.name) in held.places:
            raise Violation(f"{write.resource}/{write.name} was deleted, though the last Result holds it")

    def at_rest(self) -> None:
        """With every step: no child has two of a name, which the API sees to, and digests are of something applied.

        A cluster that has not changed since the last look is as it was.
        """
        if self.world.rv == self.looked_at_rv:
            return
        self.looked_at_rv = self.world.rv
        for stored in self.world.sites():
            for place, child in self.world.children_of(stored.obj.uid).items():
                annotations = orjson.loads(child.obj.body)["metadata"].get("annotations") or {}
                if APPLIED not in annotations:
                    raise Violation(f"{place} has no digest")


def unfinished(world: WholeWorld, site: Any) -> str:
    """What a site at rest lacks; empty where all is as wanted."""
    children, wanted = world.children_of(site.obj.uid), wanted_of(site.doc)
    if children.keys() != wanted.keys():
        return f"has {sorted(children)}, wants {sorted(wanted)}"
    for place, child in children.items():
        doc = child.doc
        for part in ("data", "spec"):
            if doc.get(part) != wanted[place].get(part):
                return f"{place} is {doc}, wanted {wanted[place]}"
    maps = sum(resource == "configmaps.v1" for resource, _ in children)
    return "" if site.doc["status"] == {"maps": maps} else f"status {site.doc['status']}"
