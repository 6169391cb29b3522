"""The decision of a ReplicaSet, and of every kind that keeps a number of equal pods.

Rules of counting, bursts and ranking: upstream `pkg/controller/replicaset/replica_set.go`. Unlike upstream,
a create is identified by its name (see slots.py) and a delete by its UID.

Standard mode replaces a pod as soon as it ends. Strict mode gives a slot away only when its pod has left
the API: at no moment do more pods exist than wanted, at the price of waiting for graceful ends.
"""

from itertools import chain, islice

from controllers.claim import claim
from controllers.flavour import REPLICASET, Flavour
from controllers.model import Pod, ReplicaSet, controller_of
from controllers.plan import Plan, Snapshot, Surroundings
from controllers.podstate import active_pods, is_finished
from controllers.ranking import age_ratios, victims
from controllers.related import related_pods, siblings_of
from controllers.slots import slots_of


def snapshot(
    owner: ReplicaSet,
    pods: tuple[Pod, ...],
    around: Surroundings,
    *,
    satisfied: bool,
    held: frozenset[str],
    blocked: frozenset[str],
) -> Snapshot:
    """What `decide` is made from; nothing of what is around matters."""
    return Snapshot(owner, pods, satisfied=satisfied, held=held, blocked=blocked)


def decide(snapshot: Snapshot, now_ms: int, flavour: Flavour = REPLICASET) -> Plan:
    """What one turn does about the owner's pods. `now_ms` is used for ranking only."""
    owner, pods = snapshot.owner, snapshot.pods
    if owner.selector is not None and owner.selector.error:
        return Plan(invalid=owner.selector.error)
    active = active_pods(pods)
    claims = claim(owner, active)
    claimed, adopt, release = claims.claimed, tuple(claims.adopt), tuple(claims.release)
    if snapshot.adopted is not None:
        if adopt:
            missed = {pod.uid for pod in adopt} - snapshot.adopted
            claimed = [pod for pod in claimed if pod.uid not in missed]
        adopt = release = ()
    terminating = _terminating_count(owner, pods) if len(active) < len(pods) else 0
    diff = len(claimed) - owner.replicas

    create: tuple[str, ...] = ()
    delete: tuple[Pod, ...] = ()
    ratios: tuple[int, ...] = ()
    held_back, wants_related = 0, False
    if diff and snapshot.satisfied and not owner.deleting_ms:
        if diff > 0:
            delete, wants_related, ratios = _surplus(snapshot, claimed, diff, now_ms, flavour)
        elif owner.strict:
            create, delete = _strict_refill(snapshot, claimed, -diff, flavour.burst)
        else:
            create, held_back = _standard_refill(snapshot, claimed, -diff, flavour.burst)
    return Plan(
        adopt=adopt,
        release=release,
        create=create,
        delete=tuple([(pod.name, pod.uid) for pod in delete]),
        diff=diff,
        claimed=tuple(claimed),
        terminating=terminating,
        wants_related=wants_related,
        held_back=held_back,
        age_ratios=ratios,
    )


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


def _standard_refill(snapshot: Snapshot, claimed: list[Pod], missing: int, burst: int) -> tuple[tuple[str, ...], int]:
    """Names to create, and how many are withheld. Held names come first, for their create may land anyway; one
    borne by a pod that does not count as ours (it ends, was let go, or is foreign) takes a place all the same,
    for the create may land once that pod has gone.
    """
    owner, held, blocked = snapshot.owner, snapshot.held, snapshot.blocked
    borne = {pod.name for pod in snapshot.pods}
    withheld = 0
    if held:
        ours = {pod.name for pod in claimed}
        withheld = len(held & (borne | blocked) - ours)
    count = min(missing - withheld, burst)
    if count <= 0:
        return (), min(missing, withheld)
    slots = slots_of(owner.name, owner.uid)
    names = slots.ordered(held - borne - blocked)[:count] if held else []
    if len(names) < count:
        names += islice(slots.free(borne | blocked | held), count - len(names))
    return tuple(names), min(missing, withheld)


def _strict_refill(
    snapshot: Snapshot, claimed: list[Pod], missing: int, burst: int
) -> tuple[tuple[str, ...], tuple[Pod, ...]]:
    """Names to create or, as long as finished pods stand in the way, those to delete.

    Always the lowest free indices, whatever is held: two writers that see different pods must choose the
    same names.
    """
    owner = snapshot.owner
    owned = [pod for pod in snapshot.pods if _is_owned(owner, pod)]
    finished = [pod for pod in owned if is_finished(pod) and not pod.deleting_ms]
    if finished:
        return (), tuple(finished[:burst])
    existing = {pod.uid for pod in chain(owned, claimed)}
    count = min(missing, owner.replicas - len(existing), burst)
    if count <= 0:
        return (), ()
    taken = {pod.name for pod in snapshot.pods} | snapshot.blocked
    return tuple(islice(slots_of(owner.name, owner.uid).free(taken), count)), ()


def _surplus(
    snapshot: Snapshot, claimed: list[Pod], surplus: int, now_ms: int, flavour: Flavour
) -> tuple[tuple[Pod, ...], bool, tuple[int, ...]]:
    """The victims, whether they cannot be chosen before related pods are known, and the ratios of their
    ages.
    """
    owner = snapshot.owner
    count = min(surplus, flavour.burst)
    if count >= len(claimed):
        return tuple(claimed), False, ()  # all go: no order to find
    related: list[Pod] = []
    if flavour.colocates and controller_of(owner) is not None:
        if snapshot.siblings is None or snapshot.related is None:
            return (), True, ()
        related = related_pods(siblings_of(owner, snapshot.siblings), chain(snapshot.pods, snapshot.related))
    chosen = victims(claimed, count, related, now_ms)
    return chosen, False, age_ratios(chosen, claimed, now_ms)
