"""Tolerations against taints, and the tolerations that every daemon pod gets."""

import json

import pytest

from oarlock.controllers.scheduling.model import Placement, Toleration
from oarlock.controllers.scheduling.tolerations import (
    NO_EXECUTE,
    NO_SCHEDULE,
    tolerates,
    tolerations_for_pods,
    tolerations_json,
    untolerated,
)
from tests.controllers.scheduling.scheduling_builders import taint, tolerating

T = Toleration


@pytest.mark.parametrize(
    ("toleration", "taint_text", "covers"),
    [
        pytest.param(T("k", "Equal", "v", "NoSchedule"), "k=v:NoSchedule", True, id="all equal"),
        pytest.param(T("k", "", "v", "NoSchedule"), "k=v:NoSchedule", True, id="no operator is Equal"),
        pytest.param(T("k", "Equal", "w", "NoSchedule"), "k=v:NoSchedule", False, id="another value"),
        pytest.param(T("k", "", "", "NoSchedule"), "k:NoSchedule", True, id="no value equals no value"),
        pytest.param(T("k", "", "", "NoSchedule"), "k=v:NoSchedule", False, id="no value does not equal a value"),
        pytest.param(T("k", "Exists", "", "NoSchedule"), "k=v:NoSchedule", True, id="Exists, any value"),
        pytest.param(T("k", "Exists", "w", "NoSchedule"), "k=v:NoSchedule", True, id="Exists looks at no value"),
        pytest.param(T("j", "Exists", "", "NoSchedule"), "k=v:NoSchedule", False, id="another key"),
        pytest.param(T("k", "Exists", "", "NoExecute"), "k=v:NoSchedule", False, id="another effect"),
        pytest.param(T("k", "Exists"), "k=v:NoSchedule", True, id="no effect is all: NoSchedule"),
        pytest.param(T("k", "Exists"), "k=v:NoExecute", True, id="no effect is all: NoExecute"),
        pytest.param(T("k", "Exists"), "k=v:PreferNoSchedule", True, id="no effect is all: PreferNoSchedule"),
        pytest.param(T("", "Exists"), "k=v:NoExecute", True, id="no key with Exists covers everything"),
        pytest.param(T("", "Exists", "", "NoSchedule"), "k=v:NoSchedule", True, id="everything of one effect"),
        pytest.param(T("", "Exists", "", "NoSchedule"), "k=v:NoExecute", False, id="nothing of another effect"),
        pytest.param(T("", "Equal", "v"), "k=v:NoExecute", True, id="no key with Equal: by value"),
        pytest.param(T("", "Equal", "w"), "k=v:NoExecute", False, id="no key with Equal: another value"),
        pytest.param(T("k", "Lt", "9", "NoSchedule"), "k=5:NoSchedule", False, id="Lt is behind a gate"),
        pytest.param(T("k", "Gt", "1", "NoSchedule"), "k=5:NoSchedule", False, id="Gt is behind a gate"),
        pytest.param(T("k", "Lt", "5", "NoSchedule"), "k=5:NoSchedule", False, id="Lt, not even an equal value"),
        pytest.param(T("k", "exists", "", "NoSchedule"), "k:NoSchedule", False, id="an unknown operator"),
        pytest.param(T("k", "Exists", "", "NoExecute", 0), "k:NoExecute", True, id="seconds play no part"),
    ],
)
def test_tolerates(toleration, taint_text, covers):
    """One toleration, one taint."""
    assert tolerates(toleration, taint(taint_text)) is covers


