"""The kinds that this process knows: what is watched of each, and which controller acts on it.

It is empty until the process's entry point fills it, before it reads anything from it: with the built-in kinds
(`controllers.builtin`), with a user's own, or with both. All else is read from the entries: where a kind is found in
the API, the rights of its workers, flags and settings, queues, metrics, what the command line shows.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from oarlock.controllers.entries import Controller, CustomController, FanOut, ReferenceFanOut, Watched

Entry = Watched[Any] | Controller | FanOut | ReferenceFanOut

WATCHED: dict[str, Watched[Any]] = {}
"""By resource: what the cache calls their objects."""
CONTROLLERS: dict[str, Controller] = {}
"""By queue, as fan-outs are."""
FAN_OUTS: dict[str, FanOut | ReferenceFanOut] = {}
QUEUE_OF_KIND: dict[str, str] = {}
"""Kind of owner -> queue of its controller."""
_OWNERS_OF: dict[str, dict[str, str]] = {}
"""Resource of dependents -> the same, of the kinds that own such."""


def register(entry: Entry) -> None:
    """Make a kind known to this process, before it serves anything. All processes of a fleet register the same kinds in
    the same order.

    A controller registers the kind of its owners too, a fan-out does not. Nor does a controller of one's own: its kinds
    may be others' as well, and the owners that it has adopt nothing. Raises ValueError for a name that is taken.
    """
    match entry:
        case Watched(resource=resource):
            if resource in WATCHED:
                raise ValueError(f"{resource} are registered already")
            WATCHED[resource] = entry
        case CustomController(queue=queue):
            if queue in all_queues():
                raise ValueError(f"the controller {queue} is registered already")
            _check_flag_name(entry)
            CONTROLLERS[queue] = entry
        case Controller(queue=queue, flavour=flavour):
            if queue in all_queues() or flavour.kind in QUEUE_OF_KIND:
                raise ValueError(f"the controller of {flavour.kind}, queue {queue}, is registered already")
            _check_flag_name(entry)
            register(entry.owners)
            CONTROLLERS[queue] = entry
            QUEUE_OF_KIND[flavour.kind] = queue
            for resource in _owned(entry):
                _OWNERS_OF.setdefault(resource, {})[flavour.kind] = queue
        case FanOut(queue=queue) | ReferenceFanOut(queue=queue):
            if queue in all_queues():
                raise ValueError(f"the queue {queue} is registered already")
            FAN_OUTS[queue] = entry


def _check_flag_name(controller: Controller) -> None:
    """Else only the later one of two would be served."""
    for other in CONTROLLERS.values():
        if other.name == controller.name:
            raise ValueError(f"the controller {other.name} is registered already")
        if other.flag_name == controller.flag_name:
            raise ValueError(
                f"the controllers {other.name} and {controller.name} are one to --controllers, which takes a name with"
                " and without -controller"
            )


def unregister(entry: Entry) -> None:
    """Undo `register`, for tests that register a kind of their own."""
    match entry:
        case Watched():
            del WATCHED[entry.resource]
        case CustomController():
            del CONTROLLERS[entry.queue]
        case Controller():
            unregister(entry.owners)
            del CONTROLLERS[entry.queue], QUEUE_OF_KIND[entry.flavour.kind]
            for resource in _owned(entry):
                del _OWNERS_OF[resource][entry.flavour.kind]
        case FanOut() | ReferenceFanOut():
            del FAN_OUTS[entry.queue]


_TABLES: tuple[dict[str, Any], ...] = (WATCHED, CONTROLLERS, FAN_OUTS, QUEUE_OF_KIND, _OWNERS_OF)


def replace(entries: Iterable[Entry]) -> None:
    """Know these kinds and no others. Raises ValueError as `register` does."""
    for table in _TABLES:
        table.clear()
    for entry in entries:
        register(entry)


@contextmanager
def as_before() -> Iterator[None]:
    """After the block this process knows the kinds again that it knew before."""
    before = [dict(table) for table in _TABLES]
    try:
        yield
    finally:
        for table, kept in zip(_TABLES, before, strict=True):
            table.clear()
            table.update(kept)


def _owned(controller: Controller) -> set[str]:
    """The resources that its owners control."""
    return {resource for resource, index, _ in controller.children if index == "owner"}


def owners_of(resource: str) -> dict[str, str]:
    """Kind -> queue, of the kinds that own objects of this resource; it grows with `register`."""
    return _OWNERS_OF.setdefault(resource, {})


def adoptables() -> tuple[Watched[Any], ...]:
    """The resources whose objects an owner may adopt."""
    return tuple(resource for resource in WATCHED.values() if resource.adoptable)


def all_queues() -> tuple[str, ...]:
    """All queues: those of controllers, then those of fan-outs."""
    return (*CONTROLLERS, *FAN_OUTS)


def entry_of(queue: str) -> Controller | FanOut | ReferenceFanOut:
    """The entry of a queue."""
    return CONTROLLERS[queue] if queue in CONTROLLERS else FAN_OUTS[queue]


def resource_of(queue: str) -> str:
    """The resource whose objects are the keys of a queue."""
    return entry_of(queue).resource
