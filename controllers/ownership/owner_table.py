"""Which owners there are and what they select: routing an orphan, or the end of a pod, needs no more."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from oarlock.controllers.objects.model import LabelSelector
from oarlock.controllers.ownership.claim import Claimable, Claimer

Who = TypeVar("Who", bound=Hashable)
_Place = tuple[str, ...]


class OwnerTable:
    """Selectors by queue, namespace and key. The reader of the owners' events keeps it."""

    __slots__ = ("_adopters", "_waiting")

    def __init__(self) -> None:
        self._adopters: _Selectors[str] = _Selectors()
        """Keys, by queue and namespace."""
        self._waiting: _Selectors[tuple[str, str]] = _Selectors()
        """Queues and keys of owners that wait for the end of pods, by namespace."""

    def note(self, queue: str, owner: Claimer, gone: bool = False) -> None:
        """Note an owner's present state, or forget it. An owner that adopts nothing is not kept: it has no selector, an
        empty or an invalid one.
        """
        selector, key = owner.selector, owner.key
        if gone or selector is None or selector.empty or selector.error:
            self.forget(queue, key)
            return
        self._adopters.put((queue, owner.namespace), key, selector)
        if owner.waits_for_pods:
            self._waiting.put((owner.namespace,), (queue, key), selector)
        else:
            self._waiting.drop((owner.namespace,), (queue, key))

    def forget(self, queue: str, key: str) -> None:
        """Forget the owner of this key, if it is known."""
        namespace = key.partition("/")[0]
        self._adopters.drop((queue, namespace), key)
        self._waiting.drop((namespace,), (queue, key))

    def clear(self) -> None:
        """Forget all, before a new list is read."""
        self._adopters, self._waiting = _Selectors(), _Selectors()

    def has(self, queue: str, namespace: str) -> bool:
        """Whether an owner of the queue in the namespace may adopt anything."""
        return self._adopters.has((queue, namespace))

    def namespaces(self, queue: str) -> set[str]:
        """Where an owner of the queue may adopt anything."""
        return {root[1] for root in self._adopters.roots() if root[0] == queue}

    def selecting(self, queue: str, orphan: Claimable) -> list[str]:
        """Keys of the owners in the orphan's namespace that select it; none for one without labels."""
        return list(self._adopters.matching((queue, orphan.namespace), orphan.labels)) if orphan.labels else []

    def label_of(self, queue: str, key: str) -> tuple[str, ...] | None:
        """A label and value of all objects that the owner selects, one that few owners ask for; () where it asks for
        none by value; None where it adopts nothing.
        """
        return self._adopters.label_of((queue, key.partition("/")[0]), key)

    def waiting_for(self, pod: Claimable) -> list[tuple[str, str]]:
        """Queues and keys of the owners that wait for the end of such a pod, whoever controls it."""
        return list(self._waiting.matching((pod.namespace,), pod.labels))


class _Selectors(Generic[Who]):
    """Each selector under one label that it asks for, so that an object is held against few of thousands of them: of
    its labels the one with the fewest selectors. One that asks for no label by value is under the root alone.
    """

    __slots__ = ("_place_of", "_places")

    def __init__(self) -> None:
        self._places: dict[_Place, dict[_Place, dict[Who, LabelSelector]]] = {}
        """By root, and by label there; () where there is none."""
        self._place_of: dict[tuple[_Place, Who], _Place] = {}

    def has(self, root: _Place) -> bool:
        return root in self._places

    def roots(self) -> Iterable[_Place]:
        return self._places

    def put(self, root: _Place, who: Who, selector: LabelSelector) -> None:
        label = self._place_of.get((root, who))
        if label is not None:
            if self._places[root][label][who] == selector:
                return
            self.drop(root, who)
        labels = self._places.setdefault(root, {})
        label = min(selector.match_labels.items(), key=lambda each: (len(labels.get(each, ())), each), default=())
        labels.setdefault(label, {})[who] = selector
        self._place_of[root, who] = label

    def drop(self, root: _Place, who: Who) -> None:
        label = self._place_of.pop((root, who), None)
        if label is None:
            return
        labels = self._places[root]
        del labels[label][who]
        if not labels[label]:
            del labels[label]
        if not labels:
            del self._places[root]

    def label_of(self, root: _Place, who: Who) -> _Place | None:
        return self._place_of.get((root, who))

    def matching(self, root: _Place, labels: Mapping[str, str]) -> Iterator[Who]:
        places = self._places.get(root)
        if not places:
            return
        for place in ((), *labels.items()):
            for who, selector in places.get(place, {}).items():
                if selector.matches(labels):
                    yield who
