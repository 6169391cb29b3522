"""Which pods count."""

import pytest

from oarlock.controllers.objects.model import active_pods, is_active, is_finished
from oarlock.controllers.plan import Snapshot
from oarlock.controllers.replicaset.decide import decide
from tests.controllers.builders import NOW_MS, pod, rs


@pytest.mark.parametrize(
    ("phase", "deleting_ms", "active", "terminating"),
    [
        pytest.param("", 0, True, False, id="no phase yet"),
        pytest.param("Pending", 0, True, False, id="pending"),
        pytest.param("Running", 0, True, False, id="running"),
        pytest.param("Unknown", 0, True, False, id="unknown"),
        pytest.param("Succeeded", 0, False, False, id="11.4.8 succeeded"),
        pytest.param("Failed", 0, False, False, id="11.4.8 failed"),
        pytest.param("Running", NOW_MS, False, True, id="being deleted"),
        pytest.param("Failed", NOW_MS, False, False, id="failed and being deleted"),
    ],
)
def test_states(phase, deleting_ms, active, terminating):
    """Active is neither finished nor being deleted; terminating is being deleted and not finished."""
    one = pod("a", phase=phase, deleting_ms=deleting_ms)
    assert is_active(one) == active
    assert active_pods([one]) == ([one] if active else [])
    assert decide(Snapshot(rs(1), (one,)), NOW_MS).terminating == int(terminating)
    assert is_finished(one) == (phase in ("Succeeded", "Failed"))


def test_active_filter_keeps_the_order():
    """11.4.8: what is left comes in the order given."""
    a, b, c = pod("a"), pod("b", phase="Failed"), pod("c")
    assert active_pods((c, b, a)) == [c, a]


def test_key():
    """11.2.27: `namespace/name`, and none for none."""
    assert [p.key for p in (pod("a"), pod("b", namespace="other"))] == ["default/a", "other/b"]
    assert [p.key for p in ()] == []
