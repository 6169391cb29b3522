"""What may happen to a Deployment and its ReplicaSets next: turns, answers, requests that land late, agents, faults.

Each ReplicaSet's own turns are an agent. It reads the same cache as the Deployment's turns. It creates only while its
pods and the creates under way are fewer than the size it reads, and deletes only while the pods without those being
deleted are more. A pod becomes ready some time.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from tests.model.explore import Step, Violation
from tests.model.rollout.rule import Rule, told, turn
from tests.model.rollout.state import (
    DOOMED,
    READY,
    TWIN,
    Entry,
    Faults,
    ReplicaSet,
    Request,
    Set,
    State,
    available,
    put,
    total,
)


class World(NamedTuple):
    """`wanted`: replicas that a scaling may ask for. `stubborn`: ReplicaSets whose creates never have an
    answer: they are sent again for as long as they are wanted.
    """

    wanted: tuple[int, ...] = (1, 2)
    stubborn: frozenset[int] = frozenset()


Found = Iterator[tuple]  # type: ignore[type-arg]  # label, state, and True for a fault


def start(templates: int, size: int, rule: Rule, faults: Faults) -> State:
    """At rest with the first template, but for the faults to come."""
    first = ReplicaSet(1, True, size, True, True, size, size)
    sets = (Set(first, first, active=(READY,) * size), *(Set() for _ in range(templates - 1)))
    return State(sets, 0, 0, size, size, (), (), False, *_limits(size, rule), faults)


def _limits(want: int, rule: Rule) -> tuple[int, int]:
    strategy = rule.strategy
    return (want, 0) if strategy.recreate else (want + strategy.surge, want - strategy.unavailable)


def steps(state: State, rule: Rule, world: World) -> Iterator[Step[State]]:
    """All that may happen in a state. Raises Violation for what must not."""
    for source in (_cache, _turn, _over, _answers, _late, _agents, _pods, _user, _losses):
        for label, after, *fault in source(state, rule, world):
            yield Step(label, _plain(after, rule), bool(fault))


def _plain(state: State, rule: Rule) -> State:
    """The same state in its plainest form: versions are numbered anew, dead requests go, limits start anew at rest."""
    late = set(state.late)
    if rule.versions:
        late = {r for r in late if r.verb == "create" or r.rv == state.sets[r.at].api.rv}
    if not state.faults.prunes:
        late = {r for r in late if r.verb != "create" or not state.sets[r.at].api.here}
    sets, requests = [], (*state.sending, *late)
    ranks = []
    for at, one in enumerate(state.sets):
        plain, rank = _plain_set(one, frozenset(r.rv for r in requests if r.at == at))
        sets.append(plain)
        ranks.append(rank)
    sending, kept = (
        tuple(sorted(Request(r.verb, r.at, ranks[r.at][r.rv], r.size, r.repeated) for r in some)) if some else ()
        for some in (state.sending, late)
    )
    after = state._replace(sets=tuple(sets), sending=sending, late=kept)
    most, least = _limits(state.want, rule)
    if (state.most, state.least) != (most, least) and _is_quiet(after) and total(after) <= most:
        return after._replace(most=most, least=least)
    return after


@cache
def _plain_set(one: Set, asked: frozenset[int]) -> tuple[Set, Mapping[int, int]]:
    """A ReplicaSet with its versions numbered anew, and the new numbers; ``asked``: versions in requests for it.

    Kept, as a step changes one ReplicaSet at most, and this took more than half of a search.
    """
    rvs = {0, one.api.rv, one.cache.rv, one.need, *asked}
    rvs |= {one.entry.rv} if one.entry else set()
    rank = {rv: number for number, rv in enumerate(sorted(rvs))}
    plain = one._replace(
        api=one.api._replace(rv=rank[one.api.rv]),
        cache=one.cache._replace(rv=rank[one.cache.rv]),
        need=rank[one.need] if one.need > one.cache.rv else 0,
        entry=one.entry and one.entry._replace(rv=rank[one.entry.rv]),
        active=tuple(sorted(one.active)),
    )
    return plain, rank


def _is_quiet(state: State) -> bool:
    """Nothing is under way, and the cache shows everything."""
    if state.sending or state.late or state.closed:
        return False
    if (state.template, state.want) != (state.seen_template, state.seen_want):
        return False
    return all(
        one.api == one.cache
        and one.entry is None
        and not (one.births or one.held or one.ending)
        and (one.api.observed or not one.api.changed)
        and all(pod <= READY for pod in one.active)
        and len(one.active) == one.api.size
        for one in state.sets
    )


def is_done(state: State) -> bool:
    """The rollout is over: all pods are the new template's, and ready."""
    new = state.sets[state.template]
    others = [one for at, one in enumerate(state.sets) if at != state.template]
    return (
        _is_quiet(state)
        and new.active == (READY,) * state.want
        and new.api.size == state.want
        and not any(one.active or one.api.size for one in others)
    )


