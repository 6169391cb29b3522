"""The annotations by which a Deployment and its ReplicaSets remember revisions and sizes.

Upstream: `pkg/controller/deployment/util/deployment_util.go` (SetNewReplicaSetAnnotations, SetReplicasAnnotations).
"""

from collections.abc import Mapping

from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.deployment.sizing.limits import max_surge
from oarlock.controllers.objects.wire_parts import parse_int64

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
_KEPT_APART = frozenset({REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO})
_HISTORY_CHARS = 2000
_INT32_MAX = 2**31 - 1


def sizes(deployment: Deployment) -> dict[str, str]:
    """What a ReplicaSet is to remember of the Deployment when its size is decided. Raises ValueError as limits do."""
    replicas = deployment.replicas
    return {DESIRED_REPLICAS: str(replicas), MAX_REPLICAS: str(replicas + max_surge(deployment))}


def size_in(annotations: Mapping[str, str], key: str) -> int | None:
    """A size that was remembered; None where it is missing or no number from 0 to the largest int32."""
    size = parse_int64(annotations.get(key, ""))
    return size if size is not None and 0 <= size <= _INT32_MAX else None


def shared(annotations: Mapping[str, str]) -> dict[str, str]:
    """Those that a Deployment and its new ReplicaSet have in common, such as the cause of a change."""
    return {key: value for key, value in annotations.items() if key not in _KEPT_APART}


def own(annotations: Mapping[str, str]) -> dict[str, str]:
    """The others: each object has its own."""
    return {key: value for key, value in annotations.items() if key in _KEPT_APART}


def on_creation(deployment: Deployment, revision: int) -> dict[str, str]:
    """All annotations of a ReplicaSet to create. Raises ValueError as limits do."""
    return shared(deployment.annotations) | {REVISION: str(revision)} | sizes(deployment)


def to_change(
    deployment: Deployment, present: Mapping[str, str], revision: int, history_chars: int = _HISTORY_CHARS
) -> dict[str, str]:
    """What is to be added to or overwritten in the annotations of the new ReplicaSet; nothing is ever removed.

    Its revision is raised to `revision`, never lowered: older ReplicaSets may have gone since it got its number. The
    number it had before, as a rollback gives an old ReplicaSet a new one, goes into its history. Nothing at all is
    changed where its revision is no number.
    """
    text = present.get(REVISION, "")
    former = parse_int64(text or "0")
    if former is None:
        return {}
    wanted = shared(deployment.annotations)
    if former < revision:
        wanted[REVISION] = str(revision)
        if text:
            wanted[REVISION_HISTORY] = _history(present.get(REVISION_HISTORY, ""), text, history_chars)
    return {key: value for key, value in wanted.items() if present.get(key) != value}


def _history(history: str, former: str, chars_max: int) -> str:
    """The list with `former` at its end. Its oldest entries go while it is too long; if all would, it stays."""
    if not history:
        return former
    entries = [*history.split(","), former]
    while len(entries) > 1 and len(",".join(entries)) > chars_max:
        del entries[0]
    kept = ",".join(entries)
    return kept if len(kept) <= chars_max else history
