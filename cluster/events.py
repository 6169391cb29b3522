"""Reports events to the API in the background. The caller never waits and never fails because of one.

Upstream: client-go/tools/record/event.go: a queue that drops what does not fit, one sender, up to 12 tries 10 s
apart while the server cannot be reached, no second try after a refusal. Unlike upstream's, our sender slows down while
there are more urgent requests, so its queue is three times as long.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable

from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client, PatchType
from oarlock.cluster.event_correlator import WARNING, Correlator, Note, Sending
from oarlock.cluster.outcome import delay_s
from oarlock.cluster.resources import EVENTS

QUEUE_MAX, WARNINGS_MAX = 3_000, 6_000
"""Notes that wait. From the first on only warnings are taken, from the second on nothing is: a note is 0.4 kB."""
TRIES_MAX = 12
RETRY_S = 10.0
SPACING_S = 0.02
"""Between two events while `busy`: an event costs the server as much as a pod, and nobody waits for the event."""

log = logging.getLogger("oarlock.cluster.events")


class EventRecorder:
    """Call `start()` in the client's loop; `tell` from any thread; `close()` at the end.

    client: its limiter paces events too, so a client of its own keeps them from delaying pods.
    busy: whether something more urgent is being sent, asked before each event.
    clock_ns: unix nanoseconds (names and timestamps of events). Counters: told, sent, filtered, dropped, failed.
    """

    def __init__(
        self,
        client: Client,
        *,
        busy: Callable[[], bool] = lambda: False,
        clock_ns: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client, self._busy = client, busy
        self._clock_ns, self._sleep, self._jitter = clock_ns, sleep, jitter
        self._correlator = Correlator()
        self._queue: deque[tuple[Note, int]] = deque()
        self._wake = asyncio.Event()
        self._asleep = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sender: asyncio.Task[None] | None = None
        self._closing = False
        self.told = self.sent = self.filtered = self.dropped = self.failed = 0

    def tell(self, note: Note) -> None:
        """Queue one note; drops and counts it when the queue is full or closed. Returns at once, never raises."""
        self.told += 1
        most = WARNINGS_MAX if note.type == WARNING else QUEUE_MAX
        if self._closing or len(self._queue) >= most:
            self.dropped += 1
            return
        self._queue.append((note, self._clock_ns()))
        loop = self._loop
        if loop is not None and self._asleep:  # else the sender looks at the queue once more before it sleeps
            try:
                loop.call_soon_threadsafe(self._wake.set)
            except RuntimeError:  # the loop has ended: nobody will send it
                self.dropped += 1

    def start(self) -> None:
        """Begin to send. Call once, inside the loop."""
        self._loop = asyncio.get_running_loop()
        self._sender = self._loop.create_task(self._run())
        self._sender.add_done_callback(_say_why_it_ended)
        self._wake.set()

    async def close(self, flush_s: float = 1.0) -> None:
        """Try each queued note once, for at most flush_s seconds, then stop and count the rest as dropped."""
        self._closing = True
        self._wake.set()
        if self._sender is not None:
            await asyncio.wait({self._sender}, timeout=flush_s)
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        self.dropped += len(self._queue)
        self._queue.clear()

    async def _run(self) -> None:
        while True:
            while self._queue:
                note, told_ns = self._queue.popleft()
                sending = self._correlator.correlate(note, told_ns)
                if sending is None:
                    self.filtered += 1
                    continue
                delivered = False
                try:
                    if self._busy() and not self._closing:
                        await self._sleep(SPACING_S)
                    delivered = await self._deliver(sending)
                finally:  # also when the time to close is over
                    self.sent += delivered
                    self.failed += not delivered
            if self._closing:
                return
            self._asleep = True
            if not self._queue:  # whoever appends from here on sees that we sleep
                await self._wake.wait()
                self._wake.clear()
            self._asleep = False

    async def _deliver(self, sending: Sending) -> bool:
        for attempt in range(1, TRIES_MAX + 1):
            answer = await self._send(sending)
            if answer.ok:
                return True
            # An answer of the server itself is final, except when it asks for patience.
            if answer.code != 429 and answer.status is not None:
                log.info("event %s/%s refused: %s", sending.namespace, sending.name, answer.message)
                return False
            if self._closing or attempt == TRIES_MAX:
                break
            wait_s = delay_s(answer) if answer.code == 429 else RETRY_S
            # The first wait is random, so that the processes of a fleet do not all come back at once.
            await self._sleep(wait_s * self._jitter() if attempt == 1 and answer.code != 429 else wait_s)
        log.warning("event %s/%s given up: %s", sending.namespace, sending.name, answer.message)
        return False

    async def _send(self, sending: Sending) -> Answer:
        if sending.patch is not None:
            answer = await self._client.patch(
                EVENTS, sending.namespace, sending.name, sending.patch, PatchType.STRATEGIC
            )
            if answer.code != 404:
                return answer
        # The first of its kind, or the server has dropped the earlier one (events live for an hour).
        return await self._client.create(EVENTS, sending.namespace, sending.body)


def _say_why_it_ended(sender: asyncio.Task[None]) -> None:
    if not sender.cancelled() and sender.exception() is not None:
        log.error("no more events are sent", exc_info=sender.exception())
