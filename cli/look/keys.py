"""Keys as people write them, copied from kubectl or from our own tables: namespace/name, a bare name, rs/ns/name."""

from __future__ import annotations

from dataclasses import dataclass

from oarlock.cli.look.view import Views
from oarlock.cli.problems import InputProblem
from oarlock.controllers.registry import CONTROLLERS, WATCHED, all_queues, resource_of


@dataclass(frozen=True, slots=True)
class AskedKey:
    """A key that a command is about. ``queue``: None if neither --controller nor the key says it."""

    text: str
    queue: str | None
    namespace: str | None

    @classmethod
    def parse(cls, text: str, controller: str | None, namespace: str | None) -> AskedKey:
        """Raises InputProblem, before any server is asked."""
        asked = cls(*_without_kind(text, controller, namespace), namespace)
        asked.of(asked.queue or all_queues()[0])
        return asked

    def of(self, queue: str) -> str:
        """The key as the queue has it. Raises InputProblem."""
        return key_of(resource_of(queue), self.text, self.namespace)

    def fits(self, queue: str) -> bool:
        """Whether the queue can have such a key: a node has no namespace."""
        return WATCHED[resource_of(queue)].namespaced or not ("/" in self.text or self.namespace)

    def task(self, views: Views) -> tuple[str, str]:
        """Queue and key: of the first queue that has such an object in the cache, else of the first queue.

        Raises InputProblem.
        """
        for queue in () if self.queue else filter(self.fits, all_queues()):
            key = self.of(queue)
            if views.of(key).inspector.object(resource_of(queue), key) is not None:
                return queue, key
        queue = self.queue or all_queues()[0]
        return queue, self.of(queue)


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


def _without_kind(text: str, controller: str | None, namespace: str | None) -> tuple[str, str | None]:
    """The key alone, and whose it is: ``rs/batch/crunch`` is batch/crunch of the replicaset queue, and so is
    ``rs/crunch`` with --namespace batch. Of two parts without --namespace the first is the namespace. A key without a
    kind is of ``controller``. Raises InputProblem.
    """
    kind, _, key = text.partition("/")
    parts = text.count("/") + 1
    if parts != 3 and (parts != 2 or namespace in (None, "", kind)):
        return text, controller
    queue = _queue_of(kind)
    if not queue:
        if parts == 2:
            return text, controller  # another namespace than --namespace, which is said elsewhere
        raise InputProblem(
            f"{text!r} is no key; write namespace/name, such as default/web, or KIND before it: {', '.join(_kinds())}"
        )
    if controller not in (None, queue):
        raise InputProblem(f"{text!r} is no key of --controller {controller}; leave one of them out")
    return key, queue


def _queue_of(kind: str) -> str:
    """The queue whose keys objects of this kind are; "" for none. A group may follow: ``replicaset.apps``."""
    word = kind.lower().partition(".")[0]
    for resource in WATCHED.values():
        if resource.is_called(word) or word == resource.owner_queue:
            return resource.owner_queue or _queue_over(resource.resource)
    return ""


def _queue_over(resource: str) -> str:
    """The queue of the first controller of one's own with these objects for keys; "" for none."""
    return next((queue for queue, each in CONTROLLERS.items() if each.resource == resource), "")


def _kinds() -> list[str]:
    acted_on = {each.resource for each in CONTROLLERS.values()}
    return [each.short_name or each.plural for each in WATCHED.values() if each.resource in acted_on]
