"""Which owners there are and what they select: routing an orphan, or the end of a pod, needs no more."""

from oarlock.controllers.objects.model import LabelSelector
from oarlock.controllers.ownership.claim import Claimable, Claimer


class OwnerTable:
    """Selectors by queue, namespace and key. The reader of the owners' events keeps it."""

    __slots__ = ("_owners", "_place_of", "_waiting")

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], dict[str, LabelSelector]] = {}
        self._waiting: dict[tuple[str, ...], dict[tuple[str, str], LabelSelector]] = {}
        """Of owners that wait for the end of pods, by a place: the namespace, and a label that they ask for, if any."""
        self._place_of: dict[tuple[str, str], tuple[str, ...]] = {}

    def note(self, queue: str, owner: Claimer, gone: bool = False) -> None:
        """Note an owner's present state, or forget it. An owner that adopts nothing is not kept: it has no selector, an
        empty or an invalid one.
        """
        selector = owner.selector
        if gone or selector is None or selector.empty or selector.error:
            self.forget(queue, owner.key)
        else:
            self._owners.setdefault((queue, owner.namespace), {})[owner.key] = selector
            self._wait_no_more(queue, owner.key)
            if owner.waits_for_pods:
                place = (owner.namespace, *min(selector.match_labels.items(), default=()))
                self._waiting.setdefault(place, {})[queue, owner.key] = selector
                self._place_of[queue, owner.key] = place

    def forget(self, queue: str, key: str) -> None:
        """Forget the owner of this key, if it is known."""
        place = queue, key.partition("/")[0]
        owners = self._owners.get(place, {})
        if owners.pop(key, None) is not None and not owners:
            del self._owners[place]
        self._wait_no_more(queue, key)

    def _wait_no_more(self, queue: str, key: str) -> None:
        place = self._place_of.pop((queue, key), None)
        if place is not None:
            del self._waiting[place][queue, key]
            if not self._waiting[place]:
                del self._waiting[place]

    def clear(self) -> None:
        """Forget all, before a new list is read."""
        self._owners.clear()
        self._waiting.clear()
        self._place_of.clear()

    def has(self, queue: str, namespace: str) -> bool:
        """Whether an owner of the queue in the namespace may adopt anything."""
        return (queue, namespace) in self._owners

    def selecting(self, queue: str, orphan: Claimable) -> list[str]:
        """Keys of the owners in the orphan's namespace that select it; none for one without labels."""
        if not orphan.labels:
            return []
        owners = self._owners.get((queue, orphan.namespace))
        if not owners:
            return []
        return [key for key, selector in owners.items() if selector.matches(orphan.labels)]

    def waiting_for(self, pod: Claimable) -> list[tuple[str, str]]:
        """Queues and keys of the owners that wait for the end of such a pod, whoever controls it."""
        if not self._waiting:
            return []
        namespace, labels = pod.namespace, pod.labels
        found: list[tuple[str, str]] = []
        for place in [(namespace,), *[(namespace, *label) for label in labels.items()]]:
            waiting = self._waiting.get(place)
            if waiting:
                found += [who for who, selector in waiting.items() if selector.matches(labels)]
        return found
