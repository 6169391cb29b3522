"""On which nodes a DaemonSet's pods belong, and which changes of a node concern it.

Numbers are those of the upstream unit cases (`pkg/controller/daemon/daemon_controller_test.go`).
"""

import pytest

from oarlock.controllers.daemonset.node_changes import concerned
from oarlock.controllers.scheduling.eligibility import NEITHER, RUN, STAY, Eligibility, eligibility_of
from oarlock.controllers.scheduling.model import Placement, Toleration
from oarlock.controllers.scheduling.wire import node_from_json
from tests.controllers.objects.test_wire import dumped
from tests.controllers.scheduling.scheduling_builders import fields_term, labels_term, node, req, tolerating

K8S = "node.kubernetes.io"
LINUX, WINDOWS = {"os": "linux"}, {"os": "windows"}
TO_LINUX, TO_WINDOWS = (labels_term(req("os", "In", "linux")),), (labels_term(req("os", "In", "windows")),)
ALL = Toleration("", "Exists")
NO_SCHEDULE_TOLERATED = Toleration("dedicated", "Exists", "", "NoSchedule")
NO_EXECUTE_TOLERATED = Toleration("dedicated", "Exists", "", "NoExecute")


@pytest.mark.parametrize(
    ("placement", "taints", "answer"),
    [
        pytest.param(Placement(), "", RUN, id="nothing asked, nothing in the way"),
        pytest.param(Placement(node_name="n1"), "", RUN, id="40: the node's name"),
        pytest.param(Placement(node_name="n2"), "", NEITHER, id="40: another node's name"),
        pytest.param(Placement(node_name="n1", node_selector=LINUX), "", RUN, id="28: name and selector agree"),
        pytest.param(Placement(node_name="n1", node_selector=WINDOWS), "", NEITHER, id="28: name and selector differ"),
        pytest.param(Placement(node_name="n2", node_selector=LINUX), "", NEITHER, id="28: the name is not found"),
        pytest.param(Placement(node_selector=WINDOWS), "", NEITHER, id="40: selector mismatch"),
        pytest.param(Placement(terms=TO_WINDOWS), "", NEITHER, id="40: affinity mismatch"),
        pytest.param(Placement("n1", LINUX, TO_LINUX), "", RUN, id="40: everything matches"),
        pytest.param(Placement(terms=(fields_term(req("metadata.name", "In", "n1")),)), "", RUN, id="affinity by name"),
        pytest.param(Placement(terms=()), "", NEITHER, id="an affinity without terms"),
        pytest.param(Placement(), "dedicated:NoSchedule", STAY, id="36, 37: NoSchedule lets a pod stay"),
        pytest.param(Placement(), "dedicated:NoExecute", NEITHER, id="36: NoExecute does not"),
        pytest.param(Placement(), "dedicated:PreferNoSchedule", RUN, id="PreferNoSchedule is ignored"),
        pytest.param(Placement(), "a:NoSchedule b:NoExecute", NEITHER, id="the harder effect decides"),
        pytest.param(tolerating(NO_SCHEDULE_TOLERATED), "dedicated:NoSchedule", RUN, id="37: NoSchedule tolerated"),
        pytest.param(tolerating(NO_EXECUTE_TOLERATED), "dedicated:NoExecute", RUN, id="NoExecute tolerated"),
        pytest.param(
            tolerating(NO_EXECUTE_TOLERATED),
            "dedicated:NoSchedule dedicated:NoExecute",
            STAY,
            id="NoExecute tolerated, NoSchedule not",
        ),
        pytest.param(
            tolerating(NO_SCHEDULE_TOLERATED),
            "dedicated:NoSchedule dedicated:NoExecute",
            NEITHER,
            id="NoSchedule tolerated, NoExecute not",
        ),
        pytest.param(tolerating(ALL), "a:NoSchedule b=c:NoExecute", RUN, id="all tolerated"),
        pytest.param(tolerating(ALL, node_selector=WINDOWS), "", NEITHER, id="no toleration helps a selector"),
        pytest.param(Placement(node_selector=WINDOWS), "a:NoSchedule", NEITHER, id="no pod stays on another's node"),
        pytest.param(Placement(), f"{K8S}/not-ready:NoExecute", RUN, id="38: not ready"),
        pytest.param(Placement(), f"{K8S}/unreachable:NoExecute", RUN, id="38: unreachable"),
        pytest.param(Placement(), f"{K8S}/not-ready:NoSchedule", STAY, id="not ready, NoSchedule, is not tolerated"),
        pytest.param(Placement(), f"{K8S}/unreachable:NoSchedule", STAY, id="nor is unreachable, NoSchedule"),
        pytest.param(Placement(), f"{K8S}/disk-pressure:NoSchedule", RUN, id="39: disk pressure"),
        pytest.param(Placement(), f"{K8S}/memory-pressure:NoSchedule", RUN, id="39: memory pressure"),
        pytest.param(Placement(), f"{K8S}/pid-pressure:NoSchedule", RUN, id="39: pid pressure"),
        pytest.param(Placement(), f"{K8S}/unschedulable:NoSchedule", RUN, id="39, 40: cordoned"),
        pytest.param(
            Placement(), f"{K8S}/disk-pressure:NoExecute", NEITHER, id="pressure that evicts is not tolerated"
        ),
        pytest.param(Placement(), f"{K8S}/network-unavailable:NoSchedule", STAY, id="26.4.10: no network"),
        pytest.param(
            Placement(host_network=True),
            f"{K8S}/network-unavailable:NoSchedule",
            RUN,
            id="26.4.10: no network, on the host's network",
        ),
    ],
)
def test_eligible(placement, taints, answer):
    """(should run, should continue). The same for a placement that was seen before, and for the same node twice."""
    one = node("n1", *taints.split())
    fresh, shared = Eligibility(placement), eligibility_of(placement)
    assert fresh.eligible(one) == answer
    assert fresh.eligible(one) == answer
    assert shared.eligible(one) == answer
    assert shared.eligible(node("n1", *taints.split())) == answer


