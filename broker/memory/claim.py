"""claim in memory: ``scripts/claim.lua`` in Python."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from oarlock.broker.expectations import Expectations
from oarlock.broker.memory import cache, changes, summary
from oarlock.broker.memory.state import CLOCK_JUMP_MS, WAITER_MS, EpochState, Lock, QueueState, Stored, is_open, timed
from oarlock.broker.memory.steering.limits import turn_begins
from oarlock.broker.memory.steering.pauses import hold_back
from oarlock.broker.memory.steering.scopes import number_in
from oarlock.broker.memory.steering.strides import advance, in_order
from oarlock.broker.pauses import ALL
from oarlock.broker.values.claims import (
    COUNTS,
    NO_COUNTS,
    NO_OTHERS,
    Batch,
    Claim,
    ClaimLimits,
    Idle,
    LoadSpec,
    Unloaded,
    Watermark,
)
from oarlock.broker.values.objects import Cached
from oarlock.broker.versions import newer

OBJECT_BYTES = 300
BESIDE_LOOK = 64
OWN = ("uid", COUNTS)
"""Words of children under the owner's UID."""
Children = dict[str, list[Cached]]


def claim(
    state: EpochState, now: int, holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits
) -> Batch | Idle:
    if (refusal := _refusal(state, holder)) is not None:
        return refusal
    state.waiters.pop(holder, None)
    chosen = _choose(state, now, holder, specs, limits)
    if isinstance(chosen, Idle):
        return _wait(state, now, holder, chosen) if limits.beside is None else _beside(state, now, holder, chosen)
    spec, names, tokens = chosen
    q, watermarks = state.queue(spec.queue), {}

    def generation_of(resource: str) -> str:
        if resource not in watermarks:
            at = state.watermark_at.get(resource, now)
            watermarks[resource] = Watermark(state.watermark.get(resource, ""), max(0, now - at))
        return cache.generation(state, resource)

    owners = state.objects.get((spec.owners, generation_of(spec.owners)), {})
    most = changes.MIRROR_MAX if limits.load_min else math.inf
    local_caches = {
        resource: changes.since(state, resource, generation_of(resource), version, most)
        for resource, version in spec.local_caches
    }
    for resource in spec.resources:
        generation_of(resource)
    found: list[tuple[Children, Mapping[bytes, int], bytes]] = []
    size = 0
    for key in names:  # choose before taking: a large owner, or one that crashed its worker, goes alone
        if found and (_is_alone(q, key) or _is_alone(q, names[0])):
            break
        owner = owners.get(key)
        if owner is not None:
            size += owner.size
        children, counts, objects = _load(state, spec, key, owner, now)
        apart = b"" if counts else _apart(state, spec.owners, owner)
        size += len(apart) + OBJECT_BYTES * objects
        if found and size > limits.bytes_max:
            break
        found.append((children, counts, apart))
    rows = _left_out(state, now, spec, {key: owners.get(key) for key in names}, found, limits.load_min)
    queued = len(names)
    q.take(names[: len(found)])
    advance(state, spec.queue, len(found))
    if _is_alone(q, names[0]):
        state.lone = None
    if spec.rate_per_s:
        q.rate = (float(f"{tokens - len(found):.4f}"), now)
    claims = []
    for key, (children, counts, apart, unloaded) in zip(names, rows, strict=False):
        task, owner = f"{spec.queue}:{key}", owners.get(key)
        turn_begins(state, task, now)
        first, *others = children.items() or [("", [])]
        q.state[key] = "running"
        q.locks[key] = Lock(holder, nonce, now, q.why.pop(key, f"{now} 0 unknown"))
        state.leases[task] = now + limits.lease_ms
        state.tasks_of.setdefault(holder, set()).add(task)
        claims.append(
            Claim(
                spec.queue,
                key,
                nonce,
                owner.cached._replace(apart=apart) if owner is not None else None,
                first[1],
                _timed_expectations(state, spec.queue, key, limits.drain_ms, now),
                _still_waiting(state, spec.queue, key),
                key in q.unsettled,
                q.crashes.get(key, 0),
                dict(others) or NO_OTHERS,
                now,
                q.locks[key].why,
                counts,
                tuple(unloaded),
            )
        )
    if queued > len(found):
        state.wake_for(spec.queue)
        state.wake(now)
    waited_ms = [max(0, now - int(claim.why.partition(" ")[0])) for claim in claims]
    return Batch(spec.queue, claims, watermarks, local_caches, waited_ms)


def _refusal(state: EpochState, holder: str) -> Idle | None:
    """Why this holder may take no key now."""
    if holder in state.leaving:
        return Idle.DRAIN
    if state.phase != "OPEN" or ALL in state.pauses:
        return Idle.WAIT
    return None if holder in state.holders else Idle.UNKNOWN


