"""Keys with the kind before them, as people copy them from kubectl and from our own tables."""

from __future__ import annotations

from oarlock.cli.problems import InputProblem
from oarlock.controllers.registry import WATCHED


def without_kind(text: str, controller: str | None, namespace: str | None) -> tuple[str, str | None]:
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
            return resource.owner_queue
    return ""


def _kinds() -> list[str]:
    return [each.short_name or each.plural for each in WATCHED.values() if each.owner_queue]
