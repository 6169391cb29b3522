"""Hand-made evidence of a DaemonSet on a few nodes. Pods are called web-<node>, or web-<node>-<anything>."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oarlock.chaos.judge.evidence.evidence import Claimed, Unlocked
from oarlock.chaos.judge.evidence.sightings import (
    DAEMONS,
    NODE_QUEUE,
    DaemonSetSeen,
    NodeSeen,
    PodSeen,
    RevisionSeen,
    TaintSeen,
)
from tests.chaos.story import Story

TASK = f"{DAEMONS}:shop/web"
NODES = ("n1", "n2", "n3", "n4")


@dataclass
class DaemonStory(Story):
    """It begins with its nodes and its first revision, without a pod. ``spec``: fields of DaemonSetSeen."""

    task: str = TASK
    spec: dict[str, Any] = field(default_factory=lambda: {"limit": "1"})
    names: tuple[str, ...] = NODES
    resources = ("pods", "daemonsets", "nodes", "controllerrevisions")

    def _begin(self) -> None:
        self.nodes: dict[str, NodeSeen] = {}
        self.daemons = DaemonSetSeen(0, self.at_s, False, self.task, self.uid, 0, version="-1")
        for name in self.names:
            self.node(name)
        self.roll(**self.spec)

    # -- the cluster

    def node(
        self, name: str, *, gone: bool = False, labels: tuple[tuple[str, str], ...] = (), taint: str = ""
    ) -> Story:
        """A node as it is now, and the turn of its key. ``taint``: an effect."""
        taints = (TaintSeen("held", taint),) if taint else ()
        node = NodeSeen(self._next(), self.at_s, gone, name, f"uid-{name}", labels, taints)
        self.history.append(node)
        if gone:
            del self.nodes[name]
        else:
            self.nodes[name] = node
            self.read()
            task = f"{NODE_QUEUE}:{name}"
            self.step(Claimed(self.at_s, self.epoch, task, "w-0", f"node-{self.rv}"))
            self.step(Unlocked(self.at_s, self.epoch, task, "finish", nonce=f"node-{self.rv}"))
        return self

    def daemon_set(self, **changes: Any) -> Story:
        """The DaemonSet after a change."""
        self.daemons = self.daemons._replace(rv=self._next(), at_s=self.at_s, **changes)
        self.history.append(self.daemons)
        return self

    def change(self, **changes: Any) -> Story:
        """Its spec after one."""
        return self.daemon_set(generation=self.daemons.generation + 1, **changes)

    def roll(self, **changes: Any) -> Story:
        """Another template, and the revision that holds it."""
        version = str(int(self.daemons.version) + 1)
        self.change(version=version, digest=f"digest-{version}", **changes)
        place = ("shop", f"web-{version}", f"uid-revision-{version}", self.uid, self.task)
        number = int(version) + 1
        held = RevisionSeen(self._next(), self.at_s, False, *place, f"hash-{version}", number, self.daemons.digest)
        self.history.append(held)
        return self

    def status(self) -> Story:
        """A status of ours that tells the truth of now, for nodes that are as any other."""
        on = {pod.target: pod for pod in self.pods.values() if not pod.deleting}
        wanted = [name for name, node in self.nodes.items() if not node.taints]
        here = [on[name] for name in wanted if name in on]
        ready = sum(pod.ready for pod in here)
        return self.daemon_set(
            observed=self.daemons.generation,
            desired=len(wanted),
            current=len(here),
            misscheduled=sum(name in on for name in self.nodes if name not in wanted),
            ready=ready,
            updated=sum(pod.version == self.daemons.version for pod in here),
            available=ready,
            unavailable=len(wanted) - ready,
        )

    def appears(self, name: str, uid: str = "", **more: Any) -> PodSeen:
        version = self.daemons.version
        fields = {"pinned": name.split("-")[1], "version": version, "revision": f"hash-{version}", **more}
        return super().appears(name, uid, **fields)

    def runs(self, *names: str) -> Story:
        for name in names or tuple(self.pods):
            self.becomes(
                name, phase="Running", ready=True, ready_since_s=float(int(self.at_s)), node=name.split("-")[1]
            )
        return self

    # -- whole turns

    def covers(self, *nodes: str) -> Story:
        """A pod for each of these nodes, all if none is named; and their status."""
        return self.fill(*(f"web-{node}" for node in nodes or tuple(self.nodes)))

    def takes(self, *names: str) -> Story:
        """A turn that deletes these at once; they have gone when it ends."""
        self.claim().record(*(("delete", name) for name in names))
        for name in names:
            self.deletes(name, graceful=False)
        return self.finish(*(("delete", name) for name in names))
