"""Which pods stand on which node."""

import json
from itertools import permutations

import pytest

from oarlock.controllers.daemonset.podmap import pod_map, sort_key
from oarlock.controllers.objects.wire import pod_from_json
from tests.controllers.builders import NOW_MS, S
from tests.controllers.daemonset.daemon_builders import AGENT, dpod, dpods, unassigned


@pytest.mark.parametrize(
    ("letters", "without", "with_ended"),
    [
        pytest.param("R", "R", "R", id="running"),
        pytest.param("ptFS", "ptFS", "ptFS", id="pending, ending, failed and succeeded ones all count"),
        pytest.param("fs", "", "fs", id="26.1.35 finished and being deleted: by the flag"),
        pytest.param("fRs", "R", "fRs", id="26.1.35 beside a running one"),
    ],
)
def test_which_pods_count(letters, without, with_ended):
    """One node, its pods in the order given; a node without any is not in the map."""
    pods = dpods("n1", letters)
    for include_ended, kept in ((False, without), (True, with_ended)):
        expected = [pod for pod, letter in zip(pods, letters, strict=True) if letter in kept]
        assert pod_map(pods, include_ended) == ({"n1": expected} if expected else {})


def sent(spec):
    """A pod as the API tells of it."""
    metadata = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1", "labels": dict(AGENT)}
    _, pod = pod_from_json(json.dumps({"metadata": metadata, "spec": spec, "status": {}}).encode())
    return pod


def terms(*fields):
    """Required node affinity, a term for each list of matchFields."""
    required = {"nodeSelectorTerms": [{"matchFields": list(each)} for each in fields]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def field(*values, key="metadata.name", operator="In"):
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("spec", "node"),
    [
        pytest.param({"nodeName": "n1"}, "n1", id="26.3.4 by node name"),
        pytest.param(terms([field("n1")]), "n1", id="26.3.4 by the field in its affinity"),
        pytest.param({"nodeName": "n2"} | terms([field("n1")]), "n2", id="where it is counts for more"),
        pytest.param(terms([field("x", key="metadata.uid"), field("n1")]), "n1", id="the first field that tells"),
        pytest.param(terms([], [field("n1")]), "n1", id="in a later term"),
        pytest.param({}, None, id="26.3.4 neither"),
        pytest.param(terms([field("n1", "n2")]), None, id="26.3.4 several values"),
        pytest.param(terms([field("n1", operator="NotIn")]), None, id="26.3.4 another operator"),
        pytest.param(terms([field("n1", key="metadata.uid")]), None, id="26.3.4 another field"),
    ],
)
def test_target_node(spec, node):
    """Upstream has an error where there is none; here the pod is left out, as upstream does with the error."""
    pod = sent(spec)
    assert pod_map([pod]) == ({} if node is None else {node: [pod]})


def test_order_among_the_pods_of_a_node():
    """Assigned before unassigned, then older, then by name. The phase does not matter."""
    older = dpod("n1", name="x", created_ms=NOW_MS - 9 * S, phase="Failed")
    expected = [older, dpod("n1", name="a", created_ms=NOW_MS), dpod("n1", name="b", created_ms=NOW_MS)]
    expected += [unassigned("n1", created_ms=NOW_MS - 99 * S)]
    for pods in permutations(expected):
        assert sorted(pods, key=sort_key) == expected
