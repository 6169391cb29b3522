"""What of a node matters, and what does not."""

import json

import pytest

from oarlock.controllers.daemonset.decide import decide
from oarlock.controllers.daemonset.manage import CONFIRMED_AGAIN_MS
from oarlock.controllers.scheduling.model import Placement, Taint, Toleration
from oarlock.controllers.scheduling.wire import node_from_json
from tests.controllers.builders import NOW_MS, with_fields
from tests.controllers.daemonset.daemon_builders import (
    created,
    deleted,
    dpods,
    ds,
    names_of,
    nodes,
    slot,
    snap,
    surging,
    unassigned,
)


def condition(kind, value):
    return {"conditions": [{"type": kind, "status": value}]}


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        pytest.param({}, condition("Ready", "False"), id="26.1.20 not ready"),
        pytest.param({}, {"allocatable": {"cpu": "0", "memory": "0", "pods": "0"}}, id="26.1.20 no capacity left"),
        pytest.param({}, condition("NetworkUnavailable", "True"), id="26.1.20 network unavailable, by condition alone"),
        pytest.param({"unschedulable": True}, {}, id="26.1.40 cordoned, by the flag alone"),
    ],
)
def test_state_of_a_node_that_does_not_matter(spec, state):
    """The node gets its pod, as far as conditions, capacity and the flag go."""
    raw = {"metadata": {"name": "n1", "uid": "u", "resourceVersion": "1"}, "spec": spec, "status": state}
    _, known = node_from_json(json.dumps(raw).encode())
    assert created(decide(snap({"n1": known}), NOW_MS)) == ["n1"]


def condition_taint(name, effect="NoSchedule"):
    return Taint(f"node.kubernetes.io/{name}", effect)


OWN = Taint("own", "NoSchedule", "v")
TOLERANT = ds(placement=Placement(tolerations=(Toleration("own", "Equal", "v"),)))


@pytest.mark.parametrize(
    ("taint", "owner", "gets", "keeps"),
    [
        pytest.param(OWN, ds(), False, True, id="26.1.36, 26.1.37 NoSchedule: no new one, the one there stays"),
        pytest.param(with_fields(OWN, effect="NoExecute"), ds(), False, False, id="26.1.36 NoExecute: it goes"),
        pytest.param(OWN, TOLERANT, True, True, id="26.1.37 tolerated"),
        pytest.param(with_fields(OWN, effect="NoExecute"), TOLERANT, True, True, id="26.1.37 tolerated, NoExecute"),
        pytest.param(condition_taint("not-ready", "NoExecute"), ds(), True, True, id="26.1.38 not ready"),
        pytest.param(condition_taint("unreachable", "NoExecute"), ds(), True, True, id="26.1.38 unreachable"),
        pytest.param(condition_taint("disk-pressure"), ds(), True, True, id="26.1.39 disk pressure"),
        pytest.param(condition_taint("memory-pressure"), ds(), True, True, id="26.1.39 memory pressure"),
        pytest.param(condition_taint("pid-pressure"), ds(), True, True, id="26.1.39 pid pressure"),
        pytest.param(condition_taint("unschedulable"), ds(), True, True, id="26.1.39 unschedulable"),
    ],
)
def test_taints(taint, owner, gets, keeps):
    """Whether a tainted node gets a pod, and whether it keeps one."""
    known = nodes("n1", taints=(taint,))
    assert created(decide(snap(known, (), owner), NOW_MS)) == (["n1"] if gets else [])
    assert deleted(decide(snap(known, dpods("n1", "R"), owner), NOW_MS)) == ([] if keeps else [slot("n1")])


def test_a_failed_pod_where_none_is_to_be_created():
    """It goes as elsewhere, and nothing comes after it."""
    known = nodes("n1", taints=(OWN,))
    assert deleted(decide(snap(known, dpods("n1", "F")), NOW_MS)) == [slot("n1")]
    assert not decide(snap(known), NOW_MS).writes


TAINTED = nodes("n1", taints=(Taint("own", "NoExecute"),))


@pytest.mark.parametrize(
    ("known", "pods", "owner", "writes", "old_writes"),
    [
        pytest.param(TAINTED, dpods("n1", "R"), ds(), "-n1/0", "", id="where none may be"),
        pytest.param(TAINTED, dpods("n1", "t"), ds(), "", "", id="where none may be, going already"),
        pytest.param(
            nodes("n1"), (*dpods("n1", "R"), unassigned("n2")), ds(), "-n2/0", "", id="for a node that is gone"
        ),
        pytest.param(nodes("n1", "n2"), dpods("n1", "O"), ds(), "+n2", "+n2", id="a node without"),
        pytest.param(nodes("n1"), dpods("n1", "RR"), ds(), "-n1/1", "-n1/1", id="two on a node: whatever it is like"),
        pytest.param(nodes("n1"), dpods("n1", "F"), ds(), "-n1/0", "-n1/0", id="one that failed"),
        pytest.param(nodes("n1"), dpods("n1", "O"), ds(), "-n1/0", "", id="a step of the update"),
        pytest.param(nodes("n1"), dpods("n1", "O"), surging(), "+n1", "", id="a step that surges"),
        pytest.param(nodes("n1"), dpods("n1", "O"), ds(strategy="OnDelete"), "", "", id="OnDelete"),
        pytest.param(
            TAINTED | nodes("n2"), (*dpods("n1", "R"), *dpods("n2", "O")), ds(), "-n1/0", "", id="no step instead"
        ),
        pytest.param(
            TAINTED | nodes("n2"), (*dpods("n1", "R"), *dpods("n2", "RR")), ds(), "-n1/0 -n2/1", "-n2/1", id="the rest"
        ),
    ],
)
def test_nodes_that_nobody_has_confirmed_for_long(known, pods, owner, writes, old_writes):
    """Nothing goes for what they are said to be like, and what is held back is looked at again soon."""

    def told(plan):
        created_on = [f"+{node}" for node in created(plan)]
        return sorted(created_on + [f"-{name}" for name in deleted(plan)])

    def meant(text):
        words = [word if word.startswith("+") else f"-{names_of(word[1:])[0]}" for word in text.split()]
        return sorted(words)

    fresh, old = (decide(snap(known, pods, owner, nodes_old=each), NOW_MS) for each in (False, True))
    assert (told(fresh), told(old)) == (meant(writes), meant(old_writes))
    assert fresh.again_ms is None
    assert old.again_ms == (None if writes == old_writes else CONFIRMED_AGAIN_MS)
