"""Requests on their way to the API server of a simulation, whatever cluster handles them there.

A write is committed at a moment of the scheduler's choosing, also after its sender died, and its answer may be lost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeVar

import orjson

from oarlock.cluster.answer import Answer
from oarlock.workers.turn.steps import Write


class View(NamedTuple):
    """What a claim showed the turn that it begins: each resource as of ``rvs``, at ``at_ms``."""

    rvs: Mapping[str, int] = MappingProxyType({})
    at_ms: int = 0

    def since(self, *resources: str) -> int:
        """The resourceVersion from which on any of them may have changed unseen."""
        return min(self.rvs.get(resource, 0) for resource in resources)


NO_VIEW = View()


@dataclass(slots=True)
class Flight:
    """One write on its way: sent when and by whom, committed or not, answered or not.

    ``view``: what its turn decided on.
    """

    write: Write
    sender: str
    sent_ms: int
    answer: Answer | None = None
    arrived: bool = False
    lost: bool = False
    view: View = NO_VIEW


@dataclass
class Traffic:
    """``seen`` counts opportunities. What a write does is for the subclass to say, in ``handle``."""

    clock_ms: Callable[[], int]
    flights: list[Flight] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    """Of each sender's present claim."""
    landing: View = NO_VIEW
    """Of the write that is being committed."""
    on_send: Callable[[str, Sequence[Write]], None] = lambda sender, writes: None
    """Told of all writes that a worker sends at the same time."""
    on_no_answer: Callable[[str, Write], None] = lambda sender, write: None
    on_loss: Callable[[], None] = lambda: None

    def count(self, what: str) -> None:
        """Opportunities: a run without them proves nothing."""
        self.seen[what] = self.seen.get(what, 0) + 1

    def send(self, write: Write, sender: str) -> Flight:
        flight = Flight(write, sender, self.clock_ms(), view=self.views.get(sender, NO_VIEW))
        self.flights.append(flight)
        return flight

    def land(self, flight: Flight, *, sender_lives: bool, fault: str = "") -> None:
        """The server commits a write, or refuses it. The answer still has to arrive.

        ``fault``: "429", "500" or "409" where it does neither, "500 late" where it commits and then says 500.
        """
        if not sender_lives:
            self.count("late commits")
        self.landing = flight.view
        flight.answer = self.answer_to(flight.write, fault)
        if flight.answer.code == 409 and flight.write.verb == "create":
            self.count("already exists")

    def answer_to(self, write: Write, fault: str) -> Answer:
        """What the server says, once it has done what it says or, for "500 late", something else."""
        if fault:
            self.count(f"fault {fault}")
        match fault:
            case "429":
                return refusal(429, "TooManyRequests")
            case "500":
                return refusal(500, "InternalError")
            case "409":
                return refusal(409, "Conflict")
        answer = self.handle(write)
        return refusal(500, "InternalError") if fault else answer

    def handle(self, write: Write) -> Answer:
        """Commit the write, or refuse it."""
        raise NotImplementedError


class Changed(Protocol):
    """A line of a journal, which is in the order of its resourceVersions."""

    rv: int
    resource: str


Line = TypeVar("Line", bound=Changed)


def news_after(journal: Sequence[Line], rv: int, resource: str) -> list[Line]:
    """What a watch of the resource that begins at this version has to tell."""
    if not journal or journal[-1].rv <= rv:
        return []
    return [each for each in journal[bisect_right(journal, rv, key=attrgetter("rv")) :] if each.resource == resource]


def accepted(code: int, uid: str, rv: int) -> Answer:
    return Answer(code, orjson.dumps({"metadata": {"uid": uid, "resourceVersion": str(rv)}}))


def refusal(code: int, reason: str) -> Answer:
    status = {"kind": "Status", "status": "Failure", "reason": reason, "message": reason, "code": code}
    return Answer(code, orjson.dumps(status))
