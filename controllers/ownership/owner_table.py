"""Which owners there are and what they select: all that routing an orphan needs to know."""

from typing import Protocol

from oarlock.controllers.objects.model import LabelSelector


class Owner(Protocol):
    """What is read of an owner, whatever its kind."""

    @property
    def namespace(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def selector(self) -> LabelSelector | None: ...


class Orphan(Protocol):
    """What is read of an object without a controller, whatever its kind."""

    @property
    def namespace(self) -> str: ...
    @property
    def labels(self) -> dict[str, str]: ...


class OwnerTable:
    """Selectors by queue, namespace and key. Kept by whoever reads the owners' events."""

    __slots__ = ("_owners",)

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], dict[str, LabelSelector]] = {}

    def note(self, queue: str, owner: Owner, gone: bool = False) -> None:
        """Know an owner in its present state, or forget it. One that selects nothing here is not kept:
        without a selector, with an empty one or with an invalid one.
        """
        place, selector = (queue, owner.namespace), owner.selector
        if not gone and selector is not None and not selector.empty and not selector.error:
            self._owners.setdefault(place, {})[owner.key] = selector
            return
        owners = self._owners.get(place, {})
        if owners.pop(owner.key, None) is not None and not owners:
            del self._owners[place]

    def clear(self) -> None:
        """Forget all, before a new list is read."""
        self._owners.clear()

    def selecting(self, queue: str, orphan: Orphan) -> list[str]:
        """Keys of the owners in the orphan's namespace that select it; none for one without labels."""
        if not orphan.labels:
            return []
        owners = self._owners.get((queue, orphan.namespace))
        if not owners:
            return []
        return [key for key, selector in owners.items() if selector.matches(orphan.labels)]
