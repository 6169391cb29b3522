"""DaemonSets in tests: an owner, pods written as a letter each, nodes by number, whole rollouts played in turns."""

from collections.abc import Callable, Iterable
from itertools import count as count_up
from typing import Any

from oarlock.controllers.daemonset.decide import decide
from oarlock.controllers.daemonset.plan import DaemonSnapshot
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.objects.availability import is_available
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.plan import Plan
from oarlock.controllers.scheduling.model import Node, Taint
from tests.controllers.builders import NOW_MS, H, S, with_fields
from tests.controllers.daemonset.daemon_builders import AGENT, NEW, OLD, dpod, ds, node


def node_name(number: int) -> str:
    """Names in the order of the numbers."""
    return f"n{number:03}"


_UNREADY: dict[str, Any] = {"ready": False, "ready_since_ms": 0}
_OLD: dict[str, Any] = {"labels": AGENT | {HASH_LABEL: OLD}}
_ENDING: dict[str, Any] = {"deleting_ms": NOW_MS - S}
_LETTERS: dict[str, dict[str, Any]] = {
    "N": {},  # of the current revision, ready for an hour
    "n": _UNREADY,
    "s": {"ready_since_ms": NOW_MS - 10 * S},  # new, ready for ten seconds
    "O": _OLD,  # of an older revision, ready for an hour
    "o": {**_OLD, **_UNREADY},
    "S": {**_OLD, "ready_since_ms": NOW_MS - 10 * S},
    "f": {**_OLD, **_UNREADY, "phase": "Failed"},
    "p": {**_OLD, **_UNREADY, "phase": "Pending", "node_name": ""},  # old, pinned and not yet assigned
    "T": _ENDING,  # new, being deleted, still ready
    "t": {**_OLD, **_ENDING},
}


def lettered(letters: str, on: str) -> list[Pod]:
    """One pod a letter on one node, the former the older; `<node>-<i><letter>` is its name."""
    made = [
        dpod(on, name=f"{on}-{i}{letter}", created_ms=NOW_MS - H + i * S, **_LETTERS[letter])
        for i, letter in enumerate(letters)
    ]
    return [pod if pod.node_name else with_fields(pod, pinned_node=on) for pod in made]


def parsed(words: str) -> tuple[dict[str, Node], dict[str, list[Pod]], dict[str, tuple[bool, bool]]]:
    """Nodes, pods by node and eligibility from a word a node: its pods, `-` for none.

    In front of them `!`: the node should no longer run a pod, though one there may continue; `?`: there is no such
    node, only its pods.
    """
    known: dict[str, Node] = {}
    podmap: dict[str, list[Pod]] = {}
    eligible: dict[str, tuple[bool, bool]] = {}
    for number, word in enumerate(words.split()):
        name = node_name(number)
        if letters := word.strip("!?-"):
            podmap[name] = lettered(letters, name)
        if "?" not in word:
            known[name] = node(name)
            eligible[name] = ("!" not in word, True)
    return known, podmap, eligible


