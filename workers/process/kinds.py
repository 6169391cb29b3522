"""What a process takes from the registry: where a kind is found in the API, which controllers are served (the words of
kube-controller-manager's --controllers), and how many objects of a kind are synced at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from oarlock.cluster.resources import Resource
from oarlock.controllers.entries import FLAG_SUFFIX, CustomController, Watched
from oarlock.controllers.registry import CONTROLLERS, FAN_OUTS
from oarlock.workers.process.settings import BadSetting, Settings

_resource = lru_cache(256)(Resource)


def cluster_resource(watched: Watched[Any]) -> Resource:
    """The kind as the client of the Kubernetes API spells it."""
    return _resource(watched.api_version, watched.plural, watched.kind, watched.namespaced)


def controller_names() -> dict[str, str]:
    """Name without its suffix -> queue; such as "replicationcontroller" -> "replicationmanager"."""
    return {controller.flag_name: queue for queue, controller in CONTROLLERS.items()}


def enabled_queues(text: str) -> tuple[str, ...]:
    """The queues of the controllers that a list enables, fan-outs with the controller whose keys they wake.

    "*" enables all, "foo" foo, "-foo" leaves foo out; the first word that speaks of a controller decides. Names are
    taken with and without "-controller". Raises BadSetting for an unknown name or a list that enables nothing.
    (upstream: staging/src/k8s.io/controller-manager/app/helper.go, IsControllerEnabled)
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    names = controller_names()
    for word in words:
        if word != "*" and word.removeprefix("-").removesuffix(FLAG_SUFFIX) not in names:
            raise BadSetting(f"OARLOCK_CONTROLLERS={text}: there is no {word!r}; there are *, {', '.join(names)}")
    chosen = [queue for name, queue in names.items() if _enabled(name, words)]
    if not chosen:
        raise BadSetting(f"OARLOCK_CONTROLLERS={text} enables nothing; there are *, {', '.join(names)}")
    return (*chosen, *(queue for queue, fan_out in FAN_OUTS.items() if fan_out.target in chosen))


def _enabled(name: str, words: Sequence[str]) -> bool:
    for word in words:
        if word.removesuffix(FLAG_SUFFIX) == name:
            return True
        if word.removeprefix("-").removesuffix(FLAG_SUFFIX) == name:
            return False
    return "*" in words


def kinds_of(queues: Sequence[str]) -> frozenset[str]:
    """Kinds of the owners that these queues' controllers look after."""
    return frozenset(CONTROLLERS[queue].flavour.kind for queue in queues if queue in CONTROLLERS)


def is_bounded(settings: Settings, queue: str) -> bool:
    """Whether it is said how many objects of the queue's kind are synced at once."""
    return _bound(settings, queue) > 0


def _bound(settings: Settings, queue: str) -> int:
    """The setting, else what a controller of one's own says of itself; 0 for no bound."""
    controller = CONTROLLERS.get(queue)
    own = controller.concurrency if isinstance(controller, CustomController) else 0
    return settings.concurrent_syncs.get(queue) or own


def useful_workers(settings: Settings, queues: Sequence[str], workers: int) -> int:
    """How many of these workers have something to do where controllers of one's own bound themselves.

    All of them if a setting bounds a queue too: who gives that setting gives the number of workers to it.
    """
    controlled = [queue for queue in queues if queue in CONTROLLERS]
    if any(settings.concurrent_syncs.get(queue) for queue in controlled):
        return workers
    return min(workers, sum(_bound(settings, queue) or workers for queue in controlled))


def queues_by_worker(settings: Settings, queues: Sequence[str], workers: int) -> list[tuple[str, ...]]:
    """Which queues each worker of a process takes keys of: of a bounded one only so many do.

    Of a bounded queue a worker has one turn under way at a time, so this bounds how many objects of a kind the
    process syncs at once, which is what kube-controller-manager's --concurrent-*-syncs bound. Raises BadSetting where
    a worker would have nothing.
    """
    bounds = {queue: _bound(settings, queue) or workers for queue in queues if queue in CONTROLLERS}
    controlled = [queue for queue in queues if queue in bounds]
    found: list[tuple[str, ...]] = [() for _ in range(workers)]
    at = 0
    for queue in controlled:  # one after the other round the workers, so that bounded queues do not share the first few
        for _ in range(min(bounds[queue], workers)):
            found[at % workers] += (queue,)
            at += 1
    idle = sum(not each for each in found)
    if idle:
        bound = " and ".join(
            f"OARLOCK_{CONTROLLERS[queue].concurrent_syncs.upper()}={bounds[queue]}" for queue in controlled
        )
        raise BadSetting(f"{bound}: {idle} of {workers} workers would have nothing to do; start fewer with --workers")
    fan_outs = tuple(queue for queue in queues if queue not in bounds)
    return [(*each, *fan_outs) for each in found]
