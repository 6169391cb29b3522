"""A plan from counts is the one from the pods, or there is none."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.controllers.objects.model import Condition, ReplicaSetStatus, label_selector
from oarlock.controllers.plan import Plan, Snapshot
from oarlock.controllers.pods.classes import class_of
from oarlock.controllers.replicaset.at_rest import at_rest
from oarlock.controllers.replicaset.decide import decide
from oarlock.controllers.replicaset.status import status
from tests.controllers.builders import NOW_MS, WEB, pod, pods, rs

LABELS = ({"app": "web"}, {"app": "web", "track": "a"}, {"app": "web", "track": "b"}, {"app": "else"}, {})
FAILURE = Condition("ReplicaFailure", "True", "FailedCreate", "why", NOW_MS)


def counts(found):
    """As the cache keeps them, of the pods of default/web."""
    return Counter(class_of(each) for each in found)


@st.composite
def owned(draw):
    """A pod of default/web, in any state."""
    return pod(
        "p",
        labels=draw(st.sampled_from(LABELS[:3] * 4 + LABELS)),
        namespace=draw(st.sampled_from(("default",) * 20 + ("other",))),
        phase=draw(st.sampled_from(("Running", "Running", "Running", "Pending", "", "Unknown", "Failed", "Succeeded"))),
        ready=draw(st.booleans()),
        deleting_ms=draw(st.sampled_from((0, 0, 0, NOW_MS))),
        node_name=draw(st.sampled_from(("", "n1"))),
        hangs=draw(st.booleans()),
    )


owners = st.builds(
    rs,
    replicas=st.integers(0, 6),
    generation=st.integers(1, 2),
    selector=st.sampled_from(
        (label_selector(WEB), label_selector({}), label_selector({"app": "web", "track": "a"}), None)
    ),
    template_labels=st.sampled_from(({"app": "web"}, {"app": "web", "track": "a"})),
    strict=st.booleans(),
    min_ready_seconds=st.sampled_from((0, 0, 0, 0, 5)),
    deleting_ms=st.sampled_from((0, 0, 0, NOW_MS)),
    status=st.builds(
        ReplicaSetStatus,
        replicas=st.integers(0, 6),
        observed_generation=st.integers(0, 2),
        conditions=st.sampled_from(((), (FAILURE,))),
    ),
)


@given(owners, st.lists(owned(), max_size=8), st.booleans(), st.booleans(), st.booleans())
def test_the_plan_is_the_same(owner, found, matching, reports, attempted):
    found = [msgspec.structs.replace(each, name=f"p{i}", uid=f"uid-{i}") for i, each in enumerate(found)]
    if matching:  # else the numbers are hardly ever equal
        owner = msgspec.structs.replace(owner, replicas=sum(not each.deleting_ms and each.ready for each in found))
    plan, shorter = decide(Snapshot(owner, tuple(found)), NOW_MS), at_rest(owner, counts(found))
    if shorter is None:
        return
    assert not plan.writes
    assert msgspec.structs.replace(plan, claimed=()) == msgspec.structs.replace(shorter, counts=None)
    for error in ("", "why"):
        told = (status(owner, each, error, NOW_MS, reports, attempted) for each in (plan, shorter))
        assert next(told) == next(told)


@pytest.mark.parametrize(
    ("letters", "replicas", "expected"),
    [
        pytest.param("RRR", 3, (3, 3, 3, 3), id="all ready"),
        pytest.param("RnpuFStR", 5, (5, 5, 2, 2), id="in any state"),
        pytest.param("", 0, (0, 0, 0, 0), id="none"),
        pytest.param("tF", 0, (0, 0, 0, 0), id="none that is active"),
        pytest.param("RRR", 2, None, id="one too many"),
        pytest.param("RR", 3, None, id="one too few"),
        pytest.param("RRm", 2, None, id="one is to be released"),
        pytest.param("RRm", 3, None, id="one is to be released and replaced"),
    ],
)
def test_examples(letters, replicas, expected):
    """It is no use to be right by never saying anything."""
    plan = at_rest(rs(replicas), counts(pods(letters)))
    assert (plan and plan.counts) == expected


@pytest.mark.parametrize("fields", [{"deleting_ms": NOW_MS}, {"min_ready_seconds": 1}, {"selector": None}])
def test_owners_that_take_the_pods(fields):
    assert at_rest(rs(2, **fields), counts(pods("RR"))) is None


def test_what_no_ingestor_wrote():
    assert at_rest(rs(2), {class_of(pod("a")): 2}) == Plan(counts=(2, 2, 2, 2))
    assert at_rest(rs(2), {class_of(pod("a")): 1, b"+?": 1}) is None
    assert at_rest(rs(2), {class_of(pod("a", namespace="other")): 2}) is None
