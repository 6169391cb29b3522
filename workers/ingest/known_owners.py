"""The owners an ingestor knows, for routing orphans; and what it does when it learns of an owner late.

An orphan wakes the owners that would adopt it; an owner wakes itself. An orphan and its owner make a pair: whichever
is applied to Redis second must wake the owner, which works if its ingestor knows of the first. With several ingestors
it may not: one may be ahead with pods, another with owners. So each ingestor looks after every pair whose two events it
has seen, whoever applied them:

- an orphan that another ingestor applied still wakes its owners;
- an owner that another ingestor applied is in doubt, and so is one that is learned after a batch of orphans was
  prepared and before that batch is applied;
- an ingestor that starts, or skips a part of a resource's history, doubts every namespace for its pairs.

A doubt about an owner is settled by a look at the cached orphans that have one of its labels, a doubt about a
namespace by a look at all of them. So no pair is missed as long as one ingestor lives or starts again. That an owner
came must not cost a look at all orphans of its namespace: to a Deployment every ReplicaSet without one is an orphan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import takewhile
from typing import Any

from oarlock.broker.protocol import Broker
from oarlock.broker.steps.paging import every
from oarlock.controllers.entries import Watched
from oarlock.controllers.objects.model import LabelSelector
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.ownership.orphans import labelled_entry, orphan_entry
from oarlock.controllers.ownership.owner_table import OwnerTable
from oarlock.controllers.registry import adoptables, owners_of
from oarlock.controllers.routing import WakeKey
from oarlock.workers.signing.refusals import decoded

ENTRIES_AT_ONCE = 200


class KnownOwners:
    """One table for all queues. The reflectors of the owners keep it up to date."""

    def __init__(self) -> None:
        self.table = OwnerTable()
        self._selectors: dict[str, dict[str, LabelSelector | None]] = {}
        self.doubtful: set[WakeKey] = set()
        """Owners that may select a cached orphan that did not wake them."""
        self.doubtful_namespaces: dict[str, set[str]] = {}
        """Where any owner may, by the orphans' resource."""
        self.news = 0
        """Counts owners that were learned or changed their selector."""
        self._news_of: dict[WakeKey, int] = {}
        """The latest last."""

    def note(self, queue: str, owner: Claimer, gone: bool) -> bool:
        """Note an owner's present state. Returns whether it may now select pods that it did not select before."""
        if gone:
            self._forget(queue, owner.key)
            return False
        known = self._selectors.setdefault(queue, {})
        self.table.note(queue, owner)
        changed = owner.key not in known or known[owner.key] != owner.selector
        if changed:
            known[owner.key] = owner.selector
            self.news += 1
            self._news_of.pop((queue, owner.key), None)
            self._news_of[queue, owner.key] = self.news
        return changed

    @property
    def in_doubt(self) -> bool:
        """Whether there is anything to settle."""
        return bool(self.doubtful or self.doubtful_namespaces)

    def doubt_since(self, news: int) -> None:
        """Orphans that were routed at this count of ``news`` are in the cache only now: doubt what is newer."""
        if news == self.news:
            return
        newer = takewhile(lambda each: each[1] > news, reversed(self._news_of.items()))
        self.doubtful.update(owner for owner, _ in newer)

    def replace(self, queue: str, owners: Iterable[Claimer]) -> None:
        """Know exactly these owners of a queue."""
        left = set(self._selectors.get(queue, ()))
        for owner in owners:
            left.discard(owner.key)
            self.note(queue, owner, False)
        for key in left:
            self._forget(queue, key)

    def _forget(self, queue: str, key: str) -> None:
        self.table.forget(queue, key)
        self._selectors.get(queue, {}).pop(key, None)
        self._news_of.pop((queue, key), None)

    def doubt_all(self, skipped: Watched[Any]) -> None:
        """Doubt every namespace: this process skipped a part of the history of a resource, and may have missed any pair
        in which such an object is the owner or the orphan.
        """
        for resource in adoptables():
            queues = set(owners_of(resource.resource).values())
            if resource.resource != skipped.resource:
                queues &= {skipped.owner_queue}
            if namespaces := {each for queue in queues for each in self.table.namespaces(queue)}:
                self.doubtful_namespaces.setdefault(resource.resource, set()).update(namespaces)

    def settle(self, broker: Broker) -> int:
        """Wake every owner in doubt that selects a cached orphan. Returns how many keys it queued.

        Raises ObjectRefused, besides what the broker raises; then the doubts stay.
        """
        wakes: dict[str, set[str]] = {}
        for resource in adoptables():
            adopters = set(owners_of(resource.resource).values())
            entries = self._where_to_look(adopters, self.doubtful_namespaces.get(resource.resource, set()))
            for at in range(0, len(entries), ENTRIES_AT_ONCE):
                for cached in every(broker, resource.resource, entries[at : at + ENTRIES_AT_ONCE]):
                    for queue, key in resource.route(decoded(resource, cached), False, self.table).wake:
                        if queue in adopters:  # not its own, if it is an owner too
                            wakes.setdefault(queue, set()).add(key)
        queued = sum(broker.add(queue, sorted(keys), why="orphans") for queue, keys in sorted(wakes.items()))
        self.doubtful, self.doubtful_namespaces = set(), {}
        return queued

    def _where_to_look(self, queues: Collection[str], whole: Collection[str]) -> list[str]:
        """Index entries with all orphans that the owners in doubt of these queues select. ``whole``: the namespaces in
        doubt.
        """
        namespaces = [each for each in sorted(whole) if any(self.table.has(queue, each) for queue in queues)]
        entries = [orphan_entry(namespace) for namespace in namespaces]
        for queue, key in sorted(self.doubtful):
            namespace = key.partition("/")[0]
            if queue in queues and namespace not in whole and (label := self.table.label_of(queue, key)) is not None:
                entries.append(labelled_entry(namespace, label))
        return list(dict.fromkeys(entries))
