"""What may happen next: turns, answers, requests that land late, the cache's events, time, faults.

"After D" is the model's notion of time: no request for that name or pod is under way any more.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from tests.model.explore import Step, Violation
from tests.model.rule import Rule, turns
from tests.model.state import (
    ABSENT,
    ACTIVE,
    CLOSED,
    CREATES_ONLY,
    FAILED,
    FOREIGN,
    OPEN,
    OURS,
    TERMINATING,
    Delete,
    Event,
    Pod,
    Request,
    Rest,
    State,
    active,
    names_in,
)


class World(NamedTuple):
    """Bounds of a search, and what is refused for ever.

    `events`: that the cache may be behind. `uids`: pods a name may have borne. `wanted`: counts a scaling may ask for.
    `refused_creates`, `refused_deletes`: names whose requests are answered with an opaque 500 and never take effect.
    """

    events: int = 2
    uids: int = 2
    wanted: tuple[int, ...] = (0, 1)
    refused_creates: frozenset[int] = frozenset()
    refused_deletes: frozenset[int] = frozenset()
    fails: bool = False


def steps(state: State, rule: Rule, world: World) -> Iterator[Step[State]]:
    """All that may happen in a state. Raises Violation for a request that takes effect and must not."""
    for source in (_cache, _turn, _next_wave, _after_d, _time, _answers, _late, _others, _losses):
        for label, after, *fault in source(state, rule, world):
            yield Step(label, _quiescent(after, rule), bool(fault))


Found = Iterator[tuple]  # type: ignore[type-arg]  # label, state, and True for a fault


def _quiescent(state: State, rule: Rule) -> State:
    """With nothing outstanding and no more pods than wanted the bound of over-creation starts anew.

    Where creates come before D after a loss, only once the cache has seen it: a create that was decided for a larger
    count lands unseen, and the next turn, which knows nothing of it, creates one too many for the smaller count.
    """
    if state.acting or state.late or state.seen_want != state.want or state.peak == state.want:
        return state
    if len(names_in(state.api, *OURS)) > state.want or (state.events and not rule.drain):
        return state
    return state._replace(peak=state.want)


def _changed(state: State, name: int, pod: Pod, by_others: bool = False) -> State:
    event = Event(name, pod, by_others)
    return state._replace(api=_put(state.api, name, pod), events=(*state.events, event))


def _put(pods: tuple[Pod, ...], name: int, pod: Pod) -> tuple[Pod, ...]:
    return (*pods[:name], pod, *pods[name + 1 :])


def _position(state: State, name: int) -> int:
    """Events the cache has to pass to have seen the last change under this name."""
    return max((at for at, event in enumerate(state.events, 1) if event.name == name), default=0)


def _cache(state: State, rule: Rule, world: World) -> Found:
    if state.events:
        event = state.events[0]
        after = state._replace(
            cache=_put(state.cache, event.name, event.pod), events=state.events[1:], need=max(0, state.need - 1)
        )
        yield f"cache sees {event.name} {_said(event.pod)}", after
    if state.seen_want != state.want:
        yield f"cache sees wanted {state.want}", state._replace(seen_want=state.want)
    if state.phase == CLOSED and not (rule.drain and state.late):
        listed = state._replace(cache=state.api, events=(), need=0, seen_want=state.want)
        yield "listed anew", listed._replace(phase=OPEN if rule.drain else CREATES_ONLY)
    if state.phase == CREATES_ONLY and not state.late:
        listed = state._replace(cache=state.api, events=(), need=0, seen_want=state.want)
        yield "D has passed since the loss", (listed if rule.lists_again else state)._replace(phase=OPEN)


def _said(pod: Pod) -> str:
    return f"{('gone', 'active', 'terminating', 'failed', 'foreign')[pod.state]} (uid {pod.uid})"


def _turn(state: State, rule: Rule, world: World) -> Found:
    if state.acting or state.phase == CLOSED:
        return
    for label, after in turns(state, rule):
        for request in (*after.sending, *chain(*after.waves)):
            if request.verb == "create" and (request.name, True) in state.pauses:
                raise Violation(f"name {request.name} is used although it rests")
        yield label, after


def _next_wave(state: State, rule: Rule, world: World) -> Found:
    """A turn goes on, or ends: a create failed, its time is over, or the rate limit has no more for it."""
    if not state.waves or any(request.verb == "create" for request in state.sending):
        return
    if not state.stopped:
        sending = tuple(sorted((*state.sending, *state.waves[0])))
        yield "the next wave", state._replace(sending=sending, waves=state.waves[1:])
    unsent = {request.name for request in chain(*state.waves) if not request.repeated}
    if rule.unsent == "kept":
        unsent = set()
    pending = tuple(name for name in state.pending if name not in unsent)
    yield "the rest is not sent", state._replace(pending=pending, waves=(), stopped=False)


def _after_d(state: State, rule: Rule, world: World) -> Found:
    """Entries and reservations end, one at a time, at a claim."""
    if state.acting or state.phase != OPEN:
        return
    flying = {(request.verb, request.name, request.uid) for request in state.late}
    for name in state.pending:
        if rule.create_forgotten != "never" and (rule.create_forgotten == "GET" or ("create", name, 0) not in flying):
            yield from _create_forgotten(state, name, rule, rule.create_forgotten != "D")
    for name in state.reserved:
        if name not in state.pending and (rule.reserved_until == "GET" or ("create", name, 0) not in flying):
            yield from _create_forgotten(state, name, rule, rule.reserved_until != "D")
    for entry in state.deletes:
        over = rule.delete_forgotten == "GET" or ("delete", entry.name, entry.uid) not in flying
        if rule.delete_forgotten != "never" and over:
            pod, answered = state.api[entry.name], state.answered
            gone = pod.uid != entry.uid or pod.state not in (ACTIVE, FAILED)
            if gone and rule.delete_forgotten != "D":
                answered = tuple(sorted({*answered, (entry.name, entry.uid)}))
            left = tuple(each for each in state.deletes if each != entry)
            yield f"after D: delete {entry.name} is over", state._replace(deletes=left, answered=answered)


def _create_forgotten(state: State, name: int, rule: Rule, looks: bool) -> Found:
    left = state._replace(
        pending=tuple(each for each in state.pending if each != name),
        reserved=tuple(each for each in state.reserved if each != name),
    )
    if looks and state.api[name].state:
        yield f"after D: {name} found", left._replace(need=max(state.need, _position(state, name)))
        return
    yield f"after D: create {name} forgotten", left
    if len(state.passed) < rule.kind.passes and name in state.pending:
        yield f"after D: {name} passed over", left._replace(passed=tuple(sorted({*state.passed, name})))


def _time(state: State, rule: Rule, world: World) -> Found:
    for name in state.passed:
        yield f"{name} passed over no longer", state._replace(passed=tuple(n for n in state.passed if n != name))
    for rest in state.resting:
        if (rest.counting or rule.rest_from == "announced") and rule.pause_ends:
            yield (
                f"the pause of {rest.name} is over",
                state._replace(
                    resting=tuple(each for each in state.resting if each != rest),
                    pauses=tuple(each for each in state.pauses if each != (rest.name, True)),
                ),
            )
    for name, pod in enumerate(state.api):
        if pod.state == TERMINATING and len(state.events) < world.events:
            yield f"pod {name} gone", _gone(state, name)


def _gone(state: State, name: int) -> State:
    after = _changed(state, name, Pod(state.api[name].uid, ABSENT))
    return after._replace(pauses=tuple(sorted((n, gone or n == name) for n, gone in state.pauses)))


def _answers(state: State, rule: Rule, world: World) -> Found:
    faults = state.faults
    for at, request in enumerate(state.sending):
        rest = state._replace(sending=state.sending[:at] + state.sending[at + 1 :])
        said = f"{request.verb} {request.name}{' again' * request.repeated}"
        if _is_refused_for_ever(request, world):
            yield f"{said}: 500", _failed(rest, request)
            continue
        if _has_room(state, request, world):
            for after in _committed(rest, request, rule):
                yield f"{said}: answered", _answered(after, request, rule)
        conflict = request.verb == "delete" and _conflicts(state, request)
        if faults.refusals or conflict:
            spent = rest._replace(faults=faults._replace(refusals=faults.refusals - (not conflict)))
            yield f"{said}: refused", _failed(_refused(spent, request, rule, conflict), request), not conflict
        if faults.kills:
            lost = rest._replace(late=_with(state.late, (request,)), faults=faults._replace(kills=faults.kills - 1))
            if rule.unsent == "unanswered" and request.verb == "create" and not request.repeated:
                lost = _create_ended(lost, request, rule)
            yield f"{said}: no answer", _failed(lost, request), True
    if state.acting and faults.kills:
        killed = _lost_holder(state)
        yield "the worker is killed", killed._replace(faults=faults._replace(kills=faults.kills - 1)), True


def _failed(state: State, request: Request) -> State:
    """A create that failed: no wave follows."""
    return state._replace(stopped=True) if request.verb == "create" and state.waves else state


def _lost_holder(state: State) -> State:
    """The worker is dead, or will find out that it has lost its claim. Until its deadline it may still send the waves
    that it announced; not those that it would have to announce first, because they were sent before.
    """
    ahead = () if state.stopped else tuple(each for each in chain(*state.waves) if not each.repeated)
    return state._replace(sending=(), waves=(), stopped=False, late=_with(state.late, (*state.sending, *ahead)))


def _with(late: tuple[Request, ...], more: tuple[Request, ...]) -> tuple[Request, ...]:
    return tuple(sorted((*late, *more)))


def _conflicts(state: State, request: Request) -> bool:
    """409: the same pod at a newer version, and not being deleted."""
    pod = state.api[request.name]
    return pod.uid == request.uid and pod.state in (ACTIVE, FAILED) and pod.rv != request.rv


def _is_refused_for_ever(request: Request, world: World) -> bool:
    return request.name in (world.refused_creates if request.verb == "create" else world.refused_deletes)


def _has_room(state: State, request: Request, world: World) -> bool:
    if len(state.events) >= world.events:
        return False
    pod = state.api[request.name]
    return request.verb == "delete" or bool(pod.state) or pod.uid < world.uids


def _answered(state: State, request: Request, rule: Rule) -> State:
    if request.verb == "create":
        need = max(state.need, _position(state, request.name))
        return _create_ended(state, request, rule)._replace(need=need)
    pod = state.api[request.name]
    if pod.uid == request.uid and pod.state in (ACTIVE, FAILED):
        return _refused(state, request, rule, conflict=True)
    if rule.marks_rest == "answered" and any(name == request.name for name, _ in state.pauses):
        state = state._replace(resting=tuple(sorted({*state.resting, Rest(request.name, request.uid)})))
    answered = tuple(sorted({*state.answered, (request.name, request.uid)}))
    return state._replace(deletes=_without(state.deletes, request), answered=answered)


def _create_ended(state: State, request: Request, rule: Rule) -> State:
    reserved = tuple(name for name in state.reserved if name != request.name) if rule.answer_frees else state.reserved
    return state._replace(pending=tuple(name for name in state.pending if name != request.name), reserved=reserved)


def _refused(state: State, request: Request, rule: Rule, conflict: bool) -> State:
    if request.verb == "create":
        return _create_ended(state, request, rule)
    if request.repeated and rule.refusal_keeps and not conflict:
        return state
    return state._replace(deletes=_without(state.deletes, request))


def _without(deletes: tuple[Delete, ...], request: Request) -> tuple[Delete, ...]:
    return tuple(entry for entry in deletes if (entry.name, entry.uid) != (request.name, request.uid))


def _late(state: State, rule: Rule, world: World) -> Found:
    for at, request in enumerate(state.late):
        rest = state._replace(late=state.late[:at] + state.late[at + 1 :])
        yield f"late {request.verb} {request.name} vanishes", rest
        if _has_room(state, request, world) and not _is_refused_for_ever(request, world):
            for after in _committed(rest, request, rule):
                if after is not rest:
                    yield f"late {request.verb} {request.name} LANDS", after


def _committed(state: State, request: Request, rule: Rule) -> tuple[State, ...]:
    """After the request has reached the API; several where a pod may go at once or gracefully. As it was: no effect."""
    pod = state.api[request.name]
    if request.verb == "create":
        if pod.state:
            return (state,)
        after = _changed(state, request.name, Pod(pod.uid + 1, ACTIVE))
        _judge_create(after, request, rule)
        return (after,)
    if (pod.uid, pod.rv) != (request.uid, request.rv) or pod.state not in (ACTIVE, FAILED):
        return (state,)
    if pod.state == FAILED and rule.kind.rests and any(e.name == request.name for e in state.deletes):
        state = state._replace(pauses=tuple(sorted({*state.pauses, (request.name, False)})))
    both = _changed(state, request.name, Pod(pod.uid, TERMINATING)), _gone(state, request.name)
    if pod.state == ACTIVE and active(both[0].api) < request.allowed - request.lost:
        raise Violation(f"over-deletion: {active(both[0].api)} active, {request.allowed} wanted, {request.lost} ended")
    return both


def _judge_create(state: State, request: Request, rule: Rule) -> None:
    kind, running, existing = rule.kind, active(state.api), len(names_in(state.api, *OURS))
    if kind.fleet:
        return
    if kind.bound and len(names_in(state.api, ACTIVE, FAILED)) > kind.bound:
        raise Violation(f"over-creation: {kind.bound} pods at most on this node")
    if kind.bound and not rule.drain:
        return  # a create may come before D has passed since a loss: the node's bound is all there is
    if (existing if kind.strict and not kind.bound else running) > state.peak:
        raise Violation(f"over-creation: {running} active, {existing} existing, {state.peak} wanted at most")
    if rule.drain and running > request.allowed:
        raise Violation(f"over-creation: {running} active, {request.allowed} wanted since its view")


def _others(state: State, rule: Rule, world: World) -> Found:
    faults = state.faults
    if len(state.events) < world.events:
        for name, pod in enumerate(state.api):
            if pod.state == ACTIVE and faults.ends:
                spent = state._replace(faults=faults._replace(ends=faults.ends - 1))
                ends = [Pod(pod.uid, ABSENT), Pod(pod.uid, TERMINATING)]
                for after in (*ends, Pod(pod.uid, FAILED, pod.rv + 1)) if world.fails else ends:
                    label = f"others end pod {name}: {_said(after)}"
                    yield label, _noticed(_changed(spent, name, after, by_others=True)), True
            if pod.state == ACTIVE and faults.touches:
                spent = state._replace(faults=faults._replace(touches=faults.touches - 1))
                yield f"pod {name} changes", _changed(spent, name, pod._replace(rv=pod.rv + 1)), True
            if pod.state == ABSENT and faults.foreign and pod.uid < world.uids:
                spent = state._replace(faults=faults._replace(foreign=faults.foreign - 1))
                yield f"a foreign pod takes {name}", _changed(spent, name, Pod(pod.uid + 1, FOREIGN)), True
            if pod.state == FOREIGN:
                yield f"the foreign pod {name} goes", _changed(state, name, Pod(pod.uid, ABSENT))
    if faults.scalings:
        for want in world.wanted:
            if want != state.want:
                yield f"wanted {state.want} -> {want}", _scaled(state, want), True


def _noticed(state: State) -> State:
    """Each delete under way was decided without knowing of this end."""
    return _each_request(state, lambda r: r._replace(lost=r.lost + 1) if r.verb == "delete" else r)


def _scaled(state: State, want: int) -> State:
    def allowed(request: Request) -> Request:
        bound = min if request.verb == "delete" else max
        return request._replace(allowed=bound(request.allowed, want))

    faults = state.faults._replace(scalings=state.faults.scalings - 1)
    return _each_request(state, allowed)._replace(want=want, peak=max(state.peak, want), faults=faults)


def _each_request(state: State, change: Callable[[Request], Request]) -> State:
    waves = tuple(tuple(map(change, wave)) for wave in state.waves)
    late = tuple(sorted(map(change, state.late)))
    return state._replace(sending=tuple(map(change, state.sending)), waves=waves, late=late)


def _losses(state: State, rule: Rule, world: World) -> Found:
    if state.faults.losses and state.phase == OPEN:
        faults = state.faults._replace(losses=state.faults.losses - 1)
        empty = _lost_holder(state)._replace(pending=(), reserved=(), deletes=(), answered=(), passed=(), resting=())
        yield "Redis is lost", empty._replace(need=0, phase=CLOSED, pauses=(), faults=faults), True
