"""Names of daemon pods, and which of them a node gets."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.controllers.daemonset.names import Names, Taken, choose, expected_on
from oarlock.controllers.daemonset.podmap import pod_map
from oarlock.controllers.plan import Unanswered
from oarlock.controllers.pods.slots import ALPHABET
from tests.controllers.builders import NOW_MS, S
from tests.controllers.daemonset.daemon_builders import DS_UID, dpod, dpods, slot, unassigned
from tests.controllers.pod_names import daemon_name

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
OWNERS = st.lists(LABELS, min_size=1, max_size=10).map(".".join).map(lambda text: text[:253].rstrip("-."))
NODES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
UIDS = st.uuids().map(str)
AGENT_NAMES = Names("agent", DS_UID)


@given(OWNERS, UIDS, NODES, st.integers(0, 50))
def test_a_name_is_a_legal_name(owner, uid, node, k):
    """A DNS subdomain of at most 63 characters that begins as the owner's name does and ends like a generated one."""
    got = daemon_name(owner, uid, node, k)
    assert SUBDOMAIN.fullmatch(got)
    assert len(got) <= 63
    assert got[:-8] == f"{owner}-"[:55]
    assert set(got[-8:]) <= set(ALPHABET)


@given(UIDS, UIDS, st.sets(NODES, min_size=2, max_size=20))
def test_names_differ(uid, other_uid, known):
    """From node to node, from one k to the next, and from an owner to its successor of the same name."""
    uids = {uid, other_uid}
    every = {daemon_name("agent", each, node, k) for each in uids for node in known for k in range(4)}
    assert len(every) == len(uids) * len(known) * 4


def test_names_of_many_nodes_differ():
    """5,000 nodes, three names each."""
    assert len({slot(f"node-{i}", k) for i in range(5000) for k in range(3)}) == 15_000


def test_names_stay_as_they_are():
    """A process of another version must choose the same ones."""
    assert (slot("n1"), slot("n1", 1), slot("n2")) == ("agent-mq5bt5n2", "agent-s627gs8s", "agent-qc2psrh5")


def chosen(wanted, pods=(), strangers=(), reserved=(), blocked=(), limit=1, count=250, active=0, **open_names):
    """Node and k of each choice in order. ``active``: how many pods are to be active on a node, if not `limit`."""
    known = {slot(node, k): (node, k) for node in wanted for k in range(9)}
    reserved = frozenset(reserved)
    words = {word: frozenset(names) for word, names in open_names.items()}
    unanswered = Unanswered(creates=reserved, nodes={name: known[name][0] for name in reserved}, **words)
    taken = Taken((*pods, *strangers), pods, unanswered, frozenset(blocked))
    got = choose(AGENT_NAMES, wanted, pod_map(pods), taken, active or limit, limit, count)
    assert all(known[each][0] == node for each, node in got.items())
    return [known[each] for each in got]


FOREIGN = {"owner_refs": ()}
N0, N1, N2 = (slot("n1", k) for k in range(3))


