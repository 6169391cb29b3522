"""Every object of a user's controllers is queued when a supervisor starts: their code may be another than before.

A key that is queued already stays where it is, and a turn that finds nothing to do costs microseconds. So nobody has to
find out whether the code did change.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from oarlock.broker.protocol import Broker
from oarlock.broker.steps.paging import Pages
from oarlock.broker.values.objects import Cached
from oarlock.controllers.entries import Controller
from oarlock.controllers.ownership.orphans import EVERY_OWNER
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.process.log_line import line
from oarlock.workers.signing.refusals import ObjectRefused, decoded

log = logging.getLogger("oarlock.fleet")


class QueueAnew:
    """A walk over the cached objects of these queues, in steps."""

    def __init__(self, queues: Sequence[str]) -> None:
        self.left = [queue for queue in queues if queue in CONTROLLERS]
        """Queues whose objects are still to be queued."""
        self._pages: Pages | None = None

    def step(self, broker: Broker) -> None:
        """Read a page; queue the objects of a queue once all of them are read. Raises what the broker raises; the same
        step is due again then.
        """
        queue = self.left[0]
        controller = CONTROLLERS[queue]
        if self._pages is None:
            self._pages = Pages(broker, controller.resource, (EVERY_OWNER,))
        if not self._pages.step():
            return
        keys = [key for each in self._pages.found if (key := _key_of(controller, each))]
        added = broker.add(queue, keys, why="anew") if keys else 0
        log.info(line("queued_anew", queue=queue, keys=len(keys), added=added))
        del self.left[0]
        self._pages = None


def _key_of(controller: Controller, cached: Cached) -> str:
    """Empty where it cannot be read: the next list writes it anew, and queues it."""
    try:
        key: str = decoded(controller.owners, cached).key
    except ObjectRefused:
        return ""
    return key
