"""Owners and pods that belong together."""

import pytest

from oarlock.controllers.objects.model import OwnerRef, Requirement, label_selector
from oarlock.controllers.ownership.related import related_pods, siblings_of
from tests.controllers.builders import NOW_MS, pod, rs, with_fields

DEPLOYMENT = OwnerRef("apps/v1", "Deployment", "d", "dep-uid", True, True)
OTHER = with_fields(DEPLOYMENT, name="e", uid="other-uid")
CURRENT = rs(name="a", uid="ua", owner_refs=(DEPLOYMENT,), selector=label_selector({"v": "a"}))
FORMER = rs(name="b", uid="ub", owner_refs=(DEPLOYMENT,), selector=label_selector({"v": "b"}), deleting_ms=NOW_MS)
STRANGER = rs(name="c", uid="uc", owner_refs=(OTHER,), selector=label_selector({"v": "c"}))
BARE = rs(name="d", uid="ud", selector=label_selector({"v": "d"}))
ABROAD = with_fields(CURRENT, namespace="other", uid="ue")
ALL = [CURRENT, FORMER, STRANGER, BARE, ABROAD]


@pytest.mark.parametrize(
    ("owner", "siblings"),
    [
        pytest.param(CURRENT, [CURRENT, FORMER], id="11.2.5 the one being deleted is included"),
        pytest.param(STRANGER, [STRANGER], id="11.2.5 alone under its controller: itself"),
        pytest.param(BARE, [], id="without a controller: none"),
    ],
)
def test_siblings(owner, siblings):
    """Owners of the namespace under the same controller."""
    assert siblings_of(owner, ALL) == siblings


A, B, C, D = (pod(v, labels={"v": v}, owner_refs=()) for v in "abcd")


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        pytest.param(CURRENT, [A, B], id="11.2.7 pods of siblings, not of strangers"),
        pytest.param(STRANGER, [C], id="11.2.7 the only one of its controller"),
        pytest.param(BARE, [], id="11.2.7 no controller, no relatives"),
    ],
)
def test_related_pods(owner, expected):
    """11.2.7: related is what a sibling selects."""
    assert related_pods(siblings_of(owner, ALL), [A, B, C, D]) == expected


def test_related_by_labels_in_any_phase_each_once():
    """Whoever owns them, in whatever phase, without duplicates; an invalid sibling is passed over."""
    broken = with_fields(FORMER, selector=label_selector(None, (Requirement("v", "In"),)))
    nothing = with_fields(FORMER, selector=None)
    failed, abroad = with_fields(A, phase="Failed"), with_fields(A, namespace="other", uid="x")
    assert related_pods([broken, nothing, CURRENT], [failed, failed, abroad, B]) == [failed]
