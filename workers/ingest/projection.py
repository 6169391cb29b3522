"""From the API's JSON to what the broker stores: projection, index entries, keys to wake."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import msgspec

from oarlock.broker.values.events import Event, without_ending
from oarlock.broker.versions import newer
from oarlock.cluster.http.frames import WatchEvent
from oarlock.controllers.entries import Watched
from oarlock.controllers.objects.wire import WireError
from oarlock.controllers.ownership.orphans import EVERY_OWNER
from oarlock.controllers.routing import Routes, WakeKey
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.upstream_detector import UpstreamDetector
from oarlock.workers.process.log_line import discreet, line

log = logging.getLogger("oarlock.ingest")

OWNED = b'"controller":true'
"""API servers write this into the JSON of every object that has a controller. An object without it may be an orphan."""


class EventBatch(msgspec.Struct):
    """Contiguous watch events up to ``to``, ready to be applied.

    ``events`` are in order. Another ingestor applied the events at or below the watermark: they count only for
    ``orphans`` (resourceVersion, keys that would adopt it) and ``owners`` (resourceVersion, an owner that may select
    more pods than before). ``news``: the count of the known owners when the batch was prepared.
    """

    to: str
    news: int = 0
    count: int = 0
    events: list[Event] = []
    orphans: list[tuple[str, tuple[WakeKey, ...]]] = []
    owners: list[tuple[str, WakeKey]] = []


class Projector:
    """Prepares the events and lists of one resource, and keeps the owners known.

    ``detector``: is shown each new object; None for resources that no controller makes.
    """

    def __init__(self, resource: Watched[Any], owners: KnownOwners, detector: UpstreamDetector | None = None) -> None:
        self.resource, self._owners, self._detector = resource, owners, detector
        self.unreadable = 0
        """Objects that could not be decoded; each was logged and left out."""

    def batch(self, raw: Iterable[WatchEvent], after: str, mark: str, bytes_max: int) -> tuple[EventBatch, int]:
        """A batch of the first of these events, and how many it took: as many as fit into ``bytes_max`` of blobs.

        ``after``: the position before them; ``mark``: the last known watermark. The batch ends before an event whose
        version is not newer than the last one's; raises OutOfOrder if that is the first event.
        """
        batch, size, taken = EventBatch(after, self._owners.news), 0, 0
        for event in raw:
            bookmark = event.type == "BOOKMARK"
            ordered = newer(event.rv, batch.to) or (bookmark and event.rv == batch.to)
            if not ordered and not taken:
                raise OutOfOrder(event, batch.to)
            if not ordered or size >= bytes_max:
                break
            taken += 1
            batch.to = event.rv
            if bookmark:
                continue
            batch.count += 1
            applied = not newer(event.rv, mark)
            if applied and not self.resource.owner_queue and (not self.resource.adoptable or OWNED in event.object):
                continue  # another ingestor applied it, and it has no part in a pair
            prepared = self._prepared(event, batch)
            if prepared is not None and not applied:
                batch.events.append(prepared)
                size += prepared.size
        return batch, taken

    def listed(self, items: Iterable[bytes]) -> list[Event]:
        """The objects of a page of a list."""
        found = []
        for raw in items:
            try:
                rv, obj = self.resource.from_json(raw)
            except WireError as error:
                self._skip(raw, error)
                continue
            if self._detector is not None:
                self._detector.listed(raw, self.resource.kind, obj)
            found.append(self._event(rv, obj, False, self._routes(obj, False)))
        return found

    def _prepared(self, event: WatchEvent, batch: EventBatch) -> Event | None:
        try:
            _, obj = self.resource.from_json(event.object)
        except WireError as error:
            self._skip(event.object, error)
            return None
        gone = event.type == "DELETED"
        if self._detector is not None and event.type == "ADDED":
            self._detector.added(event.object, self.resource.kind, obj)
        queue = self.resource.owner_queue
        if queue and self._owners.note(queue, obj, gone):
            batch.owners.append((event.rv, (queue, obj.key)))
        routes = self._routes(obj, gone)
        if self.resource.adoptable and OWNED not in event.object:
            adopters = tuple([wake for wake in routes.wake if wake[0] != queue])  # its own key, if it is an owner too
            if adopters:
                batch.orphans.append((event.rv, adopters))
        added = event.type == "ADDED" and OWNED in event.object and not self.resource.whole
        return self._event(event.rv, obj, gone, routes, added=added)

    def _routes(self, obj: Any, gone: bool) -> Routes:
        routes = self.resource.route(obj, gone, self._owners.table)
        if routes.warning:
            event = "index function failed" if self.resource.whole else "ambiguous owner"
            log.warning(line(event, detail=routes.warning))
        if self.resource.owner_queue and not gone:
            return msgspec.structs.replace(routes, index=(*routes.index, EVERY_OWNER))
        return routes

    def _event(self, rv: str, obj: Any, gone: bool, routes: Routes, *, added: bool = False) -> Event:
        blob = None if gone else self.resource.encode(obj)
        apart = None if gone else self.resource.apart(obj)
        tasks = tuple([f"{queue}:{key}" for queue, key in routes.wake])
        entries = _words(routes.index)
        kind = routes.kind if entries == routes.index else b""  # the entry that it counts under may be left out
        if blob is not None and kind:
            blob = without_ending(blob, kind, obj.uid)
        change = "added" if added else "observed" if routes.observed else "set"
        return Event(obj.key, rv, obj.uid, blob, entries, _words(tasks), apart=apart, kind=kind, change=change)

    def _skip(self, raw: bytes, error: WireError) -> None:
        # One unreadable object must not stop all the others; the API still refuses what clashes with it.
        self.unreadable += 1
        name = "/".join(filter(None, place_of(raw))) or "?"  # the log shows nothing else of the object
        log.error(line("unreadable object", resource=self.resource.resource, object=name, error=discreet(error)))


class _Meta(msgspec.Struct, gc=False):
    namespace: str = ""
    name: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Meta


_OBJECT = msgspec.json.Decoder(_Object)


def place_of(raw: bytes) -> tuple[str, str]:
    """(namespace, name) in an object's JSON, each "" if it is absent; both are "" if the JSON cannot be read."""
    try:
        meta = _OBJECT.decode(raw).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "", ""
    return meta.namespace, meta.name


def _words(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Without texts that hold white space, which separates the broker's words. A reference may name an owner by any
    text (upstream: apimachinery ValidateOwnerReferences only asks for some), but no owner can have such a name.
    """
    if " ".join(texts).split() == list(texts):
        return texts
    return tuple([text for text in texts if text.split() == [text]])


class OutOfOrder(Exception):
    """A stream brought an event that is not newer than the one before, so it is not the API's history."""

    def __init__(self, event: WatchEvent, after: str) -> None:
        super().__init__(f"{event.type} at {event.rv} after {after}")
