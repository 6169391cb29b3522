"""announce in memory: ``scripts/announce.lua`` in Python."""

from __future__ import annotations

from collections.abc import Sequence

from oarlock.broker.expectations import NOTES, OpenWrite
from oarlock.broker.memory import cache
from oarlock.broker.memory.state import EXPECTATIONS_TTL_MS, EpochState, ExpectHash
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.errors import ClaimLost
from oarlock.broker.values.turns import Entry, NameTaken


def announce(
    state: EpochState, now: int, claim: Claim, owner_uid: str, entries: Sequence[Entry], lease_ms: int
) -> list[NameTaken]:
    """The names that are taken; [] where the writes were entered."""
    q = state.queue(claim.queue)
    lock = q.locks.get(claim.key)
    if lock is None or lock.nonce != claim.nonce:
        raise ClaimLost(f"{claim.queue}:{claim.key}")
    namespace = claim.key[: claim.key.rfind("/") + 1]
    known = q.expected(claim.key, now)
    taken, fields = [], {"owner": owner_uid}
    for entry in entries:
        if entry.verb == "create" and (known is None or entry.field not in known.fields):
            resource, _, name = entry.target.partition("/")
            objects = state.objects.get((resource, cache.generation(state, resource)), {})
            if namespace + name in objects:
                taken.append(NameTaken(entry.target, objects[namespace + name].cached))
        before = known.fields.get(entry.field, "") if known is not None else ""
        fields[entry.field] = entry.detail if entry.verb in NOTES else _pending(entry, before, now)
    if taken:
        return taken
    state.leases[f"{claim.queue}:{claim.key}"] = now + lease_ms
    if entries:
        known = q.expectations.setdefault(claim.key, ExpectHash({}, now + EXPECTATIONS_TTL_MS))
        known.fields |= fields
        if any(entry.verb not in NOTES for entry in entries):
            q.unsettled.setdefault(claim.key, now)
        state.keep_expectations(claim.queue, claim.key, 0, now)
    return []


def _pending(entry: Entry, before: str, now: int) -> str:
    """The text of an announced write. ``before``: what its entry says so far."""
    since_ms, tries = now, 1
    if before.startswith("pending ") and (entry.verb == "create" or entry.detail in before):
        open_before = OpenWrite.parse(before)
        since_ms, tries = open_before.since_ms or now, open_before.tries + 1
    text = f"pending since_ms={since_ms} sent_ms={now} tries={tries}"
    return f"{text} {entry.detail}" if entry.detail else text
