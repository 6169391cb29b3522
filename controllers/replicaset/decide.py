"""The decision of a ReplicaSet, and of every kind that keeps a number of equal pods.

Rules of counting, bursts and ranking: upstream `pkg/controller/replicaset/replica_set.go`. Unlike upstream,
a create is identified by its name (see slots.py) and a delete by its UID.

Standard mode replaces a pod as soon as it is ending. Strict mode reuses a slot only when its pod has left the API:
there are never more pods than wanted, but a replacement waits for the graceful end.
"""

from itertools import chain, islice

from oarlock.controllers.flavour import REPLICASET, Flavour
from oarlock.controllers.objects.model import Pod, ReplicaSet, active_pods, controller_of, is_finished
from oarlock.controllers.ownership.claim import claim
from oarlock.controllers.ownership.related import related_pods, siblings_of
from oarlock.controllers.plan import Plan, Snapshot, Surroundings, Unanswered
from oarlock.controllers.pods.slots import slots_of
from oarlock.controllers.replicaset.ranking import age_ratios, victims


def snapshot(
    owner: ReplicaSet,
    pods: tuple[Pod, ...],
    around: Surroundings,
    *,
    satisfied: bool,
    unanswered: Unanswered,
    blocked: frozenset[str],
) -> Snapshot:
    """The input of `decide`; it needs nothing of the surroundings."""
    return Snapshot(owner, pods, satisfied=satisfied, unanswered=unanswered, blocked=blocked)


def decide(snapshot: Snapshot, now_ms: int, flavour: Flavour = REPLICASET) -> Plan:
    """What one turn does about the owner's pods. `now_ms` is used for ranking only."""
    owner, pods = snapshot.owner, snapshot.pods
    if owner.selector is not None and owner.selector.error:
        return Plan(invalid=owner.selector.error)
    active = active_pods(pods)
    claims = claim(owner, active).carried_out(snapshot.adopted)
    claimed = claims.claimed
    terminating = _terminating_count(owner, pods) if len(active) < len(pods) else 0
    diff = len(claimed) - owner.replicas

    create: tuple[str, ...] = ()
    delete: tuple[Pod, ...] = ()
    ratios: tuple[tuple[str, int], ...] = ()
    wants_related = False
    if diff and snapshot.satisfied and not owner.deleting_ms:
        if diff > 0:
            delete, wants_related, ratios = _surplus(snapshot, claimed, diff, now_ms, flavour)
        elif owner.strict:
            create, delete = _strict_refill(snapshot, claimed, flavour.burst)
        else:
            create = _standard_refill(snapshot, claimed, flavour.burst)
    return Plan(
        adopt=tuple(claims.adopt),
        release=tuple(claims.release),
        create=create,
        delete=tuple([(pod.name, pod.uid) for pod in delete]),
        diff=diff,
        claimed=tuple(claimed),
        terminating=terminating,
        wants_related=wants_related,
        age_ratios=ratios,
        observed=_may_observe(snapshot, claimed),
        leaving=_leaving(snapshot, delete) if owner.min_ready_seconds else frozenset(),
    )


def _leaving(snapshot: Snapshot, delete: tuple[Pod, ...]) -> frozenset[str]:
    return snapshot.unanswered.leaving.union(pod.uid for pod in delete)


def _may_observe(snapshot: Snapshot, claimed: list[Pod]) -> bool:
    """Whether earlier writes can neither make more pods than the owner wants nor leave fewer.

    Writes without an answer that fit are no obstacle: one that never gets an answer would otherwise keep the size from
    ever being observed.
    """
    if not snapshot.satisfied:
        return False
    unanswered, replicas = snapshot.unanswered, snapshot.owner.replicas
    going = sum(1 for pod in claimed if pod.uid in unanswered.deletes) if unanswered.deletes else 0
    fits = not unanswered.creates or len(unanswered.creates.union(pod.name for pod in claimed)) <= replicas
    return fits and (not going or len(claimed) - going >= replicas)


def _terminating_count(owner: ReplicaSet, pods: tuple[Pod, ...]) -> int:
    """Pods of the owner, by reference and labels, that are being deleted and have not finished."""
    return sum(
        1
        for pod in pods
        if pod.deleting_ms
        and not is_finished(pod)
        and _is_owned(owner, pod)
        and owner.selector is not None
        and owner.selector.matches(pod.labels)
    )