@pytest.mark.parametrize(
    ("taints", "tolerations", "no_schedule", "no_execute"),
    [
        pytest.param("", (), False, False, id="no taints"),
        pytest.param("k:NoSchedule", (), True, False, id="NoSchedule"),
        pytest.param("k:NoExecute", (), False, True, id="NoExecute"),
        pytest.param("k:PreferNoSchedule", (), False, False, id="PreferNoSchedule is ignored"),
        pytest.param("k:Other", (), False, False, id="an unknown effect is ignored"),
        pytest.param("k:NoSchedule k:NoExecute", (T("k", "Exists"),), False, False, id="one covers both"),
        pytest.param(
            "k:NoSchedule k:NoExecute", (T("k", "Exists", "", "NoSchedule"),), False, True, id="one effect is covered"
        ),
        pytest.param("k:NoSchedule j:NoSchedule", (T("k", "Exists"),), True, False, id="each taint wants its own"),
        pytest.param("k:NoSchedule j:NoSchedule", (T("k", "Exists"), T("j", "Exists")), False, False, id="two for two"),
    ],
)
def test_untolerated(taints, tolerations, no_schedule, no_execute):
    """Several taints against several tolerations, by effect."""
    parsed = tuple(map(taint, taints.split()))
    assert untolerated(parsed, tolerations, NO_SCHEDULE) is no_schedule
    assert untolerated(parsed, tolerations, NO_EXECUTE) is no_execute


ADDED = (
    T("node.kubernetes.io/not-ready", "Exists", "", "NoExecute"),
    T("node.kubernetes.io/unreachable", "Exists", "", "NoExecute"),
    T("node.kubernetes.io/disk-pressure", "Exists", "", "NoSchedule"),
    T("node.kubernetes.io/memory-pressure", "Exists", "", "NoSchedule"),
    T("node.kubernetes.io/pid-pressure", "Exists", "", "NoSchedule"),
    T("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule"),
)
NETWORK = T("node.kubernetes.io/network-unavailable", "Exists", "", "NoSchedule")
OWN = T("dedicated", "Equal", "gpu", "NoSchedule")
NOT_READY_60_S = T("node.kubernetes.io/not-ready", "Exists", "", "NoExecute", 60)
NOT_READY_EQUAL = T("node.kubernetes.io/not-ready", "Equal", "", "NoExecute")
DISK_ANY = T("node.kubernetes.io/disk-pressure", "Exists")


@pytest.mark.parametrize(
    ("placement", "merged"),
    [
        pytest.param(Placement(), ADDED, id="none of its own"),
        pytest.param(Placement(host_network=True), (*ADDED, NETWORK), id="on the host's network"),
        pytest.param(tolerating(OWN), (OWN, *ADDED), id="its own come first"),
        pytest.param(tolerating(OWN, host_network=True), (OWN, *ADDED, NETWORK), id="its own and the network's"),
        pytest.param(tolerating(ADDED[3], OWN), (ADDED[3], OWN, *ADDED[:3], *ADDED[4:]), id="an identical one stays"),
        pytest.param(tolerating(NOT_READY_60_S), ADDED, id="its seconds are lost"),
        pytest.param(
            tolerating(OWN, NOT_READY_60_S, OWN), (OWN, ADDED[0], OWN, *ADDED[1:]), id="it is replaced where it stands"
        ),
        pytest.param(
            tolerating(NOT_READY_60_S, ADDED[0]), (ADDED[0], ADDED[0], *ADDED[1:]), id="all that are like it"
        ),
        pytest.param(tolerating(NOT_READY_EQUAL), (NOT_READY_EQUAL, *ADDED), id="Equal is another one"),
        pytest.param(tolerating(DISK_ANY), (DISK_ANY, *ADDED), id="all effects is another one"),
        pytest.param(tolerating(NETWORK), (NETWORK, *ADDED), id="the network's own, not on the host's network"),
        pytest.param(tolerating(T("k", "Exists", "", "NoExecute", 60)), (T("k", "Exists", "", "NoExecute", 60), *ADDED),
                     id="other seconds are kept"),
    ],
)  # fmt: skip
def test_default_tolerations(placement, merged):
    """The merge, and its order."""
    assert tolerations_for_pods(placement) == merged


def test_26_3_2_in_the_body_of_a_pod():
    """Nothing is written that is not set; the seconds of others are."""
    written = json.loads(tolerations_json(tolerating(T("k", "", "v", "NoExecute", 0), T("", "Exists"))))
    assert written[:3] == [
        {"key": "k", "value": "v", "effect": "NoExecute", "tolerationSeconds": 0},
        {"operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    ]
    assert len(written) == 2 + len(ADDED)
