"""Watches: each follows a kind's log from a position and writes out the events, until the client or the server ends it.

Everything that has happened since the last write goes out in one write, as the bytes encoded at commit;
only watches with a selector or a Table form look at single events. What a selector no longer takes is
told as DELETED, what it newly takes as ADDED
(upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.errors import ApiError, FieldError, bad_request, expired, invalid
from oarlock.sandbox.apiserver.http.paths import Target
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.printing.tables import Shape, View, bookmark, one
from oarlock.sandbox.apiserver.store.events import Event, Stored
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.text.selectors import Selector
from oarlock.sandbox.apiserver.verbs.listing import parse_rv
from oarlock.sandbox.apiserver.verbs.rest import selector_of

Write = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between bookmarks: when nothing is new at all, and when other kinds have moved on.

    `breath_s`: between two writes of events. What happens meanwhile goes out together, for a write costs both sides
    more than ten events do; the first event after a pause goes out at once.
    """

    quiet_s: float = 10.0
    progress_s: float = 1.0
    breath_s: float = 0.002


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a client wants to watch. `after_rv` None: begin with what there is, as ADDED."""

    kind: Kind
    namespace: str  # "" for all
    selector: Selector | None
    view: View
    after_rv: int | None
    bookmarks: bool
    mark_initial_end: bool
    lasts_s: float


def is_true(text: str) -> bool:
    """A boolean query parameter."""
    return text.lower() in ("true", "1")


def watch_request(
    store: Store, target: Target, params: Mapping[str, str], view: View, lasts_default_s: float
) -> WatchRequest:
    """Raises ApiError 400 or 422 for parameters that do not go together."""
    asked, match = params.get("resourceVersion", ""), params.get("resourceVersionMatch", "")
    rv = parse_rv(asked)
    initial = params.get("sendInitialEvents")
    why = ""
    if initial is None and match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    elif initial is not None and match != "NotOlderThan":
        # Upstream's wording does not depend on whether it is missing or another one.
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    if why:
        error = FieldError.forbidden("resourceVersionMatch", why)
        raise invalid("ListOptions", "meta.k8s.io", "", [error])
    lasts_s = lasts_default_s
    if params.get("timeoutSeconds"):
        try:
            lasts_s = float(int(params["timeoutSeconds"])) or lasts_default_s
        except ValueError:
            raise bad_request("timeoutSeconds: expected an integer") from None
    bookmarks = is_true(params.get("allowWatchBookmarks", ""))
    wants_initial = is_true(initial) if initial is not None else not rv
    after_rv = None if wants_initial else (rv or store.rv)
    return WatchRequest(
        kind=target.kind,
        namespace=target.namespace,
        selector=selector_of(target, params),
        view=view,
        after_rv=after_rv,
        bookmarks=bookmarks,
        mark_initial_end=bookmarks and wants_initial and initial is not None,
        lasts_s=lasts_s,
    )


class Watch:
    """One running watch. `now` is a monotonic clock in seconds; `stalled` and `stopping` are asked anew."""

    def __init__(
        self,
        store: Store,
        request: WatchRequest,
        *,
        pace: Pace,
        now: Callable[[], float],
        stalled: Callable[[], bool],
        stopping: Callable[[], bool],
    ) -> None:
        self._store = store
        self._request = request
        self._log = store.logs[request.kind.name]
        self._pace = pace
        self._now = now
        self._stalled = stalled
        self._stopping = stopping
        custom = request.kind.custom
        self._as_stored = request.view.shape is Shape.OBJECT and (custom is None or custom.is_as_stored)
        self._whole = request.selector is None and not request.namespace and self._as_stored

    async def run(self, write: Write) -> None:
        """Write events until the time is up, the history is cut, or the server stops.

        What the client asked for and can no longer have is told as an ERROR event.
        """
        request, log = self._request, self._log
        cuts = log.cuts
        began_s = self._now()
        try:
            if request.after_rv is None:
                position, told_rv = log.end, self._store.rv
                await write(self._initial(told_rv))
            else:
                position, told_rv = self._position(request.after_rv), request.after_rv
            told_s = began_s
            while not self._stopping() and log.cuts == cuts:
                stalled = self._stalled()  # it does not say its end either: a client that hears one is not deaf
                if not stalled and self._now() - began_s >= request.lasts_s:
                    break
                if not stalled:
                    events = log.since(position)
                    if events is None:
                        raise expired(f"too old resource version: {told_rv} ({log.floor_rv})")
                    if events:
                        position += len(events)
                        told_rv = events[-1].rv
                        if chunk := self._encode(events):
                            told_s = self._now()
                            await write(chunk)
                        await asyncio.sleep(self._pace.breath_s if chunk and position == log.end else 0)
                        continue
                    if request.bookmarks and self._bookmark_due(told_rv, told_s):
                        told_rv, told_s = self._store.rv, self._now()
                        await write(bookmark(request.kind, told_rv, request.view, initial_events_end=False))
                        continue
                await log.changed()
        except ApiError as error:
            await write(orjson.dumps({"type": "ERROR", "object": error.status()}) + b"\n")

    def _position(self, rv: int) -> int:
        if rv > self._store.rv:
            # Only another life of this server can have given it, and its history is gone.
            raise expired(f"too large resource version: {rv} (current {self._store.rv})")
        position = self._log.position_after(rv)
        if position is None:
            raise expired(f"too old resource version: {rv} ({self._log.floor_rv})")
        return position

    def _bookmark_due(self, told_rv: int, told_s: float) -> bool:
        waited_s = self._now() - told_s
        return waited_s >= self._pace.quiet_s or (waited_s >= self._pace.progress_s and told_rv < self._store.rv)

    def _initial(self, rv: int) -> bytes:
        request = self._request
        namespace = request.namespace or None
        lines = [
            self._line("ADDED", stored)
            for _, stored in self._store.sorted(request.kind.name, namespace)
            if request.selector is None or request.selector.matches(stored.obj)
        ]
        if request.mark_initial_end:
            lines.append(bookmark(request.kind, rv, request.view, initial_events_end=True))
        return b"".join(lines)

    def _encode(self, events: list[Event]) -> bytes:
        if self._whole:
            return b"".join([part for event in events for part in event.parts])
        return b"".join([self._seen(event) for event in events])

    def _seen(self, event: Event) -> bytes:
        """The line this watch has for `event`; empty if it does not concern it."""
        request = self._request
        if request.namespace and event.namespace != request.namespace:
            return b""
        selector = request.selector
        if selector is None:
            type_: str = event.type
        else:
            matched = event.previous is not None and selector.matches(event.previous.obj)
            matches = event.type != "DELETED" and selector.matches(event.obj)
            if not matched and not matches:
                return b""
            type_ = "MODIFIED" if matched and matches else "ADDED" if matches else "DELETED"
        if type_ == event.type and self._as_stored:
            return b"".join(event.parts)
        if type_ == "DELETED" and event.type != "DELETED" and event.previous is not None:
            return self._line(type_, _at(event.previous, event.rv))
        return self._line(type_, event.new)

    def _line(self, type_: str, stored: Stored) -> bytes:
        body = one(self._request.kind, stored, self._request.view, self._store.clock())
        return b'{"type":"' + type_.encode() + b'","object":' + body + b"}\n"


def _at(stored: Stored, rv: int) -> Stored:
    """An object that left a selection is sent as it last was in it, at the resourceVersion at which it left."""
    obj: dict[str, Any] = {**stored.obj, "metadata": {**stored.obj["metadata"], "resourceVersion": str(rv)}}
    return Stored(obj, orjson.dumps(obj), rv)


DEFAULT_LASTS_S: Final = (1800.0, 3600.0)  # drawn between the two, so that clients do not return all at once
