"""What one state of a Deployment's size writes is made of. Everything is a tuple: states are hashed by the thousand."""

from typing import NamedTuple

READY, DOOMED, TWIN = 1, 2, 4
"""Bits of an active pod. DOOMED: a delete of it is under way. TWIN: an earlier request for its name is under way."""


class ReplicaSet(NamedTuple):
    """One version. `rv`: grows with every write of it. `changed`: its spec was written since it was created.
    `observed`: its status has observed this spec. `pods`, `ready`: what the status says.
    """

    rv: int = 0
    here: bool = False
    size: int = 0
    changed: bool = False
    observed: bool = False
    pods: int = 0
    ready: int = 0


class Entry(NamedTuple):
    """What Redis remembers of its size writes. `rv`: the version that the last one was made for. `open`: unanswered."""

    rv: int
    low: int
    high: int
    open: bool = True


class Set(NamedTuple):
    """All there is of one ReplicaSet. There is one for each template, because its name is a function of the template.

    `need`: the version that the cache has to pass. `active`: its pods, sorted. `ending`: pods that are terminating.
    `births`: creates under way. `held`: creates under way for reserved names, which had an answer once.
    """

    api: ReplicaSet = ReplicaSet()
    cache: ReplicaSet = ReplicaSet()
    need: int = 0
    entry: Entry | None = None
    active: tuple[int, ...] = ()
    ending: int = 0
    births: int = 0
    held: int = 0


class Request(NamedTuple):
    """`size`: of a create the one it is scaled to after the answer. `repeated`: an earlier send may be open."""

    verb: str
    at: int
    rv: int
    size: int
    repeated: bool = False


class Faults(NamedTuple):
    """How many of each may still happen. `kills`: of workers, and lost answers."""

    kills: int = 0
    refusals: int = 0
    templates: int = 0
    scalings: int = 0
    losses: int = 0
    twins: int = 0
    prunes: int = 0


class State(NamedTuple):
    """`template`: of the Deployment, the index of its ReplicaSet; `want`: its replicas; `seen_...`: in the cache.

    `sending`: requests of the holder; `late`: those whose sender is dead or gave up. `closed`: Redis was lost and D has
    not passed. `most`: active pods allowed since the Deployment was last at rest; `least`: available ones.
    """

    sets: tuple[Set, ...]
    template: int
    seen_template: int
    want: int
    seen_want: int
    sending: tuple[Request, ...]
    late: tuple[Request, ...]
    closed: bool
    most: int
    least: int
    faults: Faults

    def __str__(self) -> str:
        return f"sizes {[one.api.size for one in self.sets]}, wanted {self.want}"


def put(sets: tuple[Set, ...], at: int, one: Set) -> tuple[Set, ...]:
    return (*sets[:at], one, *sets[at + 1 :])


def total(state: State) -> int:
    """Active pods of all ReplicaSets."""
    return sum(len(one.active) for one in state.sets)


def available(state: State) -> int:
    return sum(pod & READY for one in state.sets for pod in one.active)