def _wait(state: EpochState, now: int, holder: str, why: Idle) -> Idle:
    """It waits for a token from now on."""
    state.waiters[holder] = now + WAITER_MS
    return why


def _beside(state: EpochState, now: int, holder: str, why: Idle) -> Idle:
    """It does not. SERVED where a worker of the same queues does: the one whose wait ends first says it for all."""
    waiting = sorted((until, other) for other, until in state.waiters.items() if until >= now)
    other = waiting[0][1] if waiting else ""
    served = bool(other) and other not in state.leaving and state.serves[other] == state.serves[holder]
    return Idle.SERVED if why is Idle.EMPTY and served else why


def _load(
    state: EpochState,
    spec: LoadSpec,
    key: str,
    owner: Stored | None,
    now: int,
    left: Collection[tuple[str, str]] = (),
) -> tuple[Children, Mapping[bytes, int], int]:
    """The children of a key, or how many there are of each class; and how many objects are handed over. ``left``: by
    resource and entry, what is left to be loaded.
    """
    children: Children = {resource: [] for resource in spec.resources}
    counts, count = NO_COUNTS, 0
    for resource, index, word in reversed(spec.children):  # whether there are counts depends on the others
        of = resource, cache.generation(state, resource), index
        if word == COUNTS and not count:
            counts = _counts(state, of, spec.queue, key, owner, now)
        is_left = owner is not None and word in OWN and (resource, f"{index}={owner.uid}") in left
        ids = {} if counts or is_left else _ids(state, of, word, key, owner)
        count += len(ids)
        objects = state.objects.get(of[:2], {})
        children[resource][:0] = [objects[each].cached for each in ids if each in objects]
    return children, counts, count


def _left_out(
    state: EpochState,
    now: int,
    spec: LoadSpec,
    owners: Mapping[str, Stored | None],
    found: list[tuple[Children, Mapping[bytes, int], bytes]],
    load_min: int,
) -> list[tuple[Children, Mapping[bytes, int], bytes, list[Unloaded]]]:
    """What was found of the first owners, without the children that are left to be loaded; and these."""
    some = dict(zip(owners, found, strict=False))
    left = {
        key: [] if counts else _unloaded(state, spec, owners[key], load_min) for key, (_, counts, _) in some.items()
    }
    if sum(len(each.ids) for many in left.values() for each in many) < load_min:
        left = {}
    rows = []
    for key, (children, counts, apart) in some.items():
        mine = left.get(key, [])
        rest = children
        if mine:
            but = {(each.resource, each.entry) for each in mine}
            rest, _, _ = _load(state, spec, key, owners[key], now, but)
        rows.append((rest, counts, apart, mine))
    return rows


def _unloaded(state: EpochState, spec: LoadSpec, owner: Stored | None, load_min: int) -> list[Unloaded]:
    """The children of an owner that may be left to be loaded."""
    found: list[Unloaded] = []
    if not load_min or owner is None:
        return found
    for resource, index, word in spec.children:
        place = resource, cache.generation(state, resource), f"{index}={owner.uid}"
        ids = state.index.get(place, {})
        few = len(state.summary.get(place, {})) <= summary.CLASSES_MAX
        if word in OWN and ids and len(ids) * 4 >= load_min and few:
            found.append(Unloaded(*place, [each.encode() for each in ids]))
    return found


def _choose(
    state: EpochState, now: int, holder: str, specs: Sequence[LoadSpec], limits: ClaimLimits
) -> tuple[LoadSpec, list[str], float] | Idle:
    """The first queue that lets keys go now, those keys, and its tokens."""
    why = Idle.EMPTY
    beginning: dict[str, int] = {}
    asked = in_order(state, specs)
    if limits.beside is None and state.lone is not None and state.lone[0] == holder:
        lone_queue = state.lone[2]  # its turns have ended for a key of this one
        asked = sorted(asked, key=lambda spec: spec.queue != lone_queue)
    for given in asked:
        if not state.queue(given.queue).queued:
            continue
        if limits.beside is None:
            names = hold_back(state, given.queue, limits.keys_max, now, beginning)
        else:
            looked_at = hold_back(state, given.queue, BESIDE_LOOK, now, beginning)
            alone = {key for key in looked_at if _is_alone(state.queue(given.queue), key)}
            if alone and _lets_its_turns_end(state, now, holder, given.queue, limits.drain_ms):
                return Idle.ALONE
            free = [key for key in looked_at if key not in alone and key.rpartition("/")[0] not in limits.beside]
            names = free[: limits.keys_max]
        rate_set = number_in(state.pauses.get(f"rate {given.queue}"), "rate")
        spec = given._replace(rate_per_s=rate_set) if rate_set else given
        rated = bool(spec.rate_per_s and names)
        tokens = _tokens(state.queue(spec.queue), spec.rate_per_s, now) if rated else float(limits.keys_max)
        if some := names[: max(0, int(tokens + 1e-6))]:
            return spec, some, tokens
        why = Idle.LIMITED if names else why
    return why


