"""The epoch: one life of the Redis contents.

``current`` reads it; ``bootstrap`` begins a new one. A caller may do so only after it won the compare-and-swap on the
fleet's Lease in the Kubernetes API (``workers.epoch.coordinator``). This module does what happens in Redis: first the
scripts of the new epoch, then its number and the phase DRAIN, then the old keys, lazily.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import redis
from redis.exceptions import RedisError, ResponseError, WatchError

from oarlock.broker import keys
from oarlock.broker.connection import server_facts
from oarlock.broker.connection.client import in_one_go
from oarlock.broker.steps import refusals, script_texts
from oarlock.broker.values.errors import BrokerUnreachable, EpochOver


@dataclass(frozen=True, slots=True)
class Seen:
    """What Redis shows: the epoch (0: none), the server's life, the life that the epoch began on, the phase, and
    whether the server takes writes.

    A life is a run id, with the last promotion where the server was ever a replica (``server_facts.life``).
    """

    epoch: int
    run: str
    bootstrapped_on: str
    phase: str
    writable: bool = True

    @property
    def intact(self) -> bool:
        """Whether the epoch began on the server that runs now, so that nothing was lost, rolled back or failed over."""
        return self.epoch > 0 and self.run != "" and self.run == self.bootstrapped_on

    @property
    def opened(self) -> bool:
        """Whether the cache is complete: turns may begin, unless the fleet is paused."""
        return self.phase in ("OPEN", "HELD")


def current(client: redis.Redis, shard: str = "0", likely: int = 1) -> Seen:
    """Read the epoch: in one round trip where its number is the likely one, else in two. Raises BrokerUnreachable."""
    infos = [("INFO", section) for section in server_facts.LIFE]
    try:
        shown, *told, began = in_one_go(client, [("GET", keys.epoch(shard)), *infos, _beginning(likely, shard)])
        number = _number_in(shown)
        if number != likely:
            (began,) = in_one_go(client, [_beginning(number, shard)])
        facts = server_facts.facts(b"\r\n".join(map(_answered, told)))
        bootstrapped_on, phase = _answered(began)
    except RedisError as error:
        raise BrokerUnreachable(refusals.told("epoch", error)) from None
    life, writable = server_facts.life(facts), server_facts.is_master(facts)
    return Seen(number, life, _text(bootstrapped_on), _text(phase), writable)


def _beginning(number: int, shard: str) -> tuple[str, ...]:
    """What asks on which life an epoch began, and for its phase."""
    base = keys.base(number, shard)
    return "MGET", base + "run", base + "phase"


def _answered(answer: Any) -> Any:
    if isinstance(answer, RedisError):
        raise answer
    return answer


def fleet_of(client: redis.Redis, number: int, shard: str = "0") -> str:
    """The fleet that began an epoch; "" where that is not said. Raises RedisError."""
    return _text(client.get(keys.base(number, shard) + "fleet"))


def bootstrap(
    client: redis.Redis, number: int, shard: str = "0", clock: str = script_texts.REDIS_TIME, fleet: str = ""
) -> None:
    """Begin epoch ``number``: DRAIN, scripts loaded, nothing else there. Needs the right to load scripts.

    ``fleet``: its id, by which workers of another one know that it is not theirs.

    Raises EpochOver where a later one was begun meanwhile: a bootstrapper that slept must not bring an old number back.
    """
    base = keys.base(number, shard)
    _load_scripts(client, number, clock)  # until the number is there they answer STALE; who sees it finds them
    with client.pipeline(transaction=True) as pipe:
        pipe.watch(keys.epoch(shard))  # type: ignore[no-untyped-call]
        begun = _number(pipe, shard)
        run = _run(pipe)  # of the connection that the epoch is written over
        if is_later(begun, number):
            raise EpochOver(f"epoch {begun} was begun before epoch {number} could be")
        pipe.multi()
        pipe.set(base + "phase", "DRAIN")
        pipe.set(base + "run", run)
        if fleet:
            pipe.set(base + "fleet", fleet)
        pipe.set(keys.epoch(shard), number)
        try:
            pipe.execute()
        except WatchError:
            raise EpochOver(f"another epoch was begun while epoch {number} was to be") from None
    _load_scripts(client, number, clock)  # once more: it may be another server since


def _load_scripts(client: redis.Redis, number: int, clock: str) -> None:
    with client.pipeline(transaction=True) as pipe:  # all or none: who finds the last one relies on the others
        for name in script_texts.NAMES:
            pipe.script_load(script_texts.stamped(name, number, clock))
        pipe.execute()


def end(client: redis.Redis, shard: str) -> int:
    """End a shard's epoch and begin none: every script of it answers STALE from now on. Needs the same right as
    ``bootstrap``. Returns the number that is taken by it, 0 where there was no epoch.

    Raises EpochOver where one was begun meanwhile: end that too.
    """
    with client.pipeline(transaction=True) as pipe:
        pipe.watch(keys.epoch(shard))  # type: ignore[no-untyped-call]
        last = _number(pipe, shard)
        if not last:
            return 0
        pipe.multi()
        pipe.set(keys.epoch(shard), last + 1)  # not deleted: numbers must never come again
        try:
            pipe.execute()
        except WatchError:
            raise EpochOver(f"an epoch of shard {shard} was begun while it was to be ended") from None
    return last + 1


def sweep_older(client: redis.Redis, number: int, shard: str = "0", step: int = 500) -> int:
    """Unlink what earlier epochs left behind. Returns how many keys went.

    Only what is older: a sweep may go on, or wake up, after another bootstrapper has begun the next epoch.
    """
    swept = 0
    for name in client.scan_iter(match=f"oarlock:*:{{{shard}}}:*", count=step):
        of = name.split(b":", 2)[1]
        if of.isdigit() and int(of) < number:
            swept += client.unlink(name)
    return swept


DIGITS_MAX = 18
LEAP_MAX = 10**9


def is_later(shown: int, number: int) -> bool:
    """Whether the epoch that Redis shows was begun after this one. Nobody counts so far ahead of a Lease as LEAP_MAX:
    such a number was planted, and whoever counted on from the last one there is would be left with none.
    """
    return number < shown <= number + LEAP_MAX


def _number(client: redis.Redis, shard: str) -> int:
    try:
        return _number_in(client.get(keys.epoch(shard)))
    except ResponseError as error:
        return _number_in(error)


def _number_in(answer: Any) -> int:
    """The number that stands there. What is none of ours counts as none at all: then an epoch is to be begun."""
    wrong_type = isinstance(answer, ResponseError) and "WRONGTYPE" in str(answer)
    text = b"" if wrong_type else _answered(answer)
    return int(text) if text and text.isdigit() and len(text) <= DIGITS_MAX else 0


def _text(value: bytes | str | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


def _run(client: redis.Redis) -> str:
    return server_facts.life(server_facts.ask(client, *server_facts.LIFE))
