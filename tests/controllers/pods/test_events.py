"""Events about an owner's pods."""

import pytest

from oarlock.controllers.flavour import REPLICASET
from oarlock.controllers.pods import events
from oarlock.controllers.pods.events import Event


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(events.created("web-b"), Event("Normal", "SuccessfulCreate", "Created pod: web-b"), id="created"),
        pytest.param(
            events.create_failed("quota"), Event("Warning", "FailedCreate", "Error creating: quota"), id="refused"
        ),
        pytest.param(events.deleted("web-b"), Event("Normal", "SuccessfulDelete", "Deleted pod: web-b"), id="deleted"),
        pytest.param(events.delete_failed("why"), Event("Warning", "FailedDelete", "Error deleting: why"), id="failed"),
    ],
)
def test_events(event, expected):
    """Reasons and messages as upstream words them."""
    assert event == expected


def test_delete_error():
    """The error of the turn."""
    assert events.delete_error("why") == "unable to delete pods: why"


def test_component():
    """The source of a ReplicaSet's events."""
    assert REPLICASET.component == "replicaset-controller"
