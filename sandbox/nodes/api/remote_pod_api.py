"""The `PodApi` of an API server somewhere: simulated nodes beside real ones, over HTTP.

Only nodes that bear the annotation SIMULATED are served. The simulator is shown these, their pods, pods that have no
node yet, and pods whose node does not exist; what belongs to nodes of others it never hears of.

A write that failed is not repeated by itself: the object is looked up a second later and shown as if it had gone and
come back, and what follows from it is decided again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

import orjson

from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client, PatchType
from oarlock.cluster.resources import NODES, PODS
from oarlock.sandbox.nodes.api.pod_api import Change, PodRef, merged_status
from oarlock.sandbox.nodes.settings import SIMULATED, annotation
from oarlock.sandbox.reflector import Reflector

Obj = dict[str, Any]
Sleep = Callable[[float], Awaitable[None]]

NODE_TRIES: Final = 5  # of a change that somebody else's change of the same node came before
LOOK_AGAIN_S: Final = 1.0

_log = logging.getLogger("oarlock.nodes")


class CannotRegister(Exception):
    """A node could not be made; the text is one line with the server's reason."""


class RemotePodApi:
    """Use inside one event loop; the client is the caller's to open and close."""

    def __init__(self, client: Client, *, sleep: Sleep = asyncio.sleep) -> None:
        self._client, self._sleep = client, sleep
        self._nodes = Reflector(client, NODES, self._node_told)
        self._pods = Reflector(client, PODS, self._pod_told)
        self._seen: Callable[[Change], None] = _nobody
        self._served: set[str] = set()
        self._foreign: set[str] = set()
        self._shown: set[str] = set()  # uids of pods
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def nodes(self) -> dict[str, Obj]:
        """The nodes served, as last seen."""
        return {name: node for (_, name), node in self._nodes.objects.items() if name in self._served}

    def watch(self, seen: Callable[[Change], None]) -> Callable[[], None]:
        self._seen = seen
        self._start(self._follow())
        return self._stop

    async def add_nodes(self, nodes: Sequence[Obj]) -> None:
        """Raises CannotRegister, also for a node of that name that is not ours."""
        await asyncio.gather(*(self._add_node(node) for node in nodes))

    async def change_nodes(self, names: Sequence[str], change: Callable[[Obj], Obj]) -> None:
        await asyncio.gather(*(self._change_node(name, change) for name in names))

    async def bind(self, bindings: Sequence[tuple[PodRef, str]]) -> None:
        await asyncio.gather(*(self._bind(ref, node) for ref, node in bindings))

    async def write_status(self, writes: Sequence[tuple[PodRef, Obj]]) -> None:
        await asyncio.gather(*(self._write_status(ref, status) for ref, status in writes))

    async def delete(self, pods: Sequence[PodRef], *, now: bool) -> None:
        await asyncio.gather(*(self._delete(ref, now=now) for ref in pods))

    # -- writes ----------------------------------------------------------------------------------

    async def _add_node(self, node: Obj) -> None:
        meta = node["metadata"]
        name = meta["name"]
        marked = {**meta, "annotations": {**(meta.get("annotations") or {}), SIMULATED: "true"}}
        answer = await self._client.create(NODES, "", orjson.dumps({**node, "metadata": marked}))
        if answer.code == 409:
            there = await self._client.get(NODES, "", name)
            if there.ok and annotation(there.object(), SIMULATED) != "true":
                raise CannotRegister(f"node {name!r} exists and is not simulated (no annotation {SIMULATED})")
        elif not answer.ok:
            raise CannotRegister(f"node {name!r}: {answer.message}")

    async def _change_node(self, name: str, change: Callable[[Obj], Obj]) -> None:
        node = self._nodes.objects.get(("", name))
        if node is None:
            return
        for _ in range(NODE_TRIES):
            written = await self._replace_node(node, change(node))
            if written is None or written.ok or written.code == 404:
                return
            answer = written
            if written.code == 409:
                answer = await self._client.get(NODES, "", name)
            if answer.code == 404:
                return
            if not answer.ok:
                break
            node = answer.object()
        self._start(self._show_node_again(name, answer))

    async def _replace_node(self, old: Obj, new: Obj) -> Answer | None:
        """Write the main resource and the status, each only if it differs. Returns the last answer."""
        name = new["metadata"]["name"]
        answer = None
        body = {**new, "apiVersion": "v1", "kind": "Node"}
        if (new["metadata"], new.get("spec")) != (old["metadata"], old.get("spec")):
            answer = await self._client.put(NODES, "", name, orjson.dumps(body))
            if not answer.ok:
                return answer
            body["metadata"] = answer.object()["metadata"]
        if new.get("status") != old.get("status"):
            answer = await self._client.put(NODES, "", name, orjson.dumps(body), subresource="status")
        return answer

    async def _bind(self, ref: PodRef, node: str) -> None:
        meta = {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = orjson.dumps({"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target})
        path = PODS.item(ref.namespace, ref.name, "binding")
        self._look_after(ref, await self._client.transport.write("POST", path, body), "bind")

    async def _write_status(self, ref: PodRef, status: Obj) -> None:
        pod = self._pods.objects.get((ref.namespace, ref.name))
        if pod is None or pod["metadata"]["uid"] != ref.uid:
            return
        if status.get("conditions"):
            merged = merged_status(pod.get("status") or {}, status)["conditions"]
            types = {condition["type"] for condition in status["conditions"]}
            # A patch merges each condition with the one there: what is left out would stay.
            conditions = [{"reason": None, "message": None, **each} for each in merged if each["type"] in types]
            status = {**status, "conditions": conditions}
        body = orjson.dumps({"metadata": {"uid": ref.uid}, "status": status})
        answer = await self._client.patch(
            PODS, ref.namespace, ref.name, body, PatchType.STRATEGIC, subresource="status"
        )
        self._look_after(ref, answer, "status")

    async def _delete(self, ref: PodRef, *, now: bool) -> None:
        grace_s = 0 if now else None
        answer = await self._client.delete(PODS, ref.namespace, ref.name, uid=ref.uid, grace_s=grace_s)
        self._look_after(ref, answer, "delete")

    def _look_after(self, ref: PodRef, answer: Answer, what: str) -> None:
        """404: it has gone, 409: it is another by now or was bound or deleted; the watch says so."""
        if not answer.ok and answer.code not in (404, 409):
            pod, reason = f"{ref.namespace}/{ref.name}", json.dumps(answer.message)
            _log.warning("event=refused write=%s pod=%s code=%d reason=%s", what, pod, answer.code, reason)
            self._start(self._show_pod_again(ref))

    async def _show_pod_again(self, ref: PodRef) -> None:
        while True:
            await self._sleep(LOOK_AGAIN_S)
            answer = await self._client.get(PODS, ref.namespace, ref.name)
            if answer.code == 404 or (answer.ok and answer.uid != ref.uid):
                return
            if answer.ok and ref.uid in self._shown:
                pod = answer.object()
                self._seen(Change("Pod", True, pod))
                self._seen(Change("Pod", False, pod))
                return

    async def _show_node_again(self, name: str, answer: Answer) -> None:
        _log.warning("event=refused node=%s code=%d reason=%s", name, answer.code, json.dumps(answer.message))
        await self._sleep(LOOK_AGAIN_S)
        node = self._nodes.objects.get(("", name))
        if node is not None and name in self._served:
            self._seen(Change("Node", False, node))

    # -- what is seen ----------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Nodes first: a pod whose node is not known would count as lost."""
        self._start(self._nodes.run())
        await self._nodes.listed.wait()
        self._start(self._pods.run())

    def _node_told(self, node: Obj, gone: bool) -> None:
        name = node["metadata"]["name"]
        served = not gone and annotation(node, SIMULATED) == "true"
        if served:
            was_foreign = name in self._foreign
            self._foreign.discard(name)
            self._served.add(name)
            self._seen(Change("Node", False, node))
            if was_foreign:
                self._review_pods(name)
            return
        if name in self._served:
            self._served.discard(name)
            self._seen(Change("Node", True, node))
        if gone:
            self._foreign.discard(name)
        elif name not in self._foreign:
            self._foreign.add(name)
            self._review_pods(name)

    def _review_pods(self, node: str) -> None:
        for pod in list(self._pods.objects.values()):
            if pod["spec"].get("nodeName") == node:
                self._pod_told(pod, False)

    def _pod_told(self, pod: Obj, gone: bool) -> None:
        uid = pod["metadata"]["uid"]
        shown = not gone and pod["spec"].get("nodeName", "") not in self._foreign
        if shown:
            self._shown.add(uid)
            self._seen(Change("Pod", False, pod))
        elif uid in self._shown:
            self._shown.discard(uid)
            self._seen(Change("Pod", True, pod))

    # -- tasks -----------------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        with contextlib.suppress(asyncio.CancelledError):
            if (error := task.exception()) is not None:
                _log.error("event=task_failed", exc_info=error)

    def _stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()


def _nobody(_: Change) -> None:
    """Before `watch` there is nobody to tell."""
