"""Events a Deployment gets. Upstream: `pkg/controller/deployment/` (sync.go, rollback.go, deployment_controller.go)."""

from oarlock.controllers.pods.events import NORMAL, WARNING, Event

SELECTING_ALL = Event(
    WARNING, "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required."
)
_REVISION_NOT_FOUND = "DeploymentRollbackRevisionNotFound"
NO_LAST_REVISION = Event(WARNING, _REVISION_NOT_FOUND, "Unable to find last revision.")
REVISION_NOT_FOUND = Event(WARNING, _REVISION_NOT_FOUND, "Unable to find the revision to rollback to.")


def scaled(replicaset: str, old: int, new: int) -> Event:
    """The size of a ReplicaSet was changed; of one that was created, from 0."""
    direction = "up" if new > old else "down"
    return Event(NORMAL, "ScalingReplicaSet", f"Scaled {direction} replica set {replicaset} from {old} to {new}")


def create_error(replicaset: str, error: str) -> str:
    """The text of a failed create, in the event and in the condition Progressing."""
    return f'Failed to create new replica set "{replicaset}": {error}'


def create_failed(replicaset: str, error: str) -> Event:
    """A ReplicaSet could not be created. There is none if it was refused because its namespace is ending."""
    return Event(WARNING, "ReplicaSetCreateError", create_error(replicaset, error))


def rolled_back(deployment: str, revision: int) -> Event:
    """The template of a revision became the Deployment's."""
    return Event(NORMAL, "DeploymentRollback", f'Rolled back deployment "{deployment}" to revision {revision}')


def template_unchanged(deployment: str) -> Event:
    """The revision that was asked for has the Deployment's template."""
    text = f'The rollback revision contains the same template as current deployment "{deployment}"'
    return Event(WARNING, "DeploymentRollbackTemplateUnchanged", text)
