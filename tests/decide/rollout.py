"""Builders for DaemonSets: an owner, pods written as one letter each, nodes by number."""

from collections.abc import Mapping
from typing import Any

from controllers.daemonset.model import DaemonSet, DaemonSetStatus
from controllers.history.model import HASH_LABEL
from controllers.model import OwnerRef, Pod, label_selector
from controllers.scheduling.model import Node, Placement

from .builders import NOW_MS, TEMPLATE, UID, H, S

LABELS: Mapping[str, str] = {"app": "web"}
OURS = OwnerRef("apps/v1", "DaemonSet", "web", UID, True, True)
OLD_HASH, NEW_HASH = "h1", "h2"


def daemon_set(**fields: Any) -> DaemonSet:
    """A DaemonSet default/web that selects app=web and may lack one pod while it is updated."""
    base: dict[str, Any] = {
        "namespace": "default",
        "name": "web",
        "uid": UID,
        "generation": 1,
        "selector": label_selector(LABELS),
        "template": TEMPLATE,
        "template_digest": "d2",
        "placement": Placement(),
        "max_unavailable": 1,
        "status": DaemonSetStatus(observed_generation=1),
    }
    return DaemonSet(**(base | fields))


def node_name(number: int) -> str:
    """Names in the order of the numbers."""
    return f"n{number:03}"


def nodes(count: int) -> dict[str, Node]:
    """So many nodes without labels or taints, by name."""
    return {name: Node(name, f"uid-{name}", {}) for name in map(node_name, range(count))}


_UNREADY: dict[str, Any] = {"ready": False, "ready_since_ms": 0}
_OLD: dict[str, Any] = {"labels": {**LABELS, HASH_LABEL: OLD_HASH}}
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


def daemon_pod(name: str, node: str, **fields: Any) -> Pod:
    """A running, ready pod of default/web on a node, of the current revision; its UID is `uid-<name>`."""
    base: dict[str, Any] = {
        "namespace": "default",
        "name": name,
        "uid": f"uid-{name}",
        "labels": {**LABELS, HASH_LABEL: NEW_HASH},
        "owner_refs": (OURS,),
        "node_name": node,
        "phase": "Running",
        "created_ms": NOW_MS - H,
        "ready": True,
        "ready_since_ms": NOW_MS - H,
    }
    made = base | fields
    return Pod(**made, pinned_node="" if made["node_name"] else node)


def lettered(letters: str, node: str) -> list[Pod]:
    """One pod a letter on one node, the former the older; `<node>-<i><letter>` is its name."""
    return [
        daemon_pod(f"{node}-{i}{letter}", node, created_ms=NOW_MS - H + i * S, **_LETTERS[letter])
        for i, letter in enumerate(letters)
    ]


def parsed(words: str) -> tuple[dict[str, Node], dict[str, list[Pod]], dict[str, tuple[bool, bool]]]:
    """Nodes, pods by node and eligibility from a word a node: its pods, `-` for none.

    In front of them `!`: the node should no longer run a pod, though one there may continue; `?`: there is no such
    node, only its pods.
    """
    known: dict[str, Node] = {}
    podmap: dict[str, list[Pod]] = {}
    eligible: dict[str, tuple[bool, bool]] = {}
    for number, word in enumerate(words.split()):
        node = node_name(number)
        if letters := word.strip("!?-"):
            podmap[node] = lettered(letters, node)
        if "?" not in word:
            known[node] = Node(node, f"uid-{node}", {})
            eligible[node] = ("!" not in word, True)
    return known, podmap, eligible
