"""What of a node matters, and what does not."""

import json

import pytest

from controllers.daemonset.decide import decide
from controllers.scheduling.model import Placement, Taint, Toleration
from controllers.scheduling.wire import node_from_json

from .builders import NOW_MS, with_fields
from .daemon_builders import (
    created,
    deleted,
    dpods,
    ds,
    nodes,
    slot,
    snap,
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