def _cache(state: State, rule: Rule, world: World) -> Found:
    for at, one in enumerate(state.sets):
        if one.cache != one.api:
            yield (
                f"cache sees {at}: {_said(one.api)}",
                state._replace(sets=put(state.sets, at, one._replace(cache=one.api))),
            )
    if (state.template, state.want) != (state.seen_template, state.seen_want):
        after = state._replace(seen_template=state.template, seen_want=state.want)
        yield f"cache sees template {state.template}, wanted {state.want}", after


def _said(one: ReplicaSet) -> str:
    if not one.here:
        return "gone"
    return f"size {one.size}{'' if one.observed else ' not observed'}, status {one.pods} pods {one.ready} ready"


def _turn(state: State, rule: Rule, world: World) -> Found:
    if not state.sending and not state.closed:
        found = turn(state, rule)
        if found is not None:
            yield found


def _over(state: State, rule: Rule, world: World) -> Found:
    """An open write ends without an answer: once D has passed since its last send, by a look at the API."""
    if state.sending or state.closed:
        return
    for at, one in enumerate(state.sets):
        entry = one.entry
        if entry is None or not entry.open or one.cache.rv > entry.rv:
            continue
        flying = any(r.at == at and r.verb == "size" and r.rv == entry.rv for r in state.late)
        if flying and rule.over != "GET":
            continue
        ended = one._replace(entry=entry._replace(open=False))
        if rule.over != "D" and one.api.rv != entry.rv:
            ended = one._replace(need=one.api.rv)
        yield f"after D: the write of {at} is over", state._replace(sets=put(state.sets, at, ended))


def _answers(state: State, rule: Rule, world: World) -> Found:
    faults = state.faults
    for n, request in enumerate(state.sending):
        rest = state._replace(sending=state.sending[:n] + state.sending[n + 1 :])
        said = _named(request)
        yield from _answered(rest, request, said, rule)
        if faults.refusals and request.verb == "size":
            spent = rest._replace(faults=faults._replace(refusals=faults.refusals - 1))
            one = spent.sets[request.at]
            if one.entry and not (request.repeated and rule.refusal_keeps):
                one = one._replace(entry=one.entry._replace(open=False))
            yield f"{said}: refused", spent._replace(sets=put(spent.sets, request.at, one)), True
        if faults.kills:
            lost = rest._replace(late=(*state.late, request), faults=faults._replace(kills=faults.kills - 1))
            yield f"{said}: no answer", lost, True
    if state.sending and faults.kills:
        killed = state._replace(sending=(), late=(*state.late, *state.sending))
        yield "the worker is killed", killed._replace(faults=faults._replace(kills=faults.kills - 1)), True


def _named(request: Request) -> str:
    return f"{request.verb} {request.at}{f' -> {request.size}' if request.verb == 'size' else ''}"


