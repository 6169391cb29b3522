"""What people did to the fleet becomes an event on the object that it is about, or on the fleet's Lease.

The commands need no rights in the cluster. So the ingestors tell: each looks once a second whether the audit stream has
lines that none has taken yet. A line is handed to one ingestor, once. One that dies between that and the request loses
the event; the line stays in the stream.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from oarlock.broker.pauses import Act
from oarlock.broker.protocol import Broker
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client
from oarlock.cluster.event_correlator import Note, ObjectRef
from oarlock.cluster.events import EventRecorder
from oarlock.cluster.forbidden import OnForbidden
from oarlock.controllers.registry import WATCHED, all_queues, resource_of
from oarlock.workers.process.log_line import printable

LOOK_EVERY_MS = 1_000
ACTS_AT_ONCE = 50
MESSAGE_MAX = 1_000
COMPONENT = "oarlock"
REASONS = {
    "pause": "Paused",
    "resume": "Resumed",
    "limit": "RateLimited",
    "set": "WeightSet",
    "requeue": "Requeued",
    "replay": "Replayed",
    "drain": "Draining",
    "undrain": "Undrained",
}


class Teller:
    """Sends events with a client of its own, so that none holds up a watch or the Lease. It is the only client of an
    ingestor that writes objects; a fleet that runs dry has none.
    """

    def __init__(self, config: ClusterConfig, on_forbidden: OnForbidden) -> None:
        self._client = Client(config, role="ingestor events", on_forbidden=on_forbidden)
        self._events = EventRecorder(self._client)
        self.tell = self._events.tell

    async def start(self) -> None:
        """In the loop that it is to work in."""
        self._events.start()

    async def close(self, flush_s: float) -> None:
        """Try each note that is left once, for at most so long."""
        await self._events.close(flush_s)
        await self._client.close()


class ActEvents:
    """One ingestor's. ``tell`` queues a note and returns at once; ``lease`` is the fleet's."""

    def __init__(self, tell: Callable[[Note], None], lease: ObjectRef, host: str) -> None:
        self._tell, self._lease, self._host = tell, lease, host
        self._look_at_ms = 0

    def step(self, broker: Broker, now_ms: int) -> None:
        """Tell what is new, if it is time to look. Raises what the broker raises: the acts whose object was not found
        by then are told first, on the Lease, since nobody is handed them again.
        """
        if now_ms < self._look_at_ms:
            return
        self._look_at_ms = now_ms + LOOK_EVERY_MS
        acts = deque(map(Act.parse, broker.acts(ACTS_AT_ONCE)))
        try:
            while acts:
                about = self._about(broker, acts[0])
                self._tell(self._note(acts.popleft(), about))
        finally:
            for act in acts:
                self._tell(self._note(act, self._lease))

    def _note(self, act: Act, about: ObjectRef) -> Note:
        what = "" if about is not self._lease else f" {act.scope}"
        why = f": {act.reason}" if act.reason else ""
        message = printable(f"{act.verb}{what}, by {act.by or 'somebody'}{why}")[:MESSAGE_MAX]
        return Note(about, "Normal", REASONS.get(act.verb, "Steered"), message, COMPONENT, self._host)

    def _about(self, broker: Broker, act: Act) -> ObjectRef:
        """The object of the key, if it is in the cache."""
        if act.task is None or act.task[0] not in all_queues():
            return self._lease
        queue, key = act.task
        resource = WATCHED[resource_of(queue)]
        _, found = broker.look(resource.resource, ids=[key])
        if not found:
            return self._lease
        namespace, _, name = key.rpartition("/")
        return ObjectRef(resource.api_version, resource.kind, namespace, name, found[0].uid)
