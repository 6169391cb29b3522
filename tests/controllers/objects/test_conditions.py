"""11.2.24: the helpers for status.conditions."""

import pytest

from oarlock.controllers.objects.model import Condition
from oarlock.controllers.objects.status import get_condition, remove_condition, set_condition

FAILURE = Condition("ReplicaFailure", "True", "FailedCreate", "quota", 1)
FOREIGN = Condition("StatusUpdate", "True", "E2E", "set by a test", 2)


@pytest.mark.parametrize(
    ("conditions", "type_", "found"),
    [
        pytest.param((FAILURE, FOREIGN), "StatusUpdate", FOREIGN, id="11.2.24 existing"),
        pytest.param((FAILURE,), "Missing", None, id="11.2.24 missing"),
        pytest.param((), "Missing", None, id="of none"),
    ],
)
def test_get(conditions, type_, found):
    """The condition of a type, if there is one."""
    assert get_condition(conditions, type_) is found


OTHER_REASON = Condition("ReplicaFailure", "True", "FailedDelete", "", 3)
SAME_BUT_FOR_TEXT = Condition("ReplicaFailure", "True", "FailedCreate", "other text", 4)
OTHER_STATUS = Condition("ReplicaFailure", "False", "FailedCreate", "quota", 1)


@pytest.mark.parametrize(
    ("conditions", "new", "result"),
    [
        pytest.param((), FAILURE, (FAILURE,), id="11.2.24 the first"),
        pytest.param((FOREIGN,), FAILURE, (FOREIGN, FAILURE), id="11.2.24 after another type"),
        pytest.param(
            (FAILURE, FOREIGN), OTHER_REASON, (FOREIGN, OTHER_REASON), id="11.2.24 other reason: replaced, at the end"
        ),
        pytest.param((FAILURE,), OTHER_STATUS, (OTHER_STATUS,), id="other status: replaced"),
        pytest.param((FAILURE, FOREIGN), SAME_BUT_FOR_TEXT, (FAILURE, FOREIGN), id="same status and reason: as it was"),
    ],
)
def test_set(conditions, new, result):
    """One of a type, the newest last; no change where status and reason say the same."""
    assert set_condition(conditions, new) == result


@pytest.mark.parametrize(
    ("conditions", "type_", "result"),
    [
        pytest.param((), "ReplicaFailure", (), id="11.2.24 from none"),
        pytest.param((FAILURE, FOREIGN), "ReplicaFailure", (FOREIGN,), id="11.2.24 existing"),
        pytest.param((FOREIGN,), "ReplicaFailure", (FOREIGN,), id="11.2.24 absent type"),
    ],
)
def test_remove(conditions, type_, result):
    """Only that type goes."""
    assert remove_condition(conditions, type_) == result