def _answered(rest: State, request: Request, said: str, rule: Rule) -> Found:
    at = request.at
    landed = _landed(rest, request, rule)
    if landed is None:
        one = rest.sets[at]
        need = one.api.rv if rule.conflict_needs else one.need
        entry = one.entry and one.entry._replace(open=False)
        yield f"{said}: conflict", rest._replace(sets=put(rest.sets, at, one._replace(entry=entry, need=need)))
        return
    one = landed.sets[at]
    if request.verb == "size":
        entry = one.entry and one.entry._replace(open=False)
        after = one._replace(entry=entry, need=one.api.rv)
        yield f"{said}: answered", landed._replace(sets=put(landed.sets, at, after))
    elif request.size == 0 or not rule.creates_empty:
        yield f"{said}: answered", landed._replace(sets=put(landed.sets, at, one._replace(need=one.api.rv)))
    else:  # the holder goes on at once
        one = one._replace(entry=Entry(one.api.rv, 0, request.size))
        following = Request("size", at, one.api.rv, request.size)
        yield f"{said}: answered", landed._replace(sets=put(landed.sets, at, one), sending=(following,))


def _landed(state: State, request: Request, rule: Rule) -> State | None:
    """After the request has taken effect; None where the API refuses it."""
    one = state.sets[request.at]
    api = one.api
    if request.verb == "create":
        if api.here:
            return None
        size = 0 if rule.creates_empty else request.size
        after = ReplicaSet(_next(state, request.at), True, size)
    else:
        if not api.here or (api.rv != request.rv and rule.versions):
            return None
        same = api.size == request.size
        after = api._replace(
            rv=_next(state, request.at),
            size=request.size,
            changed=api.changed or not same,
            observed=api.observed and same,
        )
    return state._replace(sets=put(state.sets, request.at, one._replace(api=after)))


def _next(state: State, at: int) -> int:
    return state.sets[at].api.rv + 1


def _late(state: State, rule: Rule, world: World) -> Found:
    for n, request in enumerate(state.late):
        rest = state._replace(late=state.late[:n] + state.late[n + 1 :])
        yield f"late {_named(request)} vanishes", rest
        landed = _landed(rest, request, rule)
        if landed is not None:
            yield f"late {_named(request)} LANDS", landed


def _agents(state: State, rule: Rule, world: World) -> Found:
    """A turn of a ReplicaSet does one of these; counts that are written are those from before it."""
    if state.closed:
        return
    for at, one in enumerate(state.sets):
        view = one.cache
        if not view.here:
            continue
        doomed = sum(bool(pod & DOOMED) for pod in one.active)
        if len(one.active) + one.births + one.held < view.size:
            yield f"{at} creates a pod", state._replace(sets=put(state.sets, at, one._replace(births=one.births + 1)))
        if len(one.active) - doomed > view.size:
            victims = [pod for pod in one.active if not pod & DOOMED]
            least = min(pod & READY for pod in victims)
            for pod in {pod for pod in victims if pod & READY == least}:
                after = one._replace(active=_swap(one.active, pod, pod | DOOMED))
                yield f"{at} deletes a pod", state._replace(sets=put(state.sets, at, after))
        if view.rv == one.api.rv:
            status = told(one, rule)
            if status != one.api:
                status = status._replace(rv=_next(state, at))
                yield (
                    f"{at} writes: {_said(status)}",
                    state._replace(sets=put(state.sets, at, one._replace(api=status))),
                )


def _swap(active: tuple[int, ...], pod: int, *after: int) -> tuple[int, ...]:
    at = active.index(pod)
    return tuple(sorted((*active[:at], *after, *active[at + 1 :])))


