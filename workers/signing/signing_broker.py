"""A broker that signs objects on their way in and checks them on their way out.

A claim that carries a refused object is handed over all the same, so that its turn can be ended: ``Claim.refusal``
says why, and the worker begins no turn over it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from oarlock.broker.protocol import Broker
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values import (
    PAGE,
    Batch,
    Cached,
    Claim,
    ClaimLimits,
    Delta,
    Entry,
    Event,
    Idle,
    Ingested,
    LoadSpec,
    NameTaken,
    Page,
    PageLimits,
    PageMark,
)
from oarlock.broker.versions import newer
from oarlock.controllers.objects.codec import names_template
from oarlock.controllers.registry import WATCHED
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.settings import Settings
from oarlock.workers.signing.refusals import ObjectRefused, Refusals
from oarlock.workers.signing.signature import Signer, load_keyring

REMEMBERED_MAX = 4_096
"""Objects of a resource in a generation. One takes about 0.5 kB, which bounds the memory that this costs a worker."""
OWNERS_MAX = 4_096


class _Named(msgspec.Struct, array_like=True, gc=False):
    """The first fields of the projection of a namespaced object."""

    namespace: str
    name: str


class _Bare(msgspec.Struct, array_like=True, gc=False):
    """The first field of the projection of a node."""

    name: str


_NAMED, _BARE = msgspec.msgpack.Decoder(_Named), msgspec.msgpack.Decoder(_Bare)


def key_in(resource: str, blob: bytes) -> str:
    """The key of the object in a projection, ``namespace/name`` or the bare name; "" where there is none."""
    try:
        if not WATCHED[resource].namespaced:
            return _BARE.decode(blob).name
        named = _NAMED.decode(blob)
        return f"{named.namespace}/{named.name}"
    except (msgspec.MsgspecError, RecursionError):
        return ""


class Remembered:
    """Objects of one resource whose signatures were found good, so that an unchanged object is checked only once.

    They are found by signature and compared as a whole: another object with the same signature is not trusted. Two
    generations bound the memory, as in a blob memo.
    """

    __slots__ = ("_older", "_resource", "_signer", "_younger")

    def __init__(self, signer: Signer, resource: str) -> None:
        self._signer, self._resource = signer, resource
        self._younger: dict[str, Cached] = {}
        self._older: dict[str, Cached] = {}

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)

    def fault(self, cached: Cached) -> str:
        """Why the object is not to be believed; "" where its signature is good."""
        signature = cached.signature
        if self._younger.get(signature) == cached:
            return ""
        if self._older.get(signature) != cached:
            fault = self._signer.fault(self._resource, cached)
            if fault:
                return fault
        self._younger[signature] = cached
        return ""

    def forget_some(self) -> None:
        """Drop the older generation, once the younger one is full. Called between claims."""
        if len(self._younger) >= REMEMBERED_MAX:
            self._younger, self._older = {}, self._younger


class SigningBroker:
    """``inner``, with signatures. Each refusal is noted; except in claims it is raised as ObjectRefused."""

    def __init__(self, inner: Broker, signer: Signer, refusals: Refusals) -> None:
        self._inner, self._signer, self.refusals = inner, signer, refusals
        self.epoch = inner.epoch
        self._remembered: dict[str, Remembered] = {}
        self._owners: dict[tuple[str, str], tuple[str, str]] = {}
        # Calls that carry no object need no signature.
        self.add, self.add_after, self.add_rate_limited = inner.add, inner.add_after, inner.add_rate_limited
        self.forget, self.num_requeues, self.register = inner.forget, inner.num_requeues, inner.register
        self.finish, self.release, self.reclaim, self.renew = inner.finish, inner.release, inner.reclaim, inner.renew
        self.due, self.wait, self.commit_list = inner.due, inner.wait, inner.commit_list
        self.republish, self.open, self.pause, self.watermark = (
            inner.republish,
            inner.open,
            inner.pause,
            inner.watermark,
        )

    # -- in ----------------------------------------------------------------------------------------------------------

    def ingest(self, resource: str, from_rv: str, to_rv: str, events: Sequence[Event]) -> Ingested:
        """As the broker's."""
        return self._inner.ingest(resource, from_rv, to_rv, self._signed(resource, events))

    def stage(self, resource: str, generation: str, events: Sequence[Event], *, lock_ms: int = 30_000) -> bool:
        """As the broker's."""
        return self._inner.stage(resource, generation, self._signed(resource, events), lock_ms=lock_ms)

    def _signed(self, resource: str, events: Sequence[Event]) -> list[Event]:
        sign = self._signer.sign
        return [
            event if event.blob is None else event._replace(signature=sign(resource, event.rv, event.uid, event.blob))
            for event in events
        ]

    # -- out ---------------------------------------------------------------------------------------------------------

    def claim(self, holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits) -> Batch | Idle:
        """As the broker's. A local cache with a refused object stays as it was: the next claim asks again."""
        batch = self._inner.claim(holder, nonce, specs, limits)
        if isinstance(batch, Idle):
            return batch
        spec = next(each for each in specs if each.queue == batch.queue)
        mirrors, refusal = {}, ""
        for resource, delta in batch.mirrors.items():
            fault = self._fault_of_delta(resource, delta)
            if fault:
                refusal = self._refuse(resource, f"mirror of {batch.queue}", fault)
            else:
                mirrors[resource] = delta
        claims = [claim._replace(refusal=refusal or self._refusal(spec, claim)) for claim in batch.claims]
        return replace(batch, claims=claims, mirrors=mirrors)

    def announce(self, claim: Claim, owner_uid: str, entries: Sequence[Entry], *, lease_ms: int) -> list[NameTaken]:
        """As the broker's; where it raises ObjectRefused, nothing was recorded."""
        borne = self._inner.announce(claim, owner_uid, entries, lease_ms=lease_ms)
        for target, cached in borne:
            resource = target.partition("/")[0]
            self._demand(resource, f"{claim.queue}:{claim.key}", (cached,))
        return borne

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
        fault = self._fault_of_many(resource, cached)
        if fault:
            raise ObjectRefused(resource, self._refuse(resource, where, fault))

    def _refusal(self, spec: LoadSpec, claim: Claim) -> str:
        """Why no turn may begin over a claim; "" where all its objects are good."""
        where = f"{claim.queue}:{claim.key}"
        if claim.owner is not None:
            fault = self._fault_of_owner(spec.owners, claim.key, claim.owner)
            if fault:
                return self._refuse(spec.owners, where, fault)
        if claim.children:
            resource = spec.children[0][0]
            fault = self._fault_of_many(resource, claim.children)
            if fault:
                return self._refuse(resource, where, fault)
        for resource, cached in claim.others.items():
            fault = self._fault_of_many(resource, cached)
            if fault:
                return self._refuse(resource, where, fault)
        return ""

    def _refuse(self, resource: str, where: str, fault: str) -> str:
        self.refusals.note(resource, where, fault)
        return f"{resource}: {fault}"

    def _fault_of_owner(self, resource: str, key: str, owner: Cached) -> str:
        remembered = self._of(resource)
        fault = remembered.fault(owner)
        remembered.forget_some()
        if not fault and key_in(resource, owner.blob) != key:
            fault = "it is another object's: it was moved here"
        if not fault and WATCHED[resource].template_apart and not names_template(owner.blob, owner.apart):
            fault = "the template beside it is another's"
        if fault:
            return fault
        before = self._owners.get((resource, key))
        if before is not None and before[0] == owner.uid and newer(before[1], owner.rv):
            return f"it is of resourceVersion {owner.rv}, but {before[1]} was seen before: it was put back"
        if before is None and len(self._owners) >= OWNERS_MAX:
            self._owners.clear()
        self._owners[resource, key] = owner.uid, owner.rv
        return ""

    def _fault_of_delta(self, resource: str, delta: Delta) -> str:
        for object_id, cached in delta.changed:
            fault = self._signer.fault(resource, cached)
            if fault:
                return fault
            if key_in(resource, cached.blob) != object_id:
                return "it is another object's: it was moved here"
        return ""

    def _fault_of_many(self, resource: str, many: Sequence[Cached]) -> str:
        """The fault of the first object that has one. An object may be there only once, or it would count twice."""
        if len(many) > 1 and len({each.uid for each in many}) < len(many):
            return "it is there twice: an index was changed"
        remembered = self._of(resource)
        for each in many:
            fault = remembered.fault(each)
            if fault:
                return fault
        remembered.forget_some()
        return ""

    def _of(self, resource: str) -> Remembered:
        found = self._remembered.get(resource)
        if found is None:
            found = self._remembered[resource] = Remembered(self._signer, resource)
        return found


Wrapper = Callable[[RedisBroker], Broker]
"""Makes of a broker the one that a process uses."""


def signing_wrapper(settings: Settings, clock: Clock, on_refusal: Callable[[str], None] | None = None) -> Wrapper:
    """Wraps brokers with the keys that the settings name; without a key file it changes nothing. Raises BadKeyFile.

    ``on_refusal``: is called with the resource of each object that is refused, for metrics.
    """
    if not settings.signing_key_file:
        return lambda broker: broker
    keyring, refusals = load_keyring(settings.signing_key_file), Refusals(clock.mono_ms)
    refusals.on_refusal = on_refusal

    def signed(broker: RedisBroker) -> Broker:
        return SigningBroker(broker, Signer(keyring, f"{settings.fleet_id} {broker.keys.base}"), refusals)

    return signed
