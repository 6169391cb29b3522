"""The broker on Redis: each method is one script and one round trip, but ``finish_and_claim``, which is two scripts,
``send_stage``, one a part, and those that read with plain commands: ``load``, ``local_cache``, ``compare``, ``pauses``
and the watermarks.

Raises EpochOver where the epoch is over, or may be (STALE, NOSCRIPT, READONLY, another server, keys that move in a
cluster, damaged data); BrokerUnreachable where Redis did not answer; BrokerFull where Redis has no memory left to grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import redis
from redis.exceptions import RedisError

from oarlock.broker.budget import BudgetLimits, Lent, Report, Share
from oarlock.broker.pauses import Paused
from oarlock.broker.shadow_store import ShadowStore
from oarlock.broker.steps import comparing, loading, refusals, script_texts
from oarlock.broker.steps.claiming import batch_in, claim_args, failures_in, finish_args
from oarlock.broker.steps.event_words import ingest_args, stage_args
from oarlock.broker.steps.script_runner import ScriptRunner
from oarlock.broker.values.claims import Batch, Claim, Claimed, ClaimLimits, Idle, LoadSpec, Unloaded
from oarlock.broker.values.errors import BrokerBusy, BrokerUnreachable, ClaimLost
from oarlock.broker.values.events import Compared, Event, Ingested
from oarlock.broker.values.objects import PAGE, Cached, Delta, Page, PageLimits, PageMark
from oarlock.broker.values.turns import Entry, Finish, NameTaken


class RedisBroker(ScriptRunner):
    """One epoch of one shard. ``blocking``: another client, for ``wait``; its socket timeout exceeds the block time."""

    def __init__(
        self,
        client: redis.Redis,
        epoch: int,
        *,
        shard: str = "0",
        blocking: redis.Redis | None = None,
        clock: str = script_texts.REDIS_TIME,
    ) -> None:
        super().__init__(client, epoch, shard, clock)
        self._blocking = blocking
        self._loaded = loading.LoadMemo()

    def shadow(self) -> ShadowStore:
        """What a dry run keeps of its comparison, over the same connection."""
        return ShadowStore(self._client, self.keys, self._asked)

    # -- the work queue ------------------------------------------------------------------------------------------

    def add(self, queue: str, key_names: Iterable[str], *, unpark: bool = False, why: str = "asked") -> int:
        """client-go's Add, for many keys. Returns how many entered the stream. ``unpark`` frees parked keys too.

        ``why``: the trigger, for people.
        """
        return int(self._run("add", queue, "unpark" if unpark else "", why, *key_names)[1])

    def add_after(self, queue: str, key: str, delay_ms: int) -> None:
        """client-go's AddAfter: at once if the delay is not positive. The earlier of two times wins."""
        self._run("add_after", queue, key, delay_ms)

    def add_rate_limited(self, queue: str, key: str) -> int:
        """client-go's AddRateLimited. Returns the delay in ms."""
        return int(self._run("add_after", queue, key, "rate-limited")[1])

    def forget(self, queue: str, key: str) -> None:
        """client-go's Forget: clears the back-off history, nothing else."""
        self._run("forget", queue, key)

    def num_requeues(self, queue: str, key: str) -> int:
        """client-go's NumRequeues: failed turns in a row."""
        count = self._read("num_requeues", self.keys.failures(queue), key) or b"0"
        if not count.isdigit():
            raise self._damaged("num_requeues", "a count is no number")
        return int(count[:18])

    def register(self, holder: str, supervisor: str, queues: Sequence[str]) -> bool:
        """Allow ``holder`` to claim. Its name must never have been used before in this epoch. False: its supervisor is
        drained, so it may not.
        """
        return bool(self._run("register", holder, supervisor, *queues)[0] == b"OK")

    def claim(self, holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits) -> Batch | Idle:
        """Take keys of the first queue that has any. ``nonce`` is new for each call."""
        return self._claimed(self._run("claim", *claim_args(holder, nonce, specs, limits)), specs, nonce)

    def _claimed(self, reply: list[Any], specs: Sequence[LoadSpec], nonce: str) -> Batch | Idle:
        if reply[0] != b"OK":
            return Idle(reply[0].decode())
        with self._reading("claim"):
            return batch_in(reply, specs, nonce)

    def load(self, batch: Batch) -> Batch:
        """The batch with what was left to be loaded, as it is now. No script reads it."""
        ask_all = partial(self._ask_all, "load")

        def look(unloaded: Unloaded) -> list[Cached]:
            return self.look(unloaded.resource, index=(unloaded.entry,))[1]

        try:
            with self._reading("load"):
                batch = loading.load_mirrors(batch, self.keys, ask_all)
                return loading.load(batch, self.keys, ask_all, look, self._loaded)
        except BrokerBusy as error:
            raise BrokerUnreachable(str(error)) from None  # the keys are taken all the same

    def local_cache(self, resource: str) -> Delta:
        """Every object of a resource that its readers keep in memory, as a claim that knows of none brings them: for a
        worker that has nothing to do yet. No script reads them. A resource that was never listed has no version.
        """
        with self._reading("local_cache"):
            return loading.local_cache(resource, self.keys, partial(self._ask_all, "local_cache"))

    def announce(self, claim: Claim, owner_uid: str, entries: Sequence[Entry], *, lease_ms: int) -> list[NameTaken]:
        """Announce writes. [] where they were entered, and the lease starts anew. Else the names that cached objects
        have already, and nothing was entered. Raises ClaimLost where the nonce is not the current one.
        """
        flat: list[str] = []
        for entry in entries:
            flat += (entry.verb, entry.target, entry.detail)
        reply = self._run("announce", claim.queue, claim.key, claim.nonce, lease_ms, owner_uid, *flat)
        if reply[0] == b"LOST":
            raise ClaimLost(f"{claim.queue}:{claim.key}")
        if reply[0] == b"BORNE":
            with self._reading("announce"):
                return [NameTaken(reply[i].decode(), Cached.parse(reply[i + 1])) for i in range(1, len(reply), 2)]
        return []

    def finish(self, turns: Sequence[Finish]) -> list[int]:
        """End turns. For each: failed turns in a row, or -1 where the claim was no longer ours."""
        return failures_in(self._run("finish", *finish_args(turns)))

    def finish_and_claim(
        self, turns: Sequence[Finish], holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits
    ) -> tuple[list[int], Claimed]:
        """``finish``, and then ``claim``, in one round trip. Where ``finish`` raises, keys may have been taken all the
        same.
        """
        calls = ("finish", finish_args(turns)), ("claim", claim_args(holder, nonce, specs, limits))
        reply, claimed = self._run_both(*calls)
        return failures_in(reply), lambda: self._claimed(claimed(), specs, nonce)

    def release(self, holder: str, *, blamed: str = "", ended: str = "") -> list[str]:
        """Give back all keys of a dead or leaving holder. ``blamed``: "queue:key" that killed it; ``ended``: how it
        ended, for the histories of its keys. Returns the tasks.
        """
        return _texts(self._run("release", holder, blamed, ended)[1:])

    def reclaim(self, limit: int = 200) -> list[str]:
        """End leases that nobody renewed. Returns the tasks given back."""
        return _texts(self._run("reclaim", limit)[1:])

    def renew(self, holders: Sequence[str], *, lease_ms: int) -> list[str]:
        """Renew every lease of these holders. Returns those that are no longer registered."""
        return _texts(self._run("renew", lease_ms, *holders)[1:])

    def budget(self, limits: BudgetLimits, reports: Sequence[Report], *, lease_ms: int) -> Lent:
        """Lend the workers that report their shares of the API budget, for a lease. One that is not registered gets
        none.
        """
        _, rate, wait_ms, *shares = self._run("budget", lease_ms, *limits, *(each.words for each in reports))
        with self._reading("budget"):
            lent = [
                Share(
                    holder.decode(),
                    spare,
                    flights,
                    dict(zip([lane.decode() for lane in flat[::2]], flat[1::2], strict=True)),
                )
                for holder, spare, flights, flat in shares
            ]
            return Lent(rate, wait_ms, lent)

    def due(self, limit: int = 500) -> tuple[int, int | None]:
        """Queue the keys that are due. Returns how many, and ms until the next one (None: no key waits)."""
        reply = self._run("due", limit)
        return int(reply[1]), None if reply[2] < 0 else int(reply[2])

    def steer(self, act: str, scope: str, note: str, *, for_ms: int | None = None) -> bool | None:
        """What people ask for: "pause" a scope (``broker.pauses``), for a time or until it is resumed; "limit" a
        queue's rate (scope "rate QUEUE"); "resume" either; "note" another act in the audit stream. Or the fleet's own:
        "restore" a pause as it was stored; "kept": the Lease has the pauses of the digest ``scope``. Returns whether
        the pauses changed; None where so many scopes are paused that no other may be.
        """
        reply = self._run("steer", act, scope, note, "" if for_ms is None else for_ms)
        return None if reply[0] == b"FULL" else reply[1] == 1

    def drain(self, act: str, name: str, note: str) -> list[str] | None:
        """ "drain" a worker, or a supervisor, which then begins no other workers until "undrain". Returns the workers
        that are to leave; None where there is no such worker or supervisor.
        """
        reply = self._run("drain", act, name, note)
        return None if reply[0] == b"UNKNOWN" else _texts(reply[1:])

    def acts(self, limit: int = 50) -> list[str]:
        """Lines of the audit stream that no ingestor has taken yet; each is given once, the oldest first."""
        return _texts(self._run("acts", limit)[1:])

    def pauses(self) -> Paused:
        """What people have paused."""
        texts, (kept,) = self._read_all("pauses", self.keys.of("pauses"), self.keys.of("pauses_kept"))
        return Paused(texts, kept)

    def wait(self, queues: Sequence[str], timeout_s: float = 1.0) -> str | None:
        """Block until there is a token of one of these queues, or the time is over. Returns the queue: the next claim
        is to begin with it.
        """
        lists = {self.keys.wake(queue).encode(): queue for queue in queues}
        return lists.get(self._block(list(lists), timeout_s))

    def wait_timer(self, timeout_s: float = 1.0) -> bool:
        """Block until a delayed key is due earlier than was known, or the time is over. Returns whether one is."""
        return self._block([self.keys.of("timer").encode()], timeout_s) != b""

    def _block(self, lists: list[bytes], timeout_s: float) -> bytes:
        """The list that a token was taken from; b"" where there was none."""
        assert self._blocking is not None, "this broker was made without a blocking client"
        try:
            popped: Any = self._blocking.blpop(lists, timeout_s)
        except RedisError as error:
            if str(error).startswith("UNBLOCKED"):  # a list was unlinked while we slept
                return b""
            raise refusals.meaning("wait", error) from None
        return b"" if popped is None else bytes(popped[0])

    # -- the object cache ----------------------------------------------------------------------------------------

    def ingest(
        self, resource: str, from_rv: str, to_rv: str, events: Sequence[Event], *, told: bool = False
    ) -> Ingested:
        """A contiguous batch: complete after ``from_rv`` and up to ``to_rv``. Without events it moves the watermark.

        ``told``: whether to tell which keys the events woke.
        """
        reply = self._run("ingest", resource, from_rv, to_rv, "told" if told else "", *ingest_args(events))
        if reply[0] != b"OK":
            return self._ingested("ingest", reply, "")
        flat_woken = reply[3] if told else []
        woken = zip(flat_woken[::3], flat_woken[1::3], flat_woken[2::3], strict=True)
        with self._reading("ingest"):
            named = tuple([(task.decode(errors="replace"), int(since or 0), int(at)) for task, since, at in woken])
        return Ingested("OK", to_rv, int(reply[1]), int(reply[2]), named)

    def _ingested(self, name: str, reply: list[Any], mark: str) -> Ingested:
        """From a verdict and perhaps a watermark. ``mark``: what it is where the reply tells none."""
        with self._reading(name):
            return Ingested(reply[0].decode(), reply[1].decode() if len(reply) > 1 else mark)

    def compare(self, resource: str, generation: str, versions: Sequence[tuple[str, str]]) -> Compared:
        """How many of these objects (id, resourceVersion) the cache has in just this version, where ``generation`` is
        still the one that is read; else none. With "" it tells the generation.
        """
        with self._reading("compare"):
            return comparing.compare(resource, generation, versions, self.keys, partial(self._ask_all, "compare"))

    def pass_to(self, resource: str, from_rv: str, to_rv: str) -> bool:
        """Move the watermark, if it still is ``from_rv``: nothing of the resource has happened up to ``to_rv``."""
        return bool(self._run("ingest", resource, from_rv, to_rv, "exactly", "0")[0] == b"OK")

    def stage(self, resource: str, generation: str, events: Sequence[Event], *, lock_ms: int = 30_000) -> bool:
        """Stage a part of a list. False: another ingestor is staging this resource."""
        return bool(self._run("stage", *stage_args(resource, generation, lock_ms, events))[0] == b"OK")

    def send_stage(
        self, resource: str, generation: str, parts: Sequence[Sequence[Event]], *, lock_ms: int = 30_000
    ) -> Callable[[], bool]:
        """``stage``, of several parts, and what waits for their answers: whether all of them are staged; where they are
        not, some may be. It has to be called once. Meanwhile the caller may do other things.
        """
        answers = self._send([("stage", stage_args(resource, generation, lock_ms, events)) for events in parts])
        return lambda: all(reply[0] == b"OK" for reply in answers())

    def commit_list(self, resource: str, generation: str, rv: str) -> Ingested:
        """Make the staged generation the cache. "OK", "OLD" (watch from ``watermark``) or "BUSY"."""
        return self._ingested("commit_list", self._run("commit_list", resource, generation, rv), rv)

    def republish(self, chunk: int = 500) -> int:
        """Publish one chunk of the objects that a list may have changed. Returns the steps still to do."""
        return int(self._run("republish", chunk)[2])

    def report(self, ingestor: str, text: str) -> None:
        """An ingestor says what it hears (``broker.looks.hearing``), for people; "": it leaves."""
        self._run("report", ingestor, text)

    def open(self, resources: Sequence[str]) -> str:
        """Let turns begin. Returns "" or the resource that has not been listed yet."""
        reply = self._run("open", *resources)
        return "" if reply[0] == b"OK" else reply[1].decode()

    def pause(self, reason: str) -> str:
        """Let no turn begin from here on, for this reason. With "", let turns begin again. Returns the phase."""
        return _texts(self._run("pause", reason)[1:])[0]

    def look(self, resource: str, *, ids: Sequence[str] = (), index: Sequence[str] = ()) -> tuple[str, list[Cached]]:
        """Cached objects by id or by index entry, each once, and the watermark at which they were read. Where there may
        be very many, use ``page``.
        """
        reply = self._run("look", resource, "ids" if ids else "index", *(ids or index))
        with self._reading("look"):
            return reply[1].decode(), Cached.parse_all(reply[2:])

    def look_apart(self, resource: str, name: str) -> bytes:
        """The part of this name that is kept apart from objects; b"" if no object has it any more."""
        reply = self._run("look", resource, "apart", name)
        return bytes(reply[2]) if len(reply) > 2 else b""

    def page(
        self, resource: str, entries: Sequence[str], mark: PageMark | None = None, limits: PageLimits = PAGE
    ) -> Page | None:
        """The next cached objects under index entries, after the page that gave ``mark``: about as many as ``limits``
        says. None: a list was committed since that page, so begin anew.
        """
        generation, place, left = mark or ("", "1:0", ())
        reply = self._run("page", resource, " ".join(entries), *limits, generation, place, *left)
        if reply[0] == b"MOVED":
            return None
        with self._reading("page"):
            following = PageMark(reply[2].decode(), reply[3].decode(), tuple([each.decode() for each in reply[4]]))
            return Page(reply[1].decode(), Cached.parse_all(reply[5:]), following if following.place else None)

    def watermark(self, resource: str) -> str | None:
        """The resourceVersion that the cache of this resource equals; None: it was never listed in this epoch."""
        mark = self._read("watermark", self.keys.of("watermark"), resource)
        if mark is not None and not mark.isdigit():
            raise self._damaged("watermark", "it is no resourceVersion")
        return mark.decode() if mark is not None else None

    def watermarks(self) -> dict[str, str]:
        """The same of every resource that was listed in this epoch. Raises EpochOver where it is over."""
        marks, _ = self._read_all("watermarks", self.keys.of("watermark"))
        if not all(mark.isascii() and mark.isdigit() for mark in marks.values()):
            raise self._damaged("watermarks", "one is no resourceVersion")
        return marks


def _texts(flat: list[bytes]) -> list[str]:
    """For logs and people. Whoever may write to Redis may put there what is no text."""
    return [each.decode(errors="replace") for each in flat]
