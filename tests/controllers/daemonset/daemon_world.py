"""A cluster in which several writers look after one DaemonSet, each on a view as old as it pleases, and whose requests
land late or twice. Every step is drawn from a seeded generator.

Two kinds of writers. *Strangers* share nothing: no record, no lock, any view there ever was. Those of a *fleet* keep
the protocol of the record: what is unanswered is issued again first, nothing is decided on a view from before an
answer of ours, and writes that may still land are known.
"""

from collections import Counter
from collections.abc import Callable
from random import Random

from oarlock.controllers.daemonset.decide import decide
from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.daemonset.plan import DaemonSnapshot
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.plan import Plan, Unanswered
from oarlock.controllers.scheduling.model import Node, Taint
from tests.controllers.builders import NOW_MS, S, with_fields
from tests.controllers.daemonset.daemon_builders import NEW, OLD, dpod, numbered

ENDED = ("Failed", "Succeeded")
View = tuple[dict[str, Pod], dict[str, Node], str]
Request = tuple[str, str, str, Pod | None]  # verb, pod name, label of the revision, victim


class World:
    """`finalizers`: a pod that is being deleted may hang on them, also after it has ended."""

    def __init__(self, seed: int, owner: DaemonSet, *, fleet: bool, finalizers: bool) -> None:
        self.random = Random(seed)
        self.owner, self.fleet, self.finalizers = owner, fleet, finalizers
        self.pods: dict[str, Pod] = {}
        self.nodes = numbered(3)
        self.revision = NEW
        self.views: list[View] = []
        self.since = 0  # the oldest view that a fleet may decide on
        self.unanswered: list[tuple[Request, str]] = []  # with the node of a create
        self.late: list[tuple[Request, str]] = []
        self.seen: Counter[str] = Counter()
        self._made = 0
        self._note()

    def run(self, steps: int, check: Callable[["World"], None]) -> None:
        """So many steps, with a check after each."""
        moves = (self.writer, self.writer, self.writer, self.land, self.land, self.kubelet, self.kubelet, self.cluster)
        for _ in range(steps):
            self.random.choice(moves)()
            self._note()
            check(self)

    def calm(self, rounds: int = 60) -> None:
        """Every request lands, every pod comes up or goes, if only with its node, and one writer that sees all of it
        acts until nothing is left to do. Fails if that does not come to an end.
        """
        for request, node in self.late + self.unanswered:
            self._apply(request, node)
        self.late.clear()
        self.unanswered.clear()
        for _ in range(rounds):
            for pod in self.pods.values():
                if pod.deleting_ms or (pod.node_name and pod.node_name not in self.nodes):
                    self._remove(pod)
                elif not pod.node_name:
                    self._assign(pod)
            plan = decide(DaemonSnapshot(self.owner, tuple(self.pods.values()), self.nodes, self.revision), NOW_MS)
            if not plan.writes:
                return
            for request, node in _requests(plan, self.pods, self.revision):
                self._apply(request, node)
        raise AssertionError(f"still writing after {rounds} rounds: {plan}")

    def on_node(self) -> dict[str, list[Pod]]:
        """The pods by node that count against the limit: all but those that have ended and are being deleted."""
        found: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            if not (pod.deleting_ms and pod.phase in ENDED):
                found.setdefault(pod.target_node, []).append(pod)
        return found

    def writer(self) -> None:
        """Somebody decides and sends; each request is answered, lost, or on its way for a while."""
        if self.fleet:
            for request, node in self.unanswered:  # answered now, the first copy may come later
                self._apply(request, node)
                self.since = len(self.views)
            self.unanswered.clear()
            self._note()
        pods, nodes, revision = self.views[self.random.randint(self.since, len(self.views) - 1)]
        late = [request for request, _ in self.late] if self.fleet else []
        unanswered = Unanswered(
            creates=frozenset(request[1] for request in late if request[0] == "create"),
            nodes={request[1]: node for request, node in self.late if request[0] == "create"},
            deletes=frozenset(request[3].uid for request in late if request[3] is not None),
        )
        plan = decide(DaemonSnapshot(self.owner, tuple(pods.values()), nodes, revision, unanswered=unanswered), NOW_MS)
        for request, node in _requests(plan, pods, revision):
            fate = self.random.random()
            self.seen[request[0]] += 1
            if fate < 0.5:
                self._apply(request, node)
                self.since = len(self.views)
            elif fate < 0.9:
                self.late.append((request, node))
                self.unanswered.append((request, node))
            else:
                self.unanswered.append((request, node))
        if not self.fleet:
            self.unanswered.clear()
            self.since = 0

    def land(self) -> None:
        """A request arrives that was on its way."""
        if self.late:
            request, node = self.late.pop(self.random.randrange(len(self.late)))
            self.seen["late"] += 1
            self._apply(request, node)
            if self.fleet:
                self.since = len(self.views)  # a name is held for longer than the cache is behind

    def kubelet(self) -> None:
        """A pod gets on with its life."""
        if not self.pods:
            return
        pod = self.random.choice(list(self.pods.values()))
        if pod.deleting_ms:
            if pod.phase not in ENDED and self.random.random() < 0.5:  # a kubelet says so before it lets go
                self._put(with_fields(pod, phase="Succeeded", ready=False))
            else:
                self._remove(pod)
        elif not pod.node_name:
            self._assign(pod)
        elif pod.phase == "Running":
            self._put(with_fields(pod, phase=self.random.choice(ENDED), ready=False))

    def cluster(self) -> None:
        """A node, the template, or a pod is changed by others."""
        name = self.random.choice(("n1", "n2", "n3"))
        match self.random.randrange(5):
            case 0:
                others = {key: each for key, each in self.nodes.items() if key != name}
                self.nodes = others if len(others) < len(self.nodes) else numbered(3)
            case 1 if name in self.nodes:
                taints = self.random.choice(((), (Taint("k", "NoExecute"),), (Taint("k", "NoSchedule"),)))
                self.nodes = self.nodes | {name: with_fields(self.nodes[name], taints=taints)}
            case 2:
                self.revision = OLD if self.revision == NEW else NEW
            case _ if self.pods:
                self._delete(self.random.choice(list(self.pods.values())))
            case _:
                pass

    def _apply(self, request: Request, node: str) -> None:
        verb, name, label, victim = request
        if verb == "create":
            if name in self.pods:
                self.seen["refused create"] += 1
                return
            self._made += 1
            fresh = dpod(node, name=name, uid=f"uid-{self._made}", labels={"app": "agent", HASH_LABEL: label})
            self._put(with_fields(fresh, node_name="", pinned_node=node, phase="Pending", ready=False))
        elif victim is not None:
            if self.pods.get(name) is victim:  # uid and resourceVersion: it is the very state that was decided on
                self._delete(victim)
            else:
                self.seen["refused delete"] += 1

    def _delete(self, pod: Pod) -> None:
        if pod.deleting_ms:
            return
        hangs = self.finalizers and self.random.random() < 0.5
        if (pod.phase in ENDED and not hangs) or not pod.node_name:
            self._remove(pod)
        else:
            self._put(with_fields(pod, deleting_ms=NOW_MS - S, hangs=hangs))

    def _assign(self, pod: Pod) -> None:
        if pod.pinned_node in self.nodes:
            self._put(with_fields(pod, node_name=pod.pinned_node, pinned_node="", phase="Running", ready=True))

    def _put(self, pod: Pod) -> None:
        self.pods = self.pods | {pod.name: pod}

    def _remove(self, pod: Pod) -> None:
        self.pods = {name: each for name, each in self.pods.items() if name != pod.name}

    def _note(self) -> None:
        self.views.append((self.pods, self.nodes, self.revision))


def _requests(plan: Plan, pods: dict[str, Pod], revision: str) -> list[tuple[Request, str]]:
    creates: list[tuple[Request, str]] = [(("create", name, revision, None), plan.nodes[name]) for name in plan.create]
    return creates + [(("delete", name, "", pods[name]), "") for name, _ in plan.delete]
