"""The names of pods by owner and place, as tests spell them."""

from __future__ import annotations

from oarlock.controllers.daemonset.names import Names
from oarlock.controllers.pods.slots import slots_of


def slot_name(owner_name: str, owner_uid: str, index: int) -> str:
    """Name of the owner's slot ``index``."""
    return slots_of(owner_name, owner_uid).name(index)


def slot_index(owner_name: str, owner_uid: str, pod_name: str) -> int | None:
    """The slot of this owner that a pod's name stands for, or None."""
    return slots_of(owner_name, owner_uid).index_of(pod_name)


def daemon_name(owner_name: str, owner_uid: str, node: str, k: int) -> str:
    """Name of the owner's k-th pod for the node."""
    return Names(owner_name, owner_uid).name(node, k)
