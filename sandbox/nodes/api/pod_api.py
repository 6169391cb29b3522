"""What the simulated nodes ask of an API server, and how the embedded store answers.

The simulator knows only `PodApi`: a list and watch of pods and nodes, and a few writes, each for a batch. Here it
is served by the store in the same process; an implementation over HTTP can take its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from oarlock.sandbox.apiserver.store.events import Event
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.verbs.deletion import NOW, DeleteOptions
from oarlock.sandbox.apiserver.verbs.subresources import bound

Obj = dict[str, Any]


class PodRef(NamedTuple):
    """One pod, and no other of the same name."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Change:
    """One event of the watch. `obj` is the object after it, or as it left."""

    kind: Literal["Pod", "Node"]
    gone: bool
    obj: Obj


class PodApi(Protocol):
    """Writes say nothing about their outcome: what happened is seen in the watch. A pod that has gone, or was
    replaced by another of its name, is left alone."""

    def watch(self, seen: Callable[[Change], None]) -> Callable[[], None]:
        """Have `seen` called for everything that exists and then for every change. Returns the call that ends it."""

    async def add_nodes(self, nodes: Sequence[Obj]) -> None:
        """Register nodes that do not exist yet."""

    async def change_nodes(self, names: Sequence[str], change: Callable[[Obj], Obj]) -> None:
        """Replace each node, spec and status, by what `change` makes of it as it is at that moment."""

    async def bind(self, bindings: Sequence[tuple[PodRef, str]]) -> None:
        """Give pods their nodes."""

    async def write_status(self, writes: Sequence[tuple[PodRef, Obj]]) -> None:
        """Merge each status into a pod's; conditions by type."""

    async def delete(self, pods: Sequence[PodRef], *, now: bool) -> None:
        """Delete pods: `now` without grace, as a kubelet does in the end; else with their own."""


class StorePodApi:
    """The `PodApi` of the embedded store: plain calls, no copies."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def watch(self, seen: Callable[[Change], None]) -> Callable[[], None]:
        for node in self._store.list("Node"):
            seen(Change("Node", False, node))
        for pod in self._store.list("Pod"):
            seen(Change("Pod", False, pod))

        def on_event(event: Event) -> None:
            name = event.kind.name
            if name == "Pod":
                seen(Change("Pod", event.type == "DELETED", event.obj))
            elif name == "Node":
                seen(Change("Node", event.type == "DELETED", event.obj))

        return self._store.subscribe(on_event)

    async def add_nodes(self, nodes: Sequence[Obj]) -> None:
        for node in nodes:
            if self._store.get("Node", "", node["metadata"]["name"]) is None:
                self._store.create("Node", node)

    async def change_nodes(self, names: Sequence[str], change: Callable[[Obj], Obj]) -> None:
        for name in names:
            node = self._store.get("Node", "", name)
            if node is not None:
                self._store.update_stored("Node", change(node))

    async def bind(self, bindings: Sequence[tuple[PodRef, str]]) -> None:
        now_s = self._store.clock()
        for ref, node in bindings:
            pod = self._find(ref)
            if pod is None or pod["metadata"].get("deletionTimestamp") or pod["spec"].get("nodeName"):
                continue
            self._store.update_stored("Pod", bound(pod, node, now_s))

    async def write_status(self, writes: Sequence[tuple[PodRef, Obj]]) -> None:
        for ref, status in writes:
            pod = self._find(ref)
            if pod is not None:
                merged = merged_status(pod.get("status") or {}, status)
                self._store.update_stored("Pod", {**pod, "status": merged})

    async def delete(self, pods: Sequence[PodRef], *, now: bool) -> None:
        options = NOW if now else DeleteOptions()
        for ref in pods:
            if self._find(ref) is not None:
                self._store.delete("Pod", ref.namespace, ref.name, options)

    def _find(self, ref: PodRef) -> Obj | None:
        pod = self._store.get("Pod", ref.namespace, ref.name)
        return pod if pod is not None and pod["metadata"]["uid"] == ref.uid else None


def merged_status(old: Obj, new: Obj) -> Obj:
    """`old` with the fields of `new`; conditions of `new` replace those of their type.

    A condition whose status stays the same keeps its lastTransitionTime.
    """
    conditions = new.get("conditions")
    if not conditions or not old.get("conditions"):
        return {**old, **new}
    by_type = {condition.get("type", ""): condition for condition in old["conditions"]}
    for condition in conditions:
        before = by_type.get(condition["type"])
        if before is not None and before.get("status") == condition["status"]:
            condition = {**condition, "lastTransitionTime": before.get("lastTransitionTime")}  # noqa: PLW2901
        by_type[condition["type"]] = condition
    return {**old, **new, "conditions": list(by_type.values())}
