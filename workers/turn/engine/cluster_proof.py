"""Whether the cluster that a worker writes to is the one whose objects are in Redis.

Redis does not say of which cluster its objects are. A worker with the kubeconfig of another one would make their pods
there. So before the first write of its life a worker reads the owner that the write is for: no other cluster has an
owner with that UID.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import msgspec

from oarlock.cluster.answer import NOT_SENT, Answer
from oarlock.cluster.client import Client
from oarlock.cluster.resources import Resource
from oarlock.workers.process.log_line import line

log = logging.getLogger("oarlock.worker")

TOLD_AT = 3
"""So many owners that are not there are no chance. One may have been deleted just now."""
PAUSE_S = 5.0
"""From then on, until the next one is looked for: whoever works in the right cluster is to have the keys."""


class _Meta(msgspec.Struct):
    uid: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta


class ClusterProof:
    """One process's, for the I/O loop. ``given``: an owner of the cache was found there, or may not be looked for.
    ``clock``: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.given = False
        self._clock, self._missed, self._until_s = clock, 0, -math.inf

    @property
    def pauses(self) -> bool:
        """Whether it is too early to look for another owner. For any thread."""
        return not self.given and self._clock() < self._until_s

    async def refusal(self, client: Client, resource: Resource, owner: Any) -> Answer | None:
        """The answer to each write for this owner, none of which is sent; None: they may be sent."""
        answer = await client.get(resource, owner.namespace, owner.name)
        if answer.code == 403:
            self.given = True  # the roles of before had no such right
        if answer.ok and msgspec.json.decode(answer.body, type=_Object).metadata.uid == owner.uid:
            self.given = True
        if self.given:
            return None
        if not (answer.ok or (answer.code == 404 and answer.status is not None)):
            return Answer(NOT_SENT, error=f"its owner cannot be read: {answer.message}")
        self._missed += 1
        if self._missed >= TOLD_AT:
            self._until_s = self._clock() + PAUSE_S
        if self._missed == TOLD_AT:
            log.error(line("another cluster", key=owner.key, mend="give workers the kubeconfig of the ingestors"))
        return Answer(NOT_SENT, error="the cluster has no such owner; is the kubeconfig that of the ingestors?")