NODE = {
    "metadata": {"name": "n1", "uid": "u", "resourceVersion": "5", "labels": {"os": "linux"}},
    "spec": {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        pytest.param("metadata.resourceVersion", "6", True, id="11, 12: nothing"),
        pytest.param("metadata.labels", {"os": "windows"}, False, id="11, 12: a label"),
        pytest.param("metadata.labels", {"os": "linux", "more": ""}, False, id="12: one label more"),
        pytest.param(
            "spec.taints", [{"key": "dedicated", "value": "x", "effect": "NoExecute"}], False, id="11: effect"
        ),
        pytest.param(
            "spec.taints", [{"key": "dedicated", "value": "y", "effect": "NoSchedule"}], False, id="12: value"
        ),
        pytest.param("spec.taints", [], False, id="12: no taint any more"),
        pytest.param("spec.unschedulable", True, True, id="the cordon flag alone"),
        pytest.param("spec.podCIDR", "10.0.0.0/24", True, id="12: another field of the spec"),
        pytest.param("status.allocatable", {"cpu": "4"}, True, id="11, 20: allocatable"),
        pytest.param("status.conditions", [{"type": "Ready", "status": "False"}], True, id="20: not ready"),
        pytest.param(
            "status.conditions", [{"type": "NetworkUnavailable", "status": "True"}], True, id="20: no network, no taint"
        ),
        pytest.param("metadata.annotations", {"a": "b"}, True, id="12: an annotation"),
    ],
)
def test_only_labels_and_taints_matter(path, value, same):
    """Whatever else changes leaves the projection equal, so that it wakes nobody and turns no answer."""
    before, changed = node_from_json(dumped(NODE))[1], _changed(NODE, path, value)
    assert (node_from_json(dumped(changed))[1] == before) is same


def _changed(obj, path, value):
    head, _, rest = path.partition(".")
    return {**obj, head: _changed(obj.get(head, {}), rest, value) if rest else value}


@pytest.mark.parametrize(
    ("taints", "labels", "scheduled", "misscheduled", "wakes"),
    [
        pytest.param("", LINUX, False, 0, True, id="should run, no pod"),
        pytest.param("", LINUX, True, 0, False, id="should run, has a pod"),
        pytest.param("", LINUX, True, 1, True, id="the pod may have been the misscheduled one"),
        pytest.param("k:NoSchedule", LINUX, False, 0, False, id="tainted, no pod"),
        pytest.param("k:NoSchedule", LINUX, False, 3, False, id="tainted, no pod, others misscheduled"),
        pytest.param("k:NoSchedule", LINUX, True, 0, True, id="tainted, a pod stays and is to be counted"),
        pytest.param("k:NoExecute", LINUX, True, 0, True, id="a pod has to go"),
        pytest.param("k:NoExecute", LINUX, False, 0, False, id="none has to go"),
        pytest.param("", WINDOWS, True, 0, True, id="the label was lost, a pod has to go"),
        pytest.param("", WINDOWS, False, 1, False, id="another's node"),
    ],
)
def test_concerned(taints, labels, scheduled, misscheduled, wakes):
    """A node's change is no business of a DaemonSet unless something may be done or counted."""
    eligibility = eligibility_of(Placement(node_selector=LINUX))
    one = node("n1", *taints.split(), labels=labels)
    assert concerned(one, misscheduled, eligibility, scheduled) is wakes


def test_equal_placements_share_what_was_made_ready():
    """A turn does not compile what another one has."""
    one = Placement(node_selector={"os": "linux"}, tolerations=(ALL,))
    same = Placement(node_selector={"os": "linux"}, tolerations=(Toleration("", "Exists"),))
    assert eligibility_of(one) is eligibility_of(same)
    assert eligibility_of(one) is not eligibility_of(Placement(node_selector={"os": "linux"}))


def test_answers_are_kept_within_bounds():
    """Taints that keep changing do not pile up, and change no answer."""
    eligibility = Eligibility(tolerating(NO_SCHEDULE_TOLERATED))
    for i in range(1000):
        assert eligibility.eligible(node("n1", f"k{i}:NoExecute")) == NEITHER
        assert eligibility.eligible(node("n1", "dedicated:NoSchedule")) == RUN
        assert eligibility.eligible(node("n1")) == RUN
    assert len(eligibility._of_taints) <= 256
