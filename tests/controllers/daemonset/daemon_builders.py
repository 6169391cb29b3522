"""Small builders for DaemonSets, so that a case is one line."""

from collections.abc import Iterable, Mapping
from typing import Any

from oarlock.controllers.daemonset.model import DaemonSet, DaemonSetStatus
from oarlock.controllers.daemonset.plan import DaemonSnapshot
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision
from oarlock.controllers.objects.model import OwnerRef, Pod, label_selector
from oarlock.controllers.plan import Plan
from oarlock.controllers.scheduling.model import Node, Placement
from tests.controllers.builders import NOW_MS, H, S
from tests.controllers.pod_names import daemon_name

DS_UID = "5f1d7a52-9f0e-4c0e-9d5e-2b0c7f1f0d01"
OTHER_DS_UID = "5f1d7a52-9f0e-4c0e-9d5e-2b0c7f1f0d02"
AGENT: Mapping[str, str] = {"app": "agent"}
NEW, OLD = "6d5f4c", "54b7d8"
DS_TEMPLATE = b'{"metadata":{"labels":{"app":"agent"}},"spec":{"containers":[{"name":"c","image":"i"}]}}'
DS_OURS = OwnerRef("apps/v1", "DaemonSet", "agent", DS_UID, True, True)
DS_THEIRS = OwnerRef("apps/v1", "DaemonSet", "other", OTHER_DS_UID, True, True)


def ds(**fields: Any) -> DaemonSet:
    """A DaemonSet default/agent that selects app=agent, by rolling update with maxUnavailable 1."""
    base: dict[str, Any] = {
        "namespace": "default",
        "name": "agent",
        "uid": DS_UID,
        "generation": 1,
        "selector": label_selector(AGENT),
        "template": DS_TEMPLATE,
        "template_digest": "d",
        "placement": Placement(),
        "max_unavailable": 1,
        "status": DaemonSetStatus(observed_generation=1),
    }
    return DaemonSet(**(base | fields))


def surging(**fields: Any) -> DaemonSet:
    """The same with maxSurge 1 and maxUnavailable 0."""
    return ds(**({"max_surge": 1, "max_unavailable": 0} | fields))


def node(name: str, **fields: Any) -> Node:
    """A node without labels and taints."""
    return Node(name, f"uid-{name}", **({"labels": {}} | fields))


def nodes(*names: str, **fields: Any) -> dict[str, Node]:
    """Equal nodes by name, in order of names."""
    return {name: node(name, **fields) for name in sorted(names)}


def numbered(count: int, **fields: Any) -> dict[str, Node]:
    """Nodes n1, n2, ... with zeros before the number as needed."""
    width = len(str(count))
    return nodes(*(f"n{i:0{width}d}" for i in range(1, count + 1)), **fields)


def slot(node_name: str, k: int = 0) -> str:
    """The k-th name of default/agent for a node."""
    return daemon_name("agent", DS_UID, node_name, k)


def dpod(on: str, k: int = 0, **fields: Any) -> Pod:
    """A running, ready pod of the present revision under the k-th name of node `on`, where it is."""
    name = fields.get("name", slot(on, k))
    base: dict[str, Any] = {
        "namespace": "default",
        "name": name,
        "uid": f"uid-{name}",
        "labels": AGENT | {HASH_LABEL: NEW},
        "owner_refs": (DS_OURS,),
        "node_name": on,
        "phase": "Running",
        "created_ms": NOW_MS - H + k,
        "ready": True,
        "ready_since_ms": NOW_MS - H,
    }
    return Pod(**(base | fields))


_UNREADY: dict[str, Any] = {"ready": False, "ready_since_ms": 0}
_LETTERS: dict[str, dict[str, Any]] = {
    "R": {},  # of the present revision, running and ready
    "n": _UNREADY,  # running, not ready
    "p": {"phase": "Pending", **_UNREADY},
    "a": {"ready_since_ms": NOW_MS - 10 * S},  # ready for ten seconds
    "b": {"ready_since_ms": NOW_MS - 20 * S},  # ready for twenty seconds
    "t": {"deleting_ms": NOW_MS - S},  # being deleted, running still
    "F": {"phase": "Failed", **_UNREADY},
    "S": {"phase": "Succeeded", **_UNREADY},
    "f": {"phase": "Failed", "deleting_ms": NOW_MS - S, "hangs": True, **_UNREADY},  # hangs on a finalizer
    "s": {"phase": "Succeeded", "deleting_ms": NOW_MS - S, "hangs": True, **_UNREADY},
    "e": {"phase": "Succeeded", "deleting_ms": NOW_MS - S, **_UNREADY},  # has ended, gone in a moment
    "O": {"labels": AGENT | {HASH_LABEL: OLD}},  # of an older revision, running and ready
    "o": {"labels": AGENT | {HASH_LABEL: OLD}, **_UNREADY},
    "m": {"labels": {"app": "else"}},  # ours, no longer selected
    "x": {"owner_refs": (DS_THEIRS,)},  # another's, though selected
    "?": {"owner_refs": ()},  # orphan that is selected
}


def dpods(on: str, letters: str) -> tuple[Pod, ...]:
    """Pods of one node, a letter each, the i-th under its i-th name and younger than those before. See above."""
    return tuple(dpod(on, k, **_LETTERS[letter]) for k, letter in enumerate(letters))


def unassigned(on: str, k: int = 0, **fields: Any) -> Pod:
    """A pod pinned to a node by its affinity and not yet assigned."""
    base: dict[str, Any] = {"node_name": "", "pinned_node": on, "phase": "Pending", **_UNREADY}
    return dpod(on, k, **(base | fields))


def laid(letters: Mapping[str, str]) -> tuple[Pod, ...]:
    """Pods by node, as letters."""
    return tuple(pod for on, each in letters.items() for pod in dpods(on, each))


def snap(
    known: Mapping[str, Node], pods: Iterable[Pod] = (), owner: DaemonSet | None = None, **fields: Any
) -> DaemonSnapshot:
    """A snapshot whose present revision is NEW."""
    return DaemonSnapshot(owner or ds(), tuple(pods), known, **({"revision": NEW} | fields))


def old_revision(number: int, label: str, **fields: Any) -> ControllerRevision:
    """An old revision with that hash label."""
    labels = AGENT | {HASH_LABEL: label}
    name = f"agent-{label}"
    base: dict[str, Any] = {"owner_refs": (DS_OURS,), "revision": number, "digest": label}
    return ControllerRevision("default", name, f"uid-{name}", labels, **(base | fields))


def deleted(plan: Plan) -> list[str]:
    """Names of the pods that a plan deletes, in order of spelling."""
    return sorted(name for name, _ in plan.delete)


def created(plan: Plan) -> list[str]:
    """Nodes that get a pod, in order of names, each pod under a name of its own."""
    assert set(plan.create) == plan.nodes.keys()
    assert len(set(plan.create)) == len(plan.create)
    return sorted(plan.nodes.values())


def names_of(text: str) -> list[str]:
    """The pod names meant by a text such as "n1/0 n2/1", in order of spelling."""
    return sorted(slot(on, int(k)) for on, _, k in (word.partition("/") for word in text.split()))
