"""The ReplicaSet with a Deployment's template: which one it is, how it is made, and what is kept up to date in it.

Upstream: `pkg/controller/deployment/util/deployment_util.go` (FindNewReplicaSet, FindOldReplicaSets),
`pkg/controller/deployment/sync.go` (getNewReplicaSet).
"""

from collections.abc import Iterable, Mapping

from oarlock.controllers.deployment import annotations
from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.deployment.plan import Creation, SizeWrite, Update
from oarlock.controllers.deployment.sizing.sizes import count
from oarlock.controllers.history.model import revision_hash, revision_name
from oarlock.controllers.objects.model import HASH_LABEL, ReplicaSet

_NAME_MAX = 253


def new_and_old(
    deployment: Deployment, replicasets: Iterable[ReplicaSet]
) -> tuple[ReplicaSet | None, tuple[ReplicaSet, ...]]:
    """The ReplicaSet with the Deployment's template, or None, and all others in order of creation.

    Of several with that template the oldest is the new one, so that two turns never choose differently.
    """
    ordered = sorted(replicasets, key=by_age)
    for new in ordered:
        if new.template_digest == deployment.template_digest:
            return new, tuple([each for each in ordered if each is not new])
    return None, tuple(ordered)


def by_age(replicaset: ReplicaSet) -> tuple[int, str]:
    """Sorts by time of creation; the name breaks ties."""
    return replicaset.created_ms, replicaset.name


def creation(deployment: Deployment, revision: int, replicas: int) -> Creation:
    """The ReplicaSet to create. Raises ValueError for limits that cannot be read, and for a selector that asks for
    another hash label than it gets: it would be released at once, with its pods, and the next one made, without end.

    Its name follows from the template and the collision count, so that no two turns make two of one template.
    """
    hash_ = revision_hash(deployment.template_digest, deployment.status.collision_count)
    selector = deployment.selector
    if selector is not None and not selector.matches(deployment.template_labels | {HASH_LABEL: hash_}):
        raise ValueError(f"the selector would not match a new ReplicaSet: it must not ask for the label {HASH_LABEL}")
    name = replicaset_name(deployment.name, hash_)
    return Creation(name, hash_, replicas, annotations.on_creation(deployment, revision))


def replicaset_name(deployment_name: str, template_hash: str) -> str:
    """`<deployment>-<hash>`; the Deployment's name is cut where this would have more than 253 characters."""
    room = _NAME_MAX - len(template_hash) - 1
    if len(deployment_name) > room > 0:
        deployment_name = deployment_name[:room].rstrip("-.")  # no part of a name may begin with a hyphen
    return revision_name(deployment_name, template_hash)


def refresh(
    deployment: Deployment, new: ReplicaSet, revision: int, size_writes: Mapping[str, SizeWrite]
) -> Update | None:
    """The update that gives the new ReplicaSet its revision, the Deployment's annotations and its minReadySeconds; None
    where it has them.

    A change of minReadySeconds is one of the spec, so its size has to be observed again.
    """
    changes = annotations.to_change(deployment, new.annotations, revision)
    min_ready_seconds = deployment.min_ready_seconds
    same_spec = min_ready_seconds == new.min_ready_seconds
    if same_spec and not changes:
        return None
    counted = count(new, size_writes)
    return Update(new, new.replicas, counted.low, counted.high, changes, None if same_spec else min_ready_seconds)