class Rollout:
    """A DaemonSet and its cluster, played turn by turn with the real decision, whose writes all succeed at once.

    A created pod is assigned and not ready. A deleted one is gone, unless `lingers`: then it is being deleted, ready
    as before, until `bury`. The revision is a number; 1 is OLD, 2 is NEW.
    """

    def __init__(self, node_count: int, lingers: bool = False, **fields: Any) -> None:
        self.owner = ds(**fields)
        self.nodes = {name: node(name) for name in map(node_name, range(node_count))}
        self.pods: dict[str, Pod] = {}
        self.lingers = lingers
        self.revision = 1
        self.now_ms = NOW_MS
        self._created = count_up()

    @property
    def hash(self) -> str:
        """The hash label of the current revision."""
        return {1: OLD, 2: NEW}.get(self.revision, f"h{self.revision}")

    def put(self, pods: Iterable[Pod]) -> None:
        """Pods that are there already."""
        self.pods.update((pod.name, pod) for pod in pods)

    def decide(self) -> Plan:
        """What the next turn would do."""
        return decide(DaemonSnapshot(self.owner, tuple(self.pods.values()), self.nodes, self.hash), self.now_ms)

    def turn(self) -> Plan:
        """Decide, and carry it out."""
        plan = self.decide()
        for name in plan.create:
            assert name not in self.pods, "the API server would refuse it"
            labels = AGENT | {HASH_LABEL: plan.revision}
            created_ms = self.now_ms + next(self._created)
            self.pods[name] = dpod(plan.nodes[name], name=name, labels=labels, created_ms=created_ms, **_UNREADY)
        for name, uid in plan.delete:
            assert self.pods[name].uid == uid
            if self.lingers:
                assert not self.pods[name].deleting_ms
                self.pods[name] = with_fields(self.pods[name], deleting_ms=self.now_ms)
            else:
                del self.pods[name]
        self.owner = with_fields(self.owner, status=plan.counts)
        return plan

    def ready(self, limit: int | None = None, wanted: Callable[[Pod], bool] = lambda pod: True) -> None:
        """Pods that stay turn ready; at most so many, those on the first nodes first."""
        chosen = [pod for pod in self.staying() if not pod.ready and wanted(pod)][:limit]
        self.put(with_fields(pod, phase="Running", ready=True, ready_since_ms=self.now_ms) for pod in chosen)

    def bury(self, wanted: Callable[[Pod], bool] = lambda pod: True) -> None:
        """What is being deleted is gone."""
        self.pods = {name: pod for name, pod in self.pods.items() if not (pod.deleting_ms and wanted(pod))}

    def staying(self) -> list[Pod]:
        """Pods not being deleted, in order of nodes, on a node the older first."""
        found = [pod for pod in self.pods.values() if not pod.deleting_ms]
        return sorted(found, key=lambda pod: (pod.target_node, pod.created_ms))

    def is_new(self, pod: Pod) -> bool:
        """Whether it is of the current revision."""
        return pod.labels[HASH_LABEL] == self.hash

    def down(self) -> set[str]:
        """Nodes without an available pod that stays."""
        min_ready_seconds = self.owner.min_ready_seconds
        up = {pod.node_name for pod in self.staying() if is_available(pod, min_ready_seconds, self.now_ms)}
        return self.nodes.keys() - up

    def play(self, script: str) -> str:
        """Do what the script says, and return it with the turns in it replaced by what they did.

        `+2` `-2` `+1-1` `0`: a turn that creates and deletes so many. Between turns: `r` a new template; `R` all pods
        turn ready, `R2` two new ones do; `x1` an old one turns unready, on a node without a new one; `@20` it is 20 s
        after the start; `t0` node 0 is tainted; `d3` the pods of node 3 are removed by somebody, `e3` are being
        deleted; `u2` `s2` `m15` maxUnavailable, maxSurge, minReadySeconds become this; `RollingUpdate`: the strategy.
        """
        return " ".join(self._played(word) for word in script.split())

    def _played(self, word: str) -> str:
        letter, number = word[0], int(word[1:]) if word[1:].isdecimal() else None
        match letter:
            case "+" | "-" | "0":
                plan = self.turn()
                created = f"+{len(plan.create)}" if plan.create else ""
                return created + (f"-{len(plan.delete)}" if plan.delete else "") or "0"
            case "r":
                self.revision += 1
                self.owner = with_fields(self.owner, generation=self.owner.generation + 1)
            case "R" if word == "RollingUpdate":
                self.owner = with_fields(self.owner, strategy=word)
            case "R":
                self.ready(number, lambda pod: number is None or self.is_new(pod))
            case "x":
                surged = {pod.node_name for pod in self.staying() if self.is_new(pod)}
                old = [pod for pod in self.staying() if pod.ready and pod.node_name not in surged]
                self.put(with_fields(pod, **_UNREADY) for pod in old[:number])
            case "@":
                self.now_ms = NOW_MS + int(word[1:]) * S
            case "t" | "d" | "e":
                self._on_node(letter, node_name(int(word[1:])))
            case "u":
                self.owner = with_fields(self.owner, max_unavailable=number)
            case "s":
                self.owner = with_fields(self.owner, max_surge=number)
            case "m":
                self.owner = with_fields(self.owner, min_ready_seconds=number)
            case _:
                raise ValueError(word)
        return word

    def _on_node(self, letter: str, on: str) -> None:
        if letter == "t":
            self.nodes[on] = with_fields(self.nodes[on], taints=(Taint("dedicated", "NoSchedule"),))
            return
        for name, pod in list(self.pods.items()):
            if pod.node_name == on:
                del self.pods[name]
                if letter == "e":
                    self.pods[name] = with_fields(pod, deleting_ms=self.now_ms)
