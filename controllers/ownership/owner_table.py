"""Which owners there are and what they select: routing an orphan needs no more."""

from oarlock.controllers.objects.model import LabelSelector
from oarlock.controllers.ownership.claim import Claimable, Claimer


class OwnerTable:
    """Selectors by queue, namespace and key. The reader of the owners' events keeps it."""

    __slots__ = ("_owners",)

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], dict[str, LabelSelector]] = {}

    def note(self, queue: str, owner: Claimer, gone: bool = False) -> None:
        """Note an owner's present state, or forget it. An owner that adopts nothing is not kept: it has no selector, an
        empty or an invalid one.
        """
        selector = owner.selector
        if gone or selector is None or selector.empty or selector.error:
            self.forget(queue, owner.key)
        else:
            self._owners.setdefault((queue, owner.namespace), {})[owner.key] = selector

    def forget(self, queue: str, key: str) -> None:
        """Forget the owner of this key, if it is known."""
        place = queue, key.partition("/")[0]
        owners = self._owners.get(place, {})
        if owners.pop(key, None) is not None and not owners:
            del self._owners[place]

    def clear(self) -> None:
        """Forget all, before a new list is read."""
        self._owners.clear()

    def selecting(self, queue: str, orphan: Claimable) -> list[str]:
        """Keys of the owners in the orphan's namespace that select it; none for one without labels."""
        if not orphan.labels:
            return []
        owners = self._owners.get((queue, orphan.namespace))
        if not owners:
            return []
        return [key for key, selector in owners.items() if selector.matches(orphan.labels)]
