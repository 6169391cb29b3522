"""Keys as people write them, copied from kubectl or from our own tables: namespace/name, a bare name, rs/ns/name.

A key of a kind that only others own, such as pod/ns/name, is the key of the owner. A kind without namespaces has
nothing between its slashes: node//node-3.
"""

from __future__ import annotations

from dataclasses import dataclass

from oarlock.cli.look.view import Views
from oarlock.cli.problems import InputProblem
from oarlock.controllers.objects.model import controller_of
from oarlock.controllers.registry import CONTROLLERS, WATCHED, all_queues, owners_of, resource_of


@dataclass(frozen=True, slots=True)
class AskedKey:
    """A key that a command is about. ``queues``: those that --controller or the key name; empty if neither does.

    ``dependents``: the resource of an object whose owner's key is meant; else "".
    """

    text: str
    queues: tuple[str, ...]
    namespace: str | None
    dependents: str = ""

    @classmethod
    def parse(cls, text: str, controller: str | None, namespace: str | None) -> AskedKey:
        """Raises InputProblem, before any server is asked."""
        word, _, rest = text.partition("/")
        if dependents := dependents_called(word) if text.count("/") == 2 else "":
            return cls(key_of(dependents, rest, namespace), (), namespace, dependents)
        asked = cls(*_without_kind(text, controller, namespace), namespace)
        asked.of(asked.queues[0] if asked.queues else asked._first)
        return asked

    def of(self, queue: str) -> str:
        """The key as the queue has it. Raises InputProblem."""
        return key_of(resource_of(queue), self.text, self.namespace)

    def fits(self, queue: str) -> bool:
        """Whether the queue can have such a key: a node has no namespace."""
        return WATCHED[resource_of(queue)].namespaced or not ("/" in self.text or self.namespace)

    def tasks(self, views: Views) -> list[tuple[str, str]]:
        """Queues and their keys: of the queues that are named; else of the first that has such an object in the cache,
        or of the first of all, and of the other controllers of its kind. Raises InputProblem.
        """
        if self.dependents:
            return [self._owner(views)]
        queues = self.queues or self._queues_of_object(views)
        return [(queue, self.of(queue)) for queue in queues]

    def _owner(self, views: Views) -> tuple[str, str]:
        watched = WATCHED[self.dependents]
        cached = views.of(self.text).inspector.object(self.dependents, self.text)
        if cached is None:
            raise InputProblem(f"{self.text}: not among the cached {self.dependents}; name its owner, or look again")
        owner = controller_of(watched.decode(cached.blob))
        queue = owners_of(self.dependents).get(owner.kind) if owner is not None else None
        if owner is None or queue is None:
            whose = f"its controller is a {owner.kind}" if owner is not None else "it has no controller"
            raise InputProblem(f"{self.text}: none of the fleet's: {whose}")
        return queue, f"{self.text.rpartition('/')[0]}/{owner.name}"

    def _queues_of_object(self, views: Views) -> tuple[str, ...]:
        for queue in filter(self.fits, all_queues()):
            key, resource = self.of(queue), resource_of(queue)
            if views.of(key).inspector.object(resource, key) is not None:
                return _queues_over(resource)
        return _queues_over(resource_of(self._first))

    @property
    def _first(self) -> str:
        """The queue that is meant if nothing else says so: a key with a namespace is of no kind without."""
        return next(filter(self.fits, all_queues()), all_queues()[0])


def key_of(resource: str, text: str, namespace: str | None) -> str:
    """``namespace/name``; a bare name is in --namespace, else in default. Of a node its name. Raises InputProblem."""
    parts = text.split("/")
    if not WATCHED[resource].namespaced:
        if len(parts) > 1 or not text:
            kind, many = WATCHED[resource].kind.lower(), WATCHED[resource].plural
            raise InputProblem(f"{text!r} is no name of a {kind}: {many} have no namespace; write the bare name")
        return text
    if len(parts) == 1 and text:
        return f"{namespace or 'default'}/{text}"
    if len(parts) != 2 or not all(parts):
        raise InputProblem(f"{text!r} is no key; write namespace/name, such as default/web")
    if namespace and parts[0] != namespace:
        raise InputProblem(f"{text!r} is not in --namespace {namespace}; leave one of them out")
    return text


def _without_kind(text: str, controller: str | None, namespace: str | None) -> tuple[str, tuple[str, ...]]:
    """The key alone, and whose it is: ``rs/batch/crunch`` is batch/crunch of the replicaset queue, and so is
    ``rs/crunch`` with --namespace batch. Of two parts without --namespace the first is the namespace. A key without a
    kind is of ``controller``. Raises InputProblem.
    """
    by_option = () if controller is None else (controller,)
    word, _, key = text.partition("/")
    parts = text.count("/") + 1
    if parts != 3 and (parts != 2 or namespace in (None, "", word)):
        return text, by_option
    queues = queues_called(word)
    if not queues:
        if parts == 2:
            return text, by_option  # another namespace than --namespace, which is said elsewhere
        kinds = ", ".join(kind_words())
        raise InputProblem(f"{text!r} is no key; write namespace/name, such as default/web, or KIND before it: {kinds}")
    if controller is not None and controller not in queues:
        raise InputProblem(f"{text!r} is no key of --controller {controller}; leave one of them out")
    if not WATCHED[resource_of(queues[0])].namespaced:
        key = key.removeprefix("/")
    return key, by_option or queues


def dependents_called(name: str) -> str:
    """The resource of this kind, if only others own its objects; else ""."""
    word = name.lower().partition(".")[0]
    found = (each.resource for each in WATCHED.values() if each.is_called(word) and owners_of(each.resource))
    return next((resource for resource in found if not queues_called(word)), "")


def queues_called(name: str) -> tuple[str, ...]:
    """The queues whose keys objects of this kind are, or the controller of this name; a kind comes first. A group may
    follow a kind: ``replicaset.apps``.
    """
    word = name.lower().partition(".")[0]
    for resource in WATCHED.values():
        if resource.is_called(word) and (queues := _queues_over(resource.resource)):
            return queues
    return (word,) if word in CONTROLLERS else ()


def _queues_over(resource: str) -> tuple[str, ...]:
    """The queues of all controllers with these objects for keys; where there are none, of the fan-outs."""
    queues = [queue for queue in all_queues() if resource_of(queue) == resource]
    return tuple([queue for queue in queues if queue in CONTROLLERS] or queues)


def kind_words() -> list[str]:
    """A word for each kind that has a controller, as short as kubectl takes it."""
    acted_on = {each.resource for each in CONTROLLERS.values()}
    return [each.short_name or each.plural for each in WATCHED.values() if each.resource in acted_on]
