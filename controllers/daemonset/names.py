"""Names of daemon pods: the name of an owner's k-th pod for a node is a function of the owner, the node and k.

So two writers that do not know of each other choose the same name for a node, and the API server refuses one of them:
there is never a second pod, nor a third where an update may surge. k counts up only past a name that cannot be had:

- it is borne by something that is no pod of this owner for this node, which may stay for ever;
- it is borne by a pod of this owner that has finished, is being deleted and hangs on a finalizer.

A name that was passed over becomes free once its bearer has gone, so there the guarantee needs the record: a *held*
name, whose create another holder announced and may still land, is never passed over. It counts as one of the node's
names, be it free or not.

A name is `<owner>-`, cut to 55 characters, and eight characters of the slot alphabet.
"""

from collections.abc import Container, Iterable, Mapping, Set
from hashlib import sha256
from itertools import count as count_up
from typing import NamedTuple

from controllers.daemonset.podmap import PodMap
from controllers.model import FINISHED_PHASES, Pod
from controllers.slots import ALPHABET, name_prefix

NAME_CHARS_MAX = 63
SUFFIX_CHARS = 8
HELD_UP_TO = 4
"""Below which k a held name is found even though names before it have become free."""

_PAIRS = tuple(x + y for x in ALPHABET for y in ALPHABET)
_PAIR_COUNT = len(_PAIRS)


class Chosen(NamedTuple):
    """`nodes`: node by pod name, in the order in which to create. `held_back`: nodes that get no pod for now because
    of names that are held.
    """

    nodes: dict[str, str]
    held_back: int


class Names:
    """The names of one owner's pods."""

    __slots__ = ("_base", "_uid")

    def __init__(self, owner_name: str, owner_uid: str) -> None:
        self._base = name_prefix(owner_name)[: NAME_CHARS_MAX - SUFFIX_CHARS]
        self._uid = owner_uid

    def name(self, node: str, k: int) -> str:
        """The k-th name for the node."""
        # neither a UID nor the name of a node contains a slash
        value = int.from_bytes(sha256(f"{self._uid}/{node}/{k}".encode()).digest()[:8], "big")
        value, a = divmod(value, _PAIR_COUNT)
        value, b = divmod(value, _PAIR_COUNT)
        value, c = divmod(value, _PAIR_COUNT)
        return f"{self._base}{_PAIRS[a]}{_PAIRS[b]}{_PAIRS[c]}{_PAIRS[value % _PAIR_COUNT]}"


def name(owner_name: str, owner_uid: str, node: str, k: int) -> str:
    """Name of the owner's k-th pod for the node."""
    return Names(owner_name, owner_uid).name(node, k)


class Taken:
    """Who bears which name, and which names may yet be borne."""

    __slots__ = ("_bearers", "_claimed", "blocked", "held")

    def __init__(self, pods: Iterable[Pod], claimed: Iterable[Pod], held: Set[str], blocked: Container[str]) -> None:
        """`pods`: all that are known of. `claimed`: those of them that are the owner's. `blocked`: names borne by pods
        that are not known otherwise.
        """
        self._bearers: Mapping[str, Pod] = {pod.name: pod for pod in pods}
        self._claimed: Set[str] = {pod.uid for pod in claimed}
        self.held, self.blocked = held, blocked

    def is_borne(self, name: str) -> bool:
        """Whether a create under this name would meet somebody."""
        return name in self._bearers or name in self.blocked

    def is_passed_over(self, name: str, node: str) -> bool:
        """Whether the name, which is not held, does not count as one of the node's."""
        pod = self._bearers.get(name)
        if pod is None:
            return name in self.blocked
        if pod.uid not in self._claimed or (pod.hangs and pod.phase in FINISHED_PHASES):
            return True
        # One of ours that nothing ties to a node yet can only have been made for this one.
        return (pod.node_name or pod.pinned_node or node) != node


def choose(names: Names, wanted: Iterable[str], podmap: PodMap, taken: Taken, limit: int, count: int) -> Chosen:
    """A name for one more pod on each of the `wanted` nodes, for at most `count` of them, held names first.

    `limit`: how many pods of the owner may be on a node at all. A node that has as many already, in whatever state
    they are, gets none; nor does one whose `limit` names are all borne.
    """
    held: dict[str, str] = {}
    fresh: dict[str, str] = {}
    held_back = 0
    for node in wanted:
        if not taken.held and len(fresh) >= count:
            break
        present = podmap.get(node, ())
        if len(present) >= limit:
            continue
        free, waits = _free_name(names, node, present, taken, limit, fresh)
        held_back += waits
        if free in taken.held:
            held[free] = node
        elif free:
            fresh[free] = node
    chosen = {**held, **fresh}
    return Chosen(chosen if len(chosen) <= count else dict(list(chosen.items())[:count]), held_back)


def _free_name(
    names: Names, node: str, present: Iterable[Pod], taken: Taken, limit: int, others: Container[str]
) -> tuple[str, bool]:
    """The name of the node's next pod; or none, and whether that is because of names that are held.

    One that is held and free comes first, for its create may land anyway. Otherwise it is one of the first `limit`
    that are not passed over, if the pods present and what may come of held names leave room for it. `others`: names
    just given to other nodes.
    """
    held: list[str] = []
    usable: list[str] = []
    for k in count_up():
        if len(usable) >= limit and (k >= HELD_UP_TO or not taken.held):
            break
        name = names.name(node, k)
        if name in taken.held:
            if not taken.is_borne(name):
                return name, False
            held.append(name)
        elif name not in others and not taken.is_passed_over(name, node):
            usable.append(name)
    if held and len({pod.name for pod in present}.union(held)) >= limit:
        return "", True
    return next((name for name in usable[:limit] if not taken.is_borne(name)), ""), False
