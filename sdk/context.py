"""What a function of the `steps` style is given beside its object: `ctx`. The words are the same for sync and async.

A ctx builds requests and reads answers; the turn carries the requests out (`oarlock.controllers.requests`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson

from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.requests import Requests, StillMine
from oarlock.sdk.definitions import Definition
from oarlock.sdk.errors import Never
from oarlock.sdk.objects import AnyKind, Object
from oarlock.sdk.results import own_object, own_type
from oarlock.sdk.words import Json, Words


class Context(Words):
    """Of a sync function. Each call may raise `LostClaim`, once the turn is over: let it through.

    Kinds are those of the definition: "Deployment", "apps/v1 Deployment" or a class. A name without a namespace is in
    the object's own. Objects are plain dicts, as the API has them. What is read comes from the cache, past the writes
    of this function; a write carries the uid and resourceVersion that were read, so what has changed since is refused.
    """

    def get(self, kind: AnyKind, name: str) -> Json | None:
        """The object, None if there is none."""
        return _object(self._requests.ask(self._get(kind, name)))

    def list(self, kind: AnyKind) -> list[Json]:
        """The objects of a kind that this object owns, or that its watch has found for it."""
        return _objects(self._requests.ask(self._list(kind)))

    def create(self, obj: Json | Object) -> Json:
        """Create an object, a child with its owner reference, and return it. A child that is there already is returned
        as it is. Raises ApiError: 409 if the name is another's.
        """
        return _sure(self._requests.ask(self._put("create", obj)))

    def apply(self, obj: Json | Object) -> Json:
        """Apply server-side what is given, and return the object: it is created, or gets these fields and keeps those
        of others. Raises ApiError: 409 if it has changed since it was read, or is another's.
        """
        return _sure(self._requests.ask(self._put("apply", obj)))

    def patch(self, kind: AnyKind, name: str, change: Mapping[str, Any]) -> Json:
        """A JSON merge patch; returns the object. Raises ApiError: 409 if it has changed since it was read."""
        return _sure(self._requests.ask(self._patch(kind, name, change)))

    def delete(self, kind: AnyKind, name: str) -> None:
        """Delete an object, if there is one. Raises ApiError: 409 if it has changed since it was read."""
        self._requests.ask(self._delete(kind, name))

    def status(self, value: Any) -> None:
        """Write the whole status of the object, if it differs. Raises ApiError: 409 if the object has changed."""
        request = self._set_status(value)
        if request is not None:
            self._requests.ask(request)
            self._has_status(value)

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """An event on the object, for `kubectl describe`. `reason`: a word such as RecordCreated."""
        self._requests.ask(self._tell(reason, message, warning))

    def still_mine(self) -> None:
        """Ask Redis whether the object is still this worker's, and renew its lease. Raises LostClaim.

        Call it right before an effect outside, above all after a long wait.
        """
        self._requests.ask(StillMine())

    def again(self, *, seconds: float) -> None:
        """Run again after so many seconds, or before, if something changes."""
        self._requests.ask(self._look_again(seconds))


class AsyncContext(Words):
    """Of an async function: as `Context`, each word awaited."""

    async def get(self, kind: AnyKind, name: str) -> Json | None:
        return _object(await self._requests.ask_later(self._get(kind, name)))

    async def list(self, kind: AnyKind) -> list[Json]:
        return _objects(await self._requests.ask_later(self._list(kind)))

    async def create(self, obj: Json | Object) -> Json:
        return _sure(await self._requests.ask_later(self._put("create", obj)))

    async def apply(self, obj: Json | Object) -> Json:
        return _sure(await self._requests.ask_later(self._put("apply", obj)))

    async def patch(self, kind: AnyKind, name: str, change: Mapping[str, Any]) -> Json:
        return _sure(await self._requests.ask_later(self._patch(kind, name, change)))

    async def delete(self, kind: AnyKind, name: str) -> None:
        await self._requests.ask_later(self._delete(kind, name))

    async def status(self, value: Any) -> None:
        request = self._set_status(value)
        if request is not None:
            await self._requests.ask_later(request)
            self._has_status(value)

    async def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        await self._requests.ask_later(self._tell(reason, message, warning))

    async def still_mine(self) -> None:
        await self._requests.ask_later(StillMine())

    async def again(self, *, seconds: float) -> None:
        await self._requests.ask_later(self._look_again(seconds))


def _object(answer: bytes | None) -> Json | None:
    return None if answer is None else _sure(answer)


def _objects(answer: list[bytes]) -> list[Json]:
    return [_sure(each) for each in answer]


def _sure(answer: bytes) -> Json:
    found: Json = orjson.loads(answer)
    found["metadata"].pop("managedFields", None)
    return found


def runs(definition: Definition) -> Callable[[Any, Requests], Any]:
    """Its function as the turn calls it: with the cached object (a `Whole`), and the line to the turn.

    An object that does not fit its type raises Never: it has to change first.
    """
    return partial(_run, definition, definition.function, reader(definition))


def undoes(definition: Definition) -> Callable[[Any, Requests], Any] | None:
    """As `runs`, of the function that undoes; None if there is none."""
    if not definition.undo:
        return None
    return partial(_run, definition, definition.undo[0].function, reader(definition, undo=True))


def reader(definition: Definition, *, undo: bool = False) -> Callable[[Whole], Any]:
    """From a cached object to what a function gets. Raises Never, which says what holds an object to be undone."""
    typed = own_type(definition)
    if not undo:
        return partial(own_object, definition, typed)
    if definition.undo[0].raw:
        return partial(own_object, definition, None)

    def read(own: Whole) -> Any:
        try:
            return own_object(definition, typed, own)
        except Never as never:
            raise Never(
                f"{never}; so nothing is undone, and the finalizer {definition.finalizer} stays: mend the object, or"
                f" have {definition.undo[0].function.__name__} take any object, by finalize(raw=True)"
            ) from None

    return read


def _run(
    definition: Definition, function: Callable[..., Any], read: Callable[[Whole], Any], own: Whole, requests: Requests
) -> Any:
    if inspect.iscoroutinefunction(function):
        return _run_async(definition, function, read, own, requests)
    result = function(read(own), Context(definition, orjson.loads(own.body), requests))
    _nothing(definition, function, result)
    return None


async def _run_async(
    definition: Definition, function: Callable[..., Any], read: Callable[[Whole], Any], own: Whole, requests: Requests
) -> None:
    result = await function(read(own), AsyncContext(definition, orjson.loads(own.body), requests))
    _nothing(definition, function, result)


def _nothing(definition: Definition, function: Callable[..., Any], result: Any) -> None:
    """Raises Never where a function returned something. That may be all of its work, which has not even begun: so what
    it was to do must not count as done, above all not what was to be undone.
    """
    if result is None:
        return
    if inspect.isawaitable(result):
        mend = "it is not awaited, so what it was to do is not done; what wraps an async function has to be async too"
    elif inspect.isgenerator(result) or inspect.isasyncgen(result):
        mend = "a function with a yield in it does nothing by itself; leave the yield out"
    else:
        mend = "a function of the steps style does all by its ctx, and returns nothing"
    if inspect.iscoroutine(result):
        result.close()  # else Python warns that it was never awaited, which is said here
    called = getattr(function, "__name__", type(function).__name__)
    raise Never(f"{definition.name}: {called} returned {type(result).__name__}: {mend}")
