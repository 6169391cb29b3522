"""Events an owner gets for what was done to its pods. Upstream: `pkg/controller/controller_utils.go`."""

import msgspec

from oarlock.controllers.objects.model import Pod

NORMAL, WARNING = "Normal", "Warning"


class Event(msgspec.Struct, frozen=True):
    """Type (Normal or Warning), reason and message; who reports it is the flavour's component."""

    type: str
    reason: str
    message: str


def created(pod_name: str) -> Event:
    """A pod was created."""
    return Event(NORMAL, "SuccessfulCreate", f"Created pod: {pod_name}")


def create_failed(error: str) -> Event:
    """A create was refused or not answered. There is none if it was refused because its namespace is ending."""
    return Event(WARNING, "FailedCreate", f"Error creating: {error}")


def deleted(pod_name: str) -> Event:
    """A pod was deleted."""
    return Event(NORMAL, "SuccessfulDelete", f"Deleted pod: {pod_name}")


def delete_failed(error: str) -> Event:
    """A delete failed. There is none for a pod that had gone before."""
    return Event(WARNING, "FailedDelete", f"Error deleting: {error}")


def delete_error(error: str) -> str:
    """The text of a failed delete in the turn's error, and so in the ReplicaFailure condition."""
    return f"unable to delete pods: {error}"


# -- Only for DaemonSets. Upstream: `pkg/controller/daemon/daemon_controller.go`.

SELECTING_ALL = Event(
    WARNING, "SelectingAll", "This daemon set is selecting all pods. A non-empty selector is required."
)


def failed_pod(pod: Pod) -> Event:
    """A failed pod is about to be deleted."""
    text = f"Found failed daemon pod {pod.key} on node {pod.target_node}, will try to kill it"
    return Event(WARNING, "FailedDaemonPod", text)


def succeeded_pod(pod: Pod) -> Event:
    """A pod that ended by itself, which a daemon does not do, is about to be deleted."""
    text = f"Found succeeded daemon pod {pod.key} on node {pod.target_node}, will try to delete it"
    return Event(NORMAL, "SucceededDaemonPod", text)
