"""Pods that no node takes, found again by the node whose change may help them. Pure."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]


class Parked:
    """Pods by uid: those for certain nodes only, and those for any."""

    def __init__(self) -> None:
        self._pods: dict[str, Obj] = {}
        self._nodes_of: dict[str, frozenset[str]] = {}  # those pinned -> their nodes
        self._for_node: dict[str, dict[str, None]] = {}
        self._for_any: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, uid: str, pod: Obj, pinned: frozenset[str] | None) -> None:
        """Park a pod; `pinned` are the only nodes it can ever go to, None for any."""
        self.pop(uid)
        self._pods[uid] = pod
        if pinned is None:
            self._for_any[uid] = None
            return
        self._nodes_of[uid] = pinned
        for node in pinned:
            self._for_node.setdefault(node, {})[uid] = None

    def replace(self, uid: str, pod: Obj) -> bool:
        """Take note of a change. False, and the pod is parked no more, if it asks for something else now."""
        known = self._pods.get(uid)
        if known is None:
            return False
        if known["spec"] == pod["spec"]:
            self._pods[uid] = pod
            return True
        self.pop(uid)
        return False

    def pop(self, uid: str) -> Obj | None:
        """Take one out. None if it is not here."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return None
        self._for_any.pop(uid, None)
        for node in self._nodes_of.pop(uid, ()):
            others = self._for_node[node]
            del others[uid]
            if not others:
                del self._for_node[node]
        return pod

    def take(self, node: str) -> dict[str, Obj]:
        """Take out those for any node, then those for this one; each in the order in which they came."""
        if not self._for_any and node not in self._for_node:
            return {}
        uids = [*self._for_any, *self._for_node.get(node, ())]
        return {uid: pod for uid in uids if (pod := self.pop(uid)) is not None}
