"""What goes on in the cluster of the simulation beside the fleet: kubelets, the scheduler, collectors, users, nodes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import orjson

from oarlock.controllers.history.digest import revision_data, template_digest
from oarlock.controllers.history.model import HASH_LABEL, revision_hash, revision_name
from oarlock.controllers.objects.model import Pod, controller_of
from tests.controllers.pod_names import daemon_name
from tests.simulation import daemon_docs as docs
from tests.simulation.daemon_docs import TAINT, Doc, fits, rfc3339
from tests.simulation.daemon_world import FINISHED, DaemonWorld


@dataclass(frozen=True)
class Habits:
    """What users and clusters do, by how often each is named; the numbers are chances.

    ``deeds``: users', ``changes``: of nodes. ``fails``: a step of a kubelet with a running pod fails it.
    ``readies``: one with a pod that is not ready makes it so; ``unreadies``: the reverse. ``hangs``: one with a pod
    that may not go yet leaves it there.
    """

    deeds: tuple[str, ...] = ("image", "image", "delete", "strategy")
    changes: tuple[str, ...] = ("taint", "label", "add", "remove")
    strategies: tuple[tuple[int | str | None, int | str], ...] = ((1, 0),)
    images: tuple[str, ...] = ("a", "b", "c")
    places: tuple[str, ...] = ("anywhere",)
    fails: float = 0.05
    readies: float = 0.9
    unreadies: float = 0.1
    hangs: float = 0.7
    limits: tuple[int, ...] = (10, 1, 0)
    min_ready_s: tuple[int, ...] = (0, 0, 0, 2)


class Cluster:
    """Everything but the fleet. Every step is drawn from ``random``."""

    def __init__(self, world: DaemonWorld, rng: random.Random, habits: Habits, nodes: int) -> None:
        self.world, self._random, self.habits = world, rng, habits
        self.planted: set[str] = set()
        self._nodes_made = 0
        for _ in range(nodes):
            self._add_node()

    # -- DaemonSets

    def found(self, name: str) -> None:
        """A DaemonSet is made."""
        habits, pick = self.habits, self._random.choice
        pods = docs.template(name, pick(habits.images), pick(habits.places))
        update = docs.strategy(*pick(habits.strategies))
        self.world.put(
            "daemonsets",
            docs.daemonset(
                name,
                self.world.uid("set"),
                pods,
                update,
                min_ready_s=pick(habits.min_ready_s),
                limit=pick(habits.limits),
                numbered=self._random.random() < 0.5,
            ),
        )

    def user(self) -> None:
        """Somebody does something to a DaemonSet, its pods or its revisions."""
        sets = self.world.tables["daemonsets"]
        if not sets:
            return
        name = self._random.choice(sorted(sets))
        getattr(self, f"_{self._random.choice(self.habits.deeds)}")(name)

    def _image(self, name: str) -> None:
        doc = self.world.tables["daemonsets"][name].doc
        place = self._random.choice(self.habits.places)
        self._specify(doc, template=docs.template(name, self._random.choice(self.habits.images), place))

    def specify_image(self, name: str, image: str) -> None:
        """Another template, for the same nodes."""
        doc = self.world.tables["daemonsets"][name].doc
        pods = orjson.loads(orjson.dumps(doc["spec"]["template"]))
        pods["spec"]["containers"][0]["image"] = image.replace(" ", "-")
        self._specify(doc, template=pods)

    def _strategy(self, name: str) -> None:
        doc = self.world.tables["daemonsets"][name].doc
        self._specify(doc, updateStrategy=docs.strategy(*self._random.choice(self.habits.strategies)))

    def _specify(self, doc: Doc, **spec: Any) -> None:
        """As the API server does: counts up the generation where the spec changes."""
        if all(doc["spec"][field] == value for field, value in spec.items()):
            return
        meta = doc["metadata"]
        meta["generation"] += 1
        if "template" in spec and docs.GENERATION_ANNOTATION in meta["annotations"]:
            number = int(meta["annotations"][docs.GENERATION_ANNOTATION]) + 1
            meta["annotations"][docs.GENERATION_ANNOTATION] = str(number)
        doc["spec"] |= spec
        self.world.put("daemonsets", doc)

    def _delete(self, name: str) -> None:
        self._any_pod(name, lambda pod: self.world.end_pod(pod.name))

    def _relabel(self, name: str) -> None:
        """It is let go, and may come back."""

        def relabel(pod: Pod) -> None:
            doc = self.world.tables["pods"][pod.name].doc
            doc["metadata"]["labels"]["app"] = "other" if pod.labels.get("app") == name else name
            self.world.put("pods", doc)

        self._any_pod(name, relabel)

    def _hang(self, name: str) -> None:
        """Something must be done before the pod may go, and takes its time."""

        def hold(pod: Pod) -> None:
            doc = self.world.tables["pods"][pod.name].doc
            if not pod.deleting_ms:
                doc["metadata"]["finalizers"] = ["example.com/slow"]
                self.world.put("pods", doc)

        self._any_pod(name, hold)

    def _any_pod(self, name: str, do: Any) -> None:
        stored = self.world.tables["daemonsets"][name]
        pods = [pod for pod in self.world.pods_of(stored.obj.uid) if not pod.deleting_ms]
        if pods:
            do(self._random.choice(sorted(pods, key=lambda pod: pod.name)))

    def _orphan(self, name: str) -> None:
        self._stray(name, owned=False)

    def _upstream(self, name: str) -> None:
        """A pod that upstream made, under a name of its own."""
        self._stray(name, owned=True)

    def _stray(self, name: str, *, owned: bool) -> None:
        nodes = sorted(self.world.tables["nodes"])
        if not nodes or sum(pod.uid.startswith("stray") for pod in self.world.pods) >= 3:
            return
        stored = self.world.tables["daemonsets"][name]
        uid = self.world.uid("stray")
        pod = docs.pod(f"{name}-{uid}", uid, name, self._random.choice(nodes), stored.doc if owned else None)
        revision = self._current(name)
        if revision is not None and self._random.random() < 0.5:
            pod["metadata"]["labels"][HASH_LABEL] = revision.hash
        self.world.put("pods", pod)

    def _squat(self, name: str) -> None:
        """Somebody else's pod bears the name that one of ours would get."""
        nodes = sorted(self.world.tables["nodes"])
        owner = self.world.tables["daemonsets"][name].obj
        if nodes:
            on = self._random.choice(nodes)
            taken = daemon_name(owner.name, owner.uid, on, 0)
            if taken not in self.world.tables["pods"]:
                self.world.put("pods", docs.pod(taken, self.world.uid("squatter"), "squatter", on, None))

    def _duplicate(self, name: str) -> None:
        """Somebody copies the current revision."""
        current = self._current(name)
        if current is None:
            return
        doc = self.world.tables["controllerrevisions"][current.name].doc
        uid = self.world.uid("copy")
        meta = doc["metadata"]
        meta |= {"name": f"{name}-{uid}", "uid": uid}
        meta.pop("creationTimestamp")
        if self._random.random() < 0.5:
            meta["ownerReferences"] = []
        if self._random.random() < 0.5:
            meta["labels"][HASH_LABEL] = uid
        doc["revision"] += self._random.choice((0, 1))
        self.planted.add(uid)
        self.world.put("controllerrevisions", doc)

    def _collide(self, name: str) -> None:
        """A revision with another template bears the name that a template is going to get."""
        stored = self.world.tables["daemonsets"][name]
        pods = docs.template(name, self._random.choice(self.habits.images))
        digest = template_digest(orjson.dumps(pods))
        at = revision_name(name, revision_hash(digest, stored.obj.status.collision_count))
        if at in self.world.tables["controllerrevisions"]:
            return
        other = orjson.dumps(docs.template("other", "z"))
        uid = self.world.uid("rival")
        self.planted.add(uid)
        self.world.put(
            "controllerrevisions",
            {
                "metadata": {"name": at, "uid": uid, "labels": {"app": "other"}, "ownerReferences": []},
                "data": orjson.loads(revision_data(other)),
                "revision": 1,
            },
        )

    def _current(self, name: str) -> Any:
        owner = self.world.tables["daemonsets"][name].obj
        for stored in self.world.tables["controllerrevisions"].values():
            ref = controller_of(stored.obj)
            if ref is not None and ref.uid == owner.uid and stored.obj.digest == owner.template_digest:
                return stored.obj
        return None

    def _recreate(self, name: str) -> None:
        """Deleted and made again under its name; sometimes its pods are left alone."""
        uid = self.world.tables["daemonsets"][name].obj.uid
        if self._random.random() < 0.4:
            for pod in self.world.pods_of(uid):
                doc = self.world.tables["pods"][pod.name].doc
                doc["metadata"]["ownerReferences"] = []
                self.world.put("pods", doc)
        self.world.remove("daemonsets", name)
        self.found(name)

    # -- nodes

    def node(self) -> None:
        """A node comes, goes, or changes."""
        nodes = self.world.tables["nodes"]
        change = self._random.choice(self.habits.changes) if nodes else "add"
        if change == "add":
            if len(nodes) < 6:
                self._add_node()
            return
        name = self._random.choice(sorted(nodes))
        doc = nodes[name].doc
        match change:
            case "remove":
                self.world.remove("nodes", name)
            case "taint":
                effect = self._random.choice(("", "NoSchedule", "NoExecute"))
                doc["spec"]["taints"] = [{"key": TAINT, "effect": effect}] if effect else []
                self.world.put("nodes", doc)
            case "label":
                doc["metadata"]["labels"]["pool"] = self._random.choice(("blue", "green"))
                self.world.put("nodes", doc)
            case "beat":
                doc["status"] = {"beat": self.world.rv}
                self.world.put("nodes", doc)

    def _add_node(self) -> None:
        missing = sorted({f"n{i}" for i in range(1, self._nodes_made + 1)} - self.world.tables["nodes"].keys())
        if missing and self._random.random() < 0.7:
            name = self._random.choice(missing)
        else:
            self._nodes_made += 1
            name = f"n{self._nodes_made}"
        self.world.put("nodes", docs.node(name, self.world.uid("node"), self._random.choice(("blue", "green"))))

    # -- kubelets, the scheduler and collectors

    def kubelet(self) -> None:
        """A pod gets on with its life."""
        pods = self.world.pods
        if pods:
            self._live(self._random.choice(sorted(pods, key=lambda pod: pod.name)), calm=False)

    def calm(self) -> None:
        """Every pod comes up, or goes."""
        for pod in sorted(self.world.pods, key=lambda pod: pod.name):
            if pod.name in self.world.tables["pods"]:
                self._live(self.world.tables["pods"][pod.name].obj, calm=True)

    def _live(self, pod: Pod, *, calm: bool) -> None:
        habits, chance = self.habits, self._random.random
        if self._collected(pod):
            return
        if pod.deleting_ms:
            self._leave(pod, calm)
        elif not pod.node_name:
            if pod.pinned_node in self.world.tables["nodes"]:
                doc = self.world.tables["pods"][pod.name].doc
                doc["spec"]["nodeName"] = pod.pinned_node
                self.world.put("pods", doc)
        elif pod.phase in FINISHED:
            pass
        elif not calm and chance() < habits.fails:
            self._put_status(pod, {"phase": self._random.choice(("Failed", "Failed", "Succeeded"))})
        elif pod.ready and not calm and chance() < habits.unreadies:
            status = self.world.tables["pods"][pod.name].doc["status"]
            self._put_status(pod, status | {"conditions": [{"type": "Ready", "status": "False"}]})
        elif not pod.ready and (calm or chance() < habits.readies):
            since = rfc3339(self.world.wall_ms())
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
            self._put_status(pod, {"phase": "Running", "conditions": [ready]})

    def _put_status(self, pod: Pod, status: Doc) -> None:
        doc = self.world.tables["pods"][pod.name].doc
        doc["status"] = status
        self.world.put("pods", doc)

    def _leave(self, pod: Pod, calm: bool) -> None:
        hangs = bool(self.world.tables["pods"][pod.name].doc["metadata"].get("finalizers"))
        if hangs and not calm and self._random.random() < self.habits.hangs:
            if pod.phase not in FINISHED and pod.node_name:
                self._put_status(pod, {"phase": self._random.choice(FINISHED)})
            return
        self.world.remove("pods", pod.name)

    def _collected(self, pod: Pod) -> bool:
        """What other controllers do: pods of owners and nodes that are gone go, so do those that a taint drives out."""
        nodes, ref = self.world.tables["nodes"], controller_of(pod)
        if pod.node_name and pod.node_name not in nodes:
            self.world.remove("pods", pod.name)
            return True
        if ref is not None:
            owner = self.world.tables["daemonsets"].get(ref.name)
            if (owner is None or owner.obj.uid != ref.uid) and not pod.deleting_ms:
                self.world.end_pod(pod.name)
                return True
        return False

    def collect_revisions(self) -> None:
        """Those of owners that are gone go."""
        living = {stored.obj.uid for stored in self.world.tables["daemonsets"].values()}
        for stored in list(self.world.tables["controllerrevisions"].values()):
            ref = controller_of(stored.obj)
            if ref is not None and ref.uid not in living:
                self.world.remove("controllerrevisions", stored.obj.name)

    def duplicated(self) -> list[str]:
        """DaemonSets whose present template somebody has copied by hand: that alone wakes nobody."""
        found = []
        for name, stored in self.world.tables["daemonsets"].items():
            same = [
                each.obj.uid
                for each in self.world.tables["controllerrevisions"].values()
                if (ref := controller_of(each.obj)) is not None
                and ref.uid == stored.obj.uid
                and each.obj.digest == stored.obj.template_digest
            ]
            if len(same) > 1 and self.planted.intersection(same):
                found.append(name)
        return found

    def desired(self, name: str) -> dict[str, tuple[bool, bool]]:
        """Of each node, whether a pod of the set should run there and whether it may stay."""
        pods = self.world.tables["daemonsets"][name].doc["spec"]["template"]
        return {node: fits(stored.doc, pods) for node, stored in self.world.tables["nodes"].items()}
