"""Events about an owner's pods."""

import pytest

from controllers import events
from controllers.events import Event
from controllers.flavour import REPLICASET


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(
            events.created("web-b"), Event("Normal", "SuccessfulCreate", "Created pod: web-b"), id="6.3 created"
        ),
        pytest.param(
            events.create_failed("quota"), Event("Warning", "FailedCreate", "Error creating: quota"), id="6.3 refused"
        ),
        pytest.param(
            events.deleted("web-b"), Event("Normal", "SuccessfulDelete", "Deleted pod: web-b"), id="6.4 deleted"
        ),
        pytest.param(
            events.delete_failed("why"), Event("Warning", "FailedDelete", "Error deleting: why"), id="6.4 failed"
        ),
    ],
)
def test_events(event, expected):
    """6.3, 6.4: reasons and messages as upstream words them."""
    assert event == expected


def test_delete_error():
    """6.4: the error of the turn."""
    assert events.delete_error("why") == "unable to delete pods: why"


def test_component():
    """6.6: the source of a ReplicaSet's events."""
    assert REPLICASET.component == "replicaset-controller"
