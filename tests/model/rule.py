"""The rule: what a turn may write while earlier writes are unanswered, each part of it a switch.

A switch in its usual place is the rule; any other value is a changed rule that a test has to find wanting.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from tests.model.state import ACTIVE, FAILED, FOREIGN, OPEN, OURS, Delete, Pod, Request, Rest, State, names_in


class Kind(NamedTuple):
    """What differs between owners. Of a DaemonSet the model has one node.

    `strict`: every pod of ours that exists counts against the count wanted, not the active ones alone.
    `bound`: names a node may use at all (1; 2 while surging); 0: an owner that is no DaemonSet.
    `fleet`: each name is a node of its own under a rolling update; wanted is then how many have to stay available.
    `passes`: names at most that are passed over after a refusal without end.
    """

    strict: bool = False
    bound: int = 0
    fleet: bool = False
    passes: int = 0

    @property
    def rests(self) -> bool:
        """Whether the name of a failed pod rests after our delete."""
        return bool(self.bound) or self.fleet


USUAL = Kind(passes=1)
STRICT = Kind(strict=True)
NODE = Kind(strict=True, bound=1)
SURGING = Kind(bound=2)
ROLLING = Kind(strict=True, fleet=True)


class Rule(NamedTuple):
    """One switch a part; the names of values other than the usual one say what is done instead."""

    kind: Kind = USUAL
    barrier: bool = False  # as it was: nothing is decided while anything is pending
    needs: bool = True  # our own answered creates are read before anything is decided
    answered_is_barrier: bool = True
    create_by: str = "hi"  # "active": unknown creates do not count
    counts_terminating: bool = True  # a reserved name whose bearer is not counted still counts
    reserve: str = "claimed"  # "unshown": only names the cache does not show | "never"
    answer_frees: bool = False  # a definite answer ends the reservation too
    repeat_creates: str = "hi"  # "active": while active and repeated ones are few enough | "always" | "never"
    delete_by: str = "lo"  # "active": unknown deletes do not count
    repeat_deletes: str = "lo"  # "active" | "always" | "never"
    refusal_keeps: bool = True  # a refused repeat of a delete proves nothing of the sends before it
    create_forgotten: str = "D and GET"  # "D" | "GET" | "never"
    reserved_until: str = "D and GET"  # "D" | "GET"
    delete_forgotten: str = "D and GET"  # "D" | "GET" | "never"
    newer_ends_delete: bool = True  # the cache shows the pod alive at a newer version: that delete cannot succeed
    fresh_version: bool = False  # a repeated delete takes the version of a live look, the entry keeps its own
    repeat_wins_rest: bool = False  # a reserved name is created again although it rests
    marks_rest: str = "announced"  # "answered": only once the delete has been
    rest_from: str = "gone"  # "announced": the pause is counted from the delete
    passes_resting: bool = False  # another name is chosen in place of one that rests
    strict_passes_terminating: bool = False  # a strict owner counts active pods alone
    failed_first: bool = False  # as it was: a strict owner creates nothing while a failed pod stands in the way
    drain: bool = True  # after a loss nothing is decided before D has passed
    early_deletes: bool = False  # where creates may come early after a loss, deletes do too
    lists_again: bool = True  # and before they do, the cache is read anew
    pause_ends: bool = True  # False: it lasts until somebody uses the name
    names_waves: bool = True  # False: a turn announces its first wave and sends all of them
    unsent: str = "dropped"  # "kept": names that were never sent stay announced | "unanswered": others are dropped too


def turns(state: State, rule: Rule) -> Iterator[tuple[str, State]]:
    """Each turn that a worker may make of what a claim shows it; it may also do nothing beyond the claim."""
    claimed = _claim(state, rule)
    yield "claim", claimed
    if (rule.needs and claimed.need) or (rule.answered_is_barrier and claimed.answered):
        return
    unanswered = set(claimed.pending) | {entry.name for entry in claimed.deletes}
    if rule.barrier and unanswered:
        yield _sent(claimed, claimed.pending, claimed.deletes, (), rule)
        return
    removals = list(_removals(claimed, rule)) if claimed.phase == OPEN or rule.early_deletes else [((), ())]
    for creates in _creates(claimed, rule):
        for again, new in removals:
            if creates or again or new:
                yield _sent(claimed, creates, again, new, rule)


def _claim(state: State, rule: Rule) -> State:
    """Reserve before the cache is consulted; then end what the cache shows to be over."""
    cache = state.cache
    reserved = set(state.reserved)
    if rule.reserve != "never":
        reserved |= {name for name in state.pending if rule.reserve == "claimed" or not cache[name].state}
    resting = []
    for rest in state.resting:
        gone = cache[rest.name].uid != rest.uid or cache[rest.name].state not in OURS
        resting.append(rest._replace(counting=rest.counting or gone))
    return state._replace(
        reserved=tuple(sorted(reserved)),
        pending=tuple(name for name in state.pending if not cache[name].state),
        deletes=tuple(entry for entry in state.deletes if _may_still_go(state, entry, rule)),
        answered=tuple(each for each in state.answered if _stays(cache[each[0]], each[1])),
        resting=tuple(resting),
    )


def _may_still_go(state: State, entry: Delete, rule: Rule) -> bool:
    pod = state.cache[entry.name]
    return _stays(pod, entry.uid) and (pod.rv == entry.rv or not rule.newer_ends_delete)


def _stays(pod: Pod, uid: int) -> bool:
    return pod.uid == uid and pod.state in (ACTIVE, FAILED)


def _creates(state: State, rule: Rule) -> Iterator[tuple[int, ...]]:
    """Names to send: some of those sent before, and as many new ones as there is room for, lowest first."""
    kind, cache, want = rule.kind, state.cache, state.seen_want
    if kind.fleet:
        want = len(cache)
    borne = names_in(cache, *OURS, FOREIGN)
    existing, running = names_in(cache, *OURS), names_in(cache, ACTIVE)
    counted = existing if kind.strict and not rule.strict_passes_terminating else running
    maybe = set(state.pending) | set(state.reserved)
    unknown = maybe if rule.counts_terminating else maybe - borne
    resting = {rest.name for rest in state.resting}
    fits = len(cache) if not kind.bound else kind.bound - len(existing | (unknown if rule.create_by == "hi" else set()))
    hi = len(counted | unknown)
    again = sorted(maybe - borne - (set() if rule.repeat_wins_rest else resting))
    repeats = {
        "hi": len(again) if hi <= want and fits >= 0 else 0,
        "active": max(0, want - len(running)),
        "always": len(again),
        "never": 0,
    }[rule.repeat_creates]
    if rule.failed_first and names_in(cache, FAILED) and len(running) < want:
        yield ()
        return
    for chosen in _subsets(again, 0, repeats):
        room = want - (hi if rule.create_by == "hi" else len(counted | set(chosen)))
        free = [name for name in _usable(state, rule, resting) if name not in borne | maybe | set(state.passed)]
        yield tuple(sorted({*chosen, *free[: max(0, min(room, fits))]}))


def _usable(state: State, rule: Rule, resting: set[int]) -> list[int]:
    """Names in the order in which they are taken. Of a node the first that nobody else bears, as many as its bound;
    none at all while one of them rests.
    """
    names = list(range(len(state.cache)))
    if rule.kind.fleet:
        return [name for name in names if name not in resting]
    if not rule.kind.bound:
        return names
    own = [name for name in names if state.cache[name].state != FOREIGN and name not in state.passed]
    if rule.passes_resting:
        return [name for name in own if name not in resting][: rule.kind.bound]
    return [] if resting & set(own[: rule.kind.bound]) else own[: rule.kind.bound]


def _removals(state: State, rule: Rule) -> Iterator[tuple[tuple[Delete, ...], tuple[Delete, ...]]]:
    """Deletes to send again and new ones: surplus active pods, and failed ones where they stand in the way."""
    cache, want, kind = state.cache, state.seen_want, rule.kind
    running = names_in(cache, ACTIVE)
    going = {entry.name for entry in state.deletes}
    gone = [entry for entry in state.deletes if entry.name in running]
    lo = len(running) - len(gone)
    surplus = max(0, (lo if rule.delete_by == "lo" else len(running)) - want)
    repeats = {
        "lo": len(gone) if lo >= want else 0,
        "active": max(0, len(running) - want),
        "always": len(gone),
        "never": 0,
    }[rule.repeat_deletes]
    failed: list[tuple[tuple[Delete, ...], tuple[Delete, ...]]] = [((), ())]
    if kind.rests or (kind.strict and len(running) < want):
        entries = tuple(entry for entry in state.deletes if cache[entry.name].state == FAILED)
        new = tuple(Delete(name, *_identity(state, name)) for name in sorted(names_in(cache, FAILED) - going))
        failed += [(entries, new)] if entries or new else []
    victims = sorted(name for name in running - going if not kind.fleet or cache[name].uid == 1)
    least = min(surplus, len(victims))
    for again in _subsets(gone, 0, repeats):
        for chosen in _subsets(victims, least, least):
            surplus_deletes = tuple(Delete(name, *_identity(state, name)) for name in chosen)
            for ended_again, ended in failed:
                yield (*again, *ended_again), (*surplus_deletes, *ended)


def _identity(state: State, name: int) -> tuple[int, int]:
    return state.cache[name].uid, state.cache[name].rv


def _sent(
    state: State, creates: Iterable[int], again: Iterable[Delete], new: Iterable[Delete], rule: Rule
) -> tuple[str, State]:
    """The state after the turn has announced all this and the requests are on their way, but for the later waves."""
    again, new = tuple(again), tuple(new)
    creates = sorted(creates, key=state.pending.__contains__)
    unseen = sum(event.by_others for event in state.events)
    most, least = max(state.seen_want, state.want), min(state.seen_want, state.want)
    waves = list(_waves([Request("create", name, 0, 0, most, 0, name in state.pending) for name in creates]))
    requests = waves.pop(0) if waves else []
    for entry in again:
        rv = state.api[entry.name].rv if rule.fresh_version else entry.rv
        requests.append(Request("delete", entry.name, entry.uid, rv, least, unseen, True))
    requests += [Request("delete", *entry, least, unseen, False) for entry in new]
    resting = set(state.resting)
    if rule.kind.rests and rule.marks_rest == "announced":
        resting |= {Rest(entry.name, entry.uid) for entry in new if state.cache[entry.name].state == FAILED}
    named = creates if rule.names_waves else creates[:1]
    label = f"turn (wanted {state.seen_want}): create {creates}, delete again {[e.name for e in again]}"
    return f"{label}, delete {[e.name for e in new]}", state._replace(
        pending=tuple(sorted({*state.pending, *named})),
        deletes=tuple(sorted({*state.deletes, *new})),
        resting=tuple(sorted(resting)),
        sending=tuple(sorted(requests)),
        waves=tuple(map(tuple, waves)),
    )


def _waves(requests: list[Request]) -> Iterator[list[Request]]:
    """Slow start: 1, 2, 4, ..."""
    size = 1
    while requests:
        yield requests[:size]
        requests, size = requests[size:], 2 * size


def _subsets(items: Iterable[object], least: int, most: int) -> Iterator[tuple]:  # type: ignore[type-arg]
    items = tuple(items)
    for size in range(least, min(most, len(items)) + 1):
        yield from combinations(items, size)
