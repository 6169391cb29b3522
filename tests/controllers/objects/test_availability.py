"""When pods become available, and when to look again."""

import pytest

from oarlock.controllers.objects.availability import available_in_ms, is_available, look_again_ms, next_available_ms
from oarlock.controllers.objects.model import ReplicaSetStatus
from tests.controllers.builders import NOW_MS, S, pod, rs


def ready_for(ms, name="a", **fields):
    return pod(name, ready_since_ms=NOW_MS - ms, **fields)


NOT_READY = pod("n", ready=False, ready_since_ms=0)
NO_TIME = pod("z", ready_since_ms=0)


@pytest.mark.parametrize(
    ("one", "min_ready_seconds", "available", "in_ms"),
    [
        pytest.param(NOT_READY, 10, False, None, id="11.4.11 not ready"),
        pytest.param(NO_TIME, 10, False, None, id="11.4.11 no transition time: never"),
        pytest.param(ready_for(0), 0, True, None, id="11.4.11 no minReadySeconds"),
        pytest.param(NO_TIME, 0, True, None, id="no minReadySeconds needs no time"),
        pytest.param(ready_for(11 * S), 10, True, None, id="11.4.11 past"),
        pytest.param(ready_for(10 * S), 10, True, None, id="11.4.11 exactly now"),
        pytest.param(ready_for(4 * S), 10, False, 6 * S, id="11.4.11 in future"),
        pytest.param(NOT_READY, 0, False, None, id="not ready without minReadySeconds"),
    ],
)
def test_one_pod(one, min_ready_seconds, available, in_ms):
    """Available from the very moment the time is over."""
    assert is_available(one, min_ready_seconds, NOW_MS) is available
    assert available_in_ms(one, min_ready_seconds, NOW_MS) == in_ms


@pytest.mark.parametrize(
    ("given_pods", "later_ms", "delay_ms"),
    [
        pytest.param([], 0, None, id="11.4.12 no pods"),
        pytest.param([NOT_READY, NO_TIME], 0, None, id="11.4.12 no candidate"),
        pytest.param([ready_for(S), ready_for(3 * S, "b"), NOT_READY], 0, 7 * S, id="11.4.12 the earliest"),
        pytest.param([ready_for(30 * S), ready_for(2 * S, "b")], 0, 8 * S, id="11.4.12 available ones do not count"),
        pytest.param([ready_for(30 * S)], 0, None, id="11.4.12 all available"),
        pytest.param([ready_for(3 * S)], 4 * S, 3 * S, id="11.4.12 four seconds later: shorter"),
        pytest.param([ready_for(7 * S)], 4 * S, 0, id="11.4.12 four seconds later: at once"),
        pytest.param(
            [ready_for(9 * S), ready_for(2 * S, "b")], 4 * S, 0, id="11.4.12 the pod is chosen by the first moment"
        ),
    ],
)
def test_earliest_of_several(given_pods, later_ms, delay_ms):
    """Chosen at the moment of the status, counted from the present one."""
    assert next_available_ms(given_pods, 10, NOW_MS, NOW_MS + later_ms) == delay_ms


@pytest.mark.parametrize(
    ("min_ready_seconds", "ready", "available", "given_pods", "delay_ms"),
    [
        pytest.param(0, 2, 0, [ready_for(0)], None, id="no minReadySeconds"),
        pytest.param(10, 2, 2, [ready_for(0)], None, id="all that are ready are available"),
        pytest.param(10, 1, 0, [ready_for(S)], 9 * S, id="one to wait for"),
        pytest.param(10, 1, 0, [NO_TIME], 10 * S, id="no candidate: the whole time"),
    ],
)
def test_look_again(min_ready_seconds, ready, available, given_pods, delay_ms):
    """Only while fewer pods are available than ready."""
    owner = rs(min_ready_seconds=min_ready_seconds)
    status = ReplicaSetStatus(replicas=ready, ready=ready, available=available)
    assert look_again_ms(owner, given_pods, status, NOW_MS, NOW_MS) == delay_ms
