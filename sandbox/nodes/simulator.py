"""The simulated nodes as one thing to start and stop: scheduler, kubelets, node lifecycle, evictions and the collector
of pods over one `PodApi`.

One task works in turns. A turn takes in the changes that have arrived, asks the pure parts what follows,
and writes their answers as batches; then others have a go. Behind a server that is busy it takes several turns, for
as long as the others had: pods become ready as fast as they are made. A pod costs two writes until it is ready and one
when it ends, and no task or timer of its own; a node one write when it registers, and its heartbeats.

Wiring: `Simulator(StorePodApi(store), NodeSettings(...), clock=store.clock)`, `start()` inside the running loop,
`await stop()`. A node that somebody else creates is served like any other: it registers, reports ready and runs pods,
until it is deleted. What is written to a node (labels, taints, cordon, conditions) stays as it was written.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from oarlock.sandbox.apiserver.loops.background import Background
from oarlock.sandbox.apiserver.text.times import rfc3339
from oarlock.sandbox.nodes.api.pod_api import Change, PodApi
from oarlock.sandbox.nodes.evictions import Evictions
from oarlock.sandbox.nodes.heartbeats import Heartbeats
from oarlock.sandbox.nodes.kubelet.kubelet import Kubelet
from oarlock.sandbox.nodes.lifecycle import tainted, wants_taints
from oarlock.sandbox.nodes.node_objects import beaten, needs_registering, node_object, registered
from oarlock.sandbox.nodes.pod_gc import PodCollector
from oarlock.sandbox.nodes.scheduler.scheduler import Scheduler
from oarlock.sandbox.nodes.settings import NodeSettings

Obj = dict[str, Any]

CHANGES_MAX: Final = 1024  # taken in before something is written
WRITES_MAX: Final = 64  # of each sort in a turn: a few milliseconds
SHARE_MAX_S: Final = 0.02  # of turns in a row, between two requests served

_log = logging.getLogger(__name__)


class Simulator(Background):
    """`start` registers the nodes and works, in a task of the running loop.

    `clock` tells the time of day in unix seconds, `monotonic` seconds that never jump.
    """

    def __init__(
        self,
        api: PodApi,
        settings: NodeSettings | None = None,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("simulated nodes", self._work)
        self.settings = settings or NodeSettings()
        self._api = api
        self._clock = clock
        self._monotonic = monotonic
        self._scheduler = Scheduler()
        self._kubelet = Kubelet(self.settings)
        self._evictions = Evictions()
        self._collector = PodCollector()
        self._heartbeats = Heartbeats(self.settings.heartbeat_ms)
        self._changes: deque[Change] = deque()
        self._arrived = asyncio.Event()
        self._unreported: dict[str, None] = {}  # nodes of others that nobody speaks for yet
        self._untainted: dict[str, None] = {}  # nodes whose taints do not fit their state
        self._numbers = itertools.count(self.settings.nodes)
        self._unwatch: Callable[[], None] | None = None
        self._rested_s = monotonic()

    async def begin(self) -> None:
        """Register the nodes and watch, without a task: `turn` is then to be called by hand."""
        at = rfc3339(self._clock())
        count, room, prefix = self.settings.nodes, self.settings.pods_per_node, self.settings.prefix
        await self._api.add_nodes([node_object(index, room, at, prefix) for index in range(count)])
        self._unwatch = self._api.watch(self._seen)

    async def stop(self) -> None:
        """Stop working; objects stay as they are."""
        await super().stop()
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    def fail(self, uid: str, reason: str = "Failed", message: str = "") -> bool:
        """Have the pod of this uid fail. False if it has no node or is over."""
        failing = self._kubelet.fail(uid, reason, message)
        self._arrived.set()
        return failing

    def look_now(self) -> None:
        """The clocks were moved: what is due may be due earlier."""
        self._arrived.set()

    async def turn(self) -> bool:
        """Take in what has arrived and write what follows. Whether there was anything to write."""
        now_ms = self._monotonic() * 1000
        for _ in range(min(CHANGES_MAX, len(self._changes))):
            self._take_in(self._changes.popleft(), now_ms)
        now_s = self._clock()
        at = rfc3339(now_s)
        changed = await self._change_nodes(now_ms, at)
        decisions = self._scheduler.schedule(now_s, WRITES_MAX)
        actions = self._kubelet.due(now_ms, at, WRITES_MAX)
        given_up = self._collector.due(now_ms, WRITES_MAX)
        evicted = self._evictions.due(now_ms, WRITES_MAX)
        if decisions.bindings:
            await self._api.bind(decisions.bindings)
        statuses = decisions.unschedulable + actions.statuses + given_up.statuses
        if statuses:
            await self._api.write_status(statuses)
        if removals := actions.removals + given_up.removals:
            await self._api.delete(removals, now=True)
        if evicted:
            await self._api.delete(evicted, now=False)
        return bool(changed or decisions.bindings or statuses or removals or evicted)

    async def turns(self) -> bool:
        """One, and more for as long as others had since the last ones. Whether anything may be left."""
        begun_s = self._monotonic()
        share_s = min(begun_s - self._rested_s, SHARE_MAX_S)
        while (left := await self.turn() or bool(self._changes)) and self._monotonic() - begun_s < share_s:
            pass
        self._rested_s = self._monotonic()
        return left

    # -- inside ----------------------------------------------------------------------------------

    async def _change_nodes(self, now_ms: float, at: str) -> bool:
        """Register the nodes of others, have taints fit, repeat statuses."""
        room = self.settings.pods_per_node
        new = _taken(self._unreported)
        await self._api.change_nodes(new, lambda node: registered(node, next(self._numbers), room, at))
        unfit = _taken(self._untainted)
        await self._api.change_nodes(unfit, lambda node: tainted(node, at) if wants_taints(node) else node)
        beating = self._heartbeats.due(now_ms, WRITES_MAX)
        await self._api.change_nodes(beating, lambda node: beaten(node, at))
        return bool(new or unfit or beating)

    def _seen(self, change: Change) -> None:
        self._changes.append(change)
        self._arrived.set()

    async def _work(self) -> None:
        while True:
            try:
                if self._unwatch is None:
                    await self.begin()
                await self._wait()
                self._rested_s = self._monotonic()
                while await self.turns():
                    await asyncio.sleep(0)
            except Exception:
                # A cluster whose nodes have silently stopped would look like a broken controller.
                _log.exception("the simulated nodes failed in one turn and go on with the next")
                await asyncio.sleep(1.0)

    async def _wait(self) -> None:
        """Until something has arrived or is due."""
        self._arrived.clear()
        if self._changes or self._scheduler.waiting or self._unreported or self._untainted:
            return
        parts = (self._kubelet, self._evictions, self._collector, self._heartbeats)
        dues = [due for part in parts if (due := part.next_ms()) is not None]
        alarm = None
        if dues:
            delay_s = max(0.0, min(dues) / 1000 - self._monotonic())
            alarm = asyncio.get_running_loop().call_later(delay_s, self._arrived.set)
        try:
            await self._arrived.wait()
        finally:
            if alarm is not None:
                alarm.cancel()

    def _take_in(self, change: Change, now_ms: float) -> None:
        obj = change.obj
        if change.kind == "Pod":
            uid = obj["metadata"]["uid"]
            if change.gone:
                self._scheduler.pod_gone(uid)
                self._kubelet.pod_gone(uid)
                self._evictions.pod_gone(uid)
                self._collector.pod_gone(uid)
                return
            if self.settings.schedules:
                self._scheduler.pod_changed(obj)
            self._kubelet.pod_changed(obj, now_ms)
            self._evictions.pod_changed(obj, now_ms)
            if self.settings.lifecycle:
                self._collector.pod_changed(obj, now_ms)
            return
        name = obj["metadata"]["name"]
        if change.gone:
            self._scheduler.node_gone(name)
            self._kubelet.node_gone(name, now_ms)
            self._evictions.node_gone(name)
            self._collector.node_gone(name)
            self._heartbeats.node_gone(name)
            self._unreported.pop(name, None)
            self._untainted.pop(name, None)
            return
        self._scheduler.node_changed(obj)
        self._kubelet.node_changed(obj, now_ms)
        self._collector.node_changed(obj)
        if self.settings.lifecycle:
            self._evictions.node_changed(obj, self._kubelet.pods_on(name), now_ms)
        self._heartbeats.node_changed(obj, now_ms)
        if needs_registering(obj):
            self._unreported[name] = None
        elif self.settings.lifecycle and wants_taints(obj):
            self._untainted[name] = None


def _taken(names: dict[str, None]) -> list[str]:
    """Take out the first of them, as many as are written in a turn."""
    first = list(itertools.islice(names, WRITES_MAX))
    for name in first:
        del names[name]
    return first
