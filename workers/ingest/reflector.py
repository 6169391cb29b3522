"""One resource: list it, then watch it, and apply what comes to the broker. Driven by steps; never blocks.

Upstream: client-go/tools/cache/reflector.go.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from oarlock.broker.protocol import Broker
from oarlock.broker.steps.paging import Pages
from oarlock.broker.versions import newer
from oarlock.cluster.listing import PAGE_LIMIT, Page
from oarlock.controllers.entries import Watched
from oarlock.controllers.ownership.orphans import EVERY_OWNER
from oarlock.workers.ingest.applier import DONE, NOTHING, Applied, Applier
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.lister_watcher import End, Ending, ListerWatcher, Stream, WatchStream
from oarlock.workers.ingest.projection import OutOfOrder, Projector
from oarlock.workers.ingest.relist import STAGING_LOCK_MS, ApiWentBack, Listed, Relist, Unlisted
from oarlock.workers.ingest.standby import LOOK_MS, Standby
from oarlock.workers.ingest.upstream_detector import UpstreamDetector
from oarlock.workers.ingest.verification import Verdict, Verification
from oarlock.workers.process.log_line import line
from oarlock.workers.signing.refusals import decoded
from oarlock.workers.tracing.tracer import Tracer

CHECK_EVERY_MS = 1_000
RELIST_REFUSED_MS = 5_000
"""Between two lists that were caused by refused objects: whoever planted one can do so again and again."""
REST_MS = 30
"""While another ingestor is ahead, rest this long and then look at the watermark, instead of preparing events that it
has applied. It is also the delay until this ingestor takes over from a dead one."""
PATIENCE_MS = 3 * LOOK_MS
"""Between the end of a watch whose history is gone and a list. Another ingestor may be ahead, and then its watermark
moves: nothing is dearer to an API server than a list, and a busy one is where a history ends too soon."""
ASK_AGAIN_MS = 200
"""Until the next look, while another process has to open the epoch."""
RETRY_MS = (100, 10_000)

log = logging.getLogger("oarlock.ingest")


class ReflectorState(StrEnum):
    """What a reflector is doing."""

    AWAY = "away"  # in no epoch
    SEEKING = "seeking"  # finding out where to start
    LISTING = "listing"
    LEARNING = "learning"  # reading the owners known, a page a step
    PROBING = "probing"  # asking whether the API still is where it was, after a watch failed
    WATCHING = "watching"
    STANDBY = "standby"  # without a watch, while another ingestor is ahead with more than this one can use


WATCHING = ReflectorState.WATCHING
"""For what every step passes: Python 3.11 takes eight times as long to find a member of an enum as a name."""
FOLLOWING = frozenset((ReflectorState.WATCHING, ReflectorState.STANDBY))
"""What goes on from the watermark, at once or as soon as nobody else does."""


class Reflector:
    """One resource in one process. ``nonce`` names staged lists, ``random`` gives retries their jitter."""

    def __init__(
        self,
        resource: Watched[Any],
        lister_watcher: ListerWatcher,
        owners: KnownOwners,
        *,
        nonce: Callable[[], str],
        random: random.Random,
        detector: UpstreamDetector | None = None,
        tracer: Tracer | None = None,
        standby: Standby | None = None,
    ) -> None:
        self.resource, self.name, self.lister_watcher = resource, resource.resource, lister_watcher
        self._owners, self._nonce, self._random = owners, nonce, random
        self.projector = Projector(resource, owners, detector)
        self.applier = Applier(self.projector, owners, tracer)
        self._broker: Broker | None = None
        self._stream: WatchStream | None = None
        self._probe: Stream[Page] | None = None
        self._relist: Relist | None = None
        self._pages: Pages | None = None
        self._due_ms = self._list_due_ms = self._failures = 0
        self._unchecked = True
        """Whether to compare with the shared watermark before the next events are applied."""
        self._watch_since_ms, self._heard, self._quiet = 0, False, False
        self._deaf_watches = 0
        self._standby = standby or Standby()
        self._must_list, self._expired, self._patient_until_ms = False, "", 0
        self._distrusted_ms = -RELIST_REFUSED_MS
        self._complained = ("", "")
        self.state = ReflectorState.AWAY
        self._verification: Verification | None = None
        self.listed = False
        """Whether the cache holds what the API had when ``relist`` or ``verify`` was called."""
        self.absent = False
        """Whether the last list said that the server has no such kind."""
        self.lists = 0
        """Lists this process committed; each leaves keys to be published."""

    @property
    def position(self) -> str:
        """The resourceVersion up to which Redis holds everything."""
        return self.applier.position

    # -- told from outside -----------------------------------------------------------------------------------------

    def join(self, broker: Broker) -> None:
        """Work for this epoch: from its watermark if it has one, else from a list."""
        self.leave()
        self._broker, self.state = broker, ReflectorState.SEEKING
        # A kind that was absent may have come while we were away, and then its watermark is older than its objects.
        self._must_list, self.absent = self.absent, False

    def leave(self) -> None:
        """Work for no epoch."""
        self._drop_streams()
        self.applier.start("")
        self._due_ms = self._list_due_ms = self._failures = 0
        self._unchecked = True
        self._must_list, self._expired = False, ""
        self._end_verification()
        self._broker, self.state = None, ReflectorState.AWAY

    def relist(self) -> None:
        """Read a new list and commit it, whatever the cache holds."""
        self._drop_streams()
        self._end_verification()
        self.listed, self._must_list, self.state = False, True, ReflectorState.SEEKING
        self._due_ms = self._list_due_ms = 0

    def verify(self) -> None:
        """Have the cache hold all that the API has by now: compare, where it was listed before, else list."""
        if self._broker is None or self.state in (ReflectorState.SEEKING, ReflectorState.PROBING):
            self.relist()
            return
        self._end_verification()
        self.listed, self._due_ms = False, 0
        self._verification = Verification(self.resource, self._broker, lambda: self.lister_watcher.pages(PAGE_LIMIT))

    def distrust(self, now_ms: int) -> None:
        """The cache was tampered with: read a list and write the cache anew."""
        self._drop_streams()
        self._must_list, self.state = True, ReflectorState.SEEKING
        self._due_ms, self._distrusted_ms = max(now_ms, self._distrusted_ms + RELIST_REFUSED_MS), now_ms

    def check(self, marks: Mapping[str, str]) -> None:
        """Compare with the shared watermarks, as they are now; to be called once a second or so. They may stand behind
        ours, if Redis lost its last writes, or be gone.
        """
        if self._broker is not None and self.state is ReflectorState.WATCHING:
            self._check(self._broker, marks.get(self.name))

    # -- a step ----------------------------------------------------------------------------------------------------

    def step(self, now_ms: int, may_list: bool) -> int:
        """Do the next thing. Returns ms until the next may be due; the lister-watcher wakes us when something has come.

        ``may_list``: whether the epoch allows a list by this process now.
        Raises EpochOver, BrokerUnreachable (make the step again later), ApiWentBack and ObjectRefused.
        """
        if self._broker is None:
            return CHECK_EVERY_MS
        if now_ms < self._due_ms:
            return self._due_ms - now_ms
        if self.state is WATCHING and self._verification is None:
            return self._watch(self._broker, now_ms)
        match self.state:
            case ReflectorState.SEEKING:
                return self._seek(self._broker, now_ms, may_list)
            case ReflectorState.LISTING:
                return self._list(self._broker, now_ms)
            case ReflectorState.LEARNING:
                return self._learn()
            case ReflectorState.PROBING:
                return self._look_at_probe(self._broker, now_ms)
            case ReflectorState.STANDBY:
                due_ms = self._stand_by(self._broker, now_ms)
            case _:
                due_ms = self._watch(self._broker, now_ms)
        return due_ms if self._verification is None else min(due_ms, self._verify(self._verification, now_ms))

    def _drop_streams(self) -> None:
        for each in (self._stream, self._probe, self._relist):
            if each is not None:
                each.close()
        self._stream = self._probe = self._relist = self._pages = None
        self.applier.drop()

    def _wait(self, now_ms: int, for_ms: int) -> int:
        self._due_ms = now_ms + for_ms
        return for_ms

    def _back_off(self, now_ms: int) -> int:
        return self._wait(now_ms, self._next_pause_ms())

    def _next_pause_ms(self) -> int:
        """It grows from one failure to the next."""
        least_ms, most_ms = RETRY_MS
        self._failures += 1
        longest_ms: int = min(most_ms, least_ms * 2 ** min(self._failures, 10))
        return round(longest_ms * self._random.uniform(0.5, 1))

    def _complain(self, event: str, why: str, **facts: object) -> None:
        """Warn, but not of the same thing again and again: a request that fails is repeated every ten seconds."""
        level = logging.DEBUG if (event, why) == self._complained else logging.WARNING
        self._complained = event, why
        log.log(level, line(event, resource=self.name, why=why, **facts))

    def _end_verification(self) -> None:
        if self._verification is not None:
            self._verification.close()
        self._verification = None

    # -- where to start --------------------------------------------------------------------------------------------

    def _seek(self, broker: Broker, now_ms: int, may_list: bool) -> int:
        mark = broker.watermark(self.name)
        if mark is not None and not self._must_list:
            if newer(mark, self._expired):
                self._go_on_from(broker, mark, now_ms)
                return 0
            if now_ms < self._patient_until_ms:
                return self._wait(now_ms, LOOK_MS)
        if not may_list or now_ms < self._list_due_ms:
            return self._wait(now_ms, ASK_AGAIN_MS)
        self._end_verification()  # the list will do
        pages = self.lister_watcher.pages(PAGE_LIMIT)
        self._relist = Relist(self.projector, broker, pages, self._nonce, mark or "")
        self.state = ReflectorState.LISTING
        return 0

    def _go_on_from(self, broker: Broker, mark: str, now_ms: int) -> None:
        """Follow a watermark, which another ingestor has moved if our own watch has expired."""
        self._failures = self._list_due_ms = 0
        if self._expired and not self.resource.owner_queue:
            self._expired = ""
            self._standby.begin(now_ms)
            self.applier.start(mark)
            self.state = ReflectorState.STANDBY
        else:
            self._watch_from(broker, mark)

    def _watch_from(self, broker: Broker, rv: str) -> None:
        """Go on from a watermark. This process did not see the events before it, so it reads the known owners anew."""
        self._drop_streams()
        self._must_list, self._expired = False, ""
        if self.resource.owner_queue:
            self._pages, self.state = Pages(broker, self.name, (EVERY_OWNER,)), ReflectorState.LEARNING
        else:
            self._follow(rv)

    def _learn(self) -> int:
        """Read a page of the owners. Watch from the first page's position: later changes come again as events."""
        assert self._pages is not None
        if not self._pages.step():
            return 0
        pages, self._pages, self.state = self._pages, None, ReflectorState.SEEKING
        if pages.rv:
            owners = [decoded(self.resource, each) for each in pages.found]
            self._owners.replace(self.resource.owner_queue, owners)
            self._follow(pages.rv)
        return 0

    def _follow(self, rv: str, behind: bool = False) -> None:
        self._owners.doubt_all(self.resource)
        self.applier.start(rv, behind)
        self.state = ReflectorState.WATCHING

    def _list(self, broker: Broker, now_ms: int) -> int:
        assert self._relist is not None
        outcome, busy = self._relist.step(now_ms)
        match outcome:
            case Listed(rv):
                log.info(line("listed", resource=self.name, objects=self._relist.objects, rv=rv))
                # A list that began before ``verify`` was called may lack what has come since.
                self.listed = self._verification is None
                self.absent, self.lists = self._relist.absent, self.lists + 1
                self._watch_from(broker, rv)
                if self.absent:
                    self._complain("no such kind", "its objects count as gone; it is asked for again and again")
                    if not self.listed:  # nothing watches what is absent, so nothing would go on with the verification
                        self.relist()
                        return 0
                    self.state = ReflectorState.PROBING
                    return self._back_off(now_ms)
                self._failures, self._complained = 0, ("", "")
                return 0
            case Unlisted(why, elsewhere):
                self._drop_streams()
                self.state = ReflectorState.SEEKING
                if elsewhere:  # its list moves the watermark, which is looked at all the same
                    self._list_due_ms = now_ms + min(STAGING_LOCK_MS, self._next_pause_ms())
                    return self._wait(now_ms, ASK_AGAIN_MS)
                self._complain("list failed", why)
                return self._back_off(now_ms)
            case None:
                return 0 if busy else CHECK_EVERY_MS

    # -- watching --------------------------------------------------------------------------------------------------

    def _watch(self, broker: Broker, now_ms: int) -> int:
        if self._stream is None:
            self._stream = self.lister_watcher.watch(self.position)
            self._watch_since_ms, self._heard = now_ms, False
        if self._unchecked:
            self._unchecked = False
            if not self._check(broker, broker.watermark(self.name)):
                return 0
        try:
            applied = self.applier.step(broker, self._stream)
        except OutOfOrder as error:
            return self._failed(End(Ending.BROKEN, f"out of order: {error}"), now_ms)
        if applied is NOTHING:
            end = self._stream.end()
            return CHECK_EVERY_MS if end is None else self._failed(end, now_ms)
        if applied is DONE:
            self._failures, self._complained, self._heard, self._deaf_watches = 0, ("", ""), True, 0
            return CHECK_EVERY_MS if self.applier.emptied and self._stream.end() is None else 0
        match applied:
            case Applied.REST:
                self._unchecked = True
                # Not of owners: each ingestor has to know them all.
                if self.resource.owner_queue or not self._standby.pays(self.applier.counts.skipped, now_ms):
                    return self._wait(now_ms, REST_MS)
                self._drop_streams()
                self._standby.begin(now_ms)
                self.state = ReflectorState.STANDBY
                return self._wait(now_ms, LOOK_MS)
            case Applied.GAP:
                at = self.applier.gap_at
                log.warning(line("behind", resource=self.name, watermark=at, position=self.position))
                self._watch_from(broker, at)
            case Applied.NEEDLIST:
                self._drop_streams()
                self.state = ReflectorState.SEEKING
        return 0

    def _check(self, broker: Broker, mark: str | None) -> bool:
        """Compare with the shared watermark. Returns whether the stream is still good."""
        if mark is None:
            self._drop_streams()
            self.state = ReflectorState.SEEKING
            return False
        if newer(self.position, mark):
            log.error(line("rewound", resource=self.name, watermark=mark, position=self.position))
            self._watch_from(broker, mark)
            return False
        self.applier.mark = mark
        return True

    def _stand_by(self, broker: Broker, now_ms: int) -> int:
        mark = broker.watermark(self.name)
        if mark is None:
            self.state = ReflectorState.SEEKING
        elif self._standby.is_over(mark, now_ms):
            self._follow(mark, behind=True)
        else:
            self.applier.start(mark)
            return self._wait(now_ms, LOOK_MS)
        return 0

    def _verify(self, verification: Verification, now_ms: int) -> int:
        verdict, due_ms = verification.step(now_ms)
        if verdict is None:
            return due_ms
        self._end_verification()
        if verdict is Verdict.HOLDS:
            log.info(line("verified", resource=self.name, position=self.position))
            self.listed = True
        else:
            log.warning(line("unproven", resource=self.name, mend="it is listed anew"))
            self.relist()
        return 0

    # -- after a watch ---------------------------------------------------------------------------------------------

    def _failed(self, end: End, now_ms: int) -> int:
        self._drop_streams()
        if end.ending is Ending.CLOSED:
            return self._closed(now_ms)
        self._complain("watch ended", end.text, how=end.ending, position=self.position)
        if end.ending is Ending.EXPIRED:
            # Another ingestor has usually kept the watermark fresh; a list is needed only if it has not.
            self._expired, self.state = self.position, ReflectorState.SEEKING
            self._patient_until_ms = now_ms + PATIENCE_MS
            return 0
        self._deaf_watches += end.ending is Ending.DEAF
        self.state, self._quiet = ReflectorState.PROBING, False
        return self._back_off(now_ms)

    def _closed(self, now_ms: int) -> int:
        """The server ended the watch in order, so we could hear it. After a quiet watch we probe all the same: an API
        that was restored from a backup stays silent until it is past our position again.
        """
        self._deaf_watches = 0
        if now_ms - self._watch_since_ms >= RETRY_MS[1]:
            self._failures = 0
            if not self._heard:
                self.state, self._quiet = ReflectorState.PROBING, True
            return 0
        self._failures += 1  # a server that closes watches at once is asked less and less often
        return 0 if self._failures == 1 else self._back_off(now_ms)

    def _look_at_probe(self, broker: Broker, now_ms: int) -> int:
        if self._probe is None:
            self._probe = self.lister_watcher.pages(1)
        page = next(iter(self._probe.take(1)), None)
        if page is not None:
            self._drop_streams()
            if newer(self.position, page.rv):
                raise ApiWentBack(self.name, page.rv, self.position)
            if self.absent:  # its objects count as gone, though perhaps none was deleted: no event would say so
                self.absent, self._must_list, self.state = False, True, ReflectorState.SEEKING
                return 0
            if self._deaf_watches > 1:  # the watch in its place was silent too: where nobody hears, a list has to do
                self._expired, self.state = self.position, ReflectorState.SEEKING
                return 0
            if self._quiet:  # the same as a bookmark at the position: nothing happens, but the cache is not stale
                broker.ingest(self.name, self.position, self.position, [])
                self._quiet = False
            self.state = ReflectorState.WATCHING
            return 0
        if (end := self._probe.end()) is not None:
            self._drop_streams()
            if end.ending is Ending.ABSENT and self.resource.whole and not self.absent:
                self._must_list, self.state = True, ReflectorState.SEEKING
                return 0
            self._complain("no answer", end.text)
            return self._back_off(now_ms)
        return CHECK_EVERY_MS
