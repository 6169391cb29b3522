"""What one state of the model is made of. Everything is a tuple: states are hashed by the hundred thousand."""

from typing import NamedTuple

ABSENT, ACTIVE, TERMINATING, FAILED, FOREIGN = range(5)
OURS = (ACTIVE, TERMINATING, FAILED)
OPEN, CLOSED, CREATES_ONLY = range(3)
"""Phases after a loss of the record: closed until the lists are read anew; then, for some, open for creates alone."""


class Pod(NamedTuple):
    """Who bears a name. `uid` counts the pods that have borne it; `rv` the changes to this one."""

    uid: int = 0
    state: int = ABSENT
    rv: int = 0


class Event(NamedTuple):
    """A change on its way to the cache. `by_others`: it took an active pod from us and no delete of ours did."""

    name: int
    pod: Pod
    by_others: bool = False


class Request(NamedTuple):
    """A create or delete from its announcement on: until it is over it may take effect at any moment.

    `allowed`: for a create the largest, for a delete the smallest count wanted since the view it was decided on.
    `lost`: active pods that others ended and its view had not seen. `repeated`: an earlier send may be open; a create
    is so only while its entry is.
    """

    verb: str
    name: int
    uid: int
    rv: int
    allowed: int
    lost: int
    repeated: bool


class Delete(NamedTuple):
    """A pending delete in the record."""

    name: int
    uid: int
    rv: int


class Rest(NamedTuple):
    """A name that rests: `counting` from when a claim saw the failed pod gone; the pause ends by time after that."""

    name: int
    uid: int
    counting: bool = False


class Faults(NamedTuple):
    """How many of each may still happen."""

    kills: int = 0
    ends: int = 0
    scalings: int = 0
    losses: int = 0
    refusals: int = 0
    touches: int = 0
    foreign: int = 0


class State(NamedTuple):
    """`api`, `cache`: by name. `need`: events the cache has to pass. `seen_want`: the count wanted that it
    shows.

    In the record: `pending`, `reserved` and `passed` names, `deletes` unanswered, `answered` deletes the cache has not
    shown, `resting`. `sending`: requests of the holder; `waves`: the creates it will send after these, one wave after
    the other; `stopped`: a create failed, so it will not. `late`: requests whose sender is dead or gave up. `peak`:
    largest count wanted since the owner was last quiescent. `pauses`: names of failed pods that our delete has reached,
    and whether they are gone: what `resting` is judged by.
    """

    api: tuple[Pod, ...]
    cache: tuple[Pod, ...]
    events: tuple[Event, ...]
    need: int
    want: int
    seen_want: int
    pending: tuple[int, ...]
    reserved: tuple[int, ...]
    deletes: tuple[Delete, ...]
    answered: tuple[tuple[int, int], ...]
    passed: tuple[int, ...]
    resting: tuple[Rest, ...]
    sending: tuple[Request, ...]
    waves: tuple[tuple[Request, ...], ...]
    stopped: bool
    late: tuple[Request, ...]
    peak: int
    phase: int
    pauses: tuple[tuple[int, bool], ...]
    faults: Faults

    @property
    def acting(self) -> bool:
        """Whether a turn is under way that sends."""
        return bool(self.sending or self.waves)

    def __str__(self) -> str:
        return f"{[pod.state for pod in self.api]}, wanted {self.want}"


def start(pods: tuple[int, ...], want: int, faults: Faults) -> State:
    """At rest but for the count: each name's state in `pods`."""
    api = tuple(Pod(1, state) if state else Pod() for state in pods)
    return State(api, api, (), 0, want, want, (), (), (), (), (), (), (), (), False, (), want, OPEN, (), faults)


def names_in(pods: tuple[Pod, ...], *states: int) -> set[int]:
    """Names borne by pods in one of the states."""
    return {name for name, pod in enumerate(pods) if pod.state in states}


def active(pods: tuple[Pod, ...]) -> int:
    return sum(pod.state == ACTIVE for pod in pods)
