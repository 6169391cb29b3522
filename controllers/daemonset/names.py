"""Names of daemon pods: the name of an owner's k-th pod for a node is a function of the owner, the node and k.

So two writers that do not know of each other choose the same name for a node, and the API server refuses one of them:
there is never a second pod, nor a third if an update may surge. k counts up only past a name that cannot be used:

- a pod has it that is not this owner's pod for this node, and may stay for ever;
- a pod of this owner has it that has finished, is being deleted, and is held by a finalizer.

A name that was passed over becomes free once its pod has gone. There the guarantee needs the expectations: a *reserved*
name, whose create was announced and may still land, is never passed over. It counts as one of the node's names, free
or not. A refused or resting name does not move its node to another name: the node waits.

A name is `<owner>-`, cut to 55 characters, and eight characters of the slot alphabet.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Set
from hashlib import sha256
from itertools import count as count_up
from itertools import islice

from oarlock.controllers.daemonset.podmap import PodMap
from oarlock.controllers.objects.model import FINISHED_PHASES, Pod, is_active
from oarlock.controllers.plan import Unanswered
from oarlock.controllers.pods.slots import ALPHABET, name_prefix

NAME_CHARS_MAX = 63
SUFFIX_CHARS = 8

_PAIRS = tuple(x + y for x in ALPHABET for y in ALPHABET)
_PAIR_COUNT = len(_PAIRS)


def base_of(owner_name: str) -> str:
    """The beginning of the names of an owner's pods."""
    return name_prefix(owner_name)[: NAME_CHARS_MAX - SUFFIX_CHARS]


class Names:
    """The names of one owner's pods."""

    __slots__ = ("_base", "_uid")

    def __init__(self, owner_name: str, owner_uid: str) -> None:
        self._base = base_of(owner_name)
        self._uid = owner_uid

    def name(self, node: str, k: int) -> str:
        """The k-th name for the node."""
        # neither a UID nor the name of a node contains a slash
        value = int.from_bytes(sha256(f"{self._uid}/{node}/{k}".encode()).digest()[:8], "big")
        value, a = divmod(value, _PAIR_COUNT)
        value, b = divmod(value, _PAIR_COUNT)
        value, c = divmod(value, _PAIR_COUNT)
        return f"{self._base}{_PAIRS[a]}{_PAIRS[b]}{_PAIRS[c]}{_PAIRS[value % _PAIR_COUNT]}"


class Taken:
    """Which pod has which name, and which names may still be taken."""

    __slots__ = ("_bearers", "_claimed", "blocked", "passed", "reserved", "resting", "waiting")

    def __init__(
        self, pods: Iterable[Pod], claimed: Iterable[Pod], unanswered: Unanswered, blocked: Container[str]
    ) -> None:
        """`pods`: all that are known. `claimed`: the owner's among them. `blocked`: names of pods that are
        not in `pods`. `reserved`: by node.
        """
        self._bearers: Mapping[str, Pod] = {pod.name: pod for pod in pods}
        self._claimed: Set[str] = {pod.uid for pod in claimed}
        self.blocked, self.passed, self.resting = blocked, unanswered.passed, unanswered.resting
        self.waiting = unanswered.quiet | unanswered.resting
        self.reserved: dict[str, list[str]] = {}
        for name in sorted(unanswered.creates & unanswered.nodes.keys()):
            self.reserved.setdefault(unanswered.nodes[name], []).append(name)

    def is_borne(self, name: str) -> bool:
        """Whether a create under this name would find it taken."""
        return name in self._bearers or name in self.blocked

    def is_passed_over(self, name: str, node: str) -> bool:
        """Whether the name, which is not reserved, is not one of the node's names."""
        pod = self._bearers.get(name)
        if pod is None:
            return name in self.blocked
        if pod.uid not in self._claimed or (pod.hangs and pod.phase in FINISHED_PHASES):
            return True
        # One of ours without any node yet can only have been made for this one.
        return (pod.node_name or pod.pinned_node or node) != node


def choose(
    names: Names, nodes: Iterable[str], podmap: PodMap, taken: Taken, wanted: int, limit: int, count: int
) -> dict[str, str]:
    """A name for one more pod on each of the nodes, for at most `count` of them.

    Returns the node by pod name, in the order of sending: reserved names first, refused names last. `wanted`: how many
    pods of the owner are to be active on each of these nodes. `limit`: how many may be there in any state. A node with
    `limit` pods gets none, nor does one whose `limit` names are all taken, or whose name may not be used now.
    """
    found: dict[str, str] = {}
    again: list[str] = []
    refused = 0
    for node in nodes:
        if len(found) - refused >= count and node not in taken.reserved:
            if not taken.reserved:
                break
            continue  # a reserved name of a later node comes before these, another one would come after them
        if limit == 1 and node in taken.reserved and taken.waiting.issuperset(taken.reserved[node]):
            continue  # there is no other name for it, and this one waits
        present = podmap.get(node, ())
        if len(present) >= limit:
            continue
        name = _free_name(names, node, present, taken, wanted, limit, found)
        if not name or name in taken.waiting:
            continue
        found[name] = node
        refused += name in taken.passed
        if name in taken.reserved.get(node, ()):
            again.append(name)
    if again or taken.passed:
        rank = dict.fromkeys(again, 0) | dict.fromkeys(taken.passed, 2)
        found = dict(sorted(found.items(), key=lambda each: rank.get(each[0], 1)))
    return found if len(found) <= count else dict(islice(found.items(), count))


def expected_on(podmap: PodMap, taken: Taken) -> set[str]:
    """Nodes whose announced create may have succeeded without the cache showing the pod yet."""
    return {node for node, names in taken.reserved.items() if set(names) - {pod.name for pod in podmap.get(node, ())}}


def _free_name(
    names: Names, node: str, present: Collection[Pod], taken: Taken, wanted: int, limit: int, others: Container[str]
) -> str:
    """The name of the node's next pod, or none.

    A reserved name that is free comes first, since its create may land anyway. Otherwise it is one of the first `limit`
    names that are not passed over. There is none if the pods present and the reserved names leave no room, or if one of
    the node's names rests. `others`: names just given to other nodes.
    """
    reserved = taken.reserved.get(node, [])
    first_will_do = not reserved and not taken.resting
    usable: list[str] = []
    for k in count_up():
        if len(usable) >= limit:
            break
        name = names.name(node, k)
        if name not in others and name not in reserved and not taken.is_passed_over(name, node):
            if first_will_do and not taken.is_borne(name):
                return name
            usable.append(name)
    if taken.resting and not taken.resting.isdisjoint((*usable, *reserved)):
        return ""
    free = next((name for name in usable if not taken.is_borne(name)), "")
    if not reserved:
        return free
    existing = len({pod.name for pod in present}.union(reserved))
    active = len({pod.name for pod in present if is_active(pod)}.union(reserved))
    if existing > limit or active > wanted:
        return ""
    again = next((name for name in reserved if not taken.is_borne(name)), "")
    return again or (free if existing < limit and active < wanted else "")
