"""What the embedded API costs with many nodes and DaemonSets of as many pods. Not a test:

    python -m tests.sandbox.apiserver.api_cost --sizes 500 1000 2000 4000

Requests are served in this process, without HTTP, so that what is measured is the store and the rules. Each line
is one kind of work done for every object; microseconds an object must not grow with their number. The last line is
one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from oarlock.sandbox.apiserver.http.paths import Target
from oarlock.sandbox.apiserver.http.watch import Pace, Watch, watch_request
from oarlock.sandbox.apiserver.kinds.kinds import KINDS
from oarlock.sandbox.apiserver.loops.garbage import GarbageCollector
from oarlock.sandbox.apiserver.loops.quota import Quotas
from oarlock.sandbox.apiserver.patches import MERGE_PATCH
from oarlock.sandbox.apiserver.printing.tables import AS_IS, Include, Shape, View
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.verbs.admission import Admission
from oarlock.sandbox.apiserver.verbs.deletion import DeleteOptions
from oarlock.sandbox.apiserver.verbs.listing import Snapshots, list_page
from oarlock.sandbox.apiserver.verbs.rest import Rest
from oarlock.sandbox.apiserver.verbs.subresources import bind

Obj = dict[str, Any]
PODS, NODES = Target(KINDS["Pod"], "default"), Target(KINDS["Node"])
TABLE = View(Shape.TABLE, Include.METADATA)


def node_body(name: str) -> bytes:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "zone": f"z{hash(name) % 3}"}
    return orjson.dumps({"metadata": {"name": name, "labels": labels}, "status": {"capacity": {"pods": "110"}}})


def pod_body(name: str, node: str, owner: Obj) -> bytes:
    """A pod as the DaemonSet controller makes them: with an affinity of its own, so that no two specs are equal."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    keys = ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    tolerations = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists"} for key in keys]
    labels = {"app": "agent", "controller-revision-hash": "abc", "pod-template-generation": "1"}
    spec = {
        "containers": [
            {
                "name": "c",
                "image": "nginx:1",
                "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }
        ],
        "volumes": [{"name": "v", "hostPath": {"path": "/var"}}],
        "affinity": {"nodeAffinity": affinity},
        "tolerations": tolerations,
    }
    reference = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": owner["metadata"]["uid"]}
    meta = {
        "name": name,
        "labels": labels,
        "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
    }
    return orjson.dumps({"metadata": meta, "spec": spec})


def daemonset_body() -> Obj:
    labels = {"app": "agent"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
    return {"metadata": {"name": "agent"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


class Bench:
    """One store with `size` nodes; `took` has microseconds of CPU an object for each piece of work."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.store = Store(seed=1)
        self.rest = Rest(self.store, Admission(self.store))
        quotas = Quotas(self.store)
        quotas.watch()
        self.rest.admission.on_create(quotas.check_create)
        self.snapshots = Snapshots()
        self.garbage = GarbageCollector(self.store)
        self.garbage.watch()
        namespace = {"metadata": {"name": "default"}, "spec": {"finalizers": ["kubernetes"]}}
        self.store.create("Namespace", {**namespace, "status": {"phase": "Active"}})
        self.took: dict[str, float] = {}

    def measure(self, name: str, work: Callable[[], object]) -> None:
        gc.collect()
        began_s = time.process_time()
        work()
        self.took[name] = round((time.process_time() - began_s) * 1e6 / self.size, 2)

    def run(self) -> dict[str, float]:
        nodes = [f"node-{number:05d}" for number in range(self.size)]
        self.measure("create nodes", lambda: [self.create(NODES, node_body(node)) for node in nodes])
        sets = Target(KINDS["DaemonSet"], "default")
        self.create(sets, orjson.dumps(daemonset_body()))
        owner = self.store.require("DaemonSet", "default", "agent").obj
        self.pods("", nodes, owner)
        self.measure("list pods", lambda: self.rest.list(PODS, {}, AS_IS))
        self.measure("list pods as a table", lambda: self.rest.list(PODS, {}, TABLE))
        self.measure("list pods in pages of 500", self.pages)
        selecting = {"labelSelector": "app=agent,controller-revision-hash in (abc)"}
        self.measure("list pods by label", lambda: self.rest.list(PODS, selecting, AS_IS))
        self.measure("list pods of one node", lambda: self.rest.list(PODS, {"fieldSelector": "spec.nodeName=x"}, AS_IS))
        taints = b'{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}'
        self.measure("taint nodes", lambda: [self.patch(NODES, node, "", taints) for node in nodes])
        status = {"status": {"numberReady": 1}}
        self.measure(
            "write a DaemonSet's status",
            lambda: [self.patch(sets, "agent", "status", orjson.dumps(status)) for _ in nodes],
        )
        self.measure("watch", lambda: asyncio.run(self.watch({}, nodes, 1)))
        self.measure("watch by 8", lambda: asyncio.run(self.watch({}, nodes, 8)))
        self.measure("watch by label by 8", lambda: asyncio.run(self.watch(selecting, nodes, 8)))
        everything = {"resourceVersion": "0"}
        self.measure("begin a watch", lambda: asyncio.run(self.watch(everything, [], 1)))
        self.measure(
            "delete pods",
            lambda: [self.rest.delete(Target(PODS.kind, "default", f"pod-{n}"), DeleteOptions(0)) for n in nodes],
        )
        for policy in ("Background", "Foreground", "Orphan"):
            self.pods(policy, nodes, owner)
            self.measure(f"delete a DaemonSet: {policy}", lambda: self.cascade(sets, policy))  # noqa: B023
            assert self.store.stored("DaemonSet", "default", "agent") is None
            self.create(sets, orjson.dumps(daemonset_body()))
            owner = self.store.require("DaemonSet", "default", "agent").obj
        for name in [obj["metadata"]["name"] for obj in self.store.list("Pod", "default")]:
            self.store.remove("Pod", "default", name)
        return self.took

    def pods(self, prefix: str, nodes: list[str], owner: Obj) -> None:
        bodies = [pod_body(f"{prefix.lower()}pod-{node}", node, owner) for node in nodes]
        self.measure(f"create pods {prefix}".strip(), lambda: [self.create(PODS, body) for body in bodies])
        if prefix:
            return
        self.measure("bind pods", lambda: [self.bind(node) for node in nodes])
        status = orjson.dumps({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
        self.measure(
            "write pods' status", lambda: [self.patch(PODS, f"pod-{node}", "status", status) for node in nodes]
        )

    def create(self, target: Target, body: bytes) -> None:
        self.rest.create(target, orjson.loads(body), {})

    def patch(self, target: Target, name: str, part: str, patch: bytes) -> None:
        whole = Target(target.kind, target.namespace, name, part)
        self.rest.patch(whole, MERGE_PATCH, orjson.loads(patch), {})

    def bind(self, node: str) -> None:
        target = Target(PODS.kind, "default", f"pod-{node}", "binding")
        bind(self.rest, target, {"target": {"kind": "Node", "name": node}}, {})

    def pages(self) -> None:
        params = {"limit": "500"}
        while True:
            meta = list_page(self.store, self.snapshots, PODS.kind, None, None, params).meta
            if not meta.get("continue"):
                return
            params = {"limit": "500", "continue": meta["continue"]}

    def cascade(self, sets: Target, policy: str) -> None:
        self.rest.delete(Target(sets.kind, "default", "agent"), DeleteOptions(propagation=policy))
        self.garbage.collect()

    async def watch(self, params: dict[str, str], nodes: list[str], watchers: int) -> None:
        """Watch while every pod changes once, a batch of ten at a time, until all has been told."""
        over = False
        told = 0

        async def write(chunk: bytes) -> None:
            nonlocal told
            told += chunk.count(b"\n")

        asked = {**params} if params.get("resourceVersion") else {**params, "resourceVersion": str(self.store.rv)}
        pace = Pace(breath_s=0.0)
        tasks = []
        for _ in range(watchers):
            request = watch_request(self.store, PODS, asked, AS_IS, 1e9)
            watch = Watch(
                self.store, request, pace=pace, now=time.monotonic, stalled=lambda: False, stopping=lambda: over
            )
            tasks.append(asyncio.create_task(watch.run(write)))
        await asyncio.sleep(0)
        for batch in batches(nodes, 10):
            for node in batch:
                stamp = orjson.dumps({"metadata": {"annotations": {"at": str(self.store.rv)}}})
                self.patch(PODS, f"pod-{node}", "", stamp)
            await asyncio.sleep(0)
        expected = watchers * (len(nodes) or self.size)
        while told < expected:
            await asyncio.sleep(0)
        over = True
        self.store.logs["Pod"].wake()
        await asyncio.gather(*tasks)


def batches(items: list[str], size: int) -> Iterator[list[str]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]


def main() -> None:
    parser = argparse.ArgumentParser(description="What the embedded API costs as it fills up.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000, 4000], help="nodes, and pods")
    sizes = parser.parse_args().sizes
    gc.disable()
    found = {size: Bench(size).run() for size in sizes}
    print(f"{'microseconds an object':<36}" + "".join(f"{size:>10}" for size in sizes))
    for name in found[sizes[0]]:
        print(f"{name:<36}" + "".join(f"{found[size][name]:>10.1f}" for size in sizes))
    print(orjson.dumps(found, option=orjson.OPT_NON_STR_KEYS).decode())


if __name__ == "__main__":
    main()
