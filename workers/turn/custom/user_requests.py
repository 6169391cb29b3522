"""Answers what a user's function asks: from the claim's cache past the function's own writes, and by requests.

A write carries the uid and resourceVersion of what the function has seen, so it is refused if that has changed. The
name of a create is a function of the object, so a repeated one meets a name that is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import Outcome, of_change, of_create, of_delete
from oarlock.controllers.entries import CustomController
from oarlock.controllers.objects.whole import Whole, decode_whole
from oarlock.controllers.pods.events import Event
from oarlock.controllers.requests import (
    ApiError,
    Delete,
    Get,
    List,
    LookAgain,
    Patch,
    Put,
    Request,
    SetStatus,
    StillMine,
    Tell,
)
from oarlock.controllers.whole_routes import concerns_entry, named
from oarlock.workers.process.log_line import discreet
from oarlock.workers.turn.custom.child_writes import field_manager
from oarlock.workers.turn.custom.inputs import of_status
from oarlock.workers.turn.steps import Announce, Look, Read, Send, Steps, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

Place = tuple[str, str, str]
"""Resource, namespace and name."""


class Seen(NamedTuple):
    """An object as the function has seen it. ``body`` None: it was deleted by the function."""

    uid: str
    rv: str
    body: bytes | None


class Answers:
    """For one run of a function over ``own``."""

    def __init__(self, claim: Claim, own: Whole, controller: CustomController, outcome: TurnOutcome) -> None:
        assert claim.owner is not None
        self._claim, self._own, self._controller, self._outcome = claim, own, controller, outcome
        self._me: Place = (controller.resource, own.namespace, own.name)
        self._seen: dict[Place, Seen] = {self._me: Seen(own.uid, claim.owner.rv, own.body)}
        """What was read, and over it what was written: a later look may be behind our own write."""
        self._listed: dict[str, tuple[Place, ...]] = {}
        self._put: dict[str, dict[Place, None]] = {}
        """By resource, what was made as a child."""
        self.status_written = False

    def answer(self, request: Request) -> Steps[Any]:
        """The answer; an exception is raised on the function's side. ClaimLost ends the turn instead."""
        match request:
            case Get(resource, namespace, name):
                seen = yield from self._get((resource, namespace, name))
                return seen.body if seen is not None else None
            case List(resource):
                return (yield from self._list(resource))
            case Put():
                return (yield from self._write_object(request))
            case Patch(resource, namespace, name, body):
                return (yield from self._patch((resource, namespace, name), body))
            case Delete(resource, namespace, name):
                return (yield from self._delete((resource, namespace, name)))
            case SetStatus(body):
                seen = self._seen[self._me]
                refused = yield from self._change(self._me, seen, "status", body, with_body=False)
                self.status_written = self.status_written or refused is None
                return refused
            case StillMine():
                yield Announce("", ())
            case Tell(kind, reason, message):
                self._outcome.events.append(Event(kind, reason, message))
            case LookAgain(after_ms):
                self._outcome.due_in(after_ms)
        return None

    @property
    def own_rv(self) -> str:
        """The version of the object after what the function wrote."""
        return self._seen[self._me].rv

    # -- reads ---------------------------------------------------------------------------------------------------------

    def _get(self, place: Place) -> Steps[Seen | None]:
        if place in self._seen:
            return self._seen[place]
        resource, namespace, name = place
        found: list[Cached] = yield Look(resource, ids=(f"{namespace}/{name}" if namespace else name,))
        if not found:
            return None
        return self._remember(resource, found[0])[1]

    def _list(self, resource: str) -> Steps[list[bytes]]:
        """The claim's, without those that the function deleted and with those that it made."""
        if resource not in self._listed:
            cached = yield from self._claims(resource)
            self._listed[resource] = tuple([self._remember(resource, each)[0] for each in cached])
        places = dict.fromkeys((*self._listed[resource], *self._put.get(resource, ())))
        bodies = [self._seen[place].body for place in places]
        return [body for body in bodies if body is not None]

    def _claims(self, resource: str) -> Steps[Sequence[Cached]]:
        """What the claim brought of a kind of children, or what the watch on a kind finds for the object."""
        controller, own = self._controller, self._own
        if resource in controller.owned:
            if resource == controller.dependents:
                return self._claim.children
            return self._claim.others.get(resource, ())
        found: list[Cached] = []
        if resource in controller.names:
            keys = named(own, controller.name, resource)
            found = (yield Look(resource, ids=keys)) if keys else []
        elif resource in controller.watched:
            found = yield Look(resource, entries=(concerns_entry(controller.queue, self._claim.key),))
        return found

    def _remember(self, resource: str, cached: Cached) -> tuple[Place, Seen]:
        found = decode_whole(cached.blob)
        place = (resource, found.namespace, found.name)
        return place, self._seen.setdefault(place, Seen(found.uid, cached.rv, found.body))

    # -- writes --------------------------------------------------------------------------------------------------------

    def _write_object(self, put: Put) -> Steps[Any]:
        place = (put.resource, put.namespace, put.name)
        seen = yield from self._get(place)
        if seen is not None and seen.body is None:
            seen = None
        if (put.is_child or put.verb == "create") and seen is not None and not self._is_ours(seen):
            return ApiError(409, f"{_called(place)} exists and is not controlled by {self._own.key}")
        if put.verb == "apply":
            made = yield from self._change(place, seen, "apply", put.body)
        else:
            made = seen.body if seen is not None else (yield from self._create(put, place))
        if put.is_child and isinstance(made, bytes):
            self._put.setdefault(put.resource, {})[place] = None
        return made

    def _create(self, put: Put, place: Place) -> Steps[Any]:
        answer = yield from self._send(Write("create", *place, put.body))
        result = of_create(answer)
        if result is Outcome.DONE:
            return self._done(place, answer).body
        if result is Outcome.EXISTS:
            seen = yield from self._read(place)
            if isinstance(seen, Seen) and self._is_ours(seen):
                return seen.body  # an earlier run made it, and the cache has yet to show it
            if isinstance(seen, ApiError):
                return seen
            return ApiError(409, f"{_called(place)} exists and is not controlled by {self._own.key}")
        return self._error(place, answer)

    def _patch(self, place: Place, body: bytes) -> Steps[Any]:
        seen = yield from self._found(place)
        if isinstance(seen, ApiError):
            return seen
        if seen is None or seen.body is None:
            # What was seen has gone meanwhile. What neither the cache nor the server has is a failure to be told of.
            return ApiError(404, f"there is no {_called(place)}", stale=seen is not None)
        return (yield from self._change(place, seen, "merge", body))

    def _delete(self, place: Place) -> Steps[Any]:
        seen = yield from self._found(place)
        if isinstance(seen, ApiError):
            return seen
        if seen is None or seen.body is None:
            return None
        answer = yield from self._send(Write("delete", *place, uid=seen.uid, rv=seen.rv, propagation="Background"))
        match of_delete(answer):
            case Outcome.DONE:
                self._outcome.cache_must_pass(place[0], answer.resource_version)
                ending = answer.uid == seen.uid and b'"deletionTimestamp"' in answer.body and answer.resource_version
                self._seen[place] = Seen(seen.uid, answer.resource_version, answer.body if ending else None)
                return None
            case Outcome.GONE:
                self._seen[place] = Seen(seen.uid, seen.rv, None)
                return None
            case Outcome.CONFLICT:
                return self._error(place, answer, stale=True)
        return self._error(place, answer)

    def _change(self, place: Place, seen: Seen | None, verb: str, body: bytes, *, with_body: bool = True) -> Steps[Any]:
        """A patch of what was seen; ``seen`` None: of what is not there yet, so only an apply."""
        if seen is not None:
            change = orjson.loads(body)
            change["metadata"] = {**(change.get("metadata") or {}), "uid": seen.uid, "resourceVersion": seen.rv}
            body = orjson.dumps(change)
        manager = field_manager(self._controller)
        force = verb == "apply" and seen is not None  # else it could take over an object that the cache has yet to show
        answer = yield from self._send(Write(verb, *place, body, manager=manager, force=force))
        if verb == "status":
            result, said = yield from of_status(answer, place[0], self._own)
        else:
            result, said = of_change(answer), answer.message
        if result is not Outcome.DONE:
            stale = seen is not None and result in (Outcome.CONFLICT, Outcome.GONE)
            return self._error(place, answer, said, stale=stale)
        done = self._done(place, answer)
        return done.body if with_body else None

    def _send(self, write: Write) -> Steps[Answer]:
        """One that could not be sent in time was not sent: the next try begins with a new lease."""
        answer: Answer
        (answer,) = yield Send((write,))
        while of_change(answer) is Outcome.TOO_LATE:
            (answer,) = yield Send((write,))
        self._outcome.heed_throttling(answer)
        return answer

    def _found(self, place: Place) -> Steps[Seen | ApiError | None]:
        """In the cache, else live."""
        seen: Seen | None = yield from self._get(place)
        return seen if seen is not None else (yield from self._read(place))

    def _read(self, place: Place) -> Steps[Seen | ApiError | None]:
        """Live: the cache has nothing of that name."""
        answer: Answer
        (answer,) = yield Read(place[0], place[1], (place[2],))
        if answer.ok:
            self._seen[place] = Seen(answer.uid, answer.resource_version, answer.body)
            return self._seen[place]
        return None if answer.code == 404 and answer.status is not None else self._error(place, answer)

    def _done(self, place: Place, answer: Answer) -> Seen:
        self._outcome.cache_must_pass(place[0], answer.resource_version)
        self._seen[place] = Seen(answer.uid, answer.resource_version, answer.body)
        return self._seen[place]

    def _is_ours(self, seen: Seen) -> bool:
        refs = orjson.loads(seen.body or b"{}").get("metadata", {}).get("ownerReferences") or ()
        return any(ref.get("controller") and ref.get("uid") == self._own.uid for ref in refs)

    @staticmethod
    def _error(place: Place, answer: Answer, said: str = "", *, stale: bool = False) -> ApiError:
        return ApiError(answer.code, f"{_called(place)}: {discreet(said or answer.message)}", stale=stale)


def _called(place: Place) -> str:
    resource, namespace, name = place
    return f"{resource} {namespace}/{name}" if namespace else f"{resource} {name}"