@pytest.mark.parametrize(
    ("facts", "limit", "k"),
    [
        pytest.param({}, 1, 0, id="an empty node: the first"),
        pytest.param({"reserved": [N0]}, 1, 0, id="reserved or not"),
        pytest.param({"blocked": [N0]}, 1, 1, id="blocked: the next"),
        pytest.param({"blocked": [N0, N1]}, 1, 2, id="two blocked"),
        pytest.param({"strangers": [dpod("n9", name=N0)]}, 1, 1, id="borne by what is not ours: the next"),
        pytest.param({"pods": [dpod("n9", name=N0)]}, 1, 1, id="borne by ours on another node: the next"),
        pytest.param({"pods": [unassigned("", name=N0)]}, 1, None, id="borne by ours that nothing ties to a node"),
        pytest.param({"pods": dpods("n1", "f")}, 1, 1, id="ours hangs on a finalizer: the next"),
        pytest.param({"pods": dpods("n1", "sf")}, 1, 2, id="two hang on finalizers"),
        pytest.param({"pods": dpods("n1", "e")}, 1, None, id="ours has ended and is about to go: none yet"),
        pytest.param(
            {"pods": dpods("n1", "f"), "reserved": [N0]}, 1, None, id="it does, and its name is reserved: none"
        ),
        pytest.param({"pods": dpods("n1", "f"), "reserved": [N1]}, 1, 1, id="it does, and the next is reserved"),
        pytest.param(
            {"pods": dpods("n1", "ff"), "reserved": [N1]}, 1, None, id="the second hangs and is reserved: none"
        ),
        pytest.param({"reserved": [N1]}, 1, 1, id="a reserved name before the first: it may land anyway"),
        pytest.param({"blocked": [N0], "reserved": [N0]}, 1, None, id="blocked and reserved: none"),
        pytest.param({"pods": dpods("n1", "R")}, 1, None, id="a pod is there"),
        pytest.param({"pods": dpods("n1", "t")}, 1, None, id="a pod is on its way out"),
        pytest.param({"pods": [dpod("n1", 3)]}, 1, None, id="a pod is there, whatever its name"),
        pytest.param({"pods": dpods("n1", "O")}, 2, 1, id="surge: the second beside the first"),
        pytest.param({"pods": [dpod("n1", 1)]}, 2, 0, id="surge: the first beside the second"),
        pytest.param({"pods": dpods("n1", "OR")}, 2, None, id="surge: no third"),
        pytest.param({"pods": dpods("n1", "tF")}, 2, None, id="surge: no third, though none of the two runs"),
        pytest.param({"pods": [dpod("n1", 5), dpod("n1", 6)]}, 2, None, id="surge: no third, whatever their names"),
        pytest.param({"pods": dpods("n1", "O"), "blocked": [N1]}, 2, 2, id="surge: past a blocked one"),
        pytest.param({"pods": dpods("n1", "fO")}, 2, 2, id="surge: past one that hangs on a finalizer"),
        pytest.param({"pods": dpods("n1", "f"), "reserved": [N0]}, 2, 1, id="surge: a reserved name is one of the two"),
        pytest.param(
            {"pods": dpods("n1", "fO"), "reserved": [N0]}, 2, None, id="surge: reserved one, old one, no third"
        ),
        pytest.param(
            {"pods": dpods("n1", "fsO"), "reserved": [N1]}, 2, None, id="surge: a reserved one that is not the first"
        ),
        pytest.param({"reserved": [N1]}, 2, 1, id="surge: a reserved name first"),
        pytest.param({"pods": [dpod("n1", 1)], "reserved": [N1]}, 2, 0, id="surge: the reserved one is there"),
        pytest.param({"reserved": [N0, N1]}, 1, None, id="two may come, one is wanted: none is sent"),
        pytest.param({"reserved": [N0, N1]}, 2, 0, id="surge: both may come"),
        pytest.param({"pods": [dpod("n1", 5)], "reserved": [N0, N1]}, 2, None, id="surge: a third might come"),
        pytest.param({"reserved": [N0], "quiet": [N0]}, 1, None, id="it is not to be sent now: the node waits"),
        pytest.param({"reserved": [N0], "quiet": [N0]}, 2, None, id="surge: nor is the next taken for it"),
        pytest.param({"resting": [N0]}, 1, None, id="it rests: the node waits"),
        pytest.param({"resting": [N0]}, 2, None, id="surge: it rests, and the next is not taken for it"),
        pytest.param({"pods": dpods("n1", "f"), "resting": [N0]}, 1, 1, id="its bearer hangs on a finalizer: the next"),
        pytest.param({"resting": [N1]}, 2, None, id="surge: the second rests, nor is the first taken"),
        pytest.param({"reserved": [N0], "resting": [N0]}, 1, None, id="reserved, and it rests"),
        pytest.param({"reserved": [N0], "active": 1}, 2, 0, id="surge, one is wanted: it is sent again"),
        pytest.param({"reserved": [N0, N1], "active": 1}, 2, None, id="surge, one is wanted, two may come"),
        pytest.param(
            {"reserved": [N0], "blocked": [N0], "active": 1}, 2, None, id="surge, one is wanted, one may come"
        ),
        pytest.param(
            {"pods": dpods("n1", "t"), "reserved": [N1], "active": 1}, 2, 1, id="surge: one ends, one may come"
        ),
        pytest.param({"reserved": [slot("n1", 7)]}, 1, 7, id="reserved however many names before it were passed over"),
        pytest.param({"passed": [N0]}, 1, 0, id="it was refused: all the same"),
    ],
)
def test_name_of_a_node(facts, limit, k):
    """The one name that a node's next pod may bear, or that there is none."""
    assert chosen(["n1"], limit=limit, **facts) == ([] if k is None else [("n1", k)])


