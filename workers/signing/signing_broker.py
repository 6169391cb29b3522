"""A broker that signs objects on their way in and checks them on their way out.

A claim that carries a refused object is handed over all the same, so that its turn can be ended: ``Claim.refusal``
says why, and the worker begins no turn over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from oarlock.broker.protocol import Broker
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, Claim, Claimed, ClaimLimits, Idle, LoadSpec
from oarlock.broker.values.events import Compared, Event, Ingested
from oarlock.broker.values.objects import PAGE, Cached, Delta, Page, PageLimits, PageMark
from oarlock.broker.values.turns import Entry, Finish, NameTaken
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.settings import Settings
from oarlock.workers.signing.object_check import ObjectCheck
from oarlock.workers.signing.refusals import ObjectRefused, Refusals
from oarlock.workers.signing.signature import Signer, load_keyring


class SigningBroker:
    """``inner``, with signatures. Each refusal is noted; except in claims it is raised as ObjectRefused."""

    def __init__(self, inner: Broker, signer: Signer, refusals: Refusals) -> None:
        self._inner, self._signer, self.refusals = inner, signer, refusals
        self.check = ObjectCheck(signer)
        self.epoch = inner.epoch
        self._specs: dict[str, LoadSpec] = {}
        """Queue -> what its last claim read."""
        # Calls that carry no object need no signature.
        self.add, self.add_after, self.add_rate_limited = inner.add, inner.add_after, inner.add_rate_limited
        self.forget, self.num_requeues, self.register = inner.forget, inner.num_requeues, inner.register
        self.finish, self.release, self.reclaim, self.renew = inner.finish, inner.release, inner.reclaim, inner.renew
        self.due, self.wait, self.wait_timer = inner.due, inner.wait, inner.wait_timer
        self.commit_list, self.republish, self.watermark = inner.commit_list, inner.republish, inner.watermark
        self.watermarks = inner.watermarks
        self.open, self.pause, self.report = inner.open, inner.pause, inner.report
        self.budget = inner.budget
        self.steer, self.pauses, self.drain, self.acts = inner.steer, inner.pauses, inner.drain, inner.acts

    # -- in ----------------------------------------------------------------------------------------------------------

    def ingest(
        self, resource: str, from_rv: str, to_rv: str, events: Sequence[Event], *, told: bool = False
    ) -> Ingested:
        """As the broker's."""
        return self._inner.ingest(resource, from_rv, to_rv, self._signed(resource, events), told=told)

    def compare(self, resource: str, generation: str, versions: Sequence[tuple[str, str]]) -> Compared:
        """As the broker's: it hands nothing out."""
        return self._inner.compare(resource, generation, versions)

    def pass_to(self, resource: str, from_rv: str, to_rv: str) -> bool:
        """As the broker's."""
        return self._inner.pass_to(resource, from_rv, to_rv)

    def stage(self, resource: str, generation: str, events: Sequence[Event], *, lock_ms: int = 30_000) -> bool:
        """As the broker's."""
        return self._inner.stage(resource, generation, self._signed(resource, events), lock_ms=lock_ms)

    def send_stage(
        self, resource: str, generation: str, parts: Sequence[Sequence[Event]], *, lock_ms: int = 30_000
    ) -> Callable[[], bool]:
        """As the broker's."""
        signed = [self._signed(resource, events) for events in parts]
        return self._inner.send_stage(resource, generation, signed, lock_ms=lock_ms)

    def _signed(self, resource: str, events: Sequence[Event]) -> list[Event]:
        sign = self._signer.sign
        return [
            event if event.blob is None else event._replace(signature=sign(resource, event.rv, event.uid, event.whole))
            for event in events
        ]

    # -- out ---------------------------------------------------------------------------------------------------------

    def claim(self, holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits) -> Batch | Idle:
        """As the broker's. A local cache with a refused object stays as it was: the next claim asks again. Objects are
        handed over in place of counts: scripts keep these, so nobody can sign them.
        """
        return self._checked(self._inner.claim(holder, nonce, [spec.in_full for spec in specs], limits), specs)

    def finish_and_claim(
        self, turns: Sequence[Finish], holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits
    ) -> tuple[list[int], Claimed]:
        """As the broker's, with a claim as above."""
        in_full = [spec.in_full for spec in specs]
        failures, claimed = self._inner.finish_and_claim(turns, holder, nonce, in_full, limits)
        return failures, lambda: self._checked(claimed(), specs)

    def _checked(self, batch: Batch | Idle, specs: Sequence[LoadSpec]) -> Batch | Idle:
        if isinstance(batch, Idle):
            return batch
        spec = self._specs[batch.queue] = next(each for each in specs if each.queue == batch.queue)
        batch, refusal = self._checked_caches(batch)
        claims = [claim._replace(refusal=refusal or self._refusal(spec, claim)) for claim in batch.claims]
        return replace(batch, claims=claims)

    def _checked_caches(self, batch: Batch) -> tuple[Batch, str]:
        """The batch without local caches that are refused, and why its turns are."""
        local_caches, refusal = {}, ""
        for resource, delta in batch.local_caches.items():
            fault = self.check.fault_of_delta(resource, delta)
            if fault:
                refusal = self._refuse(resource, f"local cache of {batch.queue}", fault)
            else:
                local_caches[resource] = delta
        return replace(batch, local_caches=local_caches), refusal

    def load(self, batch: Batch) -> Batch:
        """As the broker's."""
        spec = self._specs[batch.queue]
        loaded, refusal = self._checked_caches(self._inner.load(batch))
        claims = []
        for before, after in zip(batch.claims, loaded.claims, strict=True):
            again = self._refusal(spec, after) if before.unloaded and not before.refusal else after.refusal
            claims.append(after._replace(refusal=refusal or again))
        return replace(loaded, claims=claims)

    def local_cache(self, resource: str) -> Delta:
        """As the broker's. Nothing is known of one with a refused object."""
        delta = self._inner.local_cache(resource)
        fault = self.check.fault_of_delta(resource, delta)
        if not fault:
            return delta
        self._refuse(resource, "local cache", fault)
        return Delta("")

    def announce(self, claim: Claim, owner_uid: str, entries: Sequence[Entry], *, lease_ms: int) -> list[NameTaken]:
        """As the broker's; where it raises ObjectRefused, nothing was announced."""
        taken = self._inner.announce(claim, owner_uid, entries, lease_ms=lease_ms)
        for target, cached in taken:
            resource = target.partition("/")[0]
            self._demand(resource, f"{claim.queue}:{claim.key}", (cached,))
        return taken

    def look_apart(self, resource: str, name: str) -> bytes:
        """As the broker's. What is found is held against the name by those who asked."""
        return self._inner.look_apart(resource, name)

    def look(self, resource: str, *, ids: Sequence[str] = (), index: Sequence[str] = ()) -> tuple[str, list[Cached]]:
        """As the broker's."""
        mark, found = self._inner.look(resource, ids=ids, index=index)
        self._demand(resource, " ".join((*ids[:1], *index[:1])), found)
        return mark, found

    def page(
        self, resource: str, entries: Sequence[str], mark: PageMark | None = None, limits: PageLimits = PAGE
    ) -> Page | None:
        """As the broker's."""
        found = self._inner.page(resource, entries, mark, limits)
        if found is not None:
            self._demand(resource, " ".join(entries[:1]), found.objects)
        return found

    def _demand(self, resource: str, where: str, cached: Sequence[Cached]) -> None:
        fault = self.check.fault_of_many(resource, cached)
        if fault:
            raise ObjectRefused(resource, self._refuse(resource, where, fault))

    def _refusal(self, spec: LoadSpec, claim: Claim) -> str:
        """Why no turn may begin over a claim; "" where all its objects are good."""
        for resource, fault in self._faults(spec, claim):
            if fault:
                return self._refuse(resource, f"{claim.queue}:{claim.key}", fault)
        return ""

    def _faults(self, spec: LoadSpec, claim: Claim) -> Iterator[tuple[str, str]]:
        if claim.owner is not None:
            yield spec.owners, self.check.fault_of_owner(spec.owners, claim.key, claim.owner)
        if claim.children:
            yield spec.children[0][0], self.check.fault_of_many(spec.children[0][0], claim.children)
        for resource, cached in claim.others.items():
            yield resource, self.check.fault_of_many(resource, cached)

    def _refuse(self, resource: str, where: str, fault: str) -> str:
        self.refusals.note(resource, where, fault)
        return f"{resource}: {fault}"


Wrapper = Callable[[RedisBroker], Broker]
"""Makes of a broker the one that a process uses."""


def signing_wrapper(settings: Settings, clock: Clock) -> Wrapper:
    """Wraps brokers with the keys that the settings name; without a key file it changes nothing. Raises BadKeyFile."""
    if not settings.signing_key_file:
        return lambda broker: broker
    keyring, refusals = load_keyring(settings.signing_key_file), Refusals(clock.mono_ms)

    def signed(broker: RedisBroker) -> Broker:
        return SigningBroker(broker, Signer(keyring, f"{settings.fleet_id} {broker.keys.base}"), refusals)

    return signed