def _is_alone(q: QueueState, key: str) -> bool:
    return q.crashes.get(key, 0) > 0


def _lets_its_turns_end(state: EpochState, now: int, holder: str, queue: str, drain_ms: int) -> bool:
    """Whether this is the worker that claims the key that is claimed alone, once its turns have ended."""
    if state.lone is not None and 0 < state.lone[1] - now <= drain_ms and state.lone[0] in state.holders:
        return state.lone[0] == holder
    state.lone = holder, now + drain_ms, queue
    return True


def _tokens(q: QueueState, rate_per_s: float, now: int) -> float:
    """How many keys a queue with a rate lets go now."""
    most = max(1.0, rate_per_s)
    left, at = q.rate or (most, now)
    if at > now:
        q.rate = (left, now)
    return min(most, left + max(0, now - at) * rate_per_s / 1000)


def _apart(state: EpochState, resource: str, owner: Stored | None) -> bytes:
    """What lies apart from an owner."""
    if owner is None or not owner.apart:
        return b""
    return state.apart[resource, cache.generation(state, resource)][owner.apart].content


def _ids(state: EpochState, of: tuple[str, str, str], word: str, key: str, owner: Stored | None) -> dict[str, None]:
    """Of one child of a LoadSpec. ``of``: resource, generation, index."""
    resource, gen, index = of
    namespace, _, name = key.rpartition("/")

    def under(*values: str) -> list[dict[str, None]]:
        return [state.index.get((resource, gen, f"{index}={value}"), {}) for value in values]

    if word == "name":
        return under(name)[0]
    if owner is None or word in OWN:
        return under(owner.uid)[0] if owner is not None else {}
    words = owner.entries.split() if under(namespace)[0] else []
    any_of = [under(*each[1:].split("|")) for each in words if each[0] == "?"]
    found: dict[str, None] = {}
    for ids in min(any_of, key=lambda sets: sum(map(len, sets)), default=[]):
        found |= ids
    for ids in under(*(each[1:] for each in words if each[0] == "+")):
        found |= ids
    return found


def _timed_expectations(state: EpochState, queue: str, key: str, drain_ms: int, now: int) -> Expectations | None:
    """The expectations as the claimer reads them. A write sent before this claim may land for ``drain_ms`` from now."""
    expected = state.queue(queue).expected(key, now)
    if expected is None:
        return None
    tick = now if state.tick is None else state.tick
    jumped = not 0 <= now - tick <= CLOCK_JUMP_MS or (
        state.no_reclaim_until and now < state.no_reclaim_until + drain_ms
    )
    until = f"until_ms={now + drain_ms}"
    anew: dict[str, str] = {}
    for name, value in list(expected.fields.items()):
        if not is_open(name, value):
            continue
        head, until_ms = timed(value)
        if until_ms is not None and until_ms <= now and not jumped:
            expected.fields[name] = f"{head}over"
        elif until_ms is not None and until_ms > now + drain_ms:
            expected.fields[name] = head + until
        elif until_ms is None and not f" {value}".endswith(" over"):
            expected.fields[name] = until if name.startswith("reserved ") else f"{value} {until}"
            if name.startswith("create "):
                hint = "".join(f"{word} " for word in value.split() if word.startswith("node="))
                anew["reserved" + name.removeprefix("create")] = hint + until
    expected.fields |= anew  # last: the name was sent again, so its earlier time no longer counts
    state.keep_expectations(queue, key, 0, now)
    return Expectations.parse([text for pair in expected.fields.items() for text in pair])


def _counts(
    state: EpochState, of: tuple[str, str, str], queue: str, key: str, owner: Stored | None, now: int
) -> Mapping[bytes, int]:
    """The counts of an owner's children, where a turn is all but certain to have nothing to do about them."""
    words = owner.entries.split() if owner is not None else []
    asked = next((word[1:] for word in words if word[0] == "="), "")
    expected = state.queue(queue).expected(key, now)
    if owner is None or not asked or (expected and expected.fields) or _waiting_min_rv(state, queue, key):
        return NO_COUNTS
    resource, gen, index = of
    return summary.at_rest(state, resource, gen, f"{index}={owner.uid}", int(asked))


def _waiting_min_rv(state: EpochState, queue: str, key: str) -> str:
    """What the cache has not passed yet."""
    return " ".join(
        f"{resource}={rv}"
        for resource, rv in sorted(state.queue(queue).min_rv.get(key, {}).items())
        if resource not in state.watermark or newer(rv, state.watermark[resource])
    )


def _still_waiting(state: EpochState, queue: str, key: str) -> str:
    """The same; all of it is forgotten once the cache has passed it."""
    waiting = _waiting_min_rv(state, queue, key)
    if not waiting:
        state.queue(queue).min_rv.pop(key, None)
    return waiting
