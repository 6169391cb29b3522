"""The rule: how a turn counts ReplicaSets whose size it is not sure of, and what it may write beside them.

A switch in its usual place is the rule; any other value is a changed rule that a test has to find wanting.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tests.model.rollout.state import DOOMED, TWIN, Entry, ReplicaSet, Request, Set, State

UNKNOWN = 99
"""As the largest size: larger than any limit."""


class Strategy(NamedTuple):
    """`recreate`: no pods of two ReplicaSets at once; `surge` and `unavailable` are 0 and all then."""

    surge: int = 1
    unavailable: int = 0
    recreate: bool = False


class Rule(NamedTuple):
    """One switch a part."""

    strategy: Strategy = Strategy()
    counts_high: bool = True  # the largest size of unobserved writes counts for surge
    counts_low: bool = True  # the smallest one counts for availability
    counts_pods: bool = True  # so do the pods that the status tells of, for surge
    sums_low: bool = False  # what old ones may lose is reckoned from the smallest sizes, not from those of the cache
    merges: bool = True  # a new write keeps the low and high of the writes before it
    keeps_open: bool = True  # an unanswered write counts although the cached ReplicaSet is observed
    keeps_answered: bool = True  # an answered write counts until the cached ReplicaSet is observed
    absent: str = "passed"  # "dropped": an entry goes if the cache lacks its ReplicaSet, even if it never saw it
    over: str = "D and GET"  # "D" | "GET": how an open write ends without an answer
    needs: bool = True  # our own answered writes are read before anything is decided
    conflict_needs: bool = True  # so is the version that a conflict showed
    refusal_keeps: bool = True  # a refused repeat proves nothing of the sends before it
    drain: bool = True  # after a loss nothing is decided before D has passed
    unknown: bool = True  # an unobserved ReplicaSet of which nothing is remembered stops raises and is not available
    trusts_unchanged: bool = True  # one that was never changed is no such ReplicaSet
    stays_unknown: bool = True  # also after another write of it, until it is observed
    observes: str = "within"  # "nothing open" | "pending": reserved names are left out | "always"
    delete_versions: bool = True  # deletes of pods carry the resourceVersion
    creates_empty: bool = True  # a ReplicaSet is created with size 0
    versions: bool = True  # size writes carry the resourceVersion
    waits_high: bool = True  # Recreate: old ReplicaSets can have no pods, and get none
    looks: bool = True  # Recreate: no pod of theirs is left


class Counted(NamedTuple):
    """`high`: the most active pods; None: not known. `low`: the smallest size; `available`: the fewest."""

    size: int
    high: int | None
    low: int
    available: int


def claimed(state: State, rule: Rule) -> State | None:
    """After the entries were held against the cache; None where the cache has to come further first."""
    sets = []
    for one in state.sets:
        entry, cache = one.entry, one.cache
        if rule.needs and one.need > cache.rv:
            return None
        if entry is not None and not cache.here:
            if rule.absent == "passed" and cache.rv < entry.rv:
                return None
            entry = None
        if entry is not None and entry.open and (cache.rv > entry.rv or not rule.keeps_open):
            entry = entry._replace(open=False)
        if entry is not None and not entry.open and (cache.observed or not rule.keeps_answered):
            entry = None
        sets.append(one._replace(entry=entry))
    return state._replace(sets=tuple(sets))


def count(one: Set, rule: Rule) -> Counted:
    cache, entry = one.cache, one.entry
    if not cache.here:
        return Counted(0, 0, 0, 0)
    high = max(cache.size, cache.pods) if rule.counts_pods else cache.size
    low = cache.size
    if entry is not None:
        high = max(high, entry.high) if rule.counts_high else high
        low = min(low, entry.low) if rule.counts_low else low
    elif not cache.observed and (cache.changed or not rule.trusts_unchanged) and rule.unknown:
        return Counted(cache.size, None, 0, 0)
    return Counted(cache.size, high, low, min(cache.ready, low))


def turn(state: State, rule: Rule) -> tuple[str, State] | None:
    """The one turn that a worker may make of what the cache shows; None where it does nothing."""
    after = claimed(state, rule)
    if after is None:
        return None
    counted = [count(one, rule) for one in after.sets]
    new = after.seen_template
    if rule.strategy.recreate:
        sizes = _recreated(after, counted, new, rule)
    else:
        sizes = _rolled(after, counted, new, rule)
    if not after.sets[new].cache.here and sizes.get(new) is not None:
        create = Request("create", new, 0, sizes[new])
        return f"turn: create {new}, then {sizes[new]}", after._replace(sending=(create,))
    sets, sending = after.sets, []
    for at, size in sorted(sizes.items()):
        one = sets[at]
        entry = _announced(one, counted[at], size, rule)
        sending.append(Request("size", at, one.cache.rv, size, bool(one.entry and one.entry.open)))
        sets = (*sets[:at], one._replace(entry=entry), *sets[at + 1 :])
    if after.sets == state.sets and not sending:
        return None
    said = ", ".join(f"size of {r.at} {after.sets[r.at].cache.size} -> {r.size}" for r in sending) or "nothing to send"
    return f"turn: {said}", after._replace(sets=sets, sending=tuple(sending))


def _announced(one: Set, counted: Counted, size: int, rule: Rule) -> Entry:
    low, high = min(one.cache.size, size), max(one.cache.size, size)
    if one.entry is not None and rule.merges:
        low, high = min(low, one.entry.low), max(high, one.entry.high)
    elif counted.high is None and rule.stays_unknown:
        low, high = 0, UNKNOWN
    return Entry(one.cache.rv, low, high)


def _raised(counted: Sequence[Counted], new: int, size: int, limit: int) -> int:
    """As much of a raise as fits beside the most that all others may have."""
    others = 0
    for at, each in enumerate(counted):
        if each.high is None:
            return counted[new].size
        others += each.high if at != new else 0
    return max(counted[new].size, min(size, limit - others))


def _rolled(state: State, counted: Sequence[Counted], new: int, rule: Rule) -> dict[int, int]:
    """The new sizes, by ReplicaSet: of the new one, and unless that shrinks, of the old ones (upstream: rolling.go)."""
    want, sizes = state.seen_want, [each.size for each in counted]
    limit, least = want + rule.strategy.surge, want - rule.strategy.unavailable
    here = state.sets[new].cache.here
    if sizes[new] > want:
        return {new: want}
    size = sizes[new] + max(0, min(limit - sum(sizes), want - sizes[new]))
    size = _raised(counted, new, size, limit)
    if not here:
        return {new: size}
    raised = {new: size} if size != sizes[new] else {}
    old = [at for at in range(len(counted)) if at != new and sizes[at]]
    left = sum(counted[at].low if rule.sums_low else sizes[at] for at in old) + counted[new].available - least
    if not old or left <= 0:
        return raised
    lowered: dict[int, int] = {}
    for at in old:
        amount = min(left, sizes[at] - counted[at].available)
        if amount > 0:
            lowered[at] = sizes[at] - amount
            left -= amount
    left = sum(each.available for each in counted) - least
    for at in old:
        amount = min(left, lowered.get(at, sizes[at]))
        if amount > 0:
            lowered[at] = lowered.get(at, sizes[at]) - amount
            left -= amount
    return raised | lowered


def _recreated(state: State, counted: Sequence[Counted], new: int, rule: Rule) -> dict[int, int]:
    old = [at for at in range(len(counted)) if at != new]
    lowered = {at: 0 for at in old if counted[at].size}
    if lowered:
        return lowered
    if rule.waits_high and any(counted[at].high != 0 for at in old):
        return {}
    if rule.looks and any(state.sets[at].active or state.sets[at].ending for at in old):
        return {}
    size = state.seen_want
    return {new: size} if size != counted[new].size or not state.sets[new].cache.here else {}


def may_observe(one: Set, rule: Rule) -> bool:
    """Whether the ReplicaSet's own turn may say in its status that it has observed the spec that the cache shows."""
    running, size = len(one.active), one.cache.size
    doomed, twins = (sum(bool(pod & bit) for pod in one.active) for bit in (DOOMED, TWIN))
    if rule.observes == "always":
        return True
    if rule.observes == "pending":
        return not one.births and not doomed
    if rule.observes == "nothing open":
        return not (one.births or one.held or doomed or twins)
    no_more = not (one.births or one.held or twins) or running + one.births + one.held <= size
    no_fewer = not doomed or running - doomed >= size
    return no_more and no_fewer


def told(one: Set, rule: Rule) -> ReplicaSet:
    """The ReplicaSet after its own turn has written the status that it made of the cache."""
    observed = one.cache.observed or may_observe(one, rule)
    return one.api._replace(observed=observed, pods=len(one.active), ready=sum(pod & 1 for pod in one.active))