def _is_owned(owner: ReplicaSet, pod: Pod) -> bool:
    ref = controller_of(pod)
    return ref is not None and ref.uid == owner.uid


def _standard_refill(snapshot: Snapshot, claimed: list[Pod], burst: int) -> tuple[str, ...]:
    """Names to create until as many pods as wanted are active. Refused names are not chosen."""
    passed = snapshot.unanswered.passed
    return tuple(_names(snapshot, len(claimed), {pod.name for pod in claimed}, passed, burst))


def _strict_refill(snapshot: Snapshot, claimed: list[Pod], burst: int) -> tuple[tuple[str, ...], tuple[Pod, ...]]:
    """Names to create until as many pods as wanted exist, and finished pods to delete, which make room later.

    Always the lowest free indices: two writers that see different pods must choose the same names. Refused names come
    last, so that they do not delay the others.
    """
    unanswered = snapshot.unanswered
    owned = [pod for pod in snapshot.pods if _is_owned(snapshot.owner, pod)]
    finished = [pod for pod in owned if is_finished(pod) and not pod.deleting_ms and pod.uid not in unanswered.quiet]
    existing = {pod.uid: pod.name for pod in chain(owned, claimed)}
    names = _names(snapshot, len(existing), set(existing.values()), frozenset(), burst)
    return tuple(sorted(names, key=unanswered.passed.__contains__)), tuple(finished[:burst])


def _names(snapshot: Snapshot, occupied: int, counted: set[str], passed: frozenset[str], burst: int) -> list[str]:
    """At most `burst` names to create: first those whose create may or may not have landed, then free ones, lowest
    first.

    `occupied`: places taken by pods; `counted`: their names. A create without an answer takes a place, even if an
    ending or a foreign pod has its name: that pod may go, and then the create may land. With more creates than places
    nothing is sent, since those under way may be too many.
    """
    owner, unanswered = snapshot.owner, snapshot.unanswered
    maybe_new = unanswered.creates - counted if unanswered.creates else unanswered.creates
    room = owner.replicas - occupied - len(maybe_new)
    if room < 0:
        return []
    slots = slots_of(owner.name, owner.uid)
    borne = {pod.name for pod in snapshot.pods} | snapshot.blocked
    again: list[str] = []
    if maybe_new:
        again = [
            name for name in slots.ordered(maybe_new - borne - unanswered.quiet) if slots.index_of(name) is not None
        ]
    return [*again, *islice(slots.free(borne | unanswered.creates | passed), min(room, burst))][:burst]


def _surplus(
    snapshot: Snapshot, claimed: list[Pod], surplus: int, now_ms: int, flavour: Flavour
) -> tuple[tuple[Pod, ...], bool, tuple[tuple[str, int], ...]]:
    """The victims, whether related pods are needed to choose them, and the ratios of their ages.

    A pod that may have gone counts as gone. Its delete is sent again only if enough pods stay without it.
    """
    owner, unanswered = snapshot.owner, snapshot.unanswered
    again: list[Pod] = []
    if unanswered.deletes:
        staying = [pod for pod in claimed if pod.uid not in unanswered.deletes]
        surplus -= len(claimed) - len(staying)
        if surplus < 0:
            return (), False, ()
        again = [pod for pod in claimed if pod.uid in unanswered.deletes and pod.uid not in unanswered.quiet]
        claimed = staying
    count = min(surplus, flavour.burst)
    if not count:
        return tuple(again[: flavour.burst]), False, ()
    if count >= len(claimed):
        return (*again, *claimed), False, ()  # all go: no order to find
    related: list[Pod] = []
    if flavour.colocates and controller_of(owner) is not None:
        if snapshot.siblings is None or snapshot.related is None:
            return (), True, ()
        related = related_pods(siblings_of(owner, snapshot.siblings), chain(snapshot.pods, snapshot.related))
    chosen = victims(claimed, count, related, now_ms, _ready_seconds(owner))
    return (*again, *chosen), False, age_ratios(chosen, claimed, now_ms)


def _ready_seconds(owner: ReplicaSet) -> int:
    """From how long on a ready pod is spared beside others: a Deployment lowers a size by the pods that are not
    available, and reckons that these go.
    """
    ref = controller_of(owner)
    return owner.min_ready_seconds if ref is not None and ref.kind == "Deployment" else 0
