"""Events that only a DaemonSet gets. Upstream: `pkg/controller/daemon/daemon_controller.go`."""

from oarlock.controllers.objects.model import Pod
from oarlock.controllers.pods.events import NORMAL, WARNING, Event

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