def _pods(state: State, rule: Rule, world: World) -> Found:
    for at, one in enumerate(state.sets):

        def changed(after: Set, at: int = at) -> State:
            return state._replace(sets=put(state.sets, at, after))

        if one.births:
            rest = one._replace(births=one.births - 1)
            if at not in world.stubborn or len(one.active) + one.births + one.held > one.cache.size:
                yield f"create of a pod of {at} fails", changed(rest)
            if at not in world.stubborn:
                yield f"a pod of {at} is created", _born(changed(rest._replace(active=(0, *one.active))), at, rule)
                if state.faults.twins:
                    twin = changed(rest._replace(active=(TWIN, *one.active)))
                    spent = state.faults._replace(twins=state.faults.twins - 1)
                    yield f"a pod of {at} is created, sent twice", _born(twin._replace(faults=spent), at, rule), True
        if one.held:
            rest = one._replace(held=one.held - 1)
            yield f"late create of a pod of {at} vanishes", changed(rest)
            yield (
                f"late create of a pod of {at} LANDS",
                _born(changed(rest._replace(active=(0, *one.active))), at, rule),
            )
        if one.ending:
            yield f"a pod of {at} is gone", changed(one._replace(ending=one.ending - 1))
        for pod in set(one.active):
            if not one.api.here:
                yield f"a pod of {at} is collected", changed(one._replace(active=_swap(one.active, pod)))
            if not pod & READY:
                ready = (pod | READY) & ~DOOMED if rule.delete_versions else pod | READY
                yield f"a pod of {at} is ready", changed(one._replace(active=_swap(one.active, pod, ready)))
            if pod & TWIN:
                yield f"a pod of {at} is no twin", changed(one._replace(active=_swap(one.active, pod, pod & ~TWIN)))
            if pod & DOOMED:
                yield (
                    f"delete of a pod of {at} fails",
                    changed(one._replace(active=_swap(one.active, pod, pod & ~DOOMED))),
                )
                ending = one.ending + rule.strategy.recreate
                gone = one._replace(active=_swap(one.active, pod), ending=ending, held=one.held + bool(pod & TWIN))
                yield f"a pod of {at} is deleted", _deleted(changed(gone), pod, rule)


def _born(state: State, at: int, rule: Rule) -> State:
    if total(state) > state.most:
        raise Violation(f"{total(state)} active pods, {state.most} at most")
    if rule.strategy.recreate and any(one.active or one.ending for n, one in enumerate(state.sets) if n != at):
        raise Violation("pods of two ReplicaSets at once")
    return state


def _deleted(state: State, pod: int, rule: Rule) -> State:
    if pod & READY and available(state) < state.least:
        raise Violation(f"{available(state)} available pods, {state.least} at least")
    return state


def _user(state: State, rule: Rule, world: World) -> Found:
    faults = state.faults
    if faults.templates:
        spent = faults._replace(templates=faults.templates - 1)
        for template in range(len(state.sets)):
            if template != state.template:
                yield f"template {template}", state._replace(template=template, faults=spent), True
    if faults.scalings:
        spent = faults._replace(scalings=faults.scalings - 1)
        for want in world.wanted:
            if want != state.want:
                most, least = _limits(want, rule)
                wider = state._replace(
                    want=want, most=max(state.most, most), least=min(state.least, least), faults=spent
                )
                yield f"wanted {want}", wider, True
    if faults.prunes:
        spent = faults._replace(prunes=faults.prunes - 1)
        for at, one in enumerate(state.sets):
            empty = one.api.here and not one.api.size and (one.api.observed or not one.api.changed)
            if empty and not (one.active or one.births or one.held or one.ending):
                gone = one._replace(api=ReplicaSet(rv=_next(state, at)))
                yield f"others delete {at}", state._replace(sets=put(state.sets, at, gone), faults=spent), True


def _losses(state: State, rule: Rule, world: World) -> Found:
    """Redis is lost. After D all lists are read anew, and nothing is remembered."""
    if state.faults.losses and not state.closed:
        sets = tuple(one._replace(need=0, entry=None) for one in state.sets)
        spent = state.faults._replace(losses=state.faults.losses - 1)
        late = (*state.late, *state.sending)
        yield "Redis is lost", state._replace(sets=sets, sending=(), late=late, closed=True, faults=spent), True
    flying = state.late or any(one.births or one.held or max((0, *one.active)) >= DOOMED for one in state.sets)
    if state.closed and not (flying and rule.drain):
        sets = tuple(one._replace(cache=one.api) for one in state.sets)
        opened = state._replace(sets=sets, seen_template=state.template, seen_want=state.want, closed=False)
        yield "D has passed since the loss", opened