def test_reserved_names_come_first():
    """A burst settles what may land anyway before it adds to it."""
    wanted = [f"n{i}" for i in range(6)]
    got = chosen(wanted, reserved=[slot("n3"), slot("n5")], count=4)
    assert got == [("n3", 0), ("n5", 0), ("n0", 0), ("n1", 0)]


def test_names_that_were_refused_come_last():
    """So that they keep no other node from its pod; no other name is taken for them."""
    wanted = [f"n{i}" for i in range(3)]
    assert chosen(wanted, passed=[slot("n0")]) == [("n1", 0), ("n2", 0), ("n0", 0)]


def test_count_is_kept():
    """Also when all names are reserved."""
    wanted = [f"n{i}" for i in range(6)]
    assert chosen(wanted, count=4) == [(node, 0) for node in wanted[:4]]
    assert chosen(wanted, reserved=map(slot, wanted), count=4) == [(node, 0) for node in wanted[:4]]


def test_a_name_is_given_once():
    """Should two nodes ever share a name, the second takes its next one."""

    class Clashing(Names):
        def name(self, node, k):
            return f"clash-{k}" if node in ("n1", "n2") and k == 0 else super().name(node, k)

    got = choose(Clashing("agent", DS_UID), ["n1", "n2"], {}, Taken((), (), Unanswered(), ()), 1, 1, 250)
    assert got == {"clash-0": "n1", slot("n2", 1): "n2"}


POD_STATES = st.tuples(
    st.integers(0, 3), st.sampled_from(("Pending", "Running", "Succeeded", "Failed")), st.sampled_from((0, NOW_MS - S))
)


@given(
    st.dictionaries(st.integers(0, 4), POD_STATES, max_size=4),
    st.frozensets(st.integers(0, 3), max_size=3),
    st.frozensets(st.integers(0, 3), max_size=2),
    st.sampled_from((1, 2)),
)
def test_what_may_come_to_be_stays_within_the_limit(states, reserved, blocked, limit):
    """Own pods that count, reserved names that may come true, and the new one: within the limit, unless there was more
    than that already.
    """
    pods = [dpod("n1", k, phase=phase, deleting_ms=gone) for k, (_, phase, gone) in states.items()]
    reserved_names, taken_names = {slot("n1", k) for k in reserved}, {slot("n1", k) for k in blocked - states.keys()}
    got = chosen(["n1"], pods, reserved=reserved_names, blocked=taken_names, limit=limit)
    present = {pod.name for pod in pods if not (pod.deleting_ms and pod.phase in ("Succeeded", "Failed"))}
    before, after = present | reserved_names, present | reserved_names | {slot("n1", k) for _, k in got}
    if len(before) <= limit:
        assert len(after) <= limit
    else:
        assert after == before


FIVE = ("n1", "n2", "n3", "n4", "n5")
SOME = st.frozensets(st.sampled_from([slot(node, k) for node in FIVE for k in (0, 1)]), max_size=4)


@given(SOME, SOME, SOME, st.integers(1, 5), st.sampled_from((1, 2)))
def test_few_are_the_first_of_all(reserved, passed, quiet, count, limit):
    """However many may be chosen, the order is the same: of few nodes no more is looked at than they need."""
    words = {"reserved": reserved, "passed": passed, "quiet": quiet, "limit": limit}
    assert chosen(FIVE, count=count, **words) == chosen(FIVE, **words)[:count]


def test_where_a_create_may_have_succeeded_unseen():
    """Not on a node whose reserved name is that of a pod that the cache shows."""
    pods = (*dpods("n1", "R"), *dpods("n3", "R"))
    reserved = {slot("n1"): "n1", slot("n2"): "n2", slot("n3"): "n3", slot("n3", 1): "n3"}
    taken = Taken(pods, pods, Unanswered(creates=frozenset(reserved), nodes=reserved), frozenset())
    assert expected_on(pod_map(pods), taken) == {"n2", "n3"}
