"""An ingestor of the simulation that runs the product's own way from a watch to the broker.

It watches each resource from a position, as far as the scheduler lets it; it may be killed, and forget, be shown an old
position, or list slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oarlock.broker.steps.paging import Pages
from oarlock.cluster.http.frames import WatchEvent
from oarlock.controllers.ownership.orphans import EVERY_OWNER
from oarlock.controllers.registry import WATCHED
from oarlock.workers.ingest.applier import Applied, Applier
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.projection import Projector
from tests.simulation.daemon_world import DaemonWorld
from tests.simulation.traffic import news_after


class JournalStream:
    """The events after a position, a few at a time, and a bookmark after the last."""

    def __init__(self, world: DaemonWorld, resource: str, after: str, most: int) -> None:
        self._world, self._resource, self._after, self._most = world, resource, int(after), most

    def take(self, most: int) -> list[WatchEvent]:
        world = self._world
        news = news_after(world.journal, self._after, self._resource)
        events = [
            WatchEvent("DELETED" if each.gone else "MODIFIED", str(each.rv), each.raw)
            for each in news[: min(most, self._most)]
        ]
        if len(events) == len(news):
            events.append(WatchEvent("BOOKMARK", str(max(world.rv, self._after)), b""))
        return events

    def end(self) -> None:
        return None

    def close(self) -> None:
        pass

    def pace(self, awaited: bool) -> None:
        pass


class WatchingIngestor:
    """``positions``: of what is watched, up to where it was applied."""

    def __init__(self, world: DaemonWorld, broker: Callable[[], Any], name: str) -> None:
        self._world, self._broker, self._name = world, broker, name
        self._lists = 0
        self.forget()

    def forget(self) -> None:
        """kill -9 and a restart."""
        self._owners = KnownOwners()
        self._projectors: dict[str, Projector] = {}
        self._appliers: dict[str, Applier] = {}
        self._staged: dict[str, tuple[str, str]] = {}
        self._watched: set[str] = set()

    def rewind(self, resource: str, by: int) -> None:
        """Its watch shows events again that it has seen."""
        if resource in self._watched:
            applier = self._applier(resource)
            applier.start(str(max(10, int(applier.position) - by)))

    def step(self, resource: str, size: int) -> None:
        """Apply the next few events of a resource."""
        broker = self._broker()
        if self._owners.in_doubt:
            self._owners.settle(broker)
        if resource not in self._watched:
            mark = broker.watermark(resource)
            if mark is not None:
                self._watch_from(resource, mark)
            return
        applier = self._appliers[resource]
        match applier.step(broker, JournalStream(self._world, resource, applier.position, size)):
            case Applied.DONE:
                pass
            case Applied.GAP:
                self._world.count("gaps")
                self._watch_from(resource, applier.gap_at)
            case Applied.NEEDLIST:
                self._world.count("lists needed")  # a new epoch: whoever opens it lists
                self._watched.discard(resource)
            case Applied.REST:
                mark = broker.watermark(resource)
                if mark is not None:
                    applier.mark = mark
            case _:
                pass

    def list_stepwise(self, resource: str) -> None:
        """The next half of a list."""
        if resource in self._staged:
            self.commit(resource)
        else:
            self.stage(resource)

    def stage(self, resource: str) -> None:
        """The first half of a list: what it shows is of now, whenever it is committed."""
        self._lists += 1
        generation, rv = f"{self._name}-{self._lists}-{self._world.rv}", str(self._world.rv)
        events = self._projector(resource).listed(each.raw for each in self._world.tables[resource].values())
        if self._broker().stage(resource, generation, events):
            self._staged[resource] = generation, rv

    def commit(self, resource: str) -> None:
        """The second half, if there was a first."""
        if resource not in self._staged:
            return
        broker = self._broker()
        generation, rv = self._staged.pop(resource)
        result = broker.commit_list(resource, generation, rv)
        if result.verdict == "OLD":
            self._world.count("old lists")
        if result.verdict != "BUSY":
            self._watch_from(resource, result.watermark if result.verdict == "OLD" else rv)
        while broker.republish():
            pass

    def _watch_from(self, resource: str, rv: str) -> None:
        """As the product's reflectors do: what led there was not seen, so the owners known are read anew."""
        kind = WATCHED[resource]
        if kind.owner_queue:
            pages = Pages(self._broker(), resource, (EVERY_OWNER,))
            while not pages.step():
                pass
            rv = pages.rv
            if not rv:
                return
            self._owners.replace(kind.owner_queue, (kind.decode(each.blob) for each in pages.found))
        self._owners.doubt_all(kind)
        self._applier(resource).start(rv)
        self._watched.add(resource)

    def _applier(self, resource: str) -> Applier:
        if resource not in self._appliers:
            self._appliers[resource] = Applier(self._projector(resource), self._owners)
        return self._appliers[resource]

    def _projector(self, resource: str) -> Projector:
        return self._projectors.setdefault(resource, Projector(self._world.kinds[resource], self._owners))
